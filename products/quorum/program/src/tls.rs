//! TLS for the proxy's clients.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, version};

use crate::config::Tls;

/// What takes connections over TLS as configured.
pub fn acceptor(tls: &Tls) -> anyhow::Result<TlsAcceptor> {
    let mut provider = aws_lc_rs::default_provider();
    let known = provider.cipher_suites.clone();
    for name in &tls.suites {
        ensure!(known.iter().any(|suite| openssl_name(suite) == *name), "tls.suites has {name:?}, which is not known");
    }
    provider.cipher_suites.retain(|suite| tls.suites.is_empty() || tls.suites.contains(&openssl_name(suite)));
    let versions = [("1.2", &version::TLS12), ("1.3", &version::TLS13)];
    for name in &tls.versions {
        ensure!(versions.iter().any(|(known, _)| known == name), "tls.versions has {name:?}; expected: 1.2 or 1.3");
    }
    let versions =
        versions.iter().filter(|(name, _)| tls.versions.is_empty() || tls.versions.iter().any(|v| v == name));
    let versions: Vec<_> = versions.map(|(_, version)| *version).collect();
    let provider = Arc::new(provider);
    let verifier = match &tls.client_ca {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate)?;
            }
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build()?
        }
    };
    let certificates = certificates(&tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).with_context(|| format!("reading {}", tls.key.display()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates, key)?;
    if tls.resumption {
        config.ticketer = aws_lc_rs::Ticketer::new()?;
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.with_context(|| format!("reading {}", file.display()))
}

/// `TLS_AES_128_GCM_SHA256` or `ECDHE-RSA-AES128-GCM-SHA256`.
fn openssl_name(suite: &SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    match name.strip_prefix("TLS13_") {
        Some(name) => format!("TLS_{name}"),
        None => {
            let name = name.trim_start_matches("TLS_").replace("_WITH_", "_").replace("AES_", "AES").replace('_', "-");
            name.replace("POLY1305-SHA256", "POLY1305")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_openssls_names() {
        let names: Vec<String> = aws_lc_rs::default_provider().cipher_suites.iter().map(openssl_name).collect();
        for name in [
            "TLS_AES_128_GCM_SHA256",
            "TLS_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "ECDHE-RSA-CHACHA20-POLY1305",
        ] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
    }
}
