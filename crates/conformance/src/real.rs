//! The testbed of a real product in front of weir's origins, or alone where it holds the data itself. It is built from the
//! same parts as a trial, without its load. `run` starts and restarts it for the checks.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_model::counters::OriginCounters;
use weir_model::gateway::Gateway;
use weir_model::keyvalue::KeyValue;
use weir_model::load::{LoadSpec, Target};
use weir_model::product::ProductKind;
use weir_model::record::{Role, RoleUsage, TrialError};
use weir_model::suite::{Expect, LoadKind, Protocol, Request};
use weir_vitals::{Watched, clock};
use weir_wire::tls::{ClientConfig, ServerName};

use super::crosstalk;
use super::run::TestSpec;
use super::testbed::{LoadSample, Testbed, pause};
use weir_host::ports;
use weir_host::role::{ClientProcess, ClientReport, OriginProcess};
use weir_host::stop::Stop;
use weir_model::origin::OriginSpec;
use weir_product::client::{Endpoint, TIMEOUT};
use weir_product::failure::Failure;
use weir_product::launch::{LaunchSpec, launch};
use weir_product::requester::Requester;
use weir_product::running::Running;
use weir_product::verify;

/// The connections for which the product is configured: those of the check that opens most, and a few of the lab's own.
const CONNECTIONS: u32 = 1_024;

/// The same for the checks of other protocols. It is lower because streams multiply what a product allocates, and file
/// descriptors are limited.
const FEW_CONNECTIONS: u32 = 64;

/// Refuses every connection.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The streams allowed on an HTTP/2 connection: more than any check opens.
const STREAMS: u32 = 16;

/// The connections of the load under which a product is sampled.
const LOAD_CONNECTIONS: u32 = 64;
const LOAD_WARMUP_S: f64 = 1.0;
const LOAD_S: f64 = 3.0;

/// The origins behind a product that spreads keys over them. All are one process.
const KEY_ORIGINS: usize = 3;

/// A running product and its origins; all end when this is dropped.
pub struct RealTestbed<'a> {
    spec: &'a TestSpec<'a>,
    protocol: Protocol,
    /// The TLS configuration, if TLS is used.
    tls: Option<(ClientConfig, ServerName)>,
    stop: Stop,
    /// Declared before the origin, so that it is dropped first.
    running: Option<Running>,
    origin: Option<OriginProcess>,
    /// Empty for a product that holds the data itself.
    origin_addrs: Vec<SocketAddr>,
    /// The number of starts so far; each has its own folder.
    starts: u32,
    loaded: Option<Result<LoadSample, String>>,
}

impl<'a> RealTestbed<'a> {
    /// Starts both, and waits until the product serves.
    ///
    /// # Errors
    /// Which of the two failed and why, also after a request to stop.
    pub fn start(spec: &'a TestSpec<'a>, protocol: Protocol, stop: &Stop) -> Result<RealTestbed<'a>, TrialError> {
        let host = &spec.launcher.host;
        let origins = match (spec.product.store, protocol.is_keyvalue()) {
            (true, _) => 0,
            (false, true) => KEY_ORIGINS,
            (false, false) => 1,
        };
        let origin_addrs = host.free_ports(ports::LOOPBACK, origins).map_err(|e| error("start", &e))?;
        host.create_dir(spec.folder).map_err(|e| error("start", &e))?;
        let wire_protocol = spec.launcher.tls.wire_protocol(protocol).map_err(|e| error("start", &e))?;
        let mut bed = RealTestbed {
            spec,
            protocol,
            tls: wire_protocol.tls,
            stop: stop.clone(),
            running: None,
            origin: None,
            origin_addrs,
            starts: 0,
            loaded: None,
        };
        bed.start_origin().map_err(|why| error("origin", &why))?;
        bed.launch()?;
        Ok(bed)
    }

    /// Ends what is left of the product, and starts it again.
    ///
    /// # Errors
    /// Why the product does not start.
    pub fn restart(&mut self) -> Result<(), String> {
        if self.origin.is_none() {
            self.start_origin()?;
        }
        self.launch().map_err(|error| error.message)
    }

    fn launch(&mut self) -> Result<(), TrialError> {
        self.running = None;
        self.starts += 1;
        let [listen] = ports::free_on(self.spec.launcher.host.as_ref()).map_err(|e| error("start", &e))?;
        let spec = LaunchSpec {
            profile: self.spec.profile,
            folder: self.folder().join(format!("start-{}", self.starts)),
            elsewhere: &BTreeMap::new(),
            listen,
            others: &[],
            origins: &self.origin_addrs,
            // The product is told to use one worker, but may use every CPU: see the crate's documentation.
            cpus: &[],
            connections: if self.protocol == Protocol::default() { CONNECTIONS } else { FEW_CONNECTIONS },
            protocol: self.protocol,
            streams: if self.protocol.is_multiplexed() { STREAMS } else { 1 },
            stream: None,
            targets: &["/"],
            gateway: &Gateway::default(),
            upstream: self.protocol.upstream(),
            tls: None,
            request_id_header: None,
            faults: &[],
            changes: 0,
        };
        let mut running = launch(self.spec.launcher, self.spec.product, spec, &self.stop).map_err(of_failure)?;
        if let ProductKind::Proxy(program) = &self.spec.product.kind {
            let requester = Requester::here(self.spec.launcher.tls.clone());
            running.wait_ready(&requester, program.front().process.ready_within, &self.stop).map_err(of_failure)?;
        }
        running.verify_listener().map_err(of_failure)?;
        self.running = Some(running);
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.spec.folder.join(self.protocol.as_str().replace(['/', '.'], "-"))
    }

    /// Waits until the product serves again after a check.
    ///
    /// # Errors
    /// What it does instead, as a note for the cell of that check.
    pub fn wait_until_serving(&mut self, within: Duration) -> Result<(), String> {
        if self.origin.is_none() {
            self.start_origin()?;
        }
        let deadline = Instant::now() + within;
        loop {
            if let Some(ended) = self.running.as_mut().and_then(Running::ended) {
                return Err(format!("the product ended ({ended}), and was started again for the next check"));
            }
            let Err(last) = self.ready() else { return Ok(()) };
            if Instant::now() > deadline || self.stop.is_requested() {
                let within = super::cell::about(within);
                return Err(format!(
                    "{within} later it did not serve ({last}), and was started again for the next check"
                ));
            }
            pause(&self.stop, Duration::from_millis(20));
        }
    }

    fn ready(&self) -> Result<(), String> {
        if self.protocol.is_keyvalue() {
            return verify::keyvalue(&KeyValue::default(), &self.product(), self.protocol, TIMEOUT);
        }
        match crosstalk::ask(&self.product(), self.protocol, "/_weir/ready") {
            Ok(response) if response.status == 204 => Ok(()),
            Ok(response) => Err(response.status.to_string()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Checks that the product gives each client its own response.
    ///
    /// # Errors
    /// What it does instead, as a note for the cell of the previous check.
    pub fn check_crosstalk(&self) -> Result<(), String> {
        crosstalk::check(&self.product(), self.protocol)
            .map_err(|how| format!("{how}; it was started again for the next check"))
    }

    fn watched(&self) -> Result<Vec<Watched>, String> {
        let running = self.running.as_ref().ok_or("the product does not run")?;
        Ok(running.watched(Role::Proxy, self.spec.launcher.host.as_ref()))
    }

    fn load(&mut self) -> Result<LoadSample, String> {
        let endpoint = self.product();
        let request = Request::get("/bytes/128");
        let expect = Expect { status: Some(200), size: Some(128), ..Expect::default() };
        let spec = LoadSpec {
            kind: LoadKind::Closed,
            connections: LOAD_CONNECTIONS,
            warmup_s: LOAD_WARMUP_S,
            duration_s: LOAD_S,
            ..LoadSpec::new(Target::tcp(endpoint.addr, endpoint.authority()), request, expect)
        };
        let dir = self.folder().join("load");
        let host = &self.spec.launcher.host;
        host.create_dir(&dir).map_err(|e| e.to_string())?;
        let watch = host.watch(self.watched()?.into(), Vec::new()).map_err(|e| e.to_string())?;
        let client = ClientProcess::start(host, &spec.into(), &dir, &dir.join("client.log"), false)
            .map_err(|e| e.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut usage = None;
        let result = loop {
            if self.stop.is_requested() || Instant::now() > deadline {
                return Err("the load was not done in time".to_owned());
            }
            match client.receive(Duration::from_millis(200)).map_err(|e| e.to_string())? {
                Some(ClientReport::WindowStart { .. }) => {
                    watch.begin_window(clock::now(), None).map_err(|e| e.to_string())?
                }
                Some(ClientReport::WindowEnd) => {
                    usage = watch.end_window().map_err(|e| e.to_string())?.usage.into_iter().next();
                }
                Some(ClientReport::Done(result)) => break result,
                Some(ClientReport::Failed(why)) => return Err(why),
                _ => {}
            }
        };
        let usage = usage.ok_or("the load ended without a measured window")?;
        Ok(LoadSample { usage, rate: result.rate, errors: result.window.error_count() })
    }
}

impl Testbed for RealTestbed<'_> {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn product(&self) -> Endpoint {
        // No check runs before the first start.
        let addr = self.running.as_ref().map_or(NOWHERE, |running| running.addr);
        Endpoint { tls: self.tls.clone(), ..Endpoint::plain(addr, self.stop.clone()) }
    }

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn origin(&self) -> Endpoint {
        Endpoint::plain(self.origin_addrs.first().copied().unwrap_or(NOWHERE), self.stop.clone())
    }

    fn origins(&self) -> usize {
        self.origin_addrs.len()
    }

    fn replicates(&self) -> bool {
        self.spec.product.replicates
    }

    fn counters(&mut self) -> Result<OriginCounters, String> {
        let origin = self.origin.as_ref().ok_or("the origin does not run")?;
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let counters = origin.counters().map_err(|e| e.to_string())?;
            if counters.answered >= counters.requests || Instant::now() > deadline {
                return Ok(counters);
            }
            pause(&self.stop, Duration::from_millis(10));
        }
    }

    fn stop_origin(&mut self) {
        self.origin = None;
    }

    fn start_origin(&mut self) -> Result<(), String> {
        if self.origin_addrs.is_empty() {
            return Ok(());
        }
        let log = self.spec.folder.join("origin.log");
        let spec = OriginSpec {
            listen: self.origin_addrs.clone(),
            protocol: self.protocol.upstream(),
            connections: 64,
            ..OriginSpec::default()
        };
        let origin = OriginProcess::start(&self.spec.launcher.host, &spec, &log);
        self.origin = Some(origin.map_err(|e| e.to_string())?);
        Ok(())
    }

    fn terminate(&mut self) -> Result<(), String> {
        let ProductKind::Proxy(program) = &self.spec.product.kind else {
            return Err("it is no proxy".to_owned());
        };
        let running = self.running.as_mut().ok_or("the product does not run")?;
        running.signal(program.front().process.graceful).map_err(|e| e.to_string())
    }

    fn has_ended(&mut self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while let Some(running) = &mut self.running {
            if running.ended().is_some() {
                return true;
            }
            if Instant::now() > deadline || self.stop.is_requested() {
                return false;
            }
            pause(&self.stop, Duration::from_millis(10));
        }
        true
    }

    fn can_reload(&self) -> bool {
        matches!(&self.spec.product.kind, ProductKind::Proxy(program) if program.front().process.reload.is_some())
    }

    fn reload(&mut self) -> Result<(), String> {
        let running = self.running.as_mut().ok_or("the product does not run")?;
        running.reload(&self.stop)
    }

    fn pids(&self) -> Vec<u32> {
        self.running.as_ref().map(Running::processes).unwrap_or_default()
    }

    fn sample(&mut self) -> Result<RoleUsage, String> {
        let watch = self.spec.launcher.host.watch(self.watched()?.into(), Vec::new()).map_err(|e| e.to_string())?;
        watch.begin_window(clock::now(), None).map_err(|e| e.to_string())?;
        let window = watch.end_window().map_err(|e| e.to_string())?;
        watch.stop();
        window.usage.into_iter().next().ok_or("vitals saw nothing".to_owned())
    }

    fn under_load(&mut self) -> Result<LoadSample, String> {
        let loaded = match self.loaded.take() {
            Some(loaded) => loaded,
            None => self.load(),
        };
        self.loaded = Some(loaded.clone());
        loaded
    }
}

fn error(stage: &str, why: &dyn std::fmt::Display) -> TrialError {
    TrialError { stage: stage.to_owned(), message: why.to_string(), evidence: String::new(), remedy: String::new() }
}

fn of_failure(failure: Failure) -> TrialError {
    match failure {
        Failure::Trial(error) => error,
        Failure::File(why) => error("start", &why),
        Failure::Stopped => error("start", &"stopped on request"),
    }
}
