//! The configuration file, one for the proxy and its three stores.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// What the processes are told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the proxy accepts clients.
    pub listen: SocketAddr,
    /// Where the stores accept the proxy.
    pub stores: [SocketAddr; 3],
    /// Where the stores tell their sizes and compactions over HTTP.
    pub monitors: Option<[SocketAddr; 3]>,
    /// The folder in which each store has one for its database: `store-1` to `store-3`.
    pub path: PathBuf,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// Worker threads of the proxy.
    #[serde(default = "one")]
    pub proxy_threads: usize,
    /// Worker threads of each store.
    #[serde(default = "one")]
    pub store_threads: usize,
    /// The proxy's connections to each store.
    #[serde(default = "one")]
    pub connections_per_store: usize,
    /// How long a store may take, ms; below the 600 ms for which a store keeps a prepared write.
    #[serde(default = "store_timeout")]
    pub store_timeout_ms: u64,
    /// A store's memory for blocks that were read, bytes.
    #[serde(default = "cache")]
    pub cache_bytes: usize,
    /// A store's memory for records that are not yet in a file, bytes; when it is full, a file is written.
    #[serde(default = "write_buffer")]
    pub write_buffer_bytes: usize,
    /// TLS with clients.
    pub tls: Option<Tls>,
}

/// TLS, with certificates as PEM files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The proxy's certificate and those that signed it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Whose signature a client's certificate must have; without it, none is asked for.
    pub client_ca: Option<PathBuf>,
    /// `1.2` and `1.3`, or one of them; empty: both.
    #[serde(default)]
    pub versions: Vec<String>,
    /// OpenSSL's names of the suites that are taken; empty: all that there are.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Clients may resume sessions.
    #[serde(default = "yes")]
    pub resumption: bool,
}

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// An orderly stop: no log is written.
    None,
    /// The end of the process: a log is written, and left to the kernel.
    Wal,
    /// The end of the machine: the log is on the disk before a write is acknowledged.
    Fsync,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn store_timeout() -> u64 {
    500
}

fn cache() -> usize {
    256 << 20
}

fn write_buffer() -> usize {
    64 << 20
}

impl Config {
    /// Reads a file.
    pub fn read(file: &str) -> anyhow::Result<Config> {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
        Config::parse(&text).with_context(|| format!("in {file}"))
    }

    fn parse(text: &str) -> anyhow::Result<Config> {
        let config: Config = toml::from_str(text)?;
        for (key, number, range) in [
            ("proxy_threads", config.proxy_threads, 1..1024),
            ("store_threads", config.store_threads, 1..1024),
            ("connections_per_store", config.connections_per_store, 1..1024),
            ("store_timeout_ms", config.store_timeout_ms as usize, 1..600),
        ] {
            ensure!(range.contains(&number), "{key} is {number}; expected: {} to {}", range.start, range.end - 1);
        }
        Ok(config)
    }

    /// How long a store may take.
    pub fn store_timeout(&self) -> Duration {
        Duration::from_millis(self.store_timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "listen = \"127.0.0.1:1\"\nstores = [\"127.0.0.1:2\", \"127.0.0.1:3\", \"127.0.0.1:4\"]\n\
                         path = \"/x\"\ndurability = \"wal\"\n";

    #[test]
    fn mistakes_are_told() {
        let told = |text: &str| Config::parse(text).map_err(|error| error.to_string());
        assert_eq!(told(RIGHT).unwrap().durability, Durability::Wal);
        for (from, to, says) in [
            (", \"127.0.0.1:4\"", "", "expected an array of length 3"),
            ("\"wal\"", "\"raid\"", "unknown variant `raid`, expected one of `none`, `wal`, `fsync`"),
            ("path =", "store_timeout_ms = 600\npath =", "store_timeout_ms is 600; expected: 1 to 599"),
            ("path =", "proxy_threads = 0\npath =", "proxy_threads is 0; expected: 1 to 1023"),
            ("listen", "lisen", "unknown field `lisen`"),
        ] {
            let error = told(&RIGHT.replace(from, to)).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
