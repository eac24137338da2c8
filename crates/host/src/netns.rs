//! A network on this machine: a namespace for each host, joined by a bridge, with addresses and ports of their own.
//!
//! The bridge is in a namespace of its own, too: the root namespace is not touched, and no packet leaves the network. It is
//! made with `ip` and `tc`, and removed when [`Network`] is dropped. A killed weir leaves its namespaces behind; nobody holds
//! their lock then, and [`remove_leftovers`], which each new network calls, removes them. Does not know what runs in them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use rustix::fs::{FlockOperation, flock};

use crate::files::FileError;
use crate::threads::on_thread;

/// Where `ip` keeps namespaces by name.
const NAMES: &str = "/run/netns";

/// Where the owner of each network holds a lock.
const LOCKS: &str = "/run/weir";

/// Most hosts of a network: addresses of a /24 without the bridge's.
const MOST: usize = 253;

/// Bytes that a limited link passes at once. Linux merges packets into bursts of 64 KiB.
const BURST: u64 = 128 * 1024;

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The system lets only root make namespaces that have a name.
    #[error("network namespaces: not root\n  expected: root, or --topology local")]
    NotRoot,
    /// There are more hosts than addresses.
    #[error("network namespaces: {0} hosts\n  expected: at most {MOST}")]
    TooMany(usize),
    /// A program that makes them is missing.
    #[error("network namespaces: no `{0}` in PATH\n  expected: the package iproute2")]
    Missing(String),
    /// A program refused.
    #[error("network namespaces: `{command}`: {said}")]
    Refused {
        /// Its argument vector, joined with blanks.
        command: String,
        /// Its standard error.
        said: String,
    },
    /// A file cannot be written or read.
    #[error("network namespaces: {0}")]
    File(#[from] FileError),
}

/// A host of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// The host's name.
    pub host: String,
    /// The namespace's name, `weir-<8 hex digits>-<host>`.
    pub name: String,
    /// Its address, in a /24 with the others.
    pub address: Ipv4Addr,
    /// Its link at the bridge, in the bridge's namespace.
    pub port: String,
}

/// Arguments that go before those of a program, to run it in the namespace of this name.
pub(crate) fn enter(name: &str) -> Vec<String> {
    vec!["nsenter".into(), format!("--net={}", Path::new(NAMES).join(name).display()), "--".into()]
}

impl Namespace {
    /// The file that stands for it.
    pub fn path(&self) -> PathBuf {
        Path::new(NAMES).join(&self.name)
    }

    /// Arguments that go before those of a program, to run it in the namespace.
    pub fn enter(&self) -> Vec<String> {
        enter(&self.name)
    }

    /// Calls `work` on a thread that is in the namespace. Sockets that it makes stay there.
    ///
    /// # Errors
    /// When the namespace is gone, or this is not root, and those of `work`.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> std::io::Result<T> + Send) -> std::io::Result<T> {
        let namespace = File::open(self.path())?;
        let entered = || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            work()
        };
        on_thread(entered)?
    }
}

/// Bandwidth, delay and loss of a network's links.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Links {
    /// The most that each carries, either way, bits a second; `None`: no limit.
    pub rate: Option<u64>,
    /// How long each packet to these hosts takes.
    pub delay: Duration,
    /// The share of packets to these hosts that are lost, at random, per cent.
    pub loss: Option<f64>,
    /// The hosts of `delay` and `loss`.
    pub delayed: Vec<String>,
}

impl Links {
    /// `tc`'s words for what is on the way to a host: netem's, with room for all that can be on the way.
    fn netem(&self, host: &str) -> Option<Vec<String>> {
        let far = !self.delay.is_zero() || self.loss.is_some();
        if !far || !self.delayed.iter().any(|name| name == host) {
            return None;
        }
        let mut words = vec!["netem".to_owned(), "limit".to_owned(), "100000".to_owned()];
        if !self.delay.is_zero() {
            words.extend(["delay".to_owned(), format!("{}us", self.delay.as_micros())]);
        }
        words.extend(self.loss.iter().flat_map(|loss| ["loss".to_owned(), format!("{loss}%")]));
        Some(words)
    }
}

/// A network of namespaces. Dropping it removes them; processes in them keep theirs until they end.
#[derive(Debug)]
pub struct Network {
    id: String,
    hosts: Vec<Namespace>,
    /// Its lock says that the network has an owner. Programs that are started do not inherit it.
    _lock: File,
}

impl Network {
    /// Makes a network of hosts with these names.
    ///
    /// # Errors
    /// See [`NetworkError`]. Nothing stays behind then.
    pub fn create<'a>(hosts: impl IntoIterator<Item = &'a str>, links: &Links) -> Result<Network, NetworkError> {
        let hosts: Vec<&str> = hosts.into_iter().collect();
        if hosts.len() > MOST {
            return Err(NetworkError::TooMany(hosts.len()));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(NetworkError::NotRoot);
        }
        let id = format!("{:08x}", rand::random::<u32>());
        let lock = {
            let _others = one_at_a_time()?;
            remove_unowned()?;
            let path = lock_file(&id);
            let file = File::create(&path).map_err(FileError::at(&path))?;
            flock(&file, FlockOperation::LockExclusive).map_err(|e| FileError::at(&path)(e.into()))?;
            file
        };
        let mut network = Network { id, hosts: Vec::new(), _lock: lock };
        network.add_bridge()?;
        for host in hosts {
            network.add(host, links)?;
        }
        Ok(network)
    }

    /// Its hosts, in the order in which they were asked for.
    pub fn hosts(&self) -> &[Namespace] {
        &self.hosts
    }

    /// Name of the namespace that holds the bridge.
    pub fn bridge(&self) -> String {
        namespace(&self.id, "net")
    }

    /// 198.18.0.0/15 is for benchmarks. Networks cannot reach each other, so two may have the same addresses.
    fn address(&self, host: u8) -> Ipv4Addr {
        let third = u8::from_str_radix(&self.id[..2], 16).expect("made of hexadecimal digits");
        Ipv4Addr::new(198, 18, third, host)
    }

    fn add_bridge(&self) -> Result<(), NetworkError> {
        let net = self.bridge();
        run("ip", &["netns", "add", &net])?;
        run("ip", &["-n", &net, "link", "set", "lo", "up"])?;
        run("ip", &["-n", &net, "link", "add", "bridge", "type", "bridge"])?;
        run("ip", &["-n", &net, "link", "set", "bridge", "up"])
    }

    fn add(&mut self, host: &str, links: &Links) -> Result<(), NetworkError> {
        let place = self.hosts.len() + 1;
        let address = self.address(u8::try_from(place + 1).expect("at most MOST"));
        let added =
            Namespace { host: host.to_owned(), name: namespace(&self.id, host), address, port: format!("port{place}") };
        let (net, port) = (self.bridge(), added.port.clone());
        let own = added.name.as_str();
        run("ip", &["netns", "add", own])?;
        run("ip", &["-n", &net, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", own])?;
        run("ip", &["-n", &net, "link", "set", &port, "master", "bridge", "up"])?;
        run("ip", &["-n", own, "addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
        run("ip", &["-n", own, "link", "set", "eth0", "up"])?;
        run("ip", &["-n", own, "link", "set", "lo", "up"])?;
        if let Some(rate) = links.rate {
            let (rate, burst) = (format!("{rate}bit"), format!("{}b", BURST.max(rate / 8 / 100)));
            for (namespace, link) in [(net.as_str(), port.as_str()), (own, "eth0")] {
                let bucket = ["tbf", "rate", &rate, "burst", &burst, "latency", "50ms"];
                let root = ["-n", namespace, "qdisc", "add", "dev", link, "root", "handle", "1:"];
                run("tc", &[&root[..], &bucket].concat())?;
            }
        }
        if links.loss.is_some() {
            // Else one loss would be of as many packets as the sender's kernel sends as one.
            run("ip", &["-n", own, "link", "set", "eth0", "gso_max_segs", "1"])?;
        }
        if let Some(netem) = links.netem(host) {
            let place = if links.rate.is_some() { ["parent", "1:1"] } else { ["root", "handle"] };
            let root = ["-n", net.as_str(), "qdisc", "add", "dev", port.as_str(), place[0], place[1]];
            let handle = if links.rate.is_some() { &["handle", "2:"][..] } else { &["2:"] };
            let netem: Vec<&str> = netem.iter().map(String::as_str).collect();
            run("tc", &[&root[..], handle, &netem].concat())?;
        }
        // Each namespace has its own range: no port is kept for others, as on a machine with services.
        let range = Path::new("/proc/sys/net/ipv4/ip_local_port_range");
        added.inside(|| std::fs::write(range, "1024 65535")).map_err(FileError::at(range))?;
        self.hosts.push(added);
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // What cannot be removed now is removed as a leftover: the lock ends with this process.
        let _ = remove(&self.id);
    }
}

/// Removes networks of owners that are gone. Names of the removed namespaces.
///
/// # Errors
/// When a folder cannot be read, or `ip` refuses.
pub fn remove_leftovers() -> Result<Vec<String>, NetworkError> {
    if !rustix::process::geteuid().is_root() {
        return Err(NetworkError::NotRoot);
    }
    let _others = one_at_a_time()?;
    remove_unowned()
}

fn remove_unowned() -> Result<Vec<String>, NetworkError> {
    let of_names = names_in(NAMES)?.into_iter().filter_map(|name| id_of(&name, "weir-"));
    let of_locks = names_in(LOCKS)?.into_iter().filter_map(|name| id_of(&name, "net-"));
    let mut removed = Vec::new();
    for id in of_names.chain(of_locks).collect::<BTreeSet<String>>() {
        // Held until the network is gone.
        let lock = File::open(lock_file(&id)).ok();
        let owned = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive).is_err();
        if !lock.as_ref().is_some_and(owned) {
            removed.extend(remove(&id)?);
        }
    }
    Ok(removed)
}

/// Removes a network's namespaces, the bridge's last, and then its lock.
fn remove(id: &str) -> Result<Vec<String>, NetworkError> {
    let bridge = namespace(id, "net");
    let mut names: Vec<String> =
        names_in(NAMES)?.into_iter().filter(|name| id_of(name, "weir-").as_deref() == Some(id)).collect();
    names.sort_by_key(|name| *name == bridge);
    for name in &names {
        run("ip", &["netns", "del", name])?;
    }
    let lock = lock_file(id);
    match std::fs::remove_file(&lock) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::at(&lock)(error).into()),
        _ => Ok(names),
    }
}

/// Whoever looks for leftovers or begins a network holds this, so that none is taken for a leftover before it has its lock.
fn one_at_a_time() -> Result<File, FileError> {
    let failed = FileError::at(Path::new(LOCKS));
    std::fs::create_dir_all(LOCKS).map_err(&failed)?;
    let folder = File::open(LOCKS).map_err(&failed)?;
    flock(&folder, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
    Ok(folder)
}

fn namespace(id: &str, host: &str) -> String {
    format!("weir-{id}-{host}")
}

fn lock_file(id: &str) -> PathBuf {
    Path::new(LOCKS).join(format!("net-{id}"))
}

/// The eight hexadecimal digits after a prefix. Names that others gave have none.
fn id_of(name: &str, prefix: &str) -> Option<String> {
    let rest = name.strip_prefix(prefix)?;
    let id = rest.get(..8)?;
    let ends = rest.len() == 8 || rest[8..].starts_with('-');
    (ends && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))).then(|| id.to_owned())
}

fn names_in(folder: &str) -> Result<Vec<String>, FileError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(FileError::at(Path::new(folder)))?,
    };
    Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

fn run(program: &str, arguments: &[&str]) -> Result<(), NetworkError> {
    let command = || format!("{program} {}", arguments.join(" "));
    let ended = match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Ok(ended) => ended,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(NetworkError::Missing(program.to_owned())),
        Err(error) => return Err(NetworkError::Refused { command: command(), said: error.to_string() }),
    };
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
    Err(NetworkError::Refused {
        command: command(),
        said: if said.is_empty() { ended.status.to_string() } else { said },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_weir_gives_are_its_own() {
        assert_eq!(id_of("weir-0123abcd-client-1", "weir-").as_deref(), Some("0123abcd"));
        assert_eq!(id_of("net-0123abcd", "net-").as_deref(), Some("0123abcd"));
        for other in
            ["weir-0123abcde", "weir-0123ABCD-net", "weir-012", "weir-test-net", "other-0123abcd-net", "weir-€€€-net"]
        {
            assert_eq!(id_of(other, "weir-"), None, "{other}");
        }
    }

    #[test]
    fn only_what_clients_receive_is_delayed_and_lost() {
        let links = Links { delay: Duration::from_millis(20), delayed: vec!["client".into()], ..Links::default() };
        assert_eq!(links.netem("client").unwrap().join(" "), "netem limit 100000 delay 20000us");
        let links = Links { loss: Some(0.1), ..links };
        assert_eq!(links.netem("client").unwrap().join(" "), "netem limit 100000 delay 20000us loss 0.1%");
        assert_eq!((links.netem("proxy"), Links::default().netem("client")), (None, None));
    }

    #[test]
    fn more_hosts_than_addresses_are_refused() {
        let hosts = vec!["client"; MOST + 1];
        let error = Network::create(hosts, &Links::default()).expect_err("too many").to_string();
        assert_eq!(error, "network namespaces: 254 hosts\n  expected: at most 253");
    }
}
