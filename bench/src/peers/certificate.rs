//! The certificate that all servers show: one for a run, made anew, signed by itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// What kind of key it has.
pub const KEY: &str = "ECDSA P-256";

/// A certificate and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Makes one in a folder, with the `openssl` program.
///
/// # Errors
/// When there is no such program or it fails.
pub fn make(folder: &Path) -> anyhow::Result<Certificate> {
    let made = Certificate { cert: folder.join("cert.pem"), key: folder.join("key.pem") };
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]);
    command.arg("-keyout").arg(&made.key).arg("-out").arg(&made.cert);
    let output = command.output().context("openssl cannot be started (apt package openssl)")?;
    if !output.status.success() {
        bail!("openssl made no certificate: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_and_a_key_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let made = make(folder.path()).unwrap();
        assert!(std::fs::read_to_string(made.cert).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(std::fs::read_to_string(made.key).unwrap().contains("PRIVATE KEY-----"));
    }

    #[test]
    fn no_folder_no_certificate() {
        assert!(make(Path::new("/nonexistent")).is_err());
    }
}
