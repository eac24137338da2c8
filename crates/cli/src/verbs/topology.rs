//! The hosts of a run: chosen by `--topology`, each reached by an agent, and reached again when one was lost. `verbs::run` and
//! `verbs::hosts` call it.
//!
//! This machine is reached in the same way as any other host: by `weir agent`, behind an empty argument vector.

mod again;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_host::agent::connect::{Agents, Connect};
use weir_host::agent::lease::{Holder, Lease, LeaseError, TAKES_OVER_WITHIN, file_of_this_host};
use weir_host::kubernetes::{CGROUPS, Cluster, KubernetesError, PodSpec, Pods};
use weir_host::netns::{Links, Network};
use weir_host::placement::{allowed_cpus, restrict_to};
use weir_host::threads::at_once;
use weir_host::transport::{Binary, copies, shares_disk};
use weir_host::{Host, HostError};
use weir_lab::hosts::{Hosts, PartHost};
use weir_model::product::{Product, Served};
use weir_model::record::Role;
use weir_model::topology::{self, HostSpec, Made, Netns, PartError, PartHosts, Topology};
use weir_model::units::Share;
use weir_model::{InputError, Placement};

use self::again::Kept;
use crate::exit::Failure;

/// The topologies that have a name; anything else is a file.
const NAMED: &str = "local, netns, kubernetes, or a file such as hosts.toml";

/// Where the roles run.
#[derive(Debug, clap::Args)]
pub struct TopologyArgs {
    /// Where the roles run: local (this machine), netns (a network namespace for each role), kubernetes (a pod for each role), or a file such as hosts.toml.
    #[arg(long, value_name = "TOPOLOGY", default_value = "local")]
    topology: String,
    #[command(flatten)]
    pods: PodArgs,
    /// The weir to copy to other machines, where they have other processors or an older C library [default: this one].
    #[arg(long, value_name = "FILE")]
    weir: Option<PathBuf>,
}

impl TopologyArgs {
    /// Reads the topology.
    ///
    /// # Errors
    /// What is wrong with the file, or with the flags.
    pub fn read(&self) -> Result<Topology, Failure> {
        read(&self.topology, &self.pods)
    }

    /// Reads that of a run that is resumed.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read_again(&self, recorded: &Path) -> Result<Topology, Failure> {
        read(&recorded.display().to_string(), &self.pods)
    }

    /// Checks that the parts of a run's products have hosts; `known` are all products. `recorded` is the file of a run that is resumed.
    ///
    /// # Errors
    /// What is wrong, with its place in the file.
    pub fn check_parts(
        &self,
        topology: &Topology,
        recorded: Option<&Path>,
        known: &BTreeMap<String, Product>,
        products: &BTreeMap<String, Product>,
    ) -> Result<(), Failure> {
        let all = known.values().chain(products.values());
        let checked = topology.check_part_names(all).and_then(|()| topology.part_hosts(products.values()));
        checked.map(drop).map_err(|error| {
            let file = recorded.map_or_else(|| self.topology.clone(), |file| file.display().to_string());
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            Failure::input(Topology::locate(&file, &text, error))
        })
    }

    /// The weir that is to run on the hosts.
    ///
    /// # Errors
    /// When it is no program for a machine, or another one was given for hosts to which weir is not copied.
    pub fn binary(&self, topology: &Topology) -> Result<Binary, Failure> {
        let Some(file) = &self.weir else { return own_binary() };
        if let Some(host) = topology.hosts().iter().find(|host| !copies(&host.reach)) {
            let wanted = format!("a topology of hosts with ssh or command; weir is not copied to {}", host.name);
            return Err(Failure::wrong("--weir", file.display().to_string(), wanted));
        }
        Binary::of(file).map_err(|error| {
            Failure::wrong("--weir", error.to_string(), "a weir of this version, built for those machines")
        })
    }
}

/// This weir.
///
/// # Errors
/// When its file cannot be read.
pub fn own_binary() -> Result<Binary, Failure> {
    let own = std::env::current_exe().map_err(Failure::missing)?;
    Binary::of(&own).map_err(Failure::missing)
}

/// Flags of `--topology kubernetes`. A file with `[kubernetes]` can say more.
#[derive(Debug, Clone, Default, clap::Args)]
struct PodArgs {
    /// weir's image, with --topology kubernetes [default: weir:latest].
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Namespace of the pods, with --topology kubernetes [default: default].
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Context of kubectl's configuration, with --topology kubernetes [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl PodArgs {
    fn topology(&self) -> Topology {
        let image = self.image.clone().unwrap_or_else(|| "weir:latest".to_owned());
        let namespace = self.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let pods = topology::Pods { image, namespace, context: self.context.clone(), cpus: 1, memory_mib: 1024 };
        Topology::pods(1, 1, pods)
    }

    /// Refuses flags that would do nothing.
    fn unused(&self) -> Result<(), Failure> {
        let given = [("--image", &self.image), ("--namespace", &self.namespace), ("--context", &self.context)];
        match given.into_iter().find_map(|(flag, value)| Some((flag, value.clone()?))) {
            None => Ok(()),
            Some((flag, value)) => {
                let wanted = "this flag together with --topology kubernetes; in a file, a key of [kubernetes]";
                Err(Failure::wrong(flag, value, wanted))
            }
        }
    }
}

/// Reads what `--topology` chose.
fn read(choice: &str, pods: &PodArgs) -> Result<Topology, Failure> {
    if choice == "kubernetes" {
        return Ok(pods.topology());
    }
    pods.unused()?;
    match choice {
        "local" => Ok(Topology::local()),
        "netns" => Ok(Topology::netns(1, 1, Netns::default())),
        file => {
            let text = std::fs::read_to_string(file)
                .map_err(|e| Failure::wrong("--topology", format!("{file}: {e}"), NAMED))?;
            let all = |errors: Vec<InputError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            Topology::parse(file, &text).map_err(|errors| Failure::input(all(errors)))
        }
    }
}

/// The hosts of a run while it lasts. Dropping it lets go of them, and removes the network that was made for it.
#[derive(Debug)]
pub struct Reached {
    agents: Agents,
    specs: Vec<HostSpec>,
    /// CPUs of this machine that agents keep to.
    own_cpus: Vec<u32>,
    /// CPUs that weir could use when it began.
    cpus: Vec<u32>,
    /// The node on which the proxy's pod watches pods of others.
    watcher: Option<String>,
    /// Dropped after all that runs in it.
    made: Place,
    /// What was found or installed on hosts with a disk of their own.
    kept: Vec<Kept>,
    /// This machine's, where its namespaces are the hosts: they share its CPUs with whatever else runs.
    _lease: Option<Lease>,
}

/// What was made for a run.
#[derive(Debug)]
enum Place {
    Nothing,
    Network(Network),
    Pods(Pods),
}

/// Longest run in pods: they end by themselves afterwards.
const LONGEST: Duration = Duration::from_secs(48 * 3600);

/// What came of reaching a host.
pub type ConnectResult = Result<Arc<dyn Host>, HostError>;

/// Hosts that are reached at the same time: a jump host's sshd refuses more of them by chance (`MaxStartups` is 10).
const AT_ONCE: usize = 8;

/// Reaches every host of a topology, each once: see [`reach_each`].
///
/// # Errors
/// Every host that cannot be reached, and why.
pub fn reach(
    topology: &Topology,
    weir: Binary,
    run: &Path,
    placement: &Placement,
    products: &BTreeMap<String, Product>,
) -> Result<(Reached, Hosts), Failure> {
    let misplaced = |error: PartError| Failure::wrong("--topology", error.found, error.wanted);
    let PartHosts { front, others } = topology.part_hosts(products.values()).map_err(misplaced)?;
    let (reached, results) = reach_each(topology, weir, &name(run), placement, products)?;
    let unreached: Vec<String> =
        results.iter().filter_map(|result| result.as_ref().err()).map(ToString::to_string).collect();
    if !unreached.is_empty() {
        return Err(Failure::missing(unreached.join("\n")));
    }
    let each: Vec<Arc<dyn Host>> = results.into_iter().filter_map(Result::ok).collect();
    if let Some(error) = each.iter().find_map(|host| reached.shared_cpus(host.as_ref())) {
        return Err(Failure::missing(error));
    }
    let of = |role| {
        let hosts = topology.hosts().iter().zip(&each).filter(move |(host, _)| host.roles.contains(&role));
        hosts.map(|(_, host)| Arc::clone(host)).collect::<Vec<_>>()
    };
    let part = |(name, host): (String, usize)| (name, PartHost { host: Arc::clone(&each[host]), installed: None });
    let parts = others.into_iter().map(part).collect();
    let hosts = Hosts { clients: of(Role::Client), proxy: Arc::clone(&each[front]), parts, origins: of(Role::Origin) };
    Ok((reached, hosts))
}

/// Makes what a topology has weir make, and tries to reach each of its hosts: the results are in their order. `weir` runs there, `run`
/// names the run on hosts that refuse a second one, and `placement` says which CPUs of this machine agents keep to. Of the `products`, a
/// pod watches those that are served already.
///
/// # Errors
/// When the hosts cannot be made.
pub fn reach_each(
    topology: &Topology,
    weir: Binary,
    run: &str,
    placement: &Placement,
    products: &BTreeMap<String, Product>,
) -> Result<(Reached, Vec<ConnectResult>), Failure> {
    let agents = Agents { weir, run: run.to_owned(), who: who(), lease: true };
    let lease = match topology.made() {
        Some(Made::Netns(_)) => Some(lease(&agents)?),
        _ => None,
    };
    let watcher = watcher(topology, products)?;
    let made = make(topology, &agents.run, watcher.as_deref(), products)?;
    let specs: Vec<HostSpec> = topology.hosts().iter().map(|host| spec(host, &made)).collect();
    // weir's own work and its agents stay off the product's CPUs where those are this machine's.
    let own_cpus = [placement.client.as_slice(), &placement.origin].concat();
    let cpus = allowed_cpus();
    let reached = Reached { agents, specs, own_cpus, cpus, watcher, made, kept: Vec::new(), _lease: lease };
    let results: Vec<ConnectResult> =
        reached.specs.chunks(AT_ONCE).flat_map(|specs| reached.connect_all(specs)).collect();
    for facts in results.iter().flatten().map(|host| host.facts()) {
        say_left_behind(&format!("on {}: ", facts.name), &facts.left_behind);
    }
    if reached.specs.iter().any(|spec| shares_disk(&spec.reach)) {
        // Not before: agents say which CPUs they may use. A failure is ignored: `doctor` reports missing CPUs.
        let _ = restrict_to(&reached.own_cpus);
    }
    Ok((reached, results))
}

/// Ends what an earlier weir left behind on this machine, and says so. Verbs that measure or start something call it first.
pub fn end_left_behind() {
    say_left_behind("", &weir_host::supervisor::end_left_behind());
}

fn say_left_behind(place: &str, ended: &[String]) {
    let count = ended.len();
    if count > 0 {
        let processes = if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
        remark!("{place}ended {processes} that an earlier weir left behind when it was killed: {}", ended.join(", "));
    }
}

impl Reached {
    fn connect(&self, spec: &HostSpec) -> Result<Arc<dyn Host>, HostError> {
        let own_cpus: &[u32] = if shares_disk(&spec.reach) { &self.own_cpus } else { &[] };
        self.agents.connect(spec, own_cpus)
    }

    /// Connects to hosts at the same time.
    fn connect_all(&self, specs: &[HostSpec]) -> Vec<ConnectResult> {
        at_once(specs, |spec| self.connect(spec))
    }

    /// The hosts as they are reached, in the topology's order.
    pub fn specs(&self) -> &[HostSpec] {
        &self.specs
    }

    /// What is wrong with a host that is a pod made for the run, and whose CPUs are not its own.
    pub fn shared_cpus(&self, host: &dyn Host) -> Option<KubernetesError> {
        let Place::Pods(pods) = &self.made else { return None };
        let facts = host.facts();
        pods.pods().iter().find(|pod| pod.host == facts.name)?.has_own(&facts.cpus).err()
    }

    /// SHA-256 of the weir that runs on all of them.
    pub fn weir_sha256(&self) -> String {
        self.agents.weir.sha256.clone()
    }
}

/// Keeps this machine to the run.
fn lease(agents: &Agents) -> Result<Lease, Failure> {
    let holder = Holder::this(&agents.run, &agents.who, None);
    let taken = file_of_this_host().map_err(LeaseError::File);
    let taken = taken.and_then(|file| Lease::take(&file, &holder, TAKES_OVER_WITHIN));
    taken.map(|(lease, _)| lease).map_err(|error| Failure::missing(format!("this machine is {error}")))
}

/// The node of the pods of products that are served already, from where weir watches them; `None` where no pods are named.
fn watcher(topology: &Topology, products: &BTreeMap<String, Product>) -> Result<Option<String>, Failure> {
    let Some(Made::Pods(made)) = topology.made() else { return Ok(None) };
    let cluster = cluster(made);
    let mut found: Option<(&str, String)> = None;
    for product in products.values() {
        let Some((namespace, labels)) = product.served().and_then(Served::pods) else { continue };
        let node = cluster.served(namespace, labels).map_err(Failure::missing)?.node;
        match &found {
            Some((other, at)) if *at != node => {
                let found = format!("the pods of {other} are on {at}, and those of {} on {node}", product.name);
                return Err(Failure::missing(format!("{found}\n  expected: products on one node, or a run for each")));
            }
            _ => found = Some((&product.name, node)),
        }
    }
    let Some((product, node)) = found else { return Ok(None) };
    if let Some(other) = products.values().find(|product| product.program().is_some()) {
        let found = format!("{product} is served already, and {} is to be started", other.name);
        return Err(Failure::missing(format!(
            "{found}: the pod that watches one cannot run the other\n  expected: a run for each"
        )));
    }
    let pod = pod(made, topology.proxy(), Some(&node), 0);
    Pods::try_watching(&cluster, &made.image, &pod).map_err(|error| {
        Failure::missing(format!(
            "{error}\n  expected: a namespace whose pods may mount their node's {CGROUPS}, or a file of {product} without \
             `namespace` and `selector`: its CPU and memory are unknown then"
        ))
    })?;
    Ok(Some(node))
}

fn cluster(made: &topology::Pods) -> Cluster {
    Cluster { context: made.context.clone(), namespace: made.namespace.clone() }
}

fn pod(made: &topology::Pods, host: &HostSpec, watches: Option<&str>, cpus: u32) -> PodSpec {
    PodSpec {
        host: host.name.clone(),
        image: None,
        cpus,
        memory_mib: made.memory_mib,
        roles: host.roles.iter().map(|role| role.as_str()).collect(),
        watches: watches.map(ToOwned::to_owned),
    }
}

/// Makes what a topology has weir make. The proxy's pod may have to watch others on a node.
fn make(
    topology: &Topology,
    run: &str,
    watches: Option<&str>,
    products: &BTreeMap<String, Product>,
) -> Result<Place, Failure> {
    let names = topology.hosts().iter().map(|host| host.name.as_str());
    match topology.made() {
        None => Ok(Place::Nothing),
        Some(Made::Netns(made)) => {
            let links = Links {
                rate: made.rate.map(|rate| rate.per_second()),
                delay: made.delay,
                loss: made.loss.map(Share::percent),
                delayed: topology.of(Role::Client).map(|host| host.name.clone()).collect(),
            };
            Network::create(names, &links).map(Place::Network).map_err(Failure::missing)
        }
        Some(Made::Pods(made)) => {
            // Where all products are served already, none runs in the proxy's pod.
            let served = products.values().any(|product| product.served().is_some());
            let idle = served && products.values().all(|product| product.program().is_none());
            let spec = |host: &HostSpec| match host.roles.contains(&Role::Proxy) {
                true => pod(made, host, watches, if idle { 0 } else { made.cpus }),
                false => pod(made, host, None, made.cpus),
            };
            let specs: Vec<PodSpec> = topology.hosts().iter().map(spec).collect();
            Pods::create(&cluster(made), run, &made.image, &specs, LONGEST).map(Place::Pods).map_err(Failure::missing)
        }
    }
}

/// A host with what only this run knows: the namespace or pod that was made for it.
fn spec(host: &HostSpec, made: &Place) -> HostSpec {
    let found = match made {
        Place::Nothing => None,
        Place::Network(network) => {
            let namespace = network.hosts().iter().find(|made| made.host == host.name);
            namespace.map(|made| (topology::Reach::Namespace(made.name.clone()), IpAddr::V4(made.address)))
        }
        Place::Pods(pods) => {
            let pod = pods.pods().iter().find(|made| made.host == host.name);
            pod.map(|pod| (pods.cluster().reach(pod), pod.address))
        }
    };
    match found {
        Some((reach, address)) => HostSpec { reach, address: Some(address), ..host.clone() },
        None => host.clone(),
    }
}

/// The run's name: that of its folder.
fn name(run: &Path) -> String {
    let absolute = std::path::absolute(run).unwrap_or_else(|_| PathBuf::from(run));
    absolute.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `user@host`, for whom a host refuses.
fn who() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "somebody".to_owned());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{user}@{}", host.trim())
}

/// True where the roles use CPUs of this machine: those are known before any host is reached.
pub fn has_cpus_of_this_machine(topology: &Topology) -> bool {
    topology.is_local() || matches!(topology.made(), Some(Made::Netns(_)))
}

/// The CPUs of the roles: on this machine those that were asked for, elsewhere all of a host, divided where it has several roles.
///
/// # Errors
/// CPUs that a host does not have.
pub fn placement(topology: &Topology, hosts: &Hosts, here: &Placement) -> Result<Placement, Failure> {
    if has_cpus_of_this_machine(topology) {
        return Ok(here.clone());
    }
    hosts.each().into_iter().try_for_each(|host| has_cpus(topology, host.as_ref()))?;
    Ok(hosts.placement())
}

/// Whether a host has the CPUs that the topology wants of it.
fn has_cpus(topology: &Topology, host: &dyn Host) -> Result<(), Failure> {
    let has = &host.facts().cpus;
    let spec = topology.hosts().iter().find(|spec| spec.name == host.facts().name);
    let wanted = spec.and_then(|spec| spec.cpus.clone()).unwrap_or_default();
    match wanted.iter().find(|cpu| !has.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Failure::input(InputError::of(
            format!("host {}: cpus", host.facts().name),
            format!("CPU {cpu}, which it does not have or weir may not use"),
            format!("CPUs of its {}, that `taskset` leaves to weir there", host.facts().environment.cpus),
        ))),
    }
}
