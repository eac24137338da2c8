//! Makes the TLS options of a load from its flags. Called by `verbs::load::spec`.

use weir_model::load::TlsSpec;
use weir_model::protocol::Protocol;

use super::flags::{Args, TlsFlags};
use crate::exit::Failure;

/// TLS when the URLs are of a protocol over TLS, else none.
///
/// # Errors
/// Flags of TLS without it.
pub fn tls(args: &Args, protocol: Protocol) -> Result<Option<TlsSpec>, Failure> {
    if !protocol.is_tls() {
        let Some(flag) = used(&args.tls) else { return Ok(None) };
        let wanted = protocol.over_tls().map_or("https", Protocol::scheme);
        let found = format!("it is for TLS, and the URL is {}://", protocol.scheme());
        return Err(Failure::wrong(flag, found, format!("{wanted}:// in the URL")));
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
