//! PEM texts, and what is wrong with those that are none.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::error::{TlsError, TlsErrorKind};
use super::options::Identity;

/// The certificates in a PEM text, at least one.
pub(super) fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(TlsError::new(TlsErrorKind::Options, format!("{what}: there is no certificate in the PEM text"))),
        Err(e) => Err(TlsError::new(TlsErrorKind::Options, format!("{what}: the PEM text cannot be read: {e}"))),
    }
}

/// A certificate and its key, ready to sign with.
pub(super) fn certified(identity: &Identity, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = certificates("the certificate", &identity.chain)?;
    let key = PrivateKeyDer::from_pem_slice(&identity.key)
        .map_err(|e| TlsError::new(TlsErrorKind::Options, format!("the key: there is none in the PEM text ({e})")))?;
    let certified = CertifiedKey::from_der(chain, key, provider)
        .map_err(|e| TlsError::of_options("the certificate and its key", &e))?;
    Ok(Arc::new(certified))
}
