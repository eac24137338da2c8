//! The machines of a published benchmark, from `suites/published/machines.csv`, and a table of them beside those of a run.

use serde::Deserialize;
use weir_model::record::{Environment, HostRecord, Role};
use weir_model::text::{Unit, counted, list, short};
use weir_report::tables::{Column, RowKind, Table, TableOf};

use crate::run_cases::Context;

/// One kind of machine of a document, as printed there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Machine {
    /// What ran on such machines, on one each.
    pub roles: String,
    /// The figures that it belongs to, as their variant; empty: all.
    pub variant: String,
    /// Its name.
    pub machine: String,
    /// Its cores.
    pub cores: String,
    /// Its memory.
    pub memory: String,
    /// Its network.
    pub network: String,
    /// Its operating system.
    pub system: String,
    /// What the vendor says of a machine of that name.
    pub vendor: String,
    /// The document that contains it.
    pub document: String,
    /// The line in the document.
    pub line: u32,
    /// What a reader must know.
    pub remark: String,
}

impl Machine {
    /// "client and proxy"; with its variant "proxy (4c)".
    pub fn roles(&self) -> String {
        let variant = if self.variant.is_empty() { String::new() } else { format!(" ({})", self.variant) };
        format!("{}{variant}", list(&self.roles.split(' ').collect::<Vec<_>>()))
    }

    /// "c5a.xlarge (4 vCPUs, 8 GiB, up to 10 Gbit/s)".
    pub fn words(&self) -> String {
        format!("{} ({})", self.machine, self.vendor)
    }

    /// Whether the proxy of figures of that variant ran on it.
    pub fn ran_proxy(&self, variant: &str) -> bool {
        let roles = self.roles.split(' ').any(|role| role == Role::Proxy.as_str());
        roles && (self.variant.is_empty() || self.variant == variant)
    }
}

/// The columns of the table.
const COLUMNS: [&str; 9] =
    ["Where", "Roles", "Machine", "Cores", "Memory", "Network", "System", "By the vendor's list", "Remark"];

/// The cells of a machine in the order of [`COLUMNS`].
type Cells = [String; 9];

/// The machines of the document and those of this run. `None` where nothing is known of the document's.
pub(super) fn table(context: &Context<'_>) -> Option<Table> {
    let source = context.source;
    if source.machines.is_empty() {
        return None;
    }
    let there = source.machines.iter().map(|machine| {
        let Machine { machine: name, cores, memory, network, system, vendor, .. } = machine;
        let first = source.documents.first().is_some_and(|first| first.document == machine.document);
        let of = if first { String::new() } else { format!(" of {}", machine.document) };
        let remark = if machine.remark.is_empty() { String::new() } else { format!("; {}", machine.remark) };
        let remark = format!("line {}{of}{remark}", machine.line);
        [&"there".to_owned(), &machine.roles(), name, cores, memory, network, system, vendor, &remark]
            .map(String::clone)
    });
    let here = context.cases.run.environment.iter().flat_map(|environment| match environment.hosts.as_slice() {
        [] => vec![of_one(environment)],
        hosts => hosts.iter().map(of_host).collect(),
    });
    let rows: Vec<Cells> = there.chain(here).collect();
    let mut table = TableOf::<Cells>::new();
    for (place, name) in COLUMNS.into_iter().enumerate() {
        let known = place > 1 && place + 1 < COLUMNS.len();
        table.add(Column::text(name), move |cells| match cells[place].as_str() {
            "" if known => "\u{2013}".to_string(),
            cell => cell.to_string(),
        });
    }
    let note = "Cells of the document are as printed there, and empty where it says nothing; what the vendor lists for a machine of that \
                name is beside them. A virtual CPU of such machines is mostly one of two threads of a core. Compare ratios between products, and not figures, between machines that differ.";
    let table = table.table("published-machines", "The machines, there and here", &rows, |_| RowKind::Plain);
    Some(table.with_notes([note, context.scaled]))
}

/// The one machine of a run.
fn of_one(environment: &Environment) -> Cells {
    let placement = &environment.placement;
    let roles = [("client", &placement.client), ("proxy", &placement.proxy), ("origin", &placement.origin)];
    let placed = roles.map(|(role, cpus)| match cpus.as_slice() {
        [] => role.to_string(),
        cpus => format!("{role} (CPU {})", list(&cpus.iter().map(u32::to_string).collect::<Vec<_>>())),
    });
    cells(list(&placed), environment, environment.cpus, "loopback".to_string())
}

/// One host of several.
fn of_host(host: &HostRecord) -> Cells {
    let roles: Vec<&str> = host.roles.iter().map(|role| role.as_str()).collect();
    let speed = host.link().and_then(|link| link.bits_per_s);
    let network = speed.map(|bits| format!("{} Gbit/s", short(bits as f64 / 1e9))).unwrap_or_default();
    cells(format!("{} ({})", list(&roles), host.name), &host.facts, host.cpus.len() as u32, network)
}

fn cells(roles: String, facts: &Environment, cpus: u32, network: String) -> Cells {
    let memory = match facts.memory_bytes {
        0 => String::new(),
        bytes => format!("{} GiB", short(bytes as f64 / Unit::GIBIBYTES.size)),
    };
    let kind = facts.virtualization.as_ref().map(|kind| format!("virtual ({kind})")).unwrap_or_default();
    let system = [facts.os.as_str(), &facts.kernel].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let (cpus, system) = (counted(u64::from(cpus), "CPU"), system.join(", "));
    ["here".to_owned(), roles, facts.cpu_model.clone(), cpus, memory, network, system, String::new(), kind]
}
