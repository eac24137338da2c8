//! Says in words on which hosts a run was measured, and how well their clocks were known. Called by `summary`; of a run on one
//! machine there is nothing to say.

use serde::Serialize;
use weir_model::load::ClientOfHost;
use weir_model::record::{HostClock, HostRecord, Role};
use weir_model::suite::Entry;
use weir_model::text::{extremes, list, short, unique};

use super::Section;
use crate::run::{Run, displayed};

/// More hosts of a role than this are counted.
const NAMED: usize = 4;

/// `4 hosts: client on client-1, proxy on proxy, origin on origin-1, store-1 on m4`; empty without hosts. It names the number of
/// machines where hosts share one, because they share its CPUs.
pub fn host_words(hosts: &[HostRecord]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let on = |role: Role| {
        let has_whole = |host: &&HostRecord| host.has(role) && (role != Role::Proxy || host.parts.is_empty());
        let names: Vec<&str> = hosts.iter().filter(has_whole).map(|host| host.name.as_str()).collect();
        let named = if names.len() > NAMED { format!("{} hosts", names.len()) } else { list(&names) };
        (!names.is_empty()).then(|| format!("{} on {named}", role.as_str()))
    };
    let roles = [Role::Client, Role::Proxy, Role::Origin].into_iter().filter_map(on);
    let with_parts = hosts.iter().filter(|host| !host.parts.is_empty());
    let parts = with_parts.map(|host| format!("{} on {}", list(&host.parts), host.name));
    let places: Vec<String> = roles.chain(parts).collect();
    let machines = unique(hosts.iter().map(|host| host.machine.as_str())).len();
    let shared = match machines {
        1 => " on one machine".to_string(),
        n if n < hosts.len() => format!(" on {n} machines"),
        _ => String::new(),
    };
    format!("{} hosts{shared}: {}", hosts.len(), places.join(", "))
}

/// The same of a run.
pub(super) fn of(run: &Run) -> String {
    run.environment.as_ref().map(|environment| host_words(&environment.hosts)).unwrap_or_default()
}

/// By how much clocks of two hosts may have disagreed, in the trial where it was most; `None` for one machine.
pub(super) fn clock_words(run: &Run) -> Option<String> {
    let most = run.trials.iter().filter_map(|trial| HostClock::furthest(&trial.measurement.clocks));
    let (us, a, b) = most.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!("The hosts' clocks disagreed by at most {} ms in any trial ({a} and {b}).", short(us / 1e3)))
}

/// How one of several clients did with a product. It has the worst of all trials and points, because a client that was late or
/// busy once spoils that trial.
#[derive(Debug, Clone, Serialize)]
pub struct ClientSummary {
    /// Product and profile.
    #[serde(flatten)]
    pub entry: Entry,
    /// Its host's name.
    pub host: String,
    /// The longest 99th percentile from due to sent, µs; `None` for a closed load.
    pub lag_p99_us: Option<f64>,
    /// Share of the window that the busiest thread worked on a CPU, 0 to 1.
    pub busiest_thread: Option<f64>,
}

/// The clients of each product; none where one client made the load.
pub(super) fn clients(run: &Run, section: &Section) -> Vec<ClientSummary> {
    let mut all = Vec::new();
    for row in section.all_rows() {
        let trials = displayed(section.trials(run).filter(|trial| trial.is_of(&row.entry)));
        let windows = trials.iter().flat_map(|trial| trial.measurement.windows());
        let clients: Vec<&ClientOfHost> = windows.flat_map(|load| &load.hosts).collect();
        for host in unique(clients.iter().map(|client| client.host.as_str())) {
            let own = || clients.iter().filter(|client| client.host == host);
            let lag = extremes(own().map(|client| client.lag.p99_us)).filter(|_| section.open);
            all.push(ClientSummary {
                entry: row.entry.clone(),
                host: host.to_string(),
                lag_p99_us: lag.map(|(_, most)| most),
                busiest_thread: extremes(own().flat_map(|client| client.thread_busy.clone())).map(|(_, most)| most),
            });
        }
    }
    all
}
