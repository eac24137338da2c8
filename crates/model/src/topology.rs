//! Which hosts a run has: the roles of each, how it is reached, the address that traffic uses, its CPUs. `weir run --topology`
//! chooses one, [`mod@crate::file`] reads those that people write, and the lab starts roles by it.
//!
//! A [`Topology`] is always whole: it has one host for the proxy, at least one for clients and for origins, and host names that differ.
//! A topology that names parts of products may lack the proxy or an origin: its products tell. `parts` says where the parts of products
//! run. This module does not know how a host is spoken to, nor whether it is there.

mod parts;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::InputError;
use crate::record::Role;
use crate::suite::{LoadKind, Suite};
use crate::text::list;
use crate::units::{BitRate, Share};

pub use parts::{FRONT, PartError, PartHosts};

/// The hosts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    pub(crate) hosts: Vec<HostSpec>,
    pub(crate) made: Option<Made>,
}

/// A machine, pod or namespace on which roles run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// Its name in messages, files and reports: small letters, digits and `-`.
    pub name: String,
    /// Its roles, each once; none where it has parts of a product alone.
    pub roles: Vec<Role>,
    /// Parts of products that run on it, by name or as [`FRONT`], each once. The others run where the role proxy is.
    pub parts: Vec<String>,
    /// How it is reached.
    pub reach: Reach,
    /// The address that traffic to it uses; `None` where weir makes the host, or where it is the only one (loopback).
    pub address: Option<IpAddr>,
    /// The CPUs that its roles may use, ascending; `None`: all that it has.
    pub cpus: Option<Vec<u32>>,
    /// What the link of its address carries at most, either way; `None`: what its interface says.
    pub rate: Option<BitRate>,
}

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is the machine on which weir runs.
    Local,
    /// A network namespace of this machine that is there, by the name that `ip netns` shows.
    Namespace(String),
    /// OpenSSH.
    Ssh {
        /// Its destination, such as `bench@10.0.0.5` or a name of its configuration.
        destination: String,
        /// A configuration file instead of the user's.
        config: Option<PathBuf>,
    },
    /// `kubectl exec` into a pod that is there.
    Pod {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Which of its containers; `None`: the one that kubectl takes.
        container: Option<String>,
        /// A context of kubectl's configuration; `None`: the current one.
        context: Option<String>,
    },
    /// A command that runs there what follows it, such as `srun -u -w node1`.
    Command(Vec<String>),
    /// weir makes it for the run.
    Made,
}

/// What weir makes for a run: a host for each role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// Namespaces of this machine.
    Netns(Netns),
    /// Pods of a cluster.
    Pods(Pods),
}

/// Pods that weir makes, each on a node of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pods {
    /// weir's image.
    pub image: String,
    /// Namespace of the cluster.
    pub namespace: String,
    /// Context of kubectl's configuration; `None`: the current one.
    pub context: Option<String>,
    /// CPUs of each, which no other pod may use.
    pub cpus: u32,
    /// Memory of each, MiB.
    pub memory_mib: u64,
}

/// Namespaces of this machine that weir makes, joined by a bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Netns {
    /// What each link carries at most, either way; `None`: no limit.
    pub rate: Option<BitRate>,
    /// How long each packet to a client takes.
    pub delay: Duration,
    /// The share of packets to a client that are lost, at random.
    pub loss: Option<Share>,
}

/// Most hosts of a role that weir makes: all have addresses in one /24.
pub const MOST_MADE: u32 = 100;

impl Topology {
    /// All roles on this machine, over loopback.
    pub fn local() -> Topology {
        let roles = vec![Role::Client, Role::Proxy, Role::Origin];
        let host = HostSpec {
            name: "local".to_owned(),
            roles,
            parts: Vec::new(),
            reach: Reach::Local,
            address: None,
            cpus: None,
            rate: None,
        };
        Topology { hosts: vec![host], made: None }
    }

    /// A namespace of this machine for each role: so many (at least one, at most [`MOST_MADE`]) for clients and for origins.
    pub fn netns(clients: u32, origins: u32, links: Netns) -> Topology {
        Topology::to_make(clients, origins, Made::Netns(links))
    }

    /// A pod for each role: so many (at least one, at most [`MOST_MADE`]) for clients and for origins.
    pub fn pods(clients: u32, origins: u32, pods: Pods) -> Topology {
        Topology::to_make(clients, origins, Made::Pods(pods))
    }

    fn to_make(clients: u32, origins: u32, made: Made) -> Topology {
        let rate = match &made {
            Made::Netns(netns) => netns.rate,
            Made::Pods(_) => None,
        };
        let host = |name: String, role| HostSpec {
            name,
            roles: vec![role],
            parts: Vec::new(),
            reach: Reach::Made,
            address: None,
            cpus: None,
            rate,
        };
        let several =
            |role: Role, n: u32| (1..=n.clamp(1, MOST_MADE)).map(move |k| host(format!("{}-{k}", role.as_str()), role));
        let hosts = several(Role::Client, clients)
            .chain([host("proxy".to_owned(), Role::Proxy)])
            .chain(several(Role::Origin, origins))
            .collect();
        Topology { hosts, made: Some(made) }
    }

    /// All hosts, in the order written.
    pub fn hosts(&self) -> &[HostSpec] {
        &self.hosts
    }

    /// What weir makes for it: then all hosts are [`Reach::Made`].
    pub fn made(&self) -> Option<&Made> {
        self.made.as_ref()
    }

    /// Whether it is this machine alone.
    pub fn is_local(&self) -> bool {
        matches!(self.hosts.as_slice(), [HostSpec { reach: Reach::Local, .. }])
    }

    /// Its kind, for records and reports: `local`, `netns`, `kubernetes` or `hosts`.
    pub fn kind(&self) -> &'static str {
        match self.made {
            Some(Made::Netns(_)) => "netns",
            Some(Made::Pods(_)) => "kubernetes",
            None if self.is_local() => "local",
            None => "hosts",
        }
    }

    /// The hosts of a role, at least one.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &HostSpec> {
        self.hosts.iter().filter(move |host| host.roles.contains(&role))
    }

    /// The hosts that make the load, at least one.
    pub fn clients(&self) -> impl Iterator<Item = &HostSpec> {
        self.of(Role::Client)
    }

    /// The host on which products run, but for parts that have a host of their own.
    pub fn proxy(&self) -> &HostSpec {
        self.of(Role::Proxy).next().unwrap_or(&self.hosts[0])
    }

    /// The hosts behind the proxy; none only where parts are named. A workload with one origin has the first.
    pub fn origins(&self) -> impl Iterator<Item = &HostSpec> {
        self.of(Role::Origin)
    }

    /// Whether a suite can be run on it.
    ///
    /// # Errors
    /// A load that only one client can make, and that several make.
    pub fn carries(&self, suite: &Suite) -> Result<(), InputError> {
        let clients = self.clients().count();
        let searches = suite.loads.iter().filter(|load| matches!(load.kind, LoadKind::Search { .. }));
        let of_several = searches.filter(|load| clients > 1 && load.clients != Some(1));
        let names: Vec<&str> = of_several.map(|load| load.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let (loads, search) = if names.len() == 1 { ("load", "searches") } else { ("loads", "search") };
        let found = format!("{loads} {} {search}, and the topology has {clients} clients", list(&names));
        let wanted = "one client for searches (clients = 1 in the load, or --only load=...)";
        Err(InputError::of(format!("suite {}", suite.name), found, wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn names<'a>(hosts: impl Iterator<Item = &'a HostSpec>) -> Vec<&'a str> {
        hosts.map(|host| host.name.as_str()).collect()
    }

    #[test]
    fn this_machine_has_all_roles() {
        let local = Topology::local();
        assert_eq!((local.kind(), local.hosts().len(), local.is_local()), ("local", 1, true));
        for role in [Role::Client, Role::Proxy, Role::Origin] {
            assert_eq!(names(local.of(role)), ["local"]);
        }
    }

    #[test]
    fn a_namespace_is_made_for_each_role() {
        let netns = Topology::netns(2, 0, Netns::default());
        assert_eq!((netns.kind(), netns.is_local()), ("netns", false));
        assert_eq!(names(netns.hosts().iter()), ["client-1", "client-2", "proxy", "origin-1"]);
        assert_eq!((names(netns.clients()), netns.proxy().name.as_str()), (vec!["client-1", "client-2"], "proxy"));
        assert_eq!(names(netns.origins()), ["origin-1"]);
        assert_eq!(Topology::netns(1, 1_000, Netns::default()).origins().count(), 100);
    }

    #[test]
    fn a_search_needs_one_client() {
        let mut suite = sample::suite();
        let four = Topology::netns(4, 1, Netns::default());
        assert_eq!(four.carries(&suite), Ok(()));
        suite.loads[0].kind = LoadKind::Search { objective: Vec::new() };
        assert_eq!(Topology::netns(1, 2, Netns::default()).carries(&suite), Ok(()));
        assert_eq!(
            four.carries(&suite).unwrap_err().to_string(),
            "suite quick: load capacity searches, and the topology has 4 clients\n  expected: one client for searches (clients = 1 in \
             the load, or --only load=...)"
        );
        suite.loads[1].kind = LoadKind::Search { objective: Vec::new() };
        assert!(four.carries(&suite).unwrap_err().to_string().contains("loads capacity and latency search, and"));
        suite.loads.iter_mut().for_each(|load| load.clients = Some(1));
        assert_eq!(four.carries(&suite), Ok(()));
    }
}
