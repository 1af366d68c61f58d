//! What is wrong with the certificate of a server, in words.

use std::error::Error;

use rustls::CertificateError;

use crate::error::DoorError;

const UNTRUSTED: DoorError = DoorError::Certificate {
    why: "nobody vouches for it whom this machine trusts",
    remedy: "add the certificate of whoever signed it to those that this machine trusts, or name a PEM file with all that \
             are to be trusted in the variable `SSL_CERT_FILE`",
};

const OF_AUTHORITY: DoorError = DoorError::Certificate {
    why: "it is one for signing others, and not for a server",
    remedy: "give the server one of its own, such as `openssl req -x509 -addext basicConstraints=critical,CA:FALSE` makes",
};

const OTHER_NAME: DoorError = DoorError::Certificate {
    why: "it is for another name than the one in the address",
    remedy: "use a name in the address that the certificate has, or give the server one for this name",
};

const EXPIRED: DoorError = DoorError::Certificate {
    why: "it has expired",
    remedy: "renew it at the server, and check the clock of this machine",
};

const TOO_YOUNG: DoorError = DoorError::Certificate {
    why: "it is not valid yet",
    remedy: "check the clocks of the server and of this machine",
};

/// What is told if the certificate is why there is no connection.
pub(super) fn fault(error: &(dyn Error + 'static)) -> Option<DoorError> {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.find_map(refused).and_then(told)
}

/// The fault that an error tells of or wraps: what one of input or output wraps is not among its sources.
fn refused<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CertificateError> {
    if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
        return Some(fault);
    }
    let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    refused(inner)
}

fn told(fault: &CertificateError) -> Option<DoorError> {
    use CertificateError as Fault;
    match fault {
        Fault::UnknownIssuer | Fault::BadSignature => Some(UNTRUSTED),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => Some(OTHER_NAME),
        Fault::Expired | Fault::ExpiredContext { .. } => Some(EXPIRED),
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => Some(TOO_YOUNG),
        // It has no other name where it comes from.
        Fault::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(OF_AUTHORITY)
        }
        _ => None,
    }
}
