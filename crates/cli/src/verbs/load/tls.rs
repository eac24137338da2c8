//! Makes the TLS options of a load from its flags. Called by `verbs::load::spec`.

use std::path::Path;

use weir_model::load::TlsSpec;

use super::flags::{Args, TlsFlags};
use super::urls::UrlLine;
use super::{request, wrong};
use crate::exit::Failure;

/// TLS when the URLs are https, none when they are http.
///
/// # Errors
/// Flags of TLS without https, URLs of both kinds, files that cannot be read.
pub fn tls(args: &Args, lines: &[UrlLine]) -> Result<Option<TlsSpec>, Failure> {
    let https = lines.iter().filter(|line| line.url.tls).count();
    if https > 0 && https < lines.len() {
        return Err(wrong("URL", "some URLs are https, and some http".to_owned(), "one kind for all of a load"));
    }
    if https == 0 {
        return match used(&args.tls) {
            Some(flag) => Err(wrong(flag, "it is for TLS, and the URL is http://".to_owned(), "an https:// URL")),
            None => Ok(None),
        };
    }
    let flags = &args.tls;
    // Checked here, where the flag's name is known; the content is parsed when the load begins.
    pem("--cacert", flags.cacert.as_deref(), "CERTIFICATE")?;
    pem("--cert", flags.cert.as_deref(), "CERTIFICATE")?;
    pem("--key", flags.key.as_deref(), "PRIVATE KEY")?;
    let default = TlsSpec::default();
    Ok(Some(TlsSpec {
        server_name: flags.tls_name.clone(),
        authorities: flags.cacert.clone(),
        versions: flags.tls_version.map_or(default.versions, |versions| (versions.0, versions.1)),
        suites: flags.tls_suite.clone(),
        groups: flags.tls_group.clone(),
        identity: flags.cert.clone().zip(flags.key.clone()),
        resumption: flags.resume,
    }))
}

/// A file can be read and has something of that name in it.
fn pem(flag: &str, path: Option<&Path>, what: &str) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let bytes = request::read(flag, path)?;
    let end = format!("{what}-----");
    if bytes.windows(end.len()).any(|part| part == end.as_bytes()) {
        return Ok(());
    }
    let found = format!("there is no {} in {}", what.to_lowercase(), path.display());
    Err(wrong(flag, found, &format!("a PEM file, which has a line that ends with {end}")))
}

/// The first flag of TLS that was given.
fn used(flags: &TlsFlags) -> Option<&'static str> {
    [
        ("--tls-version", flags.tls_version.is_some()),
        ("--tls-suite", !flags.tls_suite.is_empty()),
        ("--tls-group", !flags.tls_group.is_empty()),
        ("--tls-name", flags.tls_name.is_some()),
        ("--cacert", flags.cacert.is_some()),
        ("--cert", flags.cert.is_some()),
        ("--key", flags.key.is_some()),
        ("--resume", flags.resume),
    ]
    .into_iter()
    .find_map(|(name, given)| given.then_some(name))
}
