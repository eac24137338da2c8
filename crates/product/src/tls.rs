//! The TLS of one run: one certificate for all its products, and the TLS settings of client, origin and weir's own requests.
//! The launcher and the trial call it.
//!
//! The certificate is generated when the run begins and is self-signed. Clients trust it as their only authority. It is valid for
//! `localhost` and the loopback addresses only. A suite may ask for certificates of clients, too; an authority of the run signs
//! one for all of them.
//!
//! This module does not know products, nor what travels inside TLS.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_host::Host;
use weir_host::files::FileError;
use weir_model::load::{TlsSpec, TlsVersion};
use weir_model::suite::{KeyType, Protocol, Tls};
use weir_wire::tls::{
    ClientConfig, ClientIdentity, ClientOptions, Identity, KeyKind, ServerName, TlsError, Version, suites,
};

use crate::client::{TLS_NAME, WireProtocol};
use crate::render::{CERT, CERT_AND_KEY, CLIENT_CA, KEY};

/// What all trials of a run share.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct RunTls {
    settings: Tls,
    identity: Identity,
    /// The clients', if they need one.
    client: Option<ClientIdentity>,
}

/// The same as texts, for a process on another host.
#[derive(Serialize, Deserialize)]
struct Written {
    settings: Tls,
    /// Chain and key.
    identity: [String; 2],
    /// Chain, key and authority.
    client: Option<[String; 3]>,
}

impl From<RunTls> for Written {
    fn from(tls: RunTls) -> Written {
        let text = |pem: Vec<u8>| String::from_utf8_lossy(&pem).into_owned();
        Written {
            settings: tls.settings,
            identity: [tls.identity.chain, tls.identity.key].map(text),
            client: tls.client.map(|one| [one.identity.chain, one.identity.key, one.authority].map(text)),
        }
    }
}

impl From<Written> for RunTls {
    fn from(Written { settings, identity, client }: Written) -> RunTls {
        let [chain, key] = identity.map(String::into_bytes);
        let client = client.map(|texts| {
            let [chain, key, authority] = texts.map(String::into_bytes);
            ClientIdentity { identity: Identity { chain, key }, authority }
        });
        RunTls { settings, identity: Identity { chain, key }, client }
    }
}

impl RunTls {
    /// Makes the certificate that the suite asks for.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn new(settings: Tls) -> Result<RunTls, TlsError> {
        let kind = match settings.key {
            KeyType::P256 => KeyKind::P256,
            KeyType::Rsa2048 => KeyKind::Rsa,
        };
        let client = settings.client_certificates.then(|| ClientIdentity::generated(kind)).transpose()?;
        Ok(RunTls { settings, identity: Identity::generated(kind)?, client })
    }

    /// The same for a workload that has its own settings; `None`: it has the suite's.
    ///
    /// # Errors
    /// When the machine has no random numbers.
    pub fn of_workload(&self, settings: Option<Tls>) -> Result<RunTls, TlsError> {
        match settings.filter(|settings| *settings != self.settings) {
            None => Ok(self.clone()),
            Some(settings) => {
                let RunTls { identity, .. } = RunTls::new(Tls { client_certificates: false, ..settings })?;
                Ok(RunTls { settings, identity, client: self.client.clone() })
            }
        }
    }

    /// What the suite asks for.
    pub fn settings(&self) -> Tls {
        self.settings
    }

    /// The certificate and its key.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Writes the certificate and its key into a folder, by the names that templates know. Only the owner may read what has
    /// the key in it.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, host: &dyn Host, folder: &Path) -> Result<(), FileError> {
        let Identity { chain, key } = &self.identity;
        host.write(&folder.join(CERT), chain, false)?;
        host.write(&folder.join(KEY), key, true)?;
        host.write(&folder.join(CERT_AND_KEY), &[chain.as_slice(), key].concat(), true)?;
        // A product's own processes may be each other's clients, with the run's certificate.
        let authorities = |client: &ClientIdentity| [client.authority.as_slice(), chain].concat();
        self.client.iter().try_for_each(|client| host.write(&folder.join(CLIENT_CA), &authorities(client), false))
    }

    /// Writes the client's certificate and its key into a folder, if clients need one. [`RunTls::client_spec`] names them.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_client(&self, host: &dyn Host, folder: &Path) -> Result<(), FileError> {
        let Some(ClientIdentity { identity, .. }) = &self.client else { return Ok(()) };
        let (chain, key) = client_files(folder);
        host.create_dir(folder)?;
        host.write(&chain, &identity.chain, false)?;
        host.write(&key, &identity.key, true)
    }

    /// The protocol of weir's own requests, which accept only a peer with this run's certificate.
    ///
    /// # Errors
    /// When the options cannot be used, which a valid suite's can.
    pub fn wire_protocol(&self, protocol: Protocol) -> Result<WireProtocol, String> {
        self.wire_protocol_as(protocol, self.client.as_ref().map(|client| client.identity.clone()))
    }

    /// The same of a client without a certificate, where clients need one: no product may serve it.
    ///
    /// # Errors
    /// When the options cannot be used, which a valid suite's can.
    pub fn stranger(&self, protocol: Protocol) -> Result<Option<WireProtocol>, String> {
        match self.client.is_some() && protocol.is_tls() {
            true => self.wire_protocol_as(protocol, None).map(Some),
            false => Ok(None),
        }
    }

    fn wire_protocol_as(&self, protocol: Protocol, identity: Option<Identity>) -> Result<WireProtocol, String> {
        if !protocol.is_tls() {
            return Ok(WireProtocol { protocol, ..WireProtocol::default() });
        }
        let (oldest, newest) = self.settings.versions;
        let options = ClientOptions {
            versions: (version(oldest), version(newest)),
            suites: offered(),
            authorities: Some(self.identity.chain.clone()),
            alpn: protocol.alpn().map(str::to_owned),
            identity,
            ..ClientOptions::default()
        };
        let config = ClientConfig::new(&options).map_err(|e| format!("TLS: {e}"))?;
        let name = ServerName::new(TLS_NAME).map_err(|e| e.to_string())?;
        Ok(WireProtocol { protocol, tls: Some((config, name)), network: None })
    }

    /// The TLS settings of the client in a protocol. `folder` is where [`RunTls::write_client`] wrote.
    ///
    /// Over QUIC the client offers one key exchange, as where the suite names one: some products choose another there than their files say
    /// for TCP.
    pub fn client_spec(&self, protocol: Protocol, folder: &Path) -> TlsSpec {
        let mut groups = Vec::new();
        if protocol.is_quic() || self.settings.group.is_some() {
            groups.push(self.settings.group().to_owned());
            // A certificate of TLS 1.2 has to be of a curve that the client names.
            groups.extend(
                (!protocol.is_quic() && self.settings.versions.0 == TlsVersion::Tls12).then(|| "secp256r1".to_owned()),
            );
        }
        TlsSpec {
            groups,
            server_name: Some(TLS_NAME.to_owned()),
            versions: self.settings.versions,
            suites: offered(),
            resumption: self.settings.resumption,
            identity: self.client.as_ref().map(|_| client_files(folder)),
            ..TlsSpec::default()
        }
    }
}

/// The files of the client's certificate and its key, where [`RunTls::write_client`] wrote.
pub fn client_files(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join(CERT), folder.join(KEY))
}

/// All cipher suites. First come those that products are configured to allow ([`Tls::suites12`], [`Tls::suites13`]), so that a
/// server without configuration that follows the client's preference chooses the same suite.
pub fn offered() -> Vec<String> {
    let (first, rest): (Vec<&str>, Vec<&str>) =
        suites().map(|(name, _)| name).partition(|name| name.ends_with("AES_128_GCM_SHA256"));
    first.into_iter().chain(rest).map(str::to_owned).collect()
}

fn version(version: TlsVersion) -> Version {
    match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use weir_host::LocalHost;

    #[test]
    fn the_key_is_its_owners_alone() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let folder = scratch.path().join("product");
        RunTls::new(Tls::default()).expect("made").write(&LocalHost::new("/weir".into()), &folder).expect("written");
        let mode = |name: &str| fs::metadata(folder.join(name)).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(KEY), mode(CERT_AND_KEY)), (0o600, 0o600));
        let text = |name: &str| fs::read_to_string(folder.join(name)).expect("text");
        assert!(text(CERT).starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(text(KEY).contains("PRIVATE KEY"));
        assert_eq!(text(CERT_AND_KEY), text(CERT) + &text(KEY));
    }

    #[test]
    fn products_allow_the_suites_that_clients_prefer() {
        for key in [KeyType::P256, KeyType::Rsa2048] {
            let tls = Tls { key, ..Tls::default() };
            let iana = |openssl: &str| openssl.replace("AES128", "AES_128").replace('-', "_");
            let offered = offered();
            for name in tls.suites12().iter().chain(tls.suites13()) {
                let name = iana(name);
                let core = name.trim_start_matches("TLS_").replace("ECDHE_ECDSA_", "").replace("ECDHE_RSA_", "");
                assert!(offered[..3].iter().any(|first| first.ends_with(&core)), "{name} {offered:?}");
            }
            assert_eq!(offered.len(), suites().count());
        }
    }
}
