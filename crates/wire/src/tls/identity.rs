//! Certificates and keys: read from PEM texts, or generated when none are given.

use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::error::{TlsError, TlsErrorKind};
use super::options::{ClientIdentity, Identity, KeyKind};

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

/// Names and addresses that a generated certificate is for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Identity {
    /// A self-signed certificate for `localhost`, `127.0.0.1` and `::1`, made once per process. It is its own
    /// authority: its `chain` verifies when it is given as [`super::ClientOptions::authorities`].
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn generated(kind: KeyKind) -> Result<Identity, TlsError> {
        static RSA: OnceLock<Result<Identity, TlsError>> = OnceLock::new();
        static P256: OnceLock<Result<Identity, TlsError>> = OnceLock::new();
        let made = match kind {
            KeyKind::Rsa => &RSA,
            KeyKind::P256 => &P256,
        };
        made.get_or_init(|| make(kind)).clone()
    }
}

impl ClientIdentity {
    /// A client's certificate, signed by an authority that signs nothing else.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn generated(kind: KeyKind) -> Result<ClientIdentity, TlsError> {
        let (authority_key, key) = (new_key(kind)?, new_key(kind)?);
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, "weir's clients");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = params.self_signed(&authority_key).map_err(failed)?;
        let issuer = Issuer::new(params, authority_key);
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, "weir");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        let identity = Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() };
        Ok(ClientIdentity { identity, authority: authority.pem().into_bytes() })
    }
}

fn failed(e: rcgen::Error) -> TlsError {
    TlsError::new(TlsErrorKind::Misuse, format!("no TLS certificate could be made: {e}"))
}

fn new_key(kind: KeyKind) -> Result<KeyPair, TlsError> {
    match kind {
        // 2048 bits are rcgen's default.
        KeyKind::Rsa => KeyPair::generate_for(&PKCS_RSA_SHA256),
        KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
    }
    .map_err(failed)
}

fn make(kind: KeyKind) -> Result<Identity, TlsError> {
    let key = new_key(kind)?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned)).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "weir");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() })
}
