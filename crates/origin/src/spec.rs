//! The options of an origin that a run starts, from what the run asks.

use std::io;
use std::path::Path;

use weir_model::load::{REQUEST_ID_HEADER, TlsVersion};
use weir_model::origin::{OriginSpec, OriginTls};
use weir_model::protocol::Protocol;
use weir_wire::request_id::ResponseKey;
use weir_wire::tls::{ClientAuth, Identity, ServerOptions, Version};

use crate::options::{Options, ResponseOptions};

impl Options {
    /// What a run asks. `read` reads a file of the origin's host.
    ///
    /// # Errors
    /// When a file cannot be read, or there is no address.
    pub fn from_spec(spec: &OriginSpec, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> io::Result<Options> {
        let (listen, also) = spec.listen.split_first().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Options {
            listen: *listen,
            also: also.to_vec(),
            protocol: if spec.protocol.is_keyvalue() { spec.protocol } else { Protocol::default() },
            tls: spec.tls.as_ref().map(|tls| server_options(tls, read)).transpose()?,
            http3: spec.protocol.is_quic(),
            connections: Some(spec.connections),
            threads: spec.cpus.len().max(1) as u32,
            cpus: spec.cpus.clone(),
            real_time: spec.real_time,
            driver: spec.driver,
            responses: ResponseOptions { headers: spec.headers.clone(), ..ResponseOptions::default() },
            faults: spec.faults.clone(),
            request_id_header: spec.request_id_header.clone().unwrap_or_else(|| REQUEST_ID_HEADER.to_owned()),
            response_key: ResponseKey(spec.response_key),
            ..Options::default()
        })
    }
}

fn server_options(spec: &OriginTls, read: &dyn Fn(&Path) -> io::Result<Vec<u8>>) -> io::Result<ServerOptions> {
    let clients = spec.client_ca.as_ref().map(|path| read(path)).transpose()?;
    let (oldest, newest) = spec.tls.versions;
    Ok(ServerOptions {
        identities: vec![Identity { chain: read(&spec.cert)?, key: read(&spec.key)? }],
        clients: clients.map_or(ClientAuth::None, ClientAuth::Required),
        versions: (version(oldest), version(newest)),
        resumption: spec.tls.resumption,
        ..ServerOptions::default()
    })
}

fn version(version: TlsVersion) -> Version {
    match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_survives_its_way_and_becomes_options() {
        let tls = OriginTls { cert: "c".into(), key: "k".into(), client_ca: Some("a".into()), tls: Default::default() };
        let listen = ["127.0.0.1:15001", "127.0.0.1:15002"].map(|addr| addr.parse().expect("an address"));
        let spec = OriginSpec {
            listen: listen.to_vec(),
            protocol: Protocol::Rediss,
            connections: 64,
            cpus: vec![2, 5],
            tls: Some(tls),
            response_key: [u64::MAX, 11],
            ..OriginSpec::default()
        };
        let text = serde_json::to_string(&spec).expect("JSON");
        let spec: OriginSpec = serde_json::from_str(&text).expect("the same");
        let path = |path: &Path| Ok(path.display().to_string().into_bytes());
        let options = Options::from_spec(&spec, &path).expect("options");
        assert_eq!((options.listen, &options.also[..]), (listen[0], &listen[1..]));
        assert_eq!(
            (options.threads, options.connections, options.request_id_header.as_str()),
            (2, Some(64), REQUEST_ID_HEADER)
        );
        assert_eq!((options.protocol, options.response_key), (Protocol::Rediss, ResponseKey([u64::MAX, 11])));
        let tls = options.tls.expect("TLS");
        assert_eq!((&tls.identities[0].chain[..], &tls.identities[0].key[..]), (&b"c"[..], &b"k"[..]));
        assert!(matches!(tls.clients, ClientAuth::Required(ca) if ca == b"a") && !tls.resumption);

        let missing = |_: &Path| Err(io::ErrorKind::NotFound.into());
        assert!(Options::from_spec(&spec, &missing).is_err());
        let http = OriginSpec { protocol: Protocol::H2, tls: None, ..spec };
        let options = Options::from_spec(&http, &missing).expect("no file is needed");
        assert_eq!((options.protocol, options.tls), (Protocol::default(), None));
        assert!(Options::from_spec(&OriginSpec::default(), &missing).is_err(), "no address");
    }
}
