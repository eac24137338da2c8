//! The clients of a load: one, or several on hosts of their own that make it together. [`super::running_load`] starts them.
//!
//! Several are told apart only here: what they report is joined, and their results are merged into that of one client. This module
//! does not know windows, nor what is measured beside them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_host::Host;
use weir_host::role::{ClientCommand, ClientProcess, ClientReport, ClientSpec, RoleError};
use weir_load::{ClientOutput, Outputs, Progress, merge, threads_of_clients};
use weir_model::load::{LoadResult, LoadSecond, LoadSpec, Part, TlsSpec};
use weir_model::record::Role;
use weir_product::tls::client_files;

use super::{Trial, client_folder};
use crate::hosts::path_on_host;

/// Name of the folder, beside the merged files, with those of each of several clients.
const FOLDER: &str = "clients";

/// How long one of several clients is listened to at a time.
const TURN: Duration = Duration::from_millis(1);

/// The clients of one load.
#[derive(Debug)]
pub struct Clients {
    each: Vec<Client>,
    /// Where the files of the load are on this machine.
    folder: PathBuf,
}

#[derive(Debug)]
struct Client {
    host: Arc<dyn Host>,
    process: ClientProcess,
    /// Where it writes its files, there.
    folder: PathBuf,
    /// File with its output, there.
    output: PathBuf,
    /// How long after the first it begins.
    delay: Duration,
    open: (u32, u32),
    ready: bool,
    window_over: bool,
    row: Option<LoadSecond>,
    done: Option<LoadResult>,
}

/// Why a client failed.
#[derive(Debug)]
pub struct ClientError {
    /// What went wrong.
    pub message: String,
    /// The last lines of its output.
    pub last_lines: String,
}

impl ClientError {
    fn without_output(error: &dyn std::error::Error) -> ClientError {
        ClientError { message: error.to_string(), last_lines: String::new() }
    }
}

impl Clients {
    /// Starts a client on each client's host. Their files will be in `folder`.
    pub fn start(trial: &Trial<'_>, spec: &ClientSpec, folder: &Path, hold: bool) -> Result<Clients, ClientError> {
        let hosts = trial.context.hosts.clients_of(trial.spec.load);
        let several = hosts.len() > 1;
        let mut clients = Clients { each: Vec::new(), folder: folder.to_owned() };
        let warmup = Duration::from_secs_f64(spec.spec.warmup_s);
        let stagger = trial.spec.load.stagger.filter(|_| hold).unwrap_or_default().min(warmup / hosts.len() as u32);
        for (host, spec) in hosts.iter().zip(orders(trial, spec)) {
            // One that gets no thread has nothing to do.
            let Some(mut spec) = spec else { continue };
            // Their windows are one.
            let delay = stagger * clients.each.len() as u32;
            spec.spec.warmup_s = warmup.saturating_sub(delay).as_secs_f64();
            let name = &host.facts().name;
            let here = if several { folder.join(FOLDER).join(name) } else { folder.to_owned() };
            let folder = path_on_host(host.as_ref(), trial.spec.folder, &here);
            let output = folder.join("client.log");
            let process = ClientProcess::start(host, &spec, &folder, &output, hold)
                .map_err(|e| ClientError { message: e.to_string(), last_lines: host.last_lines(&output, 8) })?;
            clients.each.push(Client {
                host: Arc::clone(host),
                process,
                folder,
                output,
                delay,
                open: (0, 0),
                ready: false,
                window_over: false,
                row: None,
                done: None,
            });
        }
        Ok(clients)
    }

    /// Their hosts and pids.
    pub fn processes(&self) -> impl Iterator<Item = (&Arc<dyn Host>, u32)> {
        self.each.iter().map(|client| (&client.host, client.process.pid()))
    }

    /// What all of them report next, joined; `None` when nothing came within the time.
    pub fn receive(&mut self, within: Duration) -> Result<Option<ClientReport>, ClientError> {
        let Some(clock) = self.each.first().map(|client| client.host.local_clock()) else { return Ok(None) };
        let deadline = clock.now().plus(within);
        loop {
            let several = self.each.len() > 1;
            for index in 0..self.each.len() {
                let left = clock.left(deadline);
                let client = &mut self.each[index];
                let report = client.receive(if several { left.min(TURN) } else { left })?;
                match report {
                    Some(report) if several => {
                        if let Some(joined) = self.join(index, report)? {
                            return Ok(Some(joined));
                        }
                    }
                    Some(report) => return Ok(Some(report)),
                    None => {}
                }
            }
            if clock.left(deadline).is_zero() {
                return Ok(None);
            }
        }
    }

    /// Takes a report of one of several; returns it when it now holds for all.
    fn join(&mut self, index: usize, report: ClientReport) -> Result<Option<ClientReport>, ClientError> {
        let client = &mut self.each[index];
        match report {
            ClientReport::Connecting { open, of } => {
                client.open = (open, of);
                let (open, of) = self.each.iter().fold((0, 0), |all, one| (all.0 + one.open.0, all.1 + one.open.1));
                Ok(Some(ClientReport::Connecting { open, of }))
            }
            ClientReport::Ready => {
                client.ready = true;
                Ok(self.each.iter().all(|client| client.ready).then_some(ClientReport::Ready))
            }
            ClientReport::Warmup(row) => {
                client.row = Some(row);
                Ok(self.row_of_all().map(ClientReport::Warmup))
            }
            ClientReport::Second(row) => {
                client.row = Some(row);
                Ok(self.row_of_all().map(ClientReport::Second))
            }
            ClientReport::WindowEnd => {
                client.window_over = true;
                Ok(self.each.iter().all(|client| client.window_over).then_some(ClientReport::WindowEnd))
            }
            ClientReport::Done(result) => {
                client.done = Some(*result);
                match self.each.iter().all(|client| client.done.is_some()) {
                    true => self.merged().map(|result| Some(ClientReport::Done(Box::new(result)))),
                    false => Ok(None),
                }
            }
            ClientReport::Failed(why) => {
                Ok(Some(ClientReport::Failed(format!("the client on {}: {why}", client.host.facts().name))))
            }
            other => Ok(Some(other)),
        }
    }

    /// The same second of all clients, for display: what was sent and answered in it is added, the worst is the worst of all.
    fn row_of_all(&self) -> Option<LoadSecond> {
        let rows: Vec<&LoadSecond> = self.each.iter().map(|client| client.row.as_ref()).collect::<Option<_>>()?;
        let first = *rows.first()?;
        rows.iter().all(|row| row.second == first.second).then(|| {
            rows[1..].iter().fold(first.clone(), |all, row| LoadSecond {
                sent: all.sent + row.sent,
                successful: all.successful + row.successful,
                errors: all.errors + row.errors,
                p50_us: all.p50_us.max(row.p50_us),
                p99_us: all.p99_us.max(row.p99_us),
                max_us: all.max_us.max(row.max_us),
                in_flight: all.in_flight + row.in_flight,
                ..all
            })
        })
    }

    /// The result of one client that had made the load alone.
    fn merged(&self) -> Result<LoadResult, ClientError> {
        let mut outputs = Vec::new();
        for client in &self.each {
            let name = client.host.facts().name.clone();
            let here = self.folder.join(FOLDER).join(&name);
            client.host.fetch(&client.folder, &here).map_err(|e| ClientError::without_output(&e))?;
            let Some(result) = client.done.clone() else { continue };
            outputs.push(ClientOutput { host: name, result, log: here.join("latency.hlog") });
        }
        let merged =
            Outputs { hlog: Some(self.folder.join("latency.hlog")), series: Some(self.folder.join("load.csv")) };
        merge(&outputs, &merged).map_err(|e| ClientError::without_output(&e))
    }

    /// Tells all of them to start at a time of this machine, each after its delay, to continue, or to end.
    pub fn send(&self, command: ClientCommand) -> Result<(), ClientError> {
        self.each.iter().try_for_each(|client| {
            let command = match command {
                ClientCommand::Start(here) => ClientCommand::Start(client.host.at(here.plus(client.delay))),
                other => other,
            };
            client.process.send(command).map_err(|e| client.error(&e))
        })
    }

    /// The last words of all of them.
    pub fn last_lines(&self) -> String {
        let each = self.each.iter().map(|client| client.host.last_lines(&client.output, 8));
        each.filter(|lines| !lines.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

impl Client {
    fn receive(&self, within: Duration) -> Result<Option<ClientReport>, ClientError> {
        if self.done.is_some() {
            return Ok(None);
        }
        self.process.receive(within).map_err(|e| self.error(&e))
    }

    fn error(&self, error: &RoleError) -> ClientError {
        ClientError { message: error.to_string(), last_lines: self.host.last_lines(&self.output, 8) }
    }
}

/// What each client's host has to run: all of it where there is one.
fn orders(trial: &Trial<'_>, spec: &ClientSpec) -> Vec<Option<ClientSpec>> {
    let context = trial.context;
    let hosts = context.hosts.clients_of(trial.spec.load);
    if hosts.len() < 2 {
        return vec![Some(spec.clone())];
    }
    let cpus_of = |host: &Arc<dyn Host>| context.hosts.cpus(Role::Client, host, &context.placement);
    let (connections, close) = (spec.spec.connections, spec.spec.is_single_use());
    let wish = |host| (cpus_of(host).len().max(1) as u32, host.facts().environment.descriptors.1);
    let wished = threads_of_clients(&hosts.iter().map(wish).collect::<Vec<_>>(), connections, close);
    let threads = wished.iter().sum::<u32>().min(connections);
    let parts = Part::deal(&wished, connections);
    let order = |(host, part): (&Arc<dyn Host>, Part)| {
        (part.threads > 0).then(|| {
            let files = || client_files(&client_folder(host.as_ref(), trial.spec));
            let tls = spec.spec.tls.clone();
            let tls = tls.map(|tls| TlsSpec { identity: tls.identity.is_some().then(files), ..tls });
            let cpus = cpus_of(host);
            ClientSpec { spec: LoadSpec { part: Some(part), threads, cpus, tls, ..spec.spec.clone() }, ..spec.clone() }
        })
    };
    hosts.iter().zip(parts).map(order).collect()
}

/// What a client reports of the progress of its load.
pub fn report(progress: Progress) -> Option<ClientReport> {
    Some(match progress {
        Progress::Connecting { open, of } => ClientReport::Connecting { open, of },
        Progress::Ready => ClientReport::Ready,
        Progress::Warmup { row, .. } => ClientReport::Warmup(row),
        Progress::WindowStart { unix_ms } => ClientReport::WindowStart { unix_ms },
        Progress::Second(row) => ClientReport::Second(row),
        Progress::WindowEnd => ClientReport::WindowEnd,
        _ => return None,
    })
}
