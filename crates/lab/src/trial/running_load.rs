//! A running load: its clients, with vitals that sample all processes on their hosts, and checks that the product and the origin
//! still run. The series of a trial starts it.
//!
//! A load's start, its window and its faults are times sent ahead, so that all hosts act together, and nothing but heartbeats is
//! sent while a window is measured. A search alone begins windows when its client says so, because the client plans its loads.
//! This module does not know how the client's reports are used.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_model::At;
use weir_model::change::ChangeRecord;
use weir_model::counters::OriginCounters;
use weir_model::fault::FaultRecord;
use weir_model::load::LoadSpec;
use weir_model::record::Role;
use weir_model::suite::LoadKind;
use weir_vitals::{Plan, Served, Watched, Window};

use super::changes::Changes;
use super::clients::{ClientError, Clients};
use super::faults::Faults;
use super::origin::RunningOrigin;
use super::series::quiet_counters;
use super::windows::joined;
use super::{Trial, lost};
use crate::hosts::{Hosts, is_same_host};
use weir_host::role::{ClientCommand, ClientReport, ClientSpec};
use weir_host::{Clock, Host, Sampler};
use weir_product::failure::Failure;
use weir_product::requester::Requester;
use weir_product::running::Running;

/// How often the other processes are checked while the client reports nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How far ahead a start is sent: clients need [`LoadError::Late`](weir_load::LoadError::Late)'s time of it, and samplers read what is
/// expensive in it where there is no warm-up. The way there takes a millisecond, and more where the machine is busy.
const AHEAD: Duration = Duration::from_millis(100);

/// The same where a host is another machine: what stands between, such as the API server of a cluster, may take a moment.
const FAR_AHEAD: Duration = Duration::from_millis(500);

/// What samples each host.
type Samplers = Vec<(Arc<dyn Host>, Box<dyn Sampler>)>;

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its clients connect.
    Connecting,
    /// All are connected, and wait for their start.
    Ready,
    /// It runs. Its window begins at this time, if that was sent ahead.
    WarmingUp { window: Option<At> },
    /// It is measured.
    Window,
    /// The clients wait for the requests in flight.
    Draining,
    /// The clients have reported their result, or why there is none.
    Done,
}

impl Phase {
    /// The phase after a report of the clients.
    fn after(self, report: &ClientReport) -> Phase {
        match (self, report) {
            (_, ClientReport::Done(_) | ClientReport::Found(_) | ClientReport::Failed(_)) => Phase::Done,
            // Each trial of a search begins anew.
            (_, ClientReport::Trial { .. }) => Phase::Connecting,
            (Phase::Connecting, ClientReport::Ready) => Phase::Ready,
            (Phase::Connecting, ClientReport::Warmup(_)) => Phase::WarmingUp { window: None },
            // A window that was sent ahead begins by the clock.
            (Phase::Connecting | Phase::WarmingUp { window: None }, ClientReport::WindowStart { .. }) => Phase::Window,
            (Phase::WarmingUp { .. } | Phase::Window, ClientReport::WindowEnd) => Phase::Draining,
            _ => self,
        }
    }

    /// The begin of the window that was sent ahead, when its time has come.
    fn due_window(self, now: At) -> Option<At> {
        match self {
            Phase::WarmingUp { window: Some(begin) } if now.mono_ns >= begin.mono_ns => Some(begin),
            _ => None,
        }
    }
}

/// When a load's parts begin.
#[derive(Debug, Clone, Copy)]
pub enum Schedule {
    /// Its client plans them: a search.
    ByClient,
    /// It starts as one that is measured does, but has no window: a warm-up.
    Unmeasured,
    /// The window begins after the warm-up, and has this length; `None`: until its requests are counted.
    Measured { warmup: Duration, length: Option<Duration> },
}

impl Schedule {
    /// That of a load that is measured.
    pub fn measured(spec: &LoadSpec) -> Schedule {
        let counted = matches!(spec.kind, LoadKind::Count { .. });
        Schedule::Measured {
            warmup: Duration::from_secs_f64(spec.warmup_s),
            length: (!counted).then(|| Duration::from_secs_f64(spec.duration_s)),
        }
    }
}

/// A running load.
#[derive(Debug)]
pub struct RunningLoad<'a> {
    trial: Trial<'a>,
    clients: Clients,
    samplers: Samplers,
    most: Duration,
    deadline: At,
    clock: Arc<dyn Clock>,
    schedule: Schedule,
    phase: Phase,
    /// Its caller starts it, together with another.
    starts_together: bool,
    origin: &'a mut RunningOrigin,
    running: &'a mut Option<Running>,
    faults: Faults,
    changes: Changes,
    /// Ends with the client.
    _monitored: Option<Monitored<'a>>,
}

/// What serves a load.
#[derive(Debug)]
pub struct Backend<'a> {
    /// The origin.
    pub origin: &'a mut RunningOrigin,
    /// The product's process; `None` for `direct`.
    pub running: &'a mut Option<Running>,
    /// Sends weir's own requests.
    pub requester: &'a Requester,
}

/// A requester that asks parts for their own numbers, until this is dropped.
#[derive(Debug)]
struct Monitored<'a>(&'a Requester);

impl<'a> Monitored<'a> {
    /// `None`: no part tells any.
    fn start(requester: &'a Requester, running: Option<&Running>, folder: &Path) -> Option<Monitored<'a>> {
        let told = running.map(Running::monitors).filter(|told| !told.is_empty())?;
        // Without them the measurement is as good.
        requester.monitor(told, folder).ok().map(|()| Monitored(requester))
    }
}

impl Drop for Monitored<'_> {
    fn drop(&mut self) {
        let _ = self.0.monitor(Vec::new(), Path::new(""));
    }
}

impl<'a> RunningLoad<'a> {
    /// Starts clients in `folder`, which may take `most`. Nothing is watched before [`RunningLoad::watch`].
    pub fn start(
        trial: Trial<'a>,
        spec: &ClientSpec,
        folder: &Path,
        most: Duration,
        schedule: Schedule,
        backend: Backend<'a>,
    ) -> Result<RunningLoad<'a>, Failure> {
        let Backend { origin, running, requester } = backend;
        let spec = ClientSpec { waits: !matches!(schedule, Schedule::ByClient), ..spec.clone() };
        let hold = matches!(schedule, Schedule::Measured { .. });
        let clients = Clients::start(&trial, &spec, folder, hold).map_err(failed)?;
        let monitored = Monitored::start(requester, running.as_ref(), folder);
        let clock = trial.context.hosts.clock();
        Ok(RunningLoad {
            trial,
            clients,
            samplers: Vec::new(),
            most,
            deadline: clock.now().plus(most),
            clock,
            schedule,
            phase: Phase::Connecting,
            starts_together: false,
            origin,
            running,
            faults: Faults::default(),
            changes: Changes::default(),
            _monitored: monitored,
        })
    }

    /// The roots of the trees of processes that are watched: clients, origin and product.
    pub fn roots(&self) -> Vec<u32> {
        let of_host = |host| trees(&self.trial, host, &self.clients, self.origin, self.running.as_ref());
        self.trial.context.hosts.each().into_iter().flat_map(of_host).filter_map(|watched| watched.root()).collect()
    }

    /// Samples all processes from now on. Trees with roots in `beside` are measured by another at the same time.
    pub fn watch(mut self, beside: &[u32]) -> Result<RunningLoad<'a>, Failure> {
        match samplers(&self.trial, &self.clients, self.origin, self.running.as_ref(), beside) {
            Ok(samplers) => self.samplers = samplers,
            Err(error) => {
                // Vitals may be the first to see that a process has ended; the error must name that process.
                all_alive(self.origin, self.running)?;
                return Err(self.failed(format!("vitals did not start: {error}")));
            }
        }
        Ok(self)
    }

    /// Leaves the start to its caller, for [`RunningLoad::begin`].
    pub fn start_together(&mut self) {
        self.starts_together = true;
    }

    /// Whether its clients are connected and wait for their start.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Provokes these faults in the window, and makes these changes.
    pub fn with(self, faults: Faults, changes: Changes) -> RunningLoad<'a> {
        RunningLoad { faults, changes, ..self }
    }

    /// Receives the clients' next report; `None` when there is none for now.
    pub fn receive(&mut self) -> Result<Option<ClientReport>, Failure> {
        self.receive_within(POLL_INTERVAL)
    }

    /// The same, without waiting longer.
    pub fn receive_within(&mut self, within: Duration) -> Result<Option<ClientReport>, Failure> {
        if self.trial.stop.is_requested() {
            return Err(Failure::Stopped);
        }
        if self.clock.left(self.deadline).is_zero() {
            return Err(self.failed(format!("the client was not done after {} s", self.most.as_secs())));
        }
        self.all_alive()?;
        if let Some(begin) = self.phase.due_window(self.clock.now()) {
            self.phase = Phase::Window;
            return Ok(Some(ClientReport::WindowStart { unix_ms: begin.unix_ns / 1_000_000 }));
        }
        let next_change = self.changes.next_in(self.clock.as_ref()).unwrap_or(within);
        if let Some(running) = self.running.as_mut().filter(|_| next_change.is_zero()) {
            self.changes.make_next(self.clock.as_ref(), running, self.trial.stop)?;
            return Ok(None);
        }
        let within = within.min(next_change);
        let Some(report) = self.clients.receive(within).map_err(failed)? else { return Ok(None) };
        self.phase = self.phase.after(&report);
        match (report, self.schedule) {
            (ClientReport::Ready, _) if self.starts_together => Ok(None),
            (ClientReport::Ready, _) => self.begin(self.soon()).map(|()| None),
            // It was sent ahead, and told when its time came.
            (ClientReport::WindowStart { .. }, Schedule::Measured { .. }) => Ok(None),
            (report, _) => Ok(Some(report)),
        }
    }

    /// The first moment that can be sent ahead as a start.
    pub fn soon(&self) -> At {
        let far = self.trial.context.hosts.each().iter().any(|host| host.facts().work.is_some());
        self.clock.now().plus(if far { FAR_AHEAD } else { AHEAD })
    }

    /// Sends the start ahead, with the window and the faults that follow from it.
    pub fn begin(&mut self, start: At) -> Result<(), Failure> {
        if self.phase != Phase::Ready {
            return Ok(());
        }
        self.send(ClientCommand::Start(start))?;
        let mut window = None;
        if let Schedule::Measured { warmup, length } = self.schedule {
            let from = start.plus(warmup);
            self.sample(from, length.map(|length| from.plus(length)))?;
            if let Some(running) = self.running.as_mut() {
                self.faults.begin(from, running)?;
                self.changes.begin(from);
            }
            if self.trial.spec.load.faults.iter().any(|fault| fault.member.is_some()) {
                self.origin.begin_faults(from)?;
            }
            window = Some(from);
        }
        self.phase = Phase::WarmingUp { window };
        Ok(())
    }

    /// A window begins. Where it was not sent ahead, vitals begin it now.
    pub fn begin_window(&mut self) -> Result<(), Failure> {
        match self.schedule {
            Schedule::Measured { .. } => Ok(()),
            Schedule::ByClient | Schedule::Unmeasured => self.sample(self.clock.now(), None),
        }
    }

    fn sample(&mut self, from: At, to: Option<At>) -> Result<(), Failure> {
        let begin = |(host, sampler): &(Arc<dyn Host>, Box<dyn Sampler>)| {
            sampler.begin_window(host.at(from), to.map(|to| host.at(to)))
        };
        self.samplers.iter().try_for_each(begin).or_else(|e| {
            self.all_alive()?;
            Err(self.failed(format!("vitals failed: {e}")))
        })
    }

    /// Ends the window.
    pub fn end_window(&mut self) -> Result<Window, Failure> {
        let mut windows = Vec::new();
        for (host, sampler) in &self.samplers {
            match sampler.end_window() {
                Ok(window) => windows.push((host.facts(), window)),
                Err(error) => {
                    all_alive(self.origin, self.running)?;
                    return Err(self.failed(format!("vitals failed: {error}")));
                }
            }
        }
        joined(windows).ok_or_else(|| self.failed("vitals failed: no host was sampled"))
    }

    /// Lets a waiting search continue, or ends the load early, which keeps its results so far.
    pub fn send(&mut self, command: ClientCommand) -> Result<(), Failure> {
        self.clients.send(command).map_err(failed)
    }

    /// The origin's counters once no more requests reach it.
    pub fn quiet_counters(&self) -> Result<Option<OriginCounters>, Failure> {
        quiet_counters(self.origin, self.clock.as_ref())
    }

    /// Ends the measurement after the clients' last report. Fails if the product or the origin died in the last moment, because
    /// the result would be wrong. Returns the faults that were provoked, and the changes.
    pub fn end(self) -> Result<(Vec<FaultRecord>, Option<ChangeRecord>), Failure> {
        self.samplers.into_iter().for_each(|(_, sampler)| sampler.stop());
        let faults = self.faults.end(self.running.as_mut());
        all_alive(self.origin, self.running)?;
        Ok((faults, self.changes.end()))
    }

    fn all_alive(&mut self) -> Result<(), Failure> {
        not_lost(&self.trial.context.hosts)?;
        all_alive(self.origin, self.running)
    }

    /// A failure under load.
    pub fn failed(&self, message: impl Into<String>) -> Failure {
        failed(ClientError { message: message.into(), last_lines: self.clients.last_lines() })
    }
}

/// Fails when a host can no longer be spoken to.
fn not_lost(hosts: &Hosts) -> Result<(), Failure> {
    hosts.lost().map_or(Ok(()), |_| Err(Failure::Trial(lost(hosts))))
}

/// The processes of the roles that a host has.
fn trees(
    trial: &Trial<'_>,
    host: &Arc<dyn Host>,
    clients: &Clients,
    origin: &RunningOrigin,
    running: Option<&Running>,
) -> Vec<Watched> {
    let hosts = &trial.context.hosts;
    let own = clients.processes().filter(|(of, _)| is_same_host(of, host));
    let mut watched: Vec<Watched> = own.map(|(_, pid)| Watched::process(Role::Client, pid)).collect();
    watched.extend(origin.watched(host));
    watched.extend(running.iter().flat_map(|running| running.watched(Role::Proxy, host.as_ref())));
    let on = |watched: Watched| {
        let cpus = hosts.cpus(watched.role, host, &trial.context.placement);
        watched.on(cpus)
    };
    let mut watched: Vec<Watched> = watched.into_iter().map(on).collect();
    // It has the CPUs that others gave it.
    watched.extend(trial.spec.watched.filter(|_| is_same_host(&hosts.proxy, host)).cloned());
    watched
}

/// A sampler on each host, of the processes that it has; the first is that of the proxy's host.
fn samplers(
    trial: &Trial<'_>,
    clients: &Clients,
    origin: &RunningOrigin,
    running: Option<&Running>,
    measured_by_another: &[u32],
) -> std::io::Result<Samplers> {
    let hosts = &trial.context.hosts;
    let of_host = |host| (host, trees(trial, host, clients, origin, running));
    let each: Vec<(&Arc<dyn Host>, Vec<Watched>)> = hosts.each().into_iter().map(of_host).collect();
    let sampler = |(host, trees): &(&Arc<dyn Host>, Vec<Watched>)| {
        let host: &Arc<dyn Host> = host;
        let beside = each
            .iter()
            .filter(|(other, _)| !is_same_host(other, host) && other.facts().machine == host.facts().machine);
        let plan = Plan {
            trees: trees.clone(),
            elsewhere: beside
                .flat_map(|(_, trees)| trees.iter().filter_map(Watched::root))
                .chain(measured_by_another.iter().copied())
                .collect(),
            served: running.filter(|_| is_same_host(&hosts.proxy, host)).map(|running| Served {
                port: running.addr.port(),
                origins: origin.addrs.iter().map(|addr| addr.port()).collect(),
            }),
        };
        Ok((Arc::clone(host), host.watch(plan, origin.counted(host))?))
    };
    each.iter().map(sampler).collect()
}

fn failed(ClientError { message, last_lines }: ClientError) -> Failure {
    Failure::at("load", message, last_lines, "see client.log in the trial's folder")
}

fn all_alive(origin: &mut RunningOrigin, running: &mut Option<Running>) -> Result<(), Failure> {
    origin.still_runs()?;
    running.as_mut().map_or(Ok(()), |running| running.still_runs("load"))
}
