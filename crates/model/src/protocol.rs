//! The table of protocols, with one entry for each. Other code asks an entry instead of naming a protocol.
//! Suites, products and records name protocols; client, origin and lab carry them out, with or without TLS.
//! `docs/add-a-protocol.md` says what a new protocol takes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::{one_of, unique};

/// What is spoken above TCP, TLS or QUIC: a folder in `weir_wire`, and a session in `weir_load` and in `weir_origin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Application {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
    /// Redis's protocol, RESP.
    Redis,
    /// JunoDB's.
    Juno,
    /// Memcached's text commands.
    Memcached,
}

impl Application {
    /// All of them, in the order of their numbers.
    pub const ALL: [Application; 6] = [
        Application::Http1,
        Application::Http2,
        Application::Http3,
        Application::Redis,
        Application::Juno,
        Application::Memcached,
    ];

    /// Its name in counters, which is its ALPN identifier where it has one.
    pub fn id(self) -> &'static str {
        match self {
            Application::Http1 => "http/1.1",
            Application::Http2 => "h2",
            Application::Http3 => "h3",
            Application::Redis => "redis",
            Application::Juno => "juno",
            Application::Memcached => "memcached",
        }
    }

    /// Whether it asks for keys and values ([`crate::keyvalue`]), not for paths.
    pub fn is_keyvalue(self) -> bool {
        matches!(self, Application::Redis | Application::Juno | Application::Memcached)
    }

    /// A time to live in what its requests count: Redis has milliseconds, the others whole seconds.
    pub fn whole_ttl(self, ttl: Duration) -> Duration {
        match self {
            Application::Redis => Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            _ => Duration::from_secs(ttl.as_secs()),
        }
    }
}

/// The part of a protocol that its application does not decide.
#[derive(Debug)]
struct Entry {
    /// For people: "HTTP/2 over TLS".
    title: &'static str,
    application: Application,
    /// Over TLS on TCP, or with the TLS of QUIC.
    tls: bool,
    /// What URLs begin with, and the port that is meant where they name none.
    scheme: &'static str,
    port: u16,
}

const fn plain(title: &'static str, application: Application, scheme: &'static str, port: u16) -> Entry {
    Entry { title, application, tls: false, scheme, port }
}

const fn over_tls(title: &'static str, application: Application, scheme: &'static str, port: u16) -> Entry {
    Entry { title, application, tls: true, scheme, port }
}

macro_rules! protocols {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal = $entry:expr;)+) => {
        /// A protocol, as clients and products speak it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum Protocol {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Protocol {
            /// All of them, the one that is meant where none is named first.
            pub const ALL: &[Protocol] = &[$(Protocol::$variant),+];

            /// The name used in files and tables.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Protocol::$variant => $name,)+
                }
            }

            fn entry(self) -> Entry {
                match self {
                    $(Protocol::$variant => $entry,)+
                }
            }
        }
    };
}

protocols! {
    /// HTTP/1.1 over plain TCP.
    Http11 "http/1.1" = plain("plain HTTP/1.1", Application::Http1, "http", 80);
    /// HTTP/1.1 over TLS.
    Https11 "https/1.1" = over_tls("HTTP/1.1 over TLS", Application::Http1, "https", 443);
    /// HTTP/2 over plain TCP, with prior knowledge.
    H2c "h2c" = plain("HTTP/2 over plain TCP", Application::Http2, "http", 80);
    /// HTTP/2 over TLS, agreed on by ALPN.
    H2 "h2" = over_tls("HTTP/2 over TLS", Application::Http2, "https", 443);
    /// HTTP/3, over QUIC.
    H3 "h3" = over_tls("HTTP/3", Application::Http3, "https", 443);
    /// Redis's protocol (RESP) over plain TCP.
    Redis "redis" = plain("Redis's protocol", Application::Redis, "redis", 6379);
    /// Redis's protocol (RESP) over TLS.
    Rediss "rediss" = over_tls("Redis's protocol over TLS", Application::Redis, "rediss", 6379);
    /// JunoDB's protocol over plain TCP.
    Juno "juno" = plain("JunoDB's protocol", Application::Juno, "juno", 8080);
    /// JunoDB's protocol over TLS.
    Junos "junos" = over_tls("JunoDB's protocol over TLS", Application::Juno, "junos", 5080);
    /// Memcached's text commands over plain TCP.
    Memcached "memcached" = plain("memcached's protocol", Application::Memcached, "memcached", 11211);
    /// Memcached's text commands over TLS.
    Memcacheds "memcacheds" = over_tls("memcached's protocol over TLS", Application::Memcached, "memcacheds", 11211);
}

impl Default for Protocol {
    /// The one that is meant where a file names none.
    fn default() -> Protocol {
        Protocol::ALL[0]
    }
}

impl Protocol {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Protocol> {
        Protocol::ALL.iter().copied()
    }

    /// Its name in sentences for people.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// What is spoken above TCP, TLS or QUIC.
    pub fn application(self) -> Application {
        self.entry().application
    }

    /// Whether it is spoken over TLS: on TCP, or with the TLS of QUIC.
    pub fn is_tls(self) -> bool {
        self.entry().tls
    }

    /// Whether it is spoken over QUIC, whose datagrams are UDP's: a server has no TCP port for it.
    pub fn is_quic(self) -> bool {
        self.application() == Application::Http3
    }

    /// What peers agree on by ALPN, where they use that.
    pub fn alpn(self) -> Option<&'static str> {
        matches!(self.application(), Application::Http1 | Application::Http2 | Application::Http3)
            .then(|| self.application().id())
    }

    /// The version that a response states, where responses do.
    pub fn version(self) -> Option<&'static str> {
        match self.application() {
            Application::Http1 => Some("HTTP/1.1"),
            Application::Http2 => Some("HTTP/2"),
            Application::Http3 => Some("HTTP/3"),
            Application::Redis | Application::Juno | Application::Memcached => None,
        }
    }

    /// Whether a connection has streams, answered in any order.
    pub fn is_multiplexed(self) -> bool {
        matches!(self.application(), Application::Http2 | Application::Http3 | Application::Juno)
    }

    /// What URLs begin with.
    pub fn scheme(self) -> &'static str {
        self.entry().scheme
    }

    /// The port that is meant where a URL names none.
    pub fn default_port(self) -> u16 {
        self.entry().port
    }

    /// Whether it asks for keys and values ([`crate::keyvalue`]), not for paths.
    pub fn is_keyvalue(self) -> bool {
        self.application().is_keyvalue()
    }

    /// The protocol, the first of several, whose URLs have this scheme.
    pub fn of_scheme(scheme: &str) -> Option<Protocol> {
        Protocol::all().find(|protocol| protocol.scheme() == scheme)
    }

    /// The schemes of the protocols that are wanted, for sentences: `one of http://, https://`.
    pub fn schemes(wanted: impl Fn(Protocol) -> bool) -> String {
        let wanted = Protocol::all().filter(|protocol| wanted(*protocol));
        one_of(unique(wanted.map(|protocol| format!("{}://", protocol.scheme()))))
    }

    /// The first protocol that is the same over TLS, where there is one.
    pub fn over_tls(self) -> Option<Protocol> {
        Protocol::all().find(|other| other.is_tls() && other.application() == self.application())
    }

    /// The longest value, bytes, and the longest time to live, s, that servers of a key-value protocol take as they are
    /// packaged; `None`: there is no such limit.
    pub fn limits(self) -> Option<(u64, u64)> {
        match self.application() {
            Application::Juno => Some((204_800, 259_200)),
            Application::Memcached => Some((1_048_000, 2_592_000)),
            _ => None,
        }
    }

    /// Whether a client can ask that replicas have a write.
    pub fn has_replicas(self) -> bool {
        self.application() == Application::Redis
    }

    /// Whether a client can say who it is when a connection opens, by user and password.
    pub fn has_login(self) -> bool {
        self.application() == Application::Redis
    }

    /// What a product that is spoken to in this speaks to the origin: always the same, so that what differs between two
    /// protocols is the product's work on its clients' side.
    pub fn upstream(self) -> Protocol {
        let application = if self.is_keyvalue() { self.application() } else { Application::Http1 };
        let plain = Protocol::all().find(|other| !other.is_tls() && other.application() == application);
        plain.unwrap_or_default()
    }

    /// The flags of product templates, and whether each is true for this protocol. All are always defined.
    pub fn template_flags(self) -> Vec<(&'static str, bool)> {
        vec![("h2", self.application() == Application::Http2), ("h3", self.is_quic()), ("tls", self.is_tls())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_agree_with_themselves() {
        for &protocol in Protocol::ALL {
            assert_eq!(serde_json::to_value(protocol).expect("a name"), protocol.as_str());
            assert!(!protocol.title().is_empty());
            assert!(!protocol.upstream().is_tls(), "{protocol:?}");
            assert_eq!(protocol.upstream().upstream(), protocol.upstream());
            if protocol.is_tls() {
                assert_eq!(protocol.template_flags().iter().find(|(name, _)| *name == "tls"), Some(&("tls", true)));
            }
        }
        for (number, application) in Application::ALL.into_iter().enumerate() {
            assert_eq!(application as usize, number);
        }
    }

    #[test]
    fn schemes_say_whether_there_is_tls() {
        assert_eq!(Protocol::schemes(|protocol| !protocol.is_keyvalue()), "one of http://, https://");
        let secure = [Protocol::Http11, Protocol::H2c, Protocol::Junos].map(Protocol::over_tls);
        assert_eq!(secure, [Some(Protocol::Https11), Some(Protocol::H2), Some(Protocol::Junos)]);
        let found = ["http", "https", "ftp"].map(|scheme| Protocol::of_scheme(scheme).map(Protocol::is_tls));
        assert_eq!(found, [Some(false), Some(true), None]);
    }

    #[test]
    fn only_those_who_carry_a_protocol_out_name_one() {
        // Model, wire, load and origin carry protocols out; conformance asks questions of single ones. All others ask entries.
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut named = Vec::new();
        // `bench` has a type of its own with this name, for what its peers speak.
        sources(&root.join("crates"), &mut |path, text| {
            let path = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            let carries = ["crates/model/", "crates/wire/", "crates/load/", "crates/origin/"];
            let exempt = carries.iter().any(|crate_| path.starts_with(crate_))
                || ["conformance/", "/tests/", "tests.rs"].iter().any(|part| path.contains(part));
            // Tests stand at the end of a file.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let names = Protocol::ALL.iter().map(|protocol| format!("Protocol::{protocol:?}"));
            if !exempt && names.into_iter().any(|name| names_it(code, &name)) {
                named.push(path);
            }
        });
        assert!(named.is_empty(), "these ask for a protocol by name instead of its properties: {named:#?}");
    }

    /// Whether a text has this name, and not only the beginning of another.
    fn names_it(code: &str, name: &str) -> bool {
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        code.match_indices(name).any(|(at, _)| ends(&code[at + name.len()..]))
    }

    fn sources(folder: &std::path::Path, check: &mut dyn FnMut(&std::path::Path, &str)) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, check);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                check(&path, &std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }
}
