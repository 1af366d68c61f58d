//! TLS identity of a server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::error::TransportError;

/// A certificate chain and its private key.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<ServerConfig>,
}

impl TlsIdentity {
    /// Reads two PEM files: the certificate chain and the private key.
    ///
    /// # Errors
    /// A file cannot be read or is not PEM, or the key does not belong to the certificate.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, TransportError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| TransportError::Tls {
                what: format!("`{}`", path.display()),
                why: error.to_string(),
            })
        };
        let name = |path: &Path| format!("`{}`", path.display());
        Self::from_named(&read(chain)?, &name(chain), &read(key)?, &name(key))
    }

    /// Reads the same from memory.
    ///
    /// # Errors
    /// A text is not PEM, or the key does not belong to the certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TransportError> {
        Self::from_named(chain, "the certificate", key, "the key")
    }

    fn from_named(
        chain: &[u8],
        chain_name: &str,
        key: &[u8],
        key_name: &str,
    ) -> Result<Self, TransportError> {
        let refuse = |what: &str, why: String| TransportError::Tls {
            what: what.to_owned(),
            why,
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(chain_name, format!("not PEM: {error}")))?;
        if chain.is_empty() {
            let why = "no certificate found (`-----BEGIN CERTIFICATE-----`)";
            return Err(refuse(chain_name, why.to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            let why = "no unencrypted private key found (`-----BEGIN PRIVATE KEY-----`)";
            refuse(key_name, why.to_owned())
        })?;
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| refuse("TLS", error.to_string()))?
                .with_no_client_auth()
                .with_single_cert(chain, key)
                .map_err(|error| match error {
                    rustls::Error::InconsistentKeys(_) => {
                        let why = format!("not the key of {chain_name}");
                        refuse(key_name, why)
                    }
                    other => refuse(chain_name, other.to_string()),
                })?;
        Ok(Self::new(config))
    }

    fn new(mut config: ServerConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            config: Arc::new(config),
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsIdentity(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a certificate for this machine and its key, as PEM.
    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    /// T8: errors name the file and the problem before the server starts.
    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (chain, key) = made();
        let (_, other) = made();
        let (chain, key) = (write("chain", &chain), write("key", &key));
        let (other, nothing) = (write("other", &other), write("nothing", "hello"));
        let absent = folder.path().join("absent");
        assert!(TlsIdentity::from_files(&chain, &key).is_ok());
        for (chain, key, named, why) in [
            (&absent, &key, "absent", "No such file"),
            (&chain, &absent, "absent", "No such file"),
            (&nothing, &key, "nothing", "no certificate"),
            (&key, &key, "key", "no certificate"),
            (&chain, &nothing, "nothing", "no unencrypted private key"),
            (&chain, &chain, "chain", "no unencrypted private key"),
            (&chain, &other, "other", "not the key of"),
        ] {
            let failed = TlsIdentity::from_files(chain, key).unwrap_err().to_string();
            assert!(failed.contains(named) && failed.contains(why), "{failed}");
        }
    }
}
