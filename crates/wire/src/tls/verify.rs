//! Verifies the server's certificate for the client. [`super::config`] makes one verifier per load.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::error::TlsError;
use super::identity;
use super::options::KeyKind;

/// Checks the server's certificate, if there are authorities, and always that the peer has its key: a handshake
/// without that check would not be the work of a real client.
#[derive(Debug)]
pub(super) struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// `None`: any certificate is accepted.
    authorities: Option<(Arc<WebPkiServerVerifier>, Vec<CertificateDer<'static>>)>,
}

impl Verifier {
    /// The certificate must be issued by one of these authorities (PEM), or be one of them; `None`: any is accepted.
    pub(super) fn new(authorities: Option<&[u8]>, provider: &Arc<CryptoProvider>) -> Result<Verifier, TlsError> {
        let algorithms = provider.signature_verification_algorithms;
        let authorities = authorities.map(|pem| {
            let authorities = identity::certificates("the authorities", pem)?;
            let web_pki =
                WebPkiServerVerifier::builder_with_provider(roots(&authorities)?.into(), Arc::clone(provider))
                    .build()
                    .map_err(|e| TlsError::of_options("the authorities", &Error::General(e.to_string())))?;
            Ok((web_pki, authorities))
        });
        Ok(Verifier { algorithms, authorities: authorities.transpose()? })
    }

    /// Without authorities, a certificate that the library cannot read (X.509 v1, odd fields) is accepted as well; a
    /// wrong signature is not.
    fn readable(&self, result: Result<HandshakeSignatureValid, Error>) -> Result<HandshakeSignatureValid, Error> {
        match result {
            Err(Error::InvalidCertificate(why))
                if self.authorities.is_none() && why != CertificateError::BadSignature =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            other => other,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some((web_pki, authorities)) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        let result = web_pki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        // `openssl req -x509` makes certificates that are authorities and are used by servers; OpenSSL takes one that it was
        // given as an authority, and so do we. Its dates were checked before its use was.
        let given = authorities.iter().any(|authority| authority.as_ref() == end_entity.as_ref());
        match result {
            Err(Error::InvalidCertificate(why)) if given && is_authority(&why) => {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.readable(verify_tls12_signature(message, cert, dss, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.readable(verify_tls13_signature(message, cert, dss, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A store of these authorities.
pub(super) fn roots(authorities: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(|e| TlsError::of_options("the authorities", &e))?;
    }
    Ok(roots)
}

/// Whether a certificate is rejected because it is an authority's. rustls passes on webpki's reason as text only.
pub(super) fn is_authority(why: &CertificateError) -> bool {
    matches!(why, CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// What kind of key a certificate (DER) has: found by the key's algorithm identifier, which stands in it once.
pub(super) fn key_kind(certificate: &[u8]) -> Option<KeyKind> {
    // OBJECT IDENTIFIER rsaEncryption (1.2.840.113549.1.1.1) and prime256v1 (1.2.840.10045.3.1.7).
    const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
    let has = |id| memchr::memmem::find(certificate, id).is_some();
    if has(P256) {
        Some(KeyKind::P256)
    } else if has(RSA) {
        Some(KeyKind::Rsa)
    } else {
        None
    }
}
