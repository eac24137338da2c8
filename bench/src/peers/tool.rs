//! The load generators: how each is started so that all do the same as nearly as they can, and where they cannot.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::output;

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
    /// `h2load --h1`
    H2load,
    /// ApacheBench
    Ab,
    /// hey
    Hey,
    /// oha
    Oha,
    /// fortio
    Fortio,
}

/// All, in the order of tables.
pub const KINDS: [Kind; 9] =
    [Kind::Weir, Kind::Null, Kind::Wrk, Kind::H1load, Kind::H2load, Kind::Ab, Kind::Hey, Kind::Oha, Kind::Fortio];

/// A closed load.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where to.
    pub url: String,
    /// Connections.
    pub connections: u32,
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
        }
    }

    /// The kind with that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.name() == name)
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
            Kind::Oha => "keeps samples of every request",
            Kind::Fortio => "sends a User-Agent; one goroutine a connection",
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
        let (c, s) = (load.connections.to_string(), load.seconds.to_string());
        let time = format!("{s}s");
        // ab sets memory aside for so many samples; nothing does more a second on one core.
        let most = (u64::from(load.seconds) * 500_000).to_string();
        let words: Vec<&str> = match self {
            Kind::Weir => vec!["load", "--quiet", "--json", "--warmup", "0s", "-t", "1", "-c", &c, "-d", &time],
            Kind::Null => vec!["client", "-c", &c, "-s", &s],
            Kind::Wrk => vec!["-t", "1", "-c", &c, "-d", &time, "--timeout", "10s"],
            Kind::H1load => vec!["-t", "1", "-c", &c, "-d", &s],
            Kind::H2load => vec!["--h1", "-t", "1", "-c", &c, "-D", &s],
            Kind::Ab => vec!["-k", "-q", "-c", &c, "-t", &s, "-n", &most],
            Kind::Hey => vec!["-c", &c, "-z", &time, "-cpus", "1"],
            Kind::Oha => vec!["--no-tui", "-c", &c, "-z", &time],
            Kind::Fortio => vec!["load", "-quiet", "-qps", "0", "-c", &c, "-t", &time],
        };
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
            Kind::Wrk => output::wrk(stdout),
            Kind::H1load => output::h1load(stdout),
            Kind::H2load => output::h2load(stdout),
            Kind::Ab => output::ab(stdout),
            Kind::Hey | Kind::Oha => output::hey(stdout),
            Kind::Fortio => output::fortio(&format!("{stdout}\n{stderr}")),
        }
    }
}

/// Reads `name=path` of `--extra`.
///
/// # Errors
/// When the name is not one of [`KINDS`] or there is no such file.
pub fn extra(text: &str) -> anyhow::Result<Tool> {
    let (name, path) = text.split_once('=').with_context(|| format!("--extra {text}: must be name=path"))?;
    let kind = Kind::from_name(name).with_context(|| format!("--extra {text}: {name} is not known"))?;
    let program = PathBuf::from(path);
    if !program.is_file() {
        bail!("--extra {text}: there is no file {path}");
    }
    Ok(Tool { kind, program })
}

/// The program in `PATH`.
pub fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Where Debian has servers.
    folders.push(PathBuf::from("/usr/sbin"));
    folders.into_iter().map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_gets_connections_time_and_url() {
        let load = Load { url: "http://127.0.0.1:1/x".to_owned(), connections: 77, seconds: 3 };
        for kind in KINDS {
            let words = kind.arguments(&load);
            assert_eq!(words.last().unwrap(), &load.url);
            assert!(words.contains(&"77".to_owned()), "{words:?}");
            assert!(words.contains(&"3".to_owned()) || words.contains(&"3s".to_owned()), "{words:?}");
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
    }

    #[test]
    fn an_extra_that_cannot_be_is_refused() {
        assert!(extra("h1load").is_err());
        assert!(extra("curl=/bin/sh").is_err());
        assert!(extra("oha=/nonexistent").is_err());
        assert_eq!(extra("h1load=/bin/sh").unwrap().kind, Kind::H1load);
    }
}
