//! The configuration file, one for each process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Deserialize;

/// What a process is told. A proxy uses `stores` and `tls`; a store uses `path`, `durability`, the sizes and `monitor`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where it accepts connections.
    pub listen: SocketAddr,
    /// Worker threads; without it, as many as there are CPUs.
    pub threads: Option<usize>,
    /// The stores, in the same order for every proxy.
    #[serde(default)]
    pub stores: Vec<SocketAddr>,
    /// Connections to each store.
    #[serde(default = "one")]
    pub connections_per_store: usize,
    /// How long a store may take, ms; below the 600 ms for which a store keeps a prepared write.
    #[serde(default = "store_timeout")]
    pub store_timeout_ms: u64,
    /// TLS on `listen`.
    pub tls: Option<Tls>,
    /// RocksDB's folder.
    pub path: Option<PathBuf>,
    /// What an acknowledged write survives.
    #[serde(default)]
    pub durability: Durability,
    /// Memory for blocks that were read, bytes.
    #[serde(default = "cache")]
    pub cache_bytes: usize,
    /// Memory for records that are not yet in a file, bytes; when it is full, a file is written.
    #[serde(default = "write_buffer")]
    pub write_buffer_bytes: usize,
    /// Where a store tells its size and compactions over HTTP.
    pub monitor: Option<SocketAddr>,
}

/// TLS, with certificates as PEM files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The proxy's certificate and those that signed it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Clients must show a certificate; any will do, as with JunoDB.
    #[serde(default)]
    pub client_certificate: bool,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// An orderly stop: no log is written.
    None,
    /// The end of the process: a log is written, and left to the kernel.
    #[default]
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
        let stores = config.stores.len();
        ensure!(matches!(stores, 0 | 3), "stores has {stores} addresses; expected: 3");
        let timeout = config.store_timeout_ms;
        ensure!((1..600).contains(&timeout), "store_timeout_ms is {timeout}; expected: 1 to 599");
        ensure!(config.threads != Some(0), "threads is 0; expected: at least 1");
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

    #[test]
    fn mistakes_are_told() {
        let told = |more: &str| Config::parse(&format!("listen = \"127.0.0.1:1\"\n{more}")).map_err(|e| e.to_string());
        assert!(told("").is_ok());
        assert_eq!(told("durability = \"fsync\"").unwrap().durability, Durability::Fsync);
        assert!(told("stores = [\"127.0.0.1:2\"]").unwrap_err().contains("1 addresses; expected: 3"));
        assert!(told("store_timeout_ms = 600").unwrap_err().contains("expected: 1 to 599"));
        assert!(told("durability = \"raid\"").unwrap_err().contains("durability"));
        assert!(told("lisen = 1").unwrap_err().contains("lisen"));
    }
}
