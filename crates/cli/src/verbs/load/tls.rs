//! Makes the TLS options of a load from its flags. Called by `verbs::load::spec`.

use weir_model::load::TlsSpec;

use super::flags::{Args, TlsFlags};
use super::urls::UrlLine;
use crate::exit::Failure;

/// TLS when the URLs are https, none when they are http.
///
/// # Errors
/// Flags of TLS without https, URLs of both kinds.
pub fn tls(args: &Args, lines: &[UrlLine]) -> Result<Option<TlsSpec>, Failure> {
    let https = lines.iter().filter(|line| line.url.tls).count();
    if https > 0 && https < lines.len() {
        return Err(Failure::wrong("URL", "some URLs are https, and some http", "one kind for all of a load"));
    }
    if https == 0 {
        return match used(&args.tls) {
            Some(flag) => Err(Failure::wrong(flag, "it is for TLS, and the URL is http://", "an https:// URL")),
            None => Ok(None),
        };
    }
    let flags = &args.tls;
    Ok(Some(TlsSpec {
        server_name: flags.tls_name.clone(),
        authorities: flags.cacert.clone(),
        versions: flags.tls_version.unwrap_or(TlsSpec::default().versions),
        suites: flags.tls_suite.clone(),
        groups: flags.tls_group.clone(),
        identity: flags.cert.clone().zip(flags.key.clone()),
        resumption: flags.resume,
    }))
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
