//! Certificates made when nobody gave any.

use std::sync::OnceLock;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};

use super::error::{TlsError, TlsErrorKind};
use super::options::{Identity, KeyKind};

/// Names and addresses that a generated certificate is for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Identity {
    /// A self-signed certificate for `localhost`, `127.0.0.1` and `::1`, made once a process. It is its own authority: given as
    /// [`super::ClientOptions::authorities`], its `chain` verifies.
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

fn make(kind: KeyKind) -> Result<Identity, TlsError> {
    let failed =
        |e: rcgen::Error| TlsError::new(TlsErrorKind::Misuse, format!("no TLS certificate could be made: {e}"));
    let key = match kind {
        // 2048 bits are rcgen's default.
        KeyKind::Rsa => KeyPair::generate_for(&PKCS_RSA_SHA256),
        KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
    }
    .map_err(failed)?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned)).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "weir");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() })
}
