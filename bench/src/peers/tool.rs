//! The load generators: how each is started so that all do the same as nearly as they can, and where they cannot.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::cases::{OPEN, Wire};
use super::output;

/// The only cipher suite, so that nobody compares two: the one that OpenSSL and rustls put first.
pub const SUITE: &str = "TLS_AES_256_GCM_SHA384";

/// Which load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `weir load`
    Weir,
    /// `null client`, the floor
    Null,
    /// wrk
    Wrk,
    /// h1load
    H1load,
    /// h2load; with HTTP/1.1 `h2load --h1`
    H2load,
    /// ApacheBench
    Ab,
    /// hey
    Hey,
    /// oha
    Oha,
    /// fortio
    Fortio,
    /// wrk2, for the open load only
    Wrk2,
}

/// All, in the order of tables.
pub const KINDS: [Kind; 10] = [
    Kind::Weir,
    Kind::Null,
    Kind::Wrk,
    Kind::H1load,
    Kind::H2load,
    Kind::Ab,
    Kind::Hey,
    Kind::Oha,
    Kind::Fortio,
    Kind::Wrk2,
];

/// A closed load.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where to.
    pub url: String,
    /// What is spoken.
    pub wire: Wire,
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each; 1 with HTTP/1.1.
    pub streams: u32,
    /// Whole seconds: wrk, ab and h1load know no others.
    pub seconds: u32,
}

/// A load generator that is there.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Which.
    pub kind: Kind,
    /// Its program.
    pub program: PathBuf,
}

impl Kind {
    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Weir => "weir",
            Kind::Null => "null",
            Kind::Wrk => "wrk",
            Kind::H1load => "h1load",
            Kind::H2load => "h2load",
            Kind::Ab => "ab",
            Kind::Hey => "hey",
            Kind::Oha => "oha",
            Kind::Fortio => "fortio",
            Kind::Wrk2 => "wrk2",
        }
    }

    /// The kind with that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it takes part in closed loads of that kind.
    pub fn speaks(self, wire: Wire) -> bool {
        match wire {
            Wire::Plain => self != Kind::Wrk2,
            Wire::Tls => matches!(self, Kind::Weir | Kind::Wrk | Kind::H1load | Kind::H2load | Kind::Oha),
            Wire::H2c | Wire::H2Tls => matches!(self, Kind::Weir | Kind::H2load | Kind::Oha),
        }
    }

    /// In what it differs from weir, where that matters to its cost; empty where it does not.
    pub fn differs(self) -> &'static str {
        match self {
            Kind::Weir => "",
            Kind::Null => "checks only how many bytes came; blocking connects, one after another",
            Kind::Wrk => "parses the whole answer, keeps a histogram; checks no status",
            Kind::H1load => "parses status and length; keeps sums, no histogram unless asked",
            Kind::H2load => "keeps times of requests; sends a User-Agent",
            Kind::Ab => "speaks HTTP/1.0 with keep-alive; keeps and sorts every sample at the end",
            Kind::Hey => "asks for gzip, sends User-Agent and Content-Type; keeps samples of every request",
            Kind::Oha => "sends Accept, Accept-Encoding and User-Agent; keeps samples of every request",
            Kind::Fortio => "sends a User-Agent; one goroutine a connection",
            Kind::Wrk2 => "a timer of 1 ms",
        }
    }

    /// The apt package that has it.
    pub fn package(self) -> Option<&'static str> {
        match self {
            Kind::Wrk => Some("wrk"),
            Kind::Hey => Some("hey"),
            Kind::Ab => Some("apache2-utils"),
            Kind::H2load => Some("nghttp2-client"),
            _ => None,
        }
    }

    /// Arguments for a load.
    pub fn arguments(self, load: &Load) -> Vec<String> {
        let (c, s, m) = (load.connections.to_string(), load.seconds.to_string(), load.streams.to_string());
        let time = format!("{s}s");
        // ab sets memory aside for so many samples; nothing does more a second on one core.
        let most = (u64::from(load.seconds) * 500_000).to_string();
        let rate = OPEN.0.to_string();
        let mut words: Vec<&str> = match self {
            Kind::Weir => vec!["load", "--quiet", "--json", "--warmup", "0s", "-t", "1", "-c", &c, "-d", &time],
            Kind::Null => vec!["client", "-c", &c, "-s", &s],
            Kind::Wrk => vec!["-t", "1", "-c", &c, "-d", &time, "--timeout", "10s"],
            Kind::H1load => vec!["-t", "1", "-c", &c, "-d", &s],
            Kind::H2load => vec!["-t", "1", "-c", &c, "-D", &s],
            Kind::Ab => vec!["-k", "-q", "-c", &c, "-t", &s, "-n", &most],
            Kind::Hey => vec!["-c", &c, "-z", &time, "-cpus", "1"],
            Kind::Oha => vec!["--no-tui", "--worker-threads", "1", "-c", &c, "-z", &time],
            Kind::Fortio => vec!["load", "-quiet", "-qps", "0", "-c", &c, "-t", &time],
            Kind::Wrk2 => vec!["-t", "1", "-c", &c, "-d", &time, "-R", &rate, "--latency"],
        };
        match (self, load.wire.is_h2()) {
            (Kind::Weir, true) => words.extend(["--http", "2", "--streams", &m]),
            (Kind::H2load, true) => words.extend(["-m", &m]),
            (Kind::H2load, false) => words.push("--h1"),
            (Kind::Oha, true) => words.extend(["--http2", "-p", &m]),
            _ => {}
        }
        match self {
            _ if !load.wire.is_tls() => {}
            Kind::Weir => words.extend(["--tls-version", "1.3", "--tls-suite", SUITE]),
            Kind::H2load => words.extend(["--tls13-ciphers", SUITE]),
            Kind::H1load => words.extend(["--tls-ver", "TLS1.3"]),
            Kind::Oha => words.push("--insecure"),
            // wrk checks no certificate and offers the suite first.
            _ => {}
        }
        words.into_iter().map(str::to_owned).chain([load.url.clone()]).collect()
    }

    /// Requests done, out of what it printed on standard output and standard error.
    ///
    /// # Errors
    /// When the output has none, or tells of errors.
    pub fn requests(self, stdout: &str, stderr: &str) -> anyhow::Result<u64> {
        match self {
            Kind::Weir => output::weir(stdout).map(|load| load.requests),
            Kind::Null => output::null(stdout),
            Kind::Wrk | Kind::Wrk2 => output::wrk(stdout),
            Kind::H1load => output::h1load(stdout),
            Kind::H2load => output::h2load(stdout),
            Kind::Ab => output::ab(stdout),
            Kind::Hey | Kind::Oha => output::hey(stdout),
            Kind::Fortio => output::fortio(&format!("{stdout}\n{stderr}")),
        }
    }
}

/// Finds a program in the folders of `PEERS_PATH` and then of `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    let folders = |variable: &str| std::env::var_os(variable);
    // Where Debian has servers.
    let last = PathBuf::from("/usr/sbin");
    find_in(name, &[folders("PEERS_PATH"), folders("PATH")].map(Option::unwrap_or_default)).or_else(|| {
        let program = last.join(name);
        program.is_file().then_some(program)
    })
}

fn find_in(name: &str, paths: &[impl AsRef<OsStr>]) -> Option<PathBuf> {
    paths
        .iter()
        .flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>())
        .map(|folder| folder.join(name))
        .find(|program| program.is_absolute() && program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(wire: Wire) -> Load {
        Load { url: "http://127.0.0.1:1/x".to_owned(), wire, connections: 77, streams: 9, seconds: 3 }
    }

    #[test]
    fn every_tool_gets_connections_time_and_url() {
        for kind in KINDS {
            let words = kind.arguments(&load(Wire::Plain));
            assert_eq!(words.last().unwrap(), "http://127.0.0.1:1/x");
            assert!(words.contains(&"77".to_owned()), "{words:?}");
            assert!(words.contains(&"3".to_owned()) || words.contains(&"3s".to_owned()), "{words:?}");
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
    }

    #[test]
    fn only_http2_has_streams_and_only_tls_a_suite() {
        let all = [Wire::Plain, Wire::Tls, Wire::H2c, Wire::H2Tls];
        for (kind, wire) in KINDS.into_iter().flat_map(|kind| all.map(|wire| (kind, wire))) {
            let words = kind.arguments(&load(wire));
            if kind.speaks(wire) {
                assert_eq!(words.contains(&"9".to_owned()), wire.is_h2(), "{words:?}");
            }
            assert!(!words.contains(&SUITE.to_owned()) || wire.is_tls(), "{words:?}");
        }
    }

    #[test]
    fn programs_are_looked_for_in_order() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sh"), "").unwrap();
        let here = folder.path().as_os_str();
        assert_eq!(find_in("sh", &[here, OsStr::new("/bin")]).unwrap(), folder.path().join("sh"));
        assert_eq!(find_in("sh", &[OsStr::new("/bin"), here]).unwrap(), PathBuf::from("/bin/sh"));
        assert!(find_in("sh", &[OsStr::new("")]).is_none());
    }
}
