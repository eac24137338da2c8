//! Which host each role of a run has, and each part of a product that has one of its own. [`crate::trial`] starts roles by it.
//!
//! A run with all roles on this machine has one host, three times. It does not know how a host is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_host::files::FileError;
use weir_host::{Clock, Host, HostError, Storage};
use weir_model::Placement;
use weir_model::clock::ClockReading;
use weir_model::product::Product;
use weir_model::record::{HostClock, HostRecord, Role};
use weir_model::speed::HostSpeed;
use weir_model::suite::Load;
use weir_product::launch::Installed;
use weir_vitals::Watched;

/// Two readings of one clock differ by less, nanoseconds: an agent's answer is on its way for a fraction of it.
const ALIKE_NS: u64 = 5_000_000;

/// Reaches hosts again.
pub trait Reach: Debug {
    /// Reaches a host that was lost. It may have been made anew, and then has another address and other CPUs.
    ///
    /// # Errors
    /// Why it cannot be reached.
    fn again(&mut self, name: &str) -> Result<Arc<dyn Host>, HostError>;

    /// The host of this name for a product that cannot run on what is there now; `None` where it can.
    ///
    /// # Errors
    /// Why there is none.
    fn for_product(&mut self, name: &str, product: &Product) -> Result<Option<Arc<dyn Host>>, HostError>;

    /// What can be watched, on the proxy's host, of a product that is served already; `None`: its use of CPU and memory is not known.
    ///
    /// # Errors
    /// Why what should be there is not found.
    fn watched(&self, _product: &Product) -> Result<Option<Watched>, HostError> {
        Ok(None)
    }
}

/// How often a lost host is tried before a trial that needs it.
const TRIES: usize = 3;

/// How long between two tries.
const BETWEEN: Duration = Duration::from_secs(1);

/// The hosts of a run by role.
#[derive(Debug, Clone)]
pub struct Hosts {
    /// Where the load comes from; at least one.
    pub clients: Vec<Arc<dyn Host>>,
    /// Where products run.
    pub proxy: Arc<dyn Host>,
    /// The hosts of parts that do not run there, by the part's name.
    pub parts: BTreeMap<String, PartHost>,
    /// The hosts of origins; none only if no product of the run needs one. A workload with one origin has the first.
    pub origins: Vec<Arc<dyn Host>>,
}

/// The host of a part.
#[derive(Debug, Clone)]
pub struct PartHost {
    /// The host.
    pub host: Arc<dyn Host>,
    /// The products there, where they may be others than on the proxy's host.
    pub installed: Option<BTreeMap<String, Installed>>,
}

impl Hosts {
    /// All roles on one host.
    pub fn one(host: &Arc<dyn Host>) -> Hosts {
        let role = || vec![Arc::clone(host)];
        Hosts { clients: role(), proxy: Arc::clone(host), parts: BTreeMap::new(), origins: role() }
    }

    /// Each of them once: the proxy's first.
    pub fn each(&self) -> Vec<&Arc<dyn Host>> {
        let mut names = BTreeSet::new();
        let all = [&self.proxy].into_iter().chain(self.part_hosts()).chain(&self.origins).chain(&self.clients);
        all.filter(|host| names.insert(host.facts().name.as_str())).collect()
    }

    fn part_hosts(&self) -> impl Iterator<Item = &Arc<dyn Host>> {
        self.parts.values().map(|part| &part.host)
    }

    /// The parts that a host has of those that do not run on the proxy's.
    pub fn parts_on<'h>(&'h self, host: &'h Arc<dyn Host>) -> impl Iterator<Item = &'h String> {
        self.parts.iter().filter(|(_, part)| is_same_host(&part.host, host)).map(|(name, _)| name)
    }

    /// The host from which weir's own requests come, and the one of a single client.
    pub fn client(&self) -> &Arc<dyn Host> {
        &self.clients[0]
    }

    /// The hosts whose clients make a load.
    pub fn clients_of(&self, load: &Load) -> &[Arc<dyn Host>] {
        let most = load.clients.map_or(self.clients.len(), |most| most as usize);
        &self.clients[..most.min(self.clients.len())]
    }

    /// The host of a single origin; where no product needs one, a client's.
    pub fn origin(&self) -> &Arc<dyn Host> {
        self.origins.first().unwrap_or(self.client())
    }

    /// The clock of the machine where weir runs.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.proxy.local_clock()
    }

    /// The disk of that machine with the run's folder.
    pub fn storage(&self) -> Arc<dyn Storage> {
        self.proxy.local_storage()
    }

    /// Whether clients and origins read one clock. Hosts of one machine may have others (time namespaces), which differ by more than two
    /// readings of the same.
    pub fn one_clock(&self) -> bool {
        let now = self.clock().now();
        let of = |host: &Arc<dyn Host>| (host.facts().machine.clone(), host.at(now).mono_ns);
        let (machine, first) = of(self.client());
        self.clients
            .iter()
            .chain(&self.origins)
            .map(of)
            .all(|(other, at)| other == machine && at.abs_diff(first) < ALIKE_NS)
    }

    /// The CPUs that a role has on one of its hosts. `placement` has those of its first one. Another host of that machine, such as a
    /// namespace, has the same, unless it has parts of a product: these, and another machine, have all of their own.
    pub fn cpus(&self, role: Role, host: &Arc<dyn Host>, placement: &Placement) -> Vec<u32> {
        let first = match role {
            Role::Client => self.client(),
            Role::Proxy => &self.proxy,
            Role::Origin => self.origin(),
        };
        match role {
            Role::Proxy if !is_same_host(first, host) => self.own_cpus(role, host),
            _ if first.facts().machine == host.facts().machine => placement.of(role).to_vec(),
            _ => host.facts().cpus.clone(),
        }
    }

    /// The CPUs of a host for one of its roles: all that it has, divided where it has several roles.
    fn own_cpus(&self, role: Role, host: &Arc<dyn Host>) -> Vec<u32> {
        let cpus = &host.facts().cpus;
        let whole = self.roles(host).len() == 1;
        if whole { cpus.clone() } else { Placement::automatic(cpus).of(role).to_vec() }
    }

    /// The parts of a product that do not run on the proxy's host. The one that clients talk to does.
    pub fn parts_elsewhere<'h>(&'h self, product: &'h Product) -> impl Iterator<Item = (&'h String, &'h PartHost)> {
        let parts = product.program().and_then(|program| program.parts.split_last());
        let others = parts.into_iter().flat_map(|(_, others)| others);
        others.filter_map(|part| self.parts.get_key_value(&part.name))
    }

    /// How many CPUs a product has on all hosts where its parts run. `placement` has those of the proxy's.
    pub fn product_cpus(&self, product: &Product, placement: &Placement) -> usize {
        let elsewhere = self.parts_elsewhere(product).map(|(_, part)| &part.host);
        let cpus = [&self.proxy].into_iter().chain(elsewhere).flat_map(|host| {
            let cpus = self.cpus(Role::Proxy, host, placement);
            cpus.into_iter().map(|cpu| (host.facts().machine.as_str(), cpu))
        });
        cpus.collect::<BTreeSet<_>>().len()
    }

    /// How fast the roles' CPUs are now, each machine's once; a host that cannot say it is left out.
    pub fn speeds(&self, placement: &Placement) -> Vec<HostSpeed> {
        let mut machines = BTreeSet::new();
        let each = self.each().into_iter().filter(|host| machines.insert(host.facts().machine.clone()));
        let of = |host: &Arc<dyn Host>| {
            let on_machine = self.each().into_iter().filter(|one| one.facts().machine == host.facts().machine);
            let each = on_machine.flat_map(|one| self.roles(one).into_iter().map(move |role| (role, one)));
            let roles: BTreeMap<Role, Vec<u32>> =
                each.map(|(role, one)| (role, self.cpus(role, one, placement))).collect();
            let cpus: BTreeSet<u32> = roles.values().flatten().copied().collect();
            let cpus: Vec<u32> = cpus.into_iter().collect();
            Some(HostSpeed { host: host.facts().name.clone(), roles, cpus: host.speeds(&cpus).ok()? })
        };
        each.filter_map(of).collect()
    }

    /// The roles of a host.
    pub fn roles(&self, host: &Arc<dyn Host>) -> Vec<Role> {
        let has = [
            (Role::Client, self.clients.iter().any(|one| is_same_host(one, host))),
            (Role::Proxy, is_same_host(&self.proxy, host) || self.parts_on(host).next().is_some()),
            (Role::Origin, self.origins.iter().any(|one| is_same_host(one, host))),
        ];
        has.into_iter().filter(|(_, has)| *has).map(|(role, _)| role).collect()
    }

    /// An address (`host:port`) as the client's host resolves it: something there accepts connections from clients.
    ///
    /// # Errors
    /// Why it is not reached.
    pub fn resolve(&self, address: &str) -> Result<SocketAddr, String> {
        let found = self.client().call("resolve", address.into(), &mut |_| {}).map_err(|error| error.to_string())?;
        serde_json::from_value(found).map_err(|error| error.to_string())
    }

    /// The first host that can no longer be spoken to: its name, and why.
    pub fn lost(&self) -> Option<(String, String)> {
        self.each().into_iter().find_map(|host| Some((host.facts().name.clone(), host.lost()?)))
    }

    /// Reaches those again that were lost, and sees that the proxy's is one for this product. Says whether a host now has other CPUs
    /// than before.
    ///
    /// # Errors
    /// Which could not be reached, and why.
    pub fn restore(&mut self, reach: &mut dyn Reach, product: Option<&Product>) -> Result<bool, (String, HostError)> {
        let mut moved = false;
        if let Some(product) = product {
            let proxy = self.proxy.facts().name.clone();
            match reach.for_product(&proxy, product) {
                Ok(Some(other)) => moved |= self.replace(&other),
                Ok(None) => {}
                Err(error) => return Err((proxy, error)),
            }
        }
        let lost = self.each().into_iter().filter(|host| host.lost().is_some());
        let lost: Vec<String> = lost.map(|host| host.facts().name.clone()).collect();
        for name in lost {
            let again = tried(reach, &name, self.clock().as_ref()).map_err(|error| (name, error))?;
            moved |= self.replace(&again);
        }
        Ok(moved)
    }

    /// Puts a host in the place of the one that has its name. Says whether it has other CPUs.
    fn replace(&mut self, by: &Arc<dyn Host>) -> bool {
        let mut moved = false;
        let parts = self.parts.values_mut().map(|part| &mut part.host);
        for host in [&mut self.proxy].into_iter().chain(parts).chain(&mut self.origins).chain(&mut self.clients) {
            if is_same_host(host, by) {
                let (old, new) = (host.facts(), by.facts());
                moved |= (&old.machine, &old.cpus) != (&new.machine, &new.cpus);
                *host = Arc::clone(by);
            }
        }
        moved
    }

    /// The CPUs of the roles where each host has its own: all that it has, divided where it has several roles.
    pub fn placement(&self) -> Placement {
        let mut placement = Placement::default();
        for (role, host) in self.first() {
            placement.set(role, self.own_cpus(role, host));
            placement.machines.insert(role, host.facts().machine.clone());
        }
        placement
    }

    /// The host of each role: its first.
    pub fn first(&self) -> [(Role, &Arc<dyn Host>); 3] {
        [(Role::Client, self.client()), (Role::Origin, self.origin()), (Role::Proxy, &self.proxy)]
    }

    /// Reads the clock of each, so that times can be sent to it: how far it is from this machine's. What cannot be read shows as a
    /// lost host.
    pub fn read_clocks(&self) -> Vec<(String, ClockReading)> {
        let read = |host: &Arc<dyn Host>| Some((host.facts().name.clone(), host.read_clock().ok()?));
        self.each().into_iter().filter_map(read).collect()
    }

    /// Reads the clocks again: by how much each may have been wrong since they were read before. Nothing for a single host.
    pub fn clocks_since(&self, before: &[(String, ClockReading)]) -> Vec<HostClock> {
        if before.len() < 2 {
            return Vec::new();
        }
        let since = |(host, now): (String, ClockReading)| {
            let (_, then) = before.iter().find(|(name, _)| *name == host)?;
            Some(HostClock::between(&host, then, &now))
        };
        self.read_clocks().into_iter().filter_map(since).collect()
    }

    /// What records say of them; nothing for a single host.
    pub fn records(&self) -> Vec<HostRecord> {
        let each = self.each();
        let record = |host: &Arc<dyn Host>| {
            let facts = host.facts();
            HostRecord {
                name: facts.name.clone(),
                roles: self.roles(host),
                parts: self.parts_on(host).cloned().collect(),
                machine: facts.machine.clone(),
                address: facts.address,
                cpus: facts.cpus.clone(),
                facts: facts.environment.clone(),
            }
        };
        if each.len() < 2 { Vec::new() } else { each.into_iter().map(record).collect() }
    }

    /// Brings what the roles of a trial wrote on hosts with a disk of their own into the trial's folder here, and removes it there,
    /// unless what runs still needs it.
    ///
    /// # Errors
    /// What cannot be brought.
    pub fn bring_back(&self, trial: &Path, still_needed: bool) -> Result<(), FileError> {
        for host in self.each() {
            let there = path_on_host(host.as_ref(), trial, trial);
            if there != trial && host.lost().is_none() {
                // A host on which no role wrote anything has none: the proxy's, where a trial has no product.
                host.create_dir(&there)?;
                host.fetch(&there, trial)?;
                if !still_needed {
                    host.remove(&there);
                }
            }
        }
        Ok(())
    }
}

/// A lost host, tried a few times.
fn tried(reach: &mut dyn Reach, name: &str, clock: &dyn Clock) -> Result<Arc<dyn Host>, HostError> {
    let mut tried = reach.again(name);
    for _ in 1..TRIES {
        if tried.is_ok() {
            break;
        }
        clock.sleep(BETWEEN);
        tried = reach.again(name);
    }
    tried
}

/// Whether two are one host.
pub fn is_same_host(one: &Arc<dyn Host>, other: &Arc<dyn Host>) -> bool {
    one.facts().name == other.facts().name
}

/// Where a path in a trial's folder is on a host: the same path where the disk is this machine's, else in the host's folder for
/// the run, by the trial's name.
pub fn path_on_host(host: &dyn Host, trial: &Path, path: &Path) -> PathBuf {
    let Some(work) = &host.facts().work else { return path.to_owned() };
    let (name, rest) = (trial.file_name().unwrap_or_default(), path.strip_prefix(trial).unwrap_or(Path::new("")));
    let folder = work.join(name);
    // Joined with an empty path, a path would get a slash at its end.
    if rest.as_os_str().is_empty() { folder } else { folder.join(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_fake_host::FakeHost;
    use weir_host::HostFacts;

    fn host(name: &str, work: Option<&str>) -> Arc<dyn Host> {
        let facts = HostFacts { name: name.into(), work: work.map(PathBuf::from), ..HostFacts::default() };
        Arc::new(FakeHost::new(|_| Default::default(), |_| Default::default()).with_facts(facts, 0))
    }

    #[test]
    fn each_host_counts_once_and_knows_its_roles() {
        let (a, b) = (host("a", None), host("b", None));
        let (clients, parts) = (vec![b.clone(), a.clone()], BTreeMap::new());
        let hosts = Hosts { clients, proxy: a.clone(), parts, origins: vec![b.clone()] };
        let names: Vec<&str> = hosts.each().into_iter().map(|host| host.facts().name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(hosts.roles(&a), [Role::Client, Role::Proxy]);
        assert_eq!(hosts.roles(&b), [Role::Client, Role::Origin]);
        assert_eq!(Hosts::one(&a).each().len(), 1);
        assert_eq!(Hosts::one(&a).records(), []);
        let roles: Vec<_> = hosts.records().into_iter().map(|record| (record.name, record.roles)).collect();
        assert_eq!(
            roles,
            [("a".to_owned(), vec![Role::Client, Role::Proxy]), ("b".to_owned(), vec![Role::Client, Role::Origin])]
        );
    }

    /// Hosts that come back with another address and other CPUs, as pods that were made anew do.
    #[derive(Debug)]
    struct Anew;

    impl Reach for Anew {
        fn again(&mut self, name: &str) -> Result<Arc<dyn Host>, HostError> {
            Ok(with(name, vec![3], Some("10.0.0.9")))
        }

        fn for_product(&mut self, name: &str, product: &Product) -> Result<Option<Arc<dyn Host>>, HostError> {
            Ok(product.image.is_some().then(|| with(name, vec![5, 6], Some("10.0.0.8"))))
        }
    }

    fn with(name: &str, cpus: Vec<u32>, address: Option<&str>) -> Arc<dyn Host> {
        let address = address.map(|address| address.parse().expect("an address"));
        let facts = HostFacts { name: name.into(), cpus, address, ..HostFacts::default() };
        Arc::new(FakeHost::new(|_| Default::default(), |_| Default::default()).with_facts(facts, 0))
    }

    #[test]
    fn a_host_that_was_made_anew_takes_the_place_of_the_old_one_with_its_cpus() {
        let lost = FakeHost::new(|_| Default::default(), |_| Default::default())
            .with_facts(HostFacts { name: "c".into(), cpus: vec![0], ..HostFacts::default() }, 0)
            .lost_after("call doctor", "its pod was deleted");
        let _ = lost.call("doctor", serde_json::Value::Null, &mut |_| {});
        let (client, others) = (Arc::new(lost) as Arc<dyn Host>, ["p", "o"].map(|name| with(name, vec![0], None)));
        let [proxy, origin] = others;
        let mut hosts = Hosts { clients: vec![client], proxy, parts: BTreeMap::new(), origins: vec![origin] };
        let restored =
            |hosts: &mut Hosts, product: Option<&Product>| hosts.restore(&mut Anew, product).expect("reached");
        assert!(restored(&mut hosts, None));
        assert_eq!(hosts.client().facts().address, Some("10.0.0.9".parse().expect("an address")));
        let placement = hosts.placement();
        assert_eq!((placement.client, placement.proxy, placement.origin), (vec![3], vec![0], vec![0]));

        assert!(!restored(&mut hosts, Some(&product(None))), "nothing is lost, and it fits");
        assert!(restored(&mut hosts, Some(&product(Some("gateway:2")))));
        assert_eq!(hosts.placement().proxy, [5, 6]);
    }

    fn product(image: Option<&str>) -> Product {
        Product { image: image.map(str::to_owned), ..crate::fixture::direct() }
    }

    #[test]
    fn a_roles_other_hosts_have_the_placements_cpus_on_one_machine_and_their_own_elsewhere() {
        let on = |name: &str, machine: &str| {
            let facts =
                HostFacts { name: name.into(), machine: machine.into(), cpus: vec![4, 5], ..HostFacts::default() };
            let host = FakeHost::new(|_| Default::default(), |_| Default::default()).with_facts(facts, 0);
            Arc::new(host) as Arc<dyn Host>
        };
        let (first, beside, away) = (on("c1", "m1"), on("c2", "m1"), on("c3", "m2"));
        let clients = vec![first.clone(), beside.clone(), away.clone()];
        let hosts = Hosts { clients, proxy: first.clone(), parts: BTreeMap::new(), origins: vec![first.clone()] };
        let placement = Placement { client: vec![0], ..Placement::default() };
        let cpus = |host| hosts.cpus(Role::Client, host, &placement);
        assert_eq!((cpus(&first), cpus(&beside), cpus(&away)), (vec![0], vec![0], vec![4, 5]));
    }

    #[test]
    fn a_part_has_the_cpus_of_its_own_host_and_makes_it_a_host_of_the_proxy() {
        let on = |name: &str, machine: &str, cpus: &[u32]| {
            let (name, machine, cpus) = (name.into(), machine.into(), cpus.to_vec());
            let facts = HostFacts { name, machine, cpus, ..HostFacts::default() };
            let host = FakeHost::new(|_| Default::default(), |_| Default::default()).with_facts(facts, 0);
            Arc::new(host) as Arc<dyn Host>
        };
        // A namespace of the front's machine, and a machine that makes the load, too.
        let (front, beside, shared) = (on("f", "m1", &[0, 1]), on("s1", "m1", &[2, 3]), on("c", "m2", &[0, 1, 2, 3]));
        let part = |host: &Arc<dyn Host>| PartHost { host: Arc::clone(host), installed: None };
        let parts = [("relay", part(&beside)), ("side-car", part(&shared))].map(|(name, part)| (name.to_owned(), part));
        let hosts = Hosts { clients: vec![shared.clone()], proxy: front.clone(), parts: parts.into(), origins: vec![] };
        let placement = hosts.placement();
        assert_eq!((placement.client.as_slice(), placement.proxy.as_slice()), (&[0][..], &[0, 1][..]));
        let cpus = |host| hosts.cpus(Role::Proxy, host, &placement);
        assert_eq!((cpus(&front), cpus(&beside), cpus(&shared)), (vec![0, 1], vec![2, 3], vec![2, 3]));
        let roles: Vec<_> = hosts.records().iter().map(|host| host.role_names().join(" ")).collect();
        assert_eq!(roles, ["proxy", "proxy:relay", "client proxy:side-car"]);
        assert_eq!(hosts.origin().facts().name, "c", "no product needs one");
    }

    #[test]
    fn paths_of_a_trial_are_in_the_hosts_own_folder_where_it_has_one() {
        let trial = Path::new("/runs/r/trials/007-nginx");
        let path = trial.join("product/nginx.conf");
        assert_eq!(path_on_host(host("here", None).as_ref(), trial, &path), path);
        let far = host("far", Some("/tmp/weir-x"));
        assert_eq!(path_on_host(far.as_ref(), trial, &path), Path::new("/tmp/weir-x/007-nginx/product/nginx.conf"));
        assert_eq!(path_on_host(far.as_ref(), trial, trial), Path::new("/tmp/weir-x/007-nginx"));
    }
}
