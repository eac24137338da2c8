//! `hosts.toml`: its keys, what a schema cannot say of them (one proxy, names and addresses that differ), where an error stands in it, and
//! writing it.
//! `weir run --topology FILE` calls [`Topology::parse`]; the journal writes [`Topology::to_toml`] into the
//! run's folder.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::errors::Errors;
use super::locate::{child, item};
use super::{NAME_WANTED, locate, read, schema};
use crate::InputError;
use crate::record::{Role, role_names};
use crate::topology::{HostSpec, MOST_MADE, Made, Netns, PartError, Pods, Reach, Topology};
use crate::units::{BitRate, CpuList, HumanDuration, Share};

/// The hosts of a run of weir: which roles they have, and how they are reached.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(title = "weir topology", extend("x-weir-one-of" = ["host", "netns", "kubernetes"]))]
pub(super) struct TopologyFile {
    /// A machine, pod or namespace that is there; one `[[host]]` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    host: Vec<HostForm>,
    /// Namespaces of this machine that weir makes for the run and removes afterwards. Not together with `[[host]]`.
    netns: Option<NetnsForm>,
    /// Pods that weir makes for the run and deletes afterwards. Not together with `[[host]]`.
    kubernetes: Option<KubernetesForm>,
}

/// A machine, pod or namespace. It is reached in exactly one way.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-weir-one-of" = WAYS))]
struct HostForm {
    /// Its name in messages and reports.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]{0,59}$"), extend("x-weir-wanted" = NAME_WANTED))]
    name: String,
    /// What runs on it. One host has the role proxy; clients and origins may be several. `proxy:PART` is a product's part by its name.
    /// `proxy:front` is the part that clients talk to. The role proxy has all parts that no other host has.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    roles: Vec<RoleForm>,
    /// It is the machine on which weir runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    local: bool,
    /// A destination of OpenSSH, such as `bench@10.0.0.5`. The user's configuration, agent and known hosts apply.
    #[schemars(
        regex(pattern = r"^[^-\s]\S*$"),
        extend("x-weir-wanted" = "a destination of ssh, such as \"bench@10.0.0.5\" or a name of its configuration")
    )]
    ssh: Option<String>,
    /// A configuration file for `ssh`, instead of the user's.
    #[schemars(length(min = 1))]
    ssh_config: Option<String>,
    /// A pod that is there, by its name or `namespace/name`.
    #[schemars(
        regex(pattern = r"^([a-z0-9][a-z0-9-]*/)?[a-z0-9][a-z0-9.-]*$"),
        extend("x-weir-wanted" = "the name of a pod, such as \"client-0\" or \"bench/client-0\"")
    )]
    pod: Option<String>,
    /// The pod's container. Left out, the one that kubectl takes.
    #[schemars(length(min = 1))]
    container: Option<String>,
    /// The context of kubectl's configuration. Left out, the current one.
    #[schemars(length(min = 1))]
    context: Option<String>,
    /// A network namespace of this machine that is there, as `ip netns` names it.
    #[schemars(
        regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$"),
        extend("x-weir-wanted" = "the name of a network namespace, as `ip netns` lists it")
    )]
    namespace: Option<String>,
    /// A command that runs there what follows it, such as `["srun", "-u", "-w", "node1"]`.
    #[schemars(length(min = 1))]
    command: Option<Vec<String>>,
    /// The address that traffic uses: a number, not a name. May be left out where there is one host.
    address: Option<String>,
    /// The CPUs that its roles may use, such as "0-7". Left out, all.
    cpus: Option<String>,
    /// What the link of its address carries at most, such as "10Gbit/s". Left out, what its interface says, which those of many
    /// virtual machines do not.
    rate: Option<BitRate>,
}

/// A role, or a part of the proxy (`proxy:store-1`).
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RoleForm(String);

impl RoleForm {
    fn role(&self) -> Option<Role> {
        [Role::Client, Role::Proxy, Role::Origin].into_iter().find(|role| role.as_str() == self.0)
    }

    fn part(&self) -> Option<&str> {
        self.0.strip_prefix("proxy:")
    }
}

/// Keys of which a host has exactly one.
const WAYS: [&str; 5] = ["local", "ssh", "pod", "namespace", "command"];

/// Namespaces of this machine that weir makes.
#[derive(Serialize, Deserialize, JsonSchema)]
struct NetnsForm {
    /// How many make the load.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_MADE), extend("x-weir-wanted" = MADE_WANTED))]
    clients: u32,
    /// How many are behind the proxy.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_MADE), extend("x-weir-wanted" = MADE_WANTED))]
    origins: u32,
    /// What each link carries at most. Left out, there is no limit.
    rate: Option<BitRate>,
    /// How long each packet to a client takes, such as "20ms". Left out, no longer than it does.
    delay: Option<HumanDuration>,
    /// The share of packets to a client that are lost, at random, such as "1%". Left out, none.
    loss: Option<Share>,
}

/// Pods that weir makes, each on a node of its own, with CPUs of its own.
#[derive(Serialize, Deserialize, JsonSchema)]
struct KubernetesForm {
    /// weir's image (see `deploy/kubernetes/Dockerfile`).
    #[schemars(length(min = 1))]
    image: String,
    /// Namespace of the cluster.
    #[serde(default = "default_namespace")]
    #[schemars(length(min = 1))]
    namespace: String,
    /// The context of kubectl's configuration. Left out, the current one.
    #[schemars(length(min = 1))]
    context: Option<String>,
    /// How many make the load.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_MADE), extend("x-weir-wanted" = MADE_WANTED))]
    clients: u32,
    /// How many are behind the proxy.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MOST_MADE), extend("x-weir-wanted" = MADE_WANTED))]
    origins: u32,
    /// CPUs of each pod, as a whole.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1024))]
    cpus: u32,
    /// Memory of each pod, MiB.
    #[serde(default = "memory_mib")]
    #[schemars(range(min = 64, max = 1_048_576))]
    memory_mib: u64,
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn memory_mib() -> u64 {
    1024
}

/// [`MOST_MADE`] in words.
const MADE_WANTED: &str = "a whole number from 1 to 100";

fn one() -> u32 {
    1
}

impl Topology {
    /// Reads a topology. `source_name` is the file as the user named it; it stands in messages.
    ///
    /// # Errors
    /// Everything that is wrong with the file, by line: syntax errors alone if there are any.
    pub fn parse(source_name: &str, text: &str) -> Result<Topology, Vec<InputError>> {
        read(source_name, text, &schema::TOPOLOGY, |file, errors| Checks { errors }.topology(file))
    }

    /// An error of parts as a message with its place in the file from which the topology was read.
    pub fn locate(source_name: &str, text: &str, error: PartError) -> InputError {
        let PartError { host, found, wanted } = error;
        let key = host.map_or_else(|| "host".to_owned(), |host| path(host, "roles"));
        let line = locate::parse(source_name, text).ok().and_then(|(_, lines)| lines.line(&key));
        InputError { source: source_name.to_owned(), line, key: Some(key), found, wanted }
    }

    /// The topology as a file that [`Topology::parse`] reads back as an equal one.
    pub fn to_toml(&self) -> String {
        let count = |role| u32::try_from(self.of(role).count()).unwrap_or(MOST_MADE);
        let (clients, origins) = (count(Role::Client), count(Role::Origin));
        let mut file = TopologyFile { host: Vec::new(), netns: None, kubernetes: None };
        match self.made.clone() {
            None => file.host = self.hosts.iter().map(HostForm::of).collect(),
            Some(Made::Netns(Netns { rate, delay, loss })) => {
                let delay = Some(delay).filter(|delay| !delay.is_zero()).map(HumanDuration);
                file.netns = Some(NetnsForm { clients, origins, rate, delay, loss });
            }
            Some(Made::Pods(Pods { image, namespace, context, cpus, memory_mib })) => {
                file.kubernetes =
                    Some(KubernetesForm { image, namespace, context, clients, origins, cpus, memory_mib });
            }
        }
        // Every key is a text and every number fits.
        toml::to_string(&file).unwrap_or_else(|error| format!("# this topology cannot be written: {error}\n"))
    }
}

impl HostForm {
    fn of(host: &HostSpec) -> HostForm {
        let form = HostForm {
            name: host.name.clone(),
            roles: role_names(&host.roles, &host.parts).into_iter().map(RoleForm).collect(),
            address: host.address.map(|address| address.to_string()),
            cpus: host.cpus.as_deref().map(CpuList::text),
            rate: host.rate,
            ..HostForm::default()
        };
        match host.reach.clone() {
            Reach::Local | Reach::Made => HostForm { local: true, ..form },
            Reach::Namespace(name) => HostForm { namespace: Some(name), ..form },
            Reach::Ssh { destination, config } => {
                let ssh_config = config.map(|file| file.display().to_string());
                HostForm { ssh: Some(destination), ssh_config, ..form }
            }
            Reach::Pod { name, namespace, container, context } => {
                HostForm { pod: Some(format!("{namespace}/{name}")), container, context, ..form }
            }
            Reach::Command(command) => HostForm { command: Some(command), ..form },
        }
    }

    fn roles(&self) -> Vec<Role> {
        self.roles.iter().filter_map(RoleForm::role).collect()
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().filter_map(RoleForm::part)
    }

    /// How it is reached, and by which key.
    fn reach(&self) -> Option<(&'static str, Reach)> {
        let HostForm { ssh_config, container, context, .. } = self;
        let ssh = |destination: &String| {
            let (destination, config) = (destination.clone(), ssh_config.as_ref().map(PathBuf::from));
            ("ssh", Reach::Ssh { destination, config })
        };
        let pod = |pod: &String| {
            let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
            let (name, namespace) = (name.to_owned(), namespace.to_owned());
            ("pod", Reach::Pod { name, namespace, container: container.clone(), context: context.clone() })
        };
        let local = self.local.then_some(("local", Reach::Local));
        local
            .or_else(|| self.ssh.as_ref().map(ssh))
            .or_else(|| self.pod.as_ref().map(pod))
            .or_else(|| self.namespace.clone().map(|name| ("namespace", Reach::Namespace(name))))
            .or_else(|| self.command.clone().map(|command| ("command", Reach::Command(command))))
    }
}

/// Checks what a schema cannot say. Errors go to `errors`.
struct Checks<'a, 'e> {
    errors: &'a mut Errors<'e>,
}

impl Checks<'_, '_> {
    fn topology(&mut self, file: TopologyFile) -> Option<Topology> {
        if let Some(NetnsForm { clients, origins, rate, delay, loss }) = file.netns {
            let delay = delay.map_or(Duration::ZERO, |delay| delay.0);
            return Some(Topology::netns(clients, origins, Netns { rate, delay, loss }));
        }
        if let Some(form) = file.kubernetes {
            let KubernetesForm { image, namespace, context, clients, origins, cpus, memory_mib } = form;
            return Some(Topology::pods(clients, origins, Pods { image, namespace, context, cpus, memory_mib }));
        }
        if file.host.is_empty() {
            let wanted = "[[host]] with name, roles and how it is reached; or [netns] for namespaces of this machine, or [kubernetes] for pods";
            self.errors.add_about_file("it has no host", wanted);
            return None;
        }
        self.roles(&file.host);
        self.unique(&file.host, "name", "the name of another host", "another name", |host| Some(host.name.clone()));
        let several = file.host.len() > 1;
        let hosts: Vec<Option<HostSpec>> =
            file.host.iter().enumerate().map(|(index, host)| self.host(index, host, several)).collect();
        self.unique_ways(&file.host);
        self.addresses(&hosts);
        let hosts = hosts.into_iter().collect::<Option<Vec<HostSpec>>>()?;
        Some(Topology { hosts, made: None })
    }

    fn roles(&mut self, hosts: &[HostForm]) {
        let with = |role| hosts.iter().enumerate().filter(move |(_, host)| host.roles().contains(&role));
        let proxies: Vec<(usize, &HostForm)> = with(Role::Proxy).collect();
        if let [_, (second, _), ..] = proxies.as_slice() {
            let names: Vec<&str> = proxies.iter().map(|(_, host)| host.name.as_str()).collect();
            let found = format!("{} hosts have the role proxy ({})", proxies.len(), names.join(", "));
            self.errors.add(&path(*second, "roles"), found, "one; clients and origins may be several");
        }
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, part) in
            hosts.iter().enumerate().flat_map(|(index, host)| host.parts().map(move |part| (index, part)))
        {
            if let Some(first) = named.insert(part, index).filter(|first| *first != index) {
                let found = format!("proxy:{part} is a role of host[{first}], {:?}, too", hosts[first].name);
                self.errors.add(&path(index, "roles"), found, "each part at one host");
            }
        }
        for role in [Role::Client, Role::Proxy, Role::Origin] {
            // Parts may be all that there is of the proxy, and products that store need no origin: their products will tell.
            if with(role).next().is_none() && (role == Role::Client || named.is_empty()) {
                let wanted = format!("roles = [\"{}\"] at one host", role.as_str());
                self.errors.add("host", format!("no host has the role {}", role.as_str()), wanted);
            }
        }
    }

    fn host(&mut self, index: usize, form: &HostForm, several: bool) -> Option<HostSpec> {
        let before = self.errors.count();
        let reach = form.reach();
        if reach.is_none() {
            let found = "it does not say how it is reached";
            self.errors.add(&item("host", index), found, format!("one of {}", WAYS.join(", ")));
        }
        for (key, given, of) in [
            ("ssh_config", form.ssh_config.is_some(), "ssh"),
            ("container", form.container.is_some(), "pod"),
            ("context", form.context.is_some(), "pod"),
        ] {
            let way = reach.as_ref().map(|(way, _)| *way);
            if let Some(way) = way.filter(|way| given && *way != of) {
                self.errors.add(&path(index, key), format!("does not go with {way}"), format!("{of}, or no {key}"));
            }
        }
        let address = self.address(index, form.address.as_deref(), several);
        let cpus = form.cpus.as_deref().and_then(|text| match text.parse::<CpuList>() {
            Ok(list) => Some(list.into_vec()),
            Err(error) => {
                self.errors.add(&path(index, "cpus"), error.found, error.wanted);
                None
            }
        });
        let (_, reach) = reach.filter(|_| self.errors.count() == before)?;
        let (name, parts) = (form.name.clone(), form.parts().map(str::to_owned).collect());
        Some(HostSpec { name, roles: form.roles(), parts, reach, address, cpus, rate: form.rate })
    }

    fn address(&mut self, index: usize, text: Option<&str>, several: bool) -> Option<IpAddr> {
        let wanted = "an IP address of its network for traffic";
        let at = path(index, "address");
        let Some(text) = text else {
            if several {
                self.errors.add(&at, "missing. The other hosts have to reach it", wanted);
            }
            return None;
        };
        let Ok(address) = text.parse::<IpAddr>() else {
            self.errors.add(&at, format!("{text:?} is no number"), wanted);
            return None;
        };
        let wrong = match address {
            _ if address.is_unspecified() || address.is_multicast() => "is no host's address",
            _ if several && address.is_loopback() => "is every host itself",
            _ => return Some(address),
        };
        self.errors.add(&at, format!("{address} {wrong}"), wanted);
        None
    }

    /// Addresses differ, and each host can reach the others.
    fn addresses(&mut self, hosts: &[Option<HostSpec>]) {
        let mut seen: BTreeMap<IpAddr, &str> = BTreeMap::new();
        let family = |address: &IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let known = hosts.iter().enumerate().filter_map(|(index, host)| Some((index, host.as_ref()?)));
        let addresses: Vec<(usize, &str, IpAddr)> =
            known.filter_map(|(index, host)| Some((index, host.name.as_str(), host.address?))).collect();
        for (index, name, address) in &addresses {
            if let Some(other) = seen.insert(*address, name) {
                let found = format!("{address} is the address of {other}, too");
                self.errors.add(&path(*index, "address"), found, "an address of its own");
            }
            let first = addresses.first().map_or(*address, |(_, _, first)| *first);
            if family(&first) != family(address) {
                let found = format!("{address} is {}, and {first} is {}", family(address), family(&first));
                self.errors.add(&path(*index, "address"), found, "addresses of one family, so that all reach all");
            }
        }
    }

    /// Two agents of a run on one host would be in each other's way, and their CPUs would not be told apart.
    fn unique_ways(&mut self, hosts: &[HostForm]) {
        for key in WAYS {
            let same =
                |host: &HostForm| host.reach().filter(|(way, _)| *way == key).map(|(_, reach)| format!("{reach:?}"));
            self.unique(hosts, key, "the way to another host", "one host with the roles of both", same);
        }
    }

    /// What `value` says of hosts has to differ from host to host.
    fn unique(
        &mut self,
        hosts: &[HostForm],
        key: &str,
        what: &str,
        wanted: &str,
        value: impl Fn(&HostForm) -> Option<String>,
    ) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (index, host) in hosts.iter().enumerate() {
            let Some(value) = value(host) else { continue };
            if let Some(first) = seen.get(&value) {
                let found = format!("is {what}: host[{first}], {:?}", hosts[*first].name);
                self.errors.add(&path(index, key), found, wanted);
            }
            seen.entry(value).or_insert(index);
        }
    }
}

fn path(index: usize, key: &str) -> String {
    child(&item("host", index), key)
}
