//! The audit: do the counters of client, origin and kernel agree, and did the client have headroom?
//!
//! Each check is one small file. Its entry in `checks.toml` says what it sees, its threshold and the source of that, the remedy, and
//! what it cannot see; `docs/audit.md` is made from them. A check returns at most one finding. The most severe finding decides the verdict.
//!
//! `weir-lab` calls [`audit`] after each trial. Checks see one trial's [`Evidence`]. They do not know other trials, how the trial
//! was measured, or how a finding is shown.

mod access_log;
mod affinity;
mod altered_requests;
mod bottleneck;
mod client_room;
mod clocks;
mod codings;
mod connections;
mod control;
mod count;
mod cpu_speed;
mod cut_short;
mod datagrams;
mod disk_writes;
mod drift;
mod drops;
mod errors;
mod expiry;
mod fairness;
mod headers;
mod hosts_differ;
mod in_flight;
mod lag;
mod link;
mod messages;
mod never_steady;
mod nic_queue;
mod no_counters;
mod no_responses;
mod offered;
mod origin_bytes;
mod origin_connections;
mod origin_requests;
mod other_processes;
#[cfg(test)]
mod page;
mod quota;
mod rate_limit;
mod reload;
mod retransmits;
mod search;
mod sent_twice;
mod shared_cpus;
mod spread;
mod stalls;
mod steal;
mod tls;
mod unexplained_work;
mod unknown_usage;
mod upstream;
mod vitals_late;
#[cfg(test)]
mod wording;
mod wrong_data;
mod wrong_responses;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use weir_model::Placement;
use weir_model::change::ChangeRecord;
use weir_model::counters::OriginCounters;
use weir_model::gateway::{AccessLog, Filter, Gateway};
use weir_model::load::{Counts, LoadResult, SearchResult};
use weir_model::owners::Owners;
use weir_model::record::{Finding, HostRecord, ResourceSecond, Role, RoleUsage, Severity, Verdict};
use weir_model::suite::{Protocol, Tls};
use weir_model::text::{grouped, list};
use weir_model::units::Share;

pub use clocks::check as clocks;
pub use control::{check as control, switched_off as control_switched_off};
pub use cpu_speed::check as cpu_speed;
pub use expiry::check as expiry;
pub use hosts_differ::differ as clients_differ;
pub use never_steady::check as never_steady;

/// The data of one trial for the checks.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The client's result.
    pub load: &'a LoadResult,
    /// The origin's counters of the same load; `None` when the origin is a product, which has none.
    pub origin: Option<&'a OriginCounters>,
    /// What the roles used during the window.
    pub usage: &'a [RoleUsage],
    /// Per second, roles and host.
    pub series: &'a [ResourceSecond],
    /// Who used the roles' CPUs, of each machine.
    pub owners: &'a [Owners],
    /// The hosts of the run, where there are several.
    pub hosts: &'a [HostRecord],
    /// By how much that was sampled too late, seconds.
    pub vitals_late_s: f64,
    /// CPUs of the roles, on the first host of each.
    pub placement: &'a Placement,
    /// How many CPUs the product was given on all hosts where its parts are; 0 where others gave it its own.
    pub product_cpus: u32,
    /// Connections of the load.
    pub connections: u32,
    /// Each request has one of its own.
    pub close: bool,
    /// Requests of a load with a fixed number of them.
    pub requests: Option<u64>,
    /// What an open load's rate is meant to be.
    pub rate_intent: RateIntent,
    /// It is one of the earlier rounds of a product that was not warmed up.
    pub warming_round: bool,
    /// The search of which the load is the confirming trial.
    pub search: Option<&'a SearchResult>,
    /// There is a product between client and origin.
    pub proxied: bool,
    /// That product is a cache.
    pub caches: bool,
    /// That product holds the data itself: there is no origin.
    pub store: bool,
    /// That product asks several origins for one request.
    pub replicates: bool,
    /// That product is to answer by itself, without the origin.
    pub by_product: bool,
    /// The pool, the routes and the filter of that product.
    pub gateway: &'a Gateway,
    /// What client and product spoke.
    pub protocol: Protocol,
    /// The TLS that the suite asks for.
    pub tls: Tls,
    /// The product's profile makes it do what all others do.
    pub levelled: bool,
    /// Share of the requests that may be refused or fail.
    pub errors_allowed: Share,
    /// How long the client waits for a response, seconds.
    pub timeout_s: f64,
    /// How long a request waits by intent in the mean, such as for the origin's delay, seconds; `None`: nobody knows.
    pub waits_s: Option<f64>,
    /// Faults were provoked in the product meanwhile.
    pub faults: bool,
    /// The changes of its route during the load; `None`: the load makes none.
    pub changes: Option<&'a ChangeRecord>,
    /// Whether its requests may be repeated: GET, PUT and the like, not POST.
    pub idempotent: bool,
    /// What the product wrote to its access log; `None` where it has none.
    pub access_log: Option<&'a AccessLog>,
}

/// What an open load's rate is meant to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateIntent {
    /// Carried: latencies are asked for.
    #[default]
    Carried,
    /// Carried or not: it is a point of a curve.
    Either,
    /// More than can be carried: what is carried is asked for.
    TooMuch,
}

impl Evidence<'_> {
    /// Usage of one role.
    pub fn role(&self, role: Role) -> Option<&RoleUsage> {
        self.usage.iter().find(|u| u.role == role)
    }

    /// Of several hosts, each machine: the hosts on it, and its rows. Rows of `host` are of the proxy's machine, others have the name
    /// of a host. None of a single host.
    pub fn machines(&self) -> Vec<(Vec<&HostRecord>, Vec<&ResourceSecond>)> {
        let proxy = self.hosts.iter().find(|host| host.has(Role::Proxy)).filter(|_| self.hosts.len() > 1);
        let machine = |row: &'_ ResourceSecond| match (row.who.as_str(), proxy) {
            ("host", proxy) => proxy.map(|proxy| proxy.machine.as_str()),
            (who, _) => {
                let name = who.strip_prefix("host/")?;
                self.hosts.iter().find(|host| host.name == name).map(|host| host.machine.as_str())
            }
        };
        let rows = grouped(self.series.iter().filter_map(|row| Some((machine(row)?, row))));
        let on = |machine: &str| self.hosts.iter().filter(|host| host.machine == machine).collect();
        rows.into_iter().map(|(machine, rows)| (on(machine), rows)).collect()
    }

    /// Requests that can be in flight between client and product at a time.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.connections) * u64::from(self.load.streams.max(1))
    }

    /// Requests of the client's whole life without any response. They may or may not have reached the origin.
    pub fn unanswered(&self) -> u64 {
        let answered: u64 = self.load.total.statuses.values().sum();
        self.load.total.sent.saturating_sub(answered)
    }

    /// Requests of the client's whole life that may or may not have reached the origin: those without any response, and those that
    /// were refused, but not by the product's filter.
    pub fn maybe_not_forwarded(&self) -> u64 {
        self.unanswered() + self.refused_otherwise()
    }

    /// Requests of the client's whole life that were refused, but not by the product's filter.
    pub fn refused_otherwise(&self) -> u64 {
        let refused = self.load.total.refused_by_status();
        let by_filter = self.refusal();
        refused.iter().filter(|(status, _)| Some(**status) != by_filter).map(|(_, count)| count).sum()
    }

    /// Streams that the client cancelled in their middle, as its load says.
    pub fn cancelled(&self) -> u64 {
        self.load.messages.as_ref().map_or(0, |messages| messages.total.cancelled)
    }

    /// Requests that the product's filter refused. None of them may reach the origin.
    pub fn refused_by_filter(&self, counts: &Counts) -> u64 {
        self.refusal().and_then(|status| counts.statuses.get(&status)).copied().unwrap_or_default()
    }

    /// The status with which the product's filter refuses requests.
    fn refusal(&self) -> Option<u16> {
        self.gateway.filter.and_then(Filter::refusal)
    }
}

/// The part of a check that its findings need. `docs/audit.md` is made of its other texts.
#[derive(Debug, Deserialize)]
struct Check {
    /// Names of its findings, the usual one first.
    names: Vec<String>,
    /// What to do about the usual finding.
    remedy: String,
    /// A fault that was provoked in the product may cause it: it is then only noted.
    #[serde(default)]
    provoked: bool,
}

/// Every check, in the order of the findings.
static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
    let mut file: BTreeMap<String, Vec<Check>> = toml::from_str(include_str!("checks.toml")).expect("a test reads it");
    file.remove("check").unwrap_or_default()
});

/// The checks that judge one trial, in the order of the findings. The lab calls the others, before there is any evidence or after all
/// of it.
const JUDGES: [fn(&Evidence<'_>) -> Option<Finding>; 47] = [
    cut_short::check,
    count::check,
    in_flight::check,
    no_counters::check,
    unknown_usage::check,
    wrong_data::check,
    wrong_responses::check,
    messages::check,
    messages::cancellations,
    headers::check,
    no_responses::check,
    origin_requests::check,
    altered_requests::check,
    sent_twice::check,
    origin_bytes::check,
    origin_connections::check,
    access_log::check,
    reload::check,
    connections::check,
    errors::check,
    rate_limit::check,
    offered::check,
    search::check,
    drift::check,
    client_room::check,
    shared_cpus::check,
    quota::check,
    bottleneck::check,
    lag::check,
    stalls::check,
    vitals_late::check,
    affinity::check,
    unexplained_work::check,
    disk_writes::check,
    upstream::check,
    codings::check,
    spread::check,
    fairness::check,
    tls::check,
    steal::check,
    other_processes::check,
    retransmits::check,
    datagrams::check,
    drops::check,
    link::check,
    nic_queue::check,
    hosts_differ::check,
];

/// The check that has findings of this name.
fn check_of(finding: &str) -> &'static Check {
    CHECKS.iter().find(|check| check.names.iter().any(|name| name == finding)).expect("a test looks for every finding")
}

/// Runs every check.
pub fn audit(evidence: &Evidence<'_>) -> Vec<Finding> {
    let findings = JUDGES.iter().filter_map(|judge| judge(evidence));
    let why = match (evidence.faults, evidence.changes) {
        (true, _) => "faults were provoked meanwhile",
        (false, Some(_)) => "the route changed meanwhile",
        (false, None) => return findings.collect(),
    };
    let is_provoked = |finding: &Finding| check_of(&finding.check).provoked;
    findings.map(|finding| if is_provoked(&finding) { provoked(finding, why) } else { finding }).collect()
}

/// A finding of a load in which faults were provoked, or the route changed: what that explains is only noted.
fn provoked(finding: Finding, why: &str) -> Finding {
    if finding.severity == Severity::Note {
        return finding;
    }
    let message = format!("{} ({why})", finding.message);
    Finding { severity: Severity::Note, message, ..finding }
}

/// The verdict that follows from the findings.
pub fn verdict(findings: &[Finding]) -> Verdict {
    match findings.iter().map(|f| f.severity).max() {
        Some(Severity::Fatal) => Verdict::Invalid,
        Some(Severity::Warning) => Verdict::Suspect,
        Some(Severity::Note) | None => Verdict::Valid,
    }
}

/// A finding with the remedy of its check.
fn finding(name: &str, severity: Severity, message: impl Into<String>) -> Option<Finding> {
    finding_with(name, severity, message, &check_of(name).remedy)
}

/// A finding with a remedy of its own.
fn finding_with(name: &str, severity: Severity, message: impl Into<String>, remedy: &str) -> Option<Finding> {
    Some(Finding { check: name.to_owned(), severity, message: message.into(), remedy: remedy.to_owned() })
}

/// A machine by the hosts on it.
fn named(machine: &[&HostRecord]) -> String {
    let names: Vec<&str> = machine.iter().map(|host| host.name.as_str()).collect();
    if names.len() == 1 { names[0].to_owned() } else { format!("the machine of {}", list(&names)) }
}

/// A role as findings name it.
fn role_name(role: Role) -> &'static str {
    if role == Role::Proxy { "product" } else { role.as_str() }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

#[cfg(test)]
pub(crate) mod fixture {
    //! A trial in which all is well; each check's tests inject one thing.

    use super::*;
    use weir_model::Condition;
    use weir_model::load::{Quantiles, SEARCH_SCHEMA, SearchEnd, SearchLimit, SearchOptions};
    use weir_model::record::{Environment, Link};

    /// A search that found 9,000/s.
    pub fn search(end: SearchEnd, limit: Option<SearchLimit>) -> SearchResult {
        SearchResult {
            schema: SEARCH_SCHEMA,
            conditions: Condition::list("p99<5ms").expect("a condition"),
            options: SearchOptions::default(),
            end,
            rate: Some(9_000.0),
            confirmed: true,
            met_up_to: Some(9_000.0),
            failed_from: Some(9_900.0),
            limit,
            probes: Vec::new(),
            seconds: 60.0,
            confirmation: None,
        }
    }

    #[derive(Default)]
    pub struct Trial {
        pub load: LoadResult,
        pub origin: OriginCounters,
        pub usage: Vec<RoleUsage>,
        pub series: Vec<ResourceSecond>,
        pub owners: Vec<Owners>,
        pub hosts: Vec<HostRecord>,
        pub vitals_late_s: f64,
        pub placement: Placement,
        pub close: bool,
        pub requests: Option<u64>,
        pub rate_intent: RateIntent,
        pub warming_round: bool,
        pub search: Option<SearchResult>,
        pub proxied: bool,
        pub has_counters: bool,
        pub caches: bool,
        pub store: bool,
        pub replicates: bool,
        pub by_product: bool,
        pub gateway: Gateway,
        pub protocol: Protocol,
        pub tls: Tls,
        pub levelled: bool,
        pub errors_allowed: Share,
        pub access_log: Option<AccessLog>,
        pub changes: Option<ChangeRecord>,
        pub not_idempotent: bool,
        pub waits_s: Option<f64>,
    }

    /// A product with a filter, and with a limit of its rate.
    pub fn filtered(filter: Filter, limit: Option<u32>) -> Gateway {
        Gateway { filter: Some(filter), limit, ..Gateway::default() }
    }

    impl Trial {
        pub fn check(&self, check: fn(&Evidence<'_>) -> Option<Finding>) -> Option<Finding> {
            check(&self.evidence())
        }

        fn evidence(&self) -> Evidence<'_> {
            Evidence {
                load: &self.load,
                origin: self.has_counters.then_some(&self.origin),
                usage: &self.usage,
                series: &self.series,
                owners: &self.owners,
                hosts: &self.hosts,
                vitals_late_s: self.vitals_late_s,
                placement: &self.placement,
                product_cpus: self.placement.proxy.len() as u32,
                connections: 64,
                close: self.close,
                requests: self.requests,
                rate_intent: self.rate_intent,
                warming_round: self.warming_round,
                search: self.search.as_ref(),
                proxied: self.proxied,
                caches: self.caches,
                store: self.store,
                replicates: self.replicates,
                by_product: self.by_product,
                gateway: &self.gateway,
                protocol: self.protocol,
                tls: self.tls,
                levelled: self.levelled,
                errors_allowed: self.errors_allowed,
                timeout_s: 10.0,
                waits_s: self.waits_s,
                faults: false,
                access_log: self.access_log.as_ref(),
                changes: self.changes.as_ref(),
                idempotent: !self.not_idempotent,
            }
        }

        pub fn all(&self) -> Vec<Finding> {
            audit(&self.evidence())
        }
    }

    fn usage(role: Role, cores_busy: f64) -> RoleUsage {
        RoleUsage {
            role,
            cpu_system_us: (cores_busy * 1e6) as u64,
            cores_busy,
            threads_max: Some(1),
            processes_max: Some(1),
            switches: Some((0, 0)),
            ..RoleUsage::default()
        }
    }

    /// 10,000 requests of 128 bytes, all right.
    pub fn good() -> Trial {
        let counts = Counts {
            due: 10_000,
            sent: 10_000,
            successful: 10_000,
            successful_in_window: 10_000,
            statuses: [(200, 10_000)].into(),
            body_bytes: 1_280_000,
            connections: 64,
            ..Counts::default()
        };
        let micros = |p99_us| Quantiles { count: 10_000, p99_us, ..Quantiles::default() };
        Trial {
            load: LoadResult {
                driver: "epoll".into(),
                threads: 1,
                window_s: 1.0,
                rate: 10_000.0,
                window: counts.clone(),
                total: counts,
                body_bytes_per_s: 1_280_000.0,
                // 64 in flight.
                latency: Quantiles { mean_us: 6_400.0, max_us: 20_000.0, ..micros(1_000.0) },
                service: micros(1_000.0),
                lag: micros(5.0),
                thread_busy: vec![0.3],
                ..LoadResult::default()
            },
            origin: OriginCounters {
                connections_accepted: 64,
                requests: 10_000,
                answered: 10_000,
                body_bytes_out: 1_280_000,
                ..OriginCounters::default()
            },
            usage: vec![usage(Role::Client, 0.3), usage(Role::Proxy, 0.98), usage(Role::Origin, 0.2)],
            series: vec![ResourceSecond { who: "host".into(), cpu_steal: Some(0.0), ..ResourceSecond::default() }],
            placement: Placement { client: vec![0], proxy: vec![1], origin: vec![0], ..Placement::default() },
            proxied: true,
            has_counters: true,
            levelled: true,
            errors_allowed: Share::THOUSANDTH,
            ..Trial::default()
        }
    }

    /// The same on three hosts, each a machine with two CPUs and a link of 1 Gbit/s. Rows: the proxy's machine, then the client's and
    /// the origin's.
    pub fn three_hosts() -> Trial {
        let mut trial = good();
        let host = |name: &str, role: Role, last: u8| {
            let address = std::net::IpAddr::from([10, 0, 0, last]);
            let link = Link {
                name: "eth0".into(),
                addresses: vec![address],
                bits_per_s: Some(1_000_000_000),
                queue_cpus: vec![0],
            };
            HostRecord {
                name: name.into(),
                roles: vec![role],
                parts: Vec::new(),
                machine: name.into(),
                address: Some(address),
                cpus: vec![0, 1],
                facts: Environment { cpu_model: "a model".into(), links: vec![link], ..Environment::default() },
            }
        };
        trial.hosts =
            vec![host("proxy", Role::Proxy, 1), host("client-1", Role::Client, 2), host("origin-1", Role::Origin, 3)];
        trial.series[0].length_s = 1.0;
        for host in &trial.hosts[1..] {
            let row = ResourceSecond { who: format!("host/{}", host.name), ..trial.series[0].clone() };
            trial.series.push(row);
        }
        trial
    }

    #[test]
    fn a_good_trial_on_three_hosts_has_no_findings() {
        assert_eq!(three_hosts().all(), []);
    }

    #[test]
    fn a_good_trial_has_no_findings_and_is_valid() {
        assert_eq!(good().all(), []);
        assert_eq!(verdict(&[]), Verdict::Valid);
    }

    #[test]
    fn what_faults_explain_is_only_noted() {
        let mut trial = good();
        trial.load.window.errors = [(weir_model::load::ErrorKind::Reset, 2_500)].into();
        trial.load.thread_busy = vec![0.97];
        let found = audit(&Evidence { faults: true, ..trial.evidence() });
        let severities: Vec<_> = found.iter().map(|f| (f.check.as_str(), f.severity)).collect();
        assert_eq!(severities, [("refusals", Severity::Note), ("client-room", Severity::Warning)]);
        assert!(found[0].message.contains("faults were provoked"));
    }

    #[test]
    fn the_worst_finding_decides() {
        let of = |severity| Finding { check: String::new(), severity, message: String::new(), remedy: String::new() };
        assert_eq!(verdict(&[of(Severity::Note)]), Verdict::Valid);
        assert_eq!(verdict(&[of(Severity::Note), of(Severity::Warning)]), Verdict::Suspect);
        assert_eq!(verdict(&[of(Severity::Fatal), of(Severity::Warning)]), Verdict::Invalid);
    }
}
