//! Turns the TLS options of a load into the configuration of `weir_wire`'s sessions, and reads the PEM files. It does
//! not know connections.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_model::load::{LoadSpec, Target, TlsResult, TlsSpec, TlsVersion};
use weir_wire::tls::{ClientConfig, ClientOptions, Identity, KeyKind, Negotiated, ServerName, Version};

use crate::error::SpecError;
use crate::protocol::Alpn;

/// The TLS configuration that all sessions of a load share.
#[derive(Debug)]
pub(crate) struct TlsPlan {
    pub config: ClientConfig,
    pub alpn: Alpn,
    /// The server name (SNI), by target.
    pub names: Vec<ServerName>,
}

impl TlsPlan {
    /// Reads the files and checks the options. `None`: the load does not use TLS.
    ///
    /// # Errors
    /// The file or option that cannot be used, as text for people.
    pub(crate) fn new(spec: &LoadSpec) -> Result<Option<TlsPlan>, SpecError> {
        let Some(tls) = &spec.tls else {
            return Ok(None);
        };
        let alpn = Alpn::of(spec.protocol);
        let options = options(tls, alpn)?;
        let config = ClientConfig::new(&options).map_err(|error| format!("TLS: {error}"))?;
        let names: Result<_, SpecError> = spec.targets.iter().map(|target| name(tls, target)).collect();
        Ok(Some(TlsPlan { config, alpn, names: names? }))
    }
}

fn options(tls: &TlsSpec, alpn: Alpn) -> Result<ClientOptions, SpecError> {
    let identity = |(chain, key): &(_, _)| Ok::<_, SpecError>(Identity { chain: read(chain)?, key: read(key)? });
    Ok(ClientOptions {
        versions: (version(tls.versions.0), version(tls.versions.1)),
        suites: tls.suites.clone(),
        groups: tls.groups.clone(),
        authorities: tls.authorities.as_deref().map(read).transpose()?,
        identity: tls.identity.as_ref().map(identity).transpose()?,
        alpn: alpn.name().map(str::to_owned),
        resumption: tls.resumption,
    })
}

fn version(version: TlsVersion) -> Version {
    match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    }
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, SpecError> {
    let path = path.as_ref();
    fs::read(path).map_err(|error| format!("TLS: {}: {error}", path.display()).into())
}

/// The name given, or the host of the target's authority.
fn name(tls: &TlsSpec, target: &Target) -> Result<ServerName, SpecError> {
    let host = tls.server_name.as_deref().unwrap_or_else(|| host_of(&target.authority));
    ServerName::new(host)
        .map_err(|error| format!("TLS: {host:?}: {error}; give the name that is to be asked for").into())
}

/// An authority less its port.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The last colon of [::1] or ::1 is inside the address.
        Some((host, port))
            if port.bytes().all(|b| b.is_ascii_digit()) && (!host.contains(':') || host.ends_with(']')) =>
        {
            host
        }
        _ => authority,
    }
}

/// Counts what a connection has negotiated. Only the first of a name allocates.
pub(crate) fn count(result: &mut TlsResult, negotiated: &Negotiated) {
    let count = |counts: &mut BTreeMap<String, u64>, name: &str| match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    };
    result.handshakes += 1;
    result.resumed += u64::from(negotiated.resumed);
    count(&mut result.versions, negotiated.version.as_str());
    count(&mut result.suites, negotiated.suite);
    if let Some(group) = negotiated.group {
        count(&mut result.groups, group);
    }
    count(&mut result.keys, negotiated.peer_key.map_or("other", KeyKind::as_str));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    #[test]
    fn the_host_is_the_authority_less_its_port() {
        for (authority, host) in [
            ("example.com", "example.com"),
            ("example.com:8443", "example.com"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]:8443", "[::1]"),
            ("[::1]", "[::1]"),
            ("::1", "::1"),
        ] {
            assert_eq!(host_of(authority), host);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let mut spec = spec();
        assert!(TlsPlan::new(&spec).unwrap().is_none());
        spec.tls = Some(TlsSpec { authorities: Some("/nowhere/ca.pem".into()), ..TlsSpec::default() });
        let error = TlsPlan::new(&spec).unwrap_err();
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }
}
