//! The table of protocols, with one entry for each. Other code asks an entry instead of naming a protocol.
//! Suites, products and records name protocols; client, origin and lab carry them out, with or without TLS.
//! `docs/add-a-protocol.md` says what a new protocol takes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::{one_of, unique};

/// What is spoken above TCP or TLS: a folder in `weir_wire`, and a session in `weir_load` and in `weir_origin`.
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

/// All that is known of a protocol.
#[derive(Debug)]
struct Entry {
    /// For people: "HTTP/2 over TLS".
    title: &'static str,
    application: Application,
    /// Over TLS on TCP.
    tls: bool,
    /// What peers agree on by ALPN; `None`: ALPN is not used.
    alpn: Option<&'static str>,
    /// The version that a response states; `None`: responses state none.
    version: Option<&'static str>,
    /// A connection has streams, which are answered in any order.
    multiplexed: bool,
    /// weir's client and origin speak it.
    measured: bool,
    /// What URLs begin with, and the port that is meant where they name none.
    scheme: &'static str,
    port: u16,
    /// The longest value, bytes, and the longest time to live, s, that servers take as they are packaged; `None`: as large as
    /// weir's own limits.
    limits: Option<(u64, u64)>,
    /// What a product that is spoken to in this speaks to the origin.
    upstream: Protocol,
    /// The flags that are true in product templates.
    flags: &'static [&'static str],
}

macro_rules! protocols {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $entry:tt)+) => {
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

            fn entry(self) -> &'static Entry {
                match self {
                    $(Protocol::$variant => &Entry $entry,)+
                }
            }
        }
    };
}

protocols! {
    /// HTTP/1.1 over plain TCP.
    Http11 "http/1.1" {
        title: "plain HTTP/1.1",
        application: Application::Http1,
        tls: false,
        alpn: Some("http/1.1"),
        version: Some("HTTP/1.1"),
        multiplexed: false,
        measured: true,
        scheme: "http",
        port: 80,
        limits: None,
        upstream: Protocol::Http11,
        flags: &[],
    }
    /// HTTP/1.1 over TLS.
    Https11 "https/1.1" {
        title: "HTTP/1.1 over TLS",
        application: Application::Http1,
        tls: true,
        alpn: Some("http/1.1"),
        version: Some("HTTP/1.1"),
        multiplexed: false,
        measured: true,
        scheme: "https",
        port: 443,
        limits: None,
        upstream: Protocol::Http11,
        flags: &["tls"],
    }
    /// HTTP/2 over plain TCP, with prior knowledge.
    H2c "h2c" {
        title: "HTTP/2 over plain TCP",
        application: Application::Http2,
        tls: false,
        alpn: Some("h2"),
        version: Some("HTTP/2"),
        multiplexed: true,
        measured: true,
        scheme: "http",
        port: 80,
        limits: None,
        upstream: Protocol::Http11,
        flags: &["h2"],
    }
    /// HTTP/2 over TLS, agreed on by ALPN.
    H2 "h2" {
        title: "HTTP/2 over TLS",
        application: Application::Http2,
        tls: true,
        alpn: Some("h2"),
        version: Some("HTTP/2"),
        multiplexed: true,
        measured: true,
        scheme: "https",
        port: 443,
        limits: None,
        upstream: Protocol::Http11,
        flags: &["tls", "h2"],
    }
    /// HTTP/3. A product may have it; weir does not measure it.
    H3 "h3" {
        title: "HTTP/3",
        application: Application::Http3,
        tls: false,
        alpn: Some("h3"),
        version: Some("HTTP/3"),
        multiplexed: true,
        measured: false,
        scheme: "https",
        port: 443,
        limits: None,
        upstream: Protocol::Http11,
        flags: &[],
    }
    /// Redis's protocol (RESP) over plain TCP.
    Redis "redis" {
        title: "Redis's protocol",
        application: Application::Redis,
        tls: false,
        alpn: None,
        version: None,
        multiplexed: false,
        measured: true,
        scheme: "redis",
        port: 6379,
        limits: None,
        upstream: Protocol::Redis,
        flags: &[],
    }
    /// Redis's protocol (RESP) over TLS.
    Rediss "rediss" {
        title: "Redis's protocol over TLS",
        application: Application::Redis,
        tls: true,
        alpn: None,
        version: None,
        multiplexed: false,
        measured: true,
        scheme: "rediss",
        port: 6379,
        limits: None,
        upstream: Protocol::Redis,
        flags: &["tls"],
    }
    /// JunoDB's protocol over plain TCP.
    Juno "juno" {
        title: "JunoDB's protocol",
        application: Application::Juno,
        tls: false,
        alpn: None,
        version: None,
        multiplexed: true,
        measured: true,
        scheme: "juno",
        port: 8080,
        limits: Some((204_800, 259_200)),
        upstream: Protocol::Juno,
        flags: &[],
    }
    /// JunoDB's protocol over TLS.
    Junos "junos" {
        title: "JunoDB's protocol over TLS",
        application: Application::Juno,
        tls: true,
        alpn: None,
        version: None,
        multiplexed: true,
        measured: true,
        scheme: "junos",
        port: 5080,
        limits: Some((204_800, 259_200)),
        upstream: Protocol::Juno,
        flags: &["tls"],
    }
    /// Memcached's text commands over plain TCP.
    Memcached "memcached" {
        title: "memcached's protocol",
        application: Application::Memcached,
        tls: false,
        alpn: None,
        version: None,
        multiplexed: false,
        measured: true,
        scheme: "memcached",
        port: 11211,
        limits: Some((1_048_000, 2_592_000)),
        upstream: Protocol::Memcached,
        flags: &[],
    }
    /// Memcached's text commands over TLS.
    Memcacheds "memcacheds" {
        title: "memcached's protocol over TLS",
        application: Application::Memcached,
        tls: true,
        alpn: None,
        version: None,
        multiplexed: false,
        measured: true,
        scheme: "memcacheds",
        port: 11211,
        limits: Some((1_048_000, 2_592_000)),
        upstream: Protocol::Memcached,
        flags: &["tls"],
    }
}

impl Default for Protocol {
    /// The one that is meant where a file names none.
    fn default() -> Protocol {
        Protocol::ALL[0]
    }
}

impl Protocol {
    /// Those that weir measures.
    pub fn measured() -> impl Iterator<Item = Protocol> {
        Protocol::ALL.iter().copied().filter(|protocol| protocol.is_measured())
    }

    /// Whether weir's client and origin speak it. (A product may speak others.)
    pub fn is_measured(self) -> bool {
        self.entry().measured
    }

    /// Its name in sentences for people.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// What is spoken above TCP or TLS.
    pub fn application(self) -> Application {
        self.entry().application
    }

    /// Whether it is spoken over TLS on TCP.
    pub fn is_tls(self) -> bool {
        self.entry().tls
    }

    /// What peers agree on by ALPN, where they use that.
    pub fn alpn(self) -> Option<&'static str> {
        self.entry().alpn
    }

    /// The version that a response states, where responses do.
    pub fn version(self) -> Option<&'static str> {
        self.entry().version
    }

    /// Whether a connection has streams, answered in any order.
    pub fn is_multiplexed(self) -> bool {
        self.entry().multiplexed
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

    /// The measured protocol, the first of several, whose URLs have this scheme.
    pub fn of_scheme(scheme: &str) -> Option<Protocol> {
        Protocol::measured().find(|protocol| protocol.scheme() == scheme)
    }

    /// The schemes of the measured protocols that are wanted, for sentences: `one of http://, https://`.
    pub fn schemes(wanted: impl Fn(Protocol) -> bool) -> String {
        let wanted = Protocol::measured().filter(|protocol| wanted(*protocol));
        one_of(unique(wanted.map(|protocol| format!("{}://", protocol.scheme()))))
    }

    /// The first measured protocol that is the same over TLS, where there is one.
    pub fn over_tls(self) -> Option<Protocol> {
        Protocol::measured().find(|other| other.is_tls() && other.application() == self.application())
    }

    /// Whether URLs with this scheme are fetched over TLS; `None`: no measured protocol has such URLs.
    pub fn scheme_is_tls(scheme: &str) -> Option<bool> {
        Protocol::of_scheme(scheme).map(Protocol::is_tls)
    }

    /// The longest value, bytes, and the longest time to live, s, that servers of a key-value protocol take as they are
    /// packaged; `None`: there is no such limit.
    pub fn limits(self) -> Option<(u64, u64)> {
        self.entry().limits
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
        self.entry().upstream
    }

    /// The flags of product templates, and whether each is true for this protocol. All are always defined.
    pub fn template_flags(self) -> Vec<(&'static str, bool)> {
        let mut names: Vec<&str> = Protocol::ALL.iter().flat_map(|protocol| protocol.entry().flags).copied().collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| (name, self.entry().flags.contains(&name))).collect()
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
            assert!(!protocol.upstream().is_tls() && protocol.upstream().is_measured(), "{protocol:?}");
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
        let found = ["http", "https", "ftp"].map(Protocol::scheme_is_tls);
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
