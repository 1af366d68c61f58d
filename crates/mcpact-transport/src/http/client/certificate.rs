//! Explanations of rejected server certificates.

use std::error::Error;

use rustls::CertificateError;

use super::connector::causes;
use crate::error::TransportError;

const UNTRUSTED: TransportError = TransportError::Certificate {
    why: "it is signed by an unknown authority",
    remedy: "add the certificate of the authority to the system's trusted certificates, or set `SSL_CERT_FILE` to a PEM file with all \
             trusted certificates",
};

const OF_AUTHORITY: TransportError = TransportError::Certificate {
    why: "it is a CA certificate, not a server certificate",
    remedy: "install a server certificate, for example from `openssl req -x509 -addext basicConstraints=critical,CA:FALSE`",
};

const OTHER_NAME: TransportError = TransportError::Certificate {
    why: "it is not valid for the host name in the URL",
    remedy: "use a host name of the certificate in the URL, or install a certificate for this name",
};

const EXPIRED: TransportError = TransportError::Certificate {
    why: "it has expired",
    remedy: "renew it on the server, and check the clock of this host",
};

const TOO_YOUNG: TransportError = TransportError::Certificate {
    why: "it is not valid yet",
    remedy: "check the clocks of the server and this host",
};

/// Returns the error if a certificate was rejected.
pub(super) fn fault(error: &(dyn Error + 'static)) -> Option<TransportError> {
    causes(error).find_map(refused).and_then(told)
}

/// Finds the certificate error in a chain of errors. An error wrapped by [`io::Error`] is not among its sources.
fn refused<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CertificateError> {
    if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
        return Some(fault);
    }
    let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    refused(inner)
}

fn told(fault: &CertificateError) -> Option<TransportError> {
    use CertificateError as Fault;
    match fault {
        Fault::UnknownIssuer | Fault::BadSignature => Some(UNTRUSTED),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => Some(OTHER_NAME),
        Fault::Expired | Fault::ExpiredContext { .. } => Some(EXPIRED),
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => Some(TOO_YOUNG),
        // rustls has no variant for it.
        Fault::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(OF_AUTHORITY)
        }
        _ => None,
    }
}
