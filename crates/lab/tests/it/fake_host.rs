//! A trial's whole life on a host that starts no process: the order of starts, a product that does not get ready, and that
//! everything has ended when the trial is over.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_fake_host::{FakeHost, FakeProgram, FakeRole};
use weir_host::agent::remote::{Carrier, RemoteHost};
use weir_host::agent::serve::{Opened, serve};
use weir_host::agent::{Hello, VERSION};
use weir_host::role::{ClientReport, CountersReport, OriginReport};
use weir_host::stop::Stop;
use weir_host::{Ended, Host, HostFacts, ProgramSpec, RoleSpec};
use weir_lab::hosts::Hosts;
use weir_lab::plan::Planned;
use weir_lab::trial::{self, TrialContext, TrialSpec};
use weir_load::{Outputs, StopFlag};
use weir_model::Placement;
use weir_model::load::{Counts, DriverChoice, LoadNumbers, LoadResult, LoadSpec, Part, Target};
use weir_model::origin::OriginSpec;
use weir_model::product::Product;
use weir_model::record::{CaseId, Measurement, Verdict};
use weir_model::suite::{Expect, Load, LoadKind, Protocol, Request, Tls, Workload};
use weir_origin::{Options, Origin};
use weir_product::catalogue::Catalogue;
use weir_product::launch::{Installed, Launcher};
use weir_product::requester::Responder;
use weir_product::tls::RunTls;

fn origin_at(listen: SocketAddr) -> Origin {
    Origin::start(Options { listen, ..Options::default() }).expect("an origin")
}

/// The origin is a thread of this process; the client reports a load without a request.
fn role(spec: &RoleSpec) -> FakeRole {
    let lines = |reports: &[ClientReport]| reports.iter().map(|r| serde_json::to_string(r).expect("JSON")).collect();
    if spec.name == "requester" {
        let responses = Mutex::new(Responder::default());
        let response = move |line: &str| responses.lock().expect("not poisoned").to(line);
        return FakeRole { responses: Some(Box::new(response)), ..FakeRole::default() };
    }
    if spec.name == "client" {
        let result = LoadResult { window_s: 1.0, window: Counts::default(), ..LoadResult::default() };
        let done = ClientReport::Done(Box::new(result));
        let reports =
            lines(&[ClientReport::Ready, ClientReport::WindowStart { unix_ms: 0 }, ClientReport::WindowEnd, done]);
        return FakeRole { reports, ..FakeRole::default() };
    }
    let order: OriginSpec = serde_json::from_str(spec.args.last().expect("a spec")).expect("JSON");
    let origin = origin_at(order.listen[0]);
    let listens = OriginReport::Listens { listening: origin.addr(), also: Vec::new(), driver: "epoll".into() };
    let reports = [serde_json::to_string(&listens).expect("JSON")].into();
    let origin = Arc::new(origin);
    let counted = Arc::clone(&origin);
    let counters = move |_: &str| {
        let report = CountersReport { counters: counted.counters() };
        serde_json::to_string(&report).expect("JSON")
    };
    FakeRole { running: Some(Box::new(origin)), reports, responses: Some(Box::new(counters)) }
}

/// A product with one file; its first argument is where it listens.
fn product() -> Product {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().join("products/echo");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = include_str!("../echo.toml");
    std::fs::write(folder.join("product.toml"), text).expect("written");
    std::fs::write(folder.join("echo.conf.j2"), "upstream {{ origin_host }}:{{ origin_port }}\n").expect("written");
    let mut catalogue = Catalogue::default();
    catalogue.overlay(dir.path()).unwrap_or_else(|error| panic!("{error}"));
    catalogue.products()["echo"].clone()
}

fn run_trial(host: &FakeHost, folder: &Path) -> Measurement {
    run_on(&Hosts::one(&shared(host)), folder)
}

fn shared(host: &FakeHost) -> Arc<dyn Host> {
    Arc::new(host.clone())
}

fn run_on(hosts: &Hosts, folder: &Path) -> Measurement {
    run_with(hosts, folder, 4)
}

fn run_with(hosts: &Hosts, folder: &Path, connections: u32) -> Measurement {
    let installed = Installed {
        binary: "/opt/echo-proxy".into(),
        version: "1.0".into(),
        sha256: String::new(),
        from: "system".into(),
    };
    let launcher = Launcher {
        host: Arc::clone(&hosts.proxy),
        tls: RunTls::new(Tls::default()).expect("a certificate"),
        installed: BTreeMap::from([("echo".to_owned(), installed)]),
    };
    let context = TrialContext {
        speeds: Default::default(),
        tests: Default::default(),
        origin_launcher: launcher.clone(),
        launcher,
        hosts: hosts.clone(),
        placement: Placement { client: vec![0], proxy: vec![1], origin: vec![0], ..Placement::default() },
        driver: DriverChoice::Auto,
        products: BTreeMap::from([("echo".to_owned(), product())]),
        origin: None,
        seed: 1,
        response_key: [0; 2],
        load_numbers: LoadNumbers::new(1),
    };
    let case =
        CaseId { product: "echo".into(), profile: "stock".into(), workload: "get".into(), load: "closed".into() };
    let workload = Workload {
        name: "get".into(),
        title: "GET".into(),
        protocol: Protocol::Http11,
        request: Request { method: "GET".into(), path: "/bytes/128".into(), headers: Vec::new(), body: Vec::new() },
        ..Workload::default()
    };
    let load = Load {
        name: "closed".into(),
        title: "closed".into(),
        kind: LoadKind::Closed,
        connections,
        streams: 1,
        duration: Duration::from_secs(1),
        timeout: Duration::from_secs(2),
        ..Load::default()
    };
    let planned = Planned { trial: 1, block: 1, case };
    let spec = TrialSpec {
        planned: &planned,
        workload: &workload,
        load: &load,
        rate: None,
        folder,
        watched: None,
        chain: None,
    };
    trial::run(&context, &spec, &mut None, &Stop::new(), &mut ()).expect("a measurement")
}

/// The calls in their order, without the time of a start.
fn calls(host: &FakeHost) -> String {
    let untimed = |call: String| match call.starts_with("send client start ") {
        true => "send client start".to_owned(),
        false => call,
    };
    host.calls().into_iter().map(untimed).collect::<Vec<_>>().join(", ")
}

fn serves(spec: &ProgramSpec) -> FakeProgram {
    let origin = origin_at(spec.argv[1].parse().expect("an address"));
    FakeProgram { running: Some(Box::new(origin)), ..FakeProgram::default() }
}

/// A host of its own, with a disk of its own, whose clock is ahead by so many ns.
fn host_named(name: &str, offset_ns: i64) -> FakeHost {
    let work = Some(format!("/tmp/weir-{name}").into());
    FakeHost::new(serves, role).with_facts(HostFacts { name: name.into(), work, ..HostFacts::default() }, offset_ns)
}

fn hosts(clients: Vec<Arc<dyn Host>>, proxy: &FakeHost, origin: &FakeHost) -> Hosts {
    Hosts { clients, proxy: shared(proxy), parts: BTreeMap::new(), origins: vec![shared(origin)] }
}

#[test]
fn each_role_runs_on_its_own_host_and_its_files_come_back() {
    let hour = 3_600_000_000_000;
    let [client, proxy, origin] = [("c", hour), ("p", -5), ("o", 0)].map(|(name, offset)| host_named(name, offset));
    let hosts = hosts(vec![shared(&client)], &proxy, &origin);
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let folder = scratch.path().join("001-echo");
    std::fs::create_dir(&folder).expect("a folder");
    let before = weir_vitals::clock::mono_ns();
    let measured = run_on(&hosts, &folder);
    assert!(measured.error.is_none() && measured.load.is_some(), "{:?}", measured.error);
    let fetched = |name: &str| format!("fetch /tmp/weir-{name}/001-echo {}", folder.display());
    let of_client = "start requester, start client, watch client, send client start, end client, end requester, ";
    assert_eq!(calls(&client), format!("{of_client}{}", fetched("c")));
    assert_eq!(calls(&proxy), format!("start echo-proxy, watch proxy, end echo-proxy, {}", fetched("p")));
    assert_eq!(calls(&origin), format!("start origin, watch origin, end origin, {}", fetched("o")));
    let told = client.calls().into_iter().find_map(|call| Some(call.strip_prefix("send client start ")?.to_owned()));
    let start: u64 = told.expect("a start").split(' ').next().and_then(|ns| ns.parse().ok()).expect("a time");
    let ahead = start - hour as u64 - before;
    assert!((100_000_000..60_000_000_000).contains(&ahead), "by the client's clock, and ahead: {ahead} ns");
    assert!(client.files().is_empty() && proxy.files().is_empty(), "nothing is left there");
}

#[test]
fn a_host_that_is_lost_fails_the_trial_and_no_other_waits_for_it() {
    let [client, origin] = ["c", "o"].map(|name| host_named(name, 0));
    let proxy = host_named("p", 0).lost_after("watch proxy", "ssh: Connection reset");
    let hosts = hosts(vec![shared(&client)], &proxy, &origin);
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let measured = run_on(&hosts, scratch.path());
    let error = measured.error.expect("it failed");
    assert_eq!((measured.verdict, error.stage.as_str()), (Verdict::Error, "host"));
    assert_eq!(error.message, "the host p was lost in mid-trial");
    assert_eq!(error.evidence, "ssh: Connection reset");
    let fetched =
        format!("fetch /tmp/weir-o/{} {}", scratch.path().file_name().unwrap().display(), scratch.path().display());
    assert_eq!(calls(&origin), format!("start origin, watch origin, end origin, {fetched}"));
    assert!(!calls(&client).contains("send client start"), "it does not begin: {}", calls(&client));
}

#[test]
fn a_trial_starts_origin_product_and_client_in_this_order_and_ends_them() {
    let host = FakeHost::new(serves, role);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let measured = run_trial(&host, folder.path());
    assert!(measured.error.is_none() && measured.load.is_some(), "{:?}", measured.error);
    let wanted = "start requester, start origin, start echo-proxy, start client, watch client origin proxy, \
                  send client start, end client, end echo-proxy, end origin, end requester";
    assert_eq!(calls(&host), wanted);
    let files = host.files();
    let named = |name: &str| files.iter().find(|(path, _)| path.ends_with(name)).map(|(_, bytes)| bytes.as_slice());
    assert!(named("product/echo.conf").expect("rendered").starts_with(b"upstream 127.0.0.1:"));
    assert!(named("load-order.json").is_some() && named("product/exit.json").is_some());
    assert!(!folder.path().join("product").exists(), "nothing of the host's is written on this machine");
}

#[test]
fn a_product_that_does_not_get_ready_fails_the_trial_and_everything_ends() {
    for ended in [None, Some(Ended { code: Some(3), signal: None, forced: false, left_over: 0, lost: false })] {
        let silent =
            move |_: &ProgramSpec| FakeProgram { ended, output: "no route\n".into(), ..FakeProgram::default() };
        let host = FakeHost::new(silent, role);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let measured = run_trial(&host, folder.path());
        let error = measured.error.expect("it failed");
        assert_eq!((measured.verdict, error.stage.as_str()), (Verdict::Error, "ready"));
        assert_eq!(error.message.contains("exit status 3"), ended.is_some(), "{}", error.message);
        assert!(error.evidence.ends_with("no route"), "{}", error.evidence);
        assert_eq!(
            host.calls(),
            ["start requester", "start origin", "start echo-proxy", "end echo-proxy", "end origin", "end requester"]
        );
    }
}

/// Clients of the largest load.
const CLIENTS: u64 = 1_000;

/// A load of one connection, as a client makes it: what it reports at the end, and the log that it writes.
fn one_load(folder: &Path) -> (LoadResult, Vec<u8>) {
    let origin = origin_at(SocketAddr::from(([127, 0, 0, 1], 0)));
    let request = Request { method: "GET".into(), path: "/bytes/128".into(), headers: Vec::new(), body: Vec::new() };
    let spec = LoadSpec {
        connections: 1,
        warmup_s: 0.1,
        duration_s: 0.3,
        part: Some(Part { first_thread: 0, threads: 1 }),
        ..LoadSpec::new(Target::tcp(origin.addr(), "localhost"), request, Expect::default())
    };
    let outputs = Outputs { hlog: Some(folder.join("one.hlog")), series: None };
    let result = weir_load::run(&spec, &outputs, &StopFlag::new(), &mut |_| {}).expect("a load");
    (result, std::fs::read(folder.join("one.hlog")).expect("written"))
}

struct Ends(UnixStream);

impl Carrier for Ends {
    fn end(&self) -> String {
        let _ = self.0.shutdown(Shutdown::Both);
        String::new()
    }
}

/// The host behind an agent, over a socket pair.
fn behind_an_agent(host: FakeHost) -> Arc<dyn Host> {
    let name = host.facts().name.clone();
    let hello = Hello {
        version: VERSION.into(),
        run: "many".into(),
        who: "root@ctl".into(),
        name,
        own_disk: true,
        ..Hello::default()
    };
    let copy = |stream: &UnixStream| stream.try_clone().expect("another descriptor");
    let (weir, agent) = UnixStream::pair().expect("a socket pair");
    let (input, output) = (copy(&agent), agent);
    let opened = move |_: &Hello| Ok(Opened { host: Arc::new(host) as Arc<dyn Host>, kept: Box::new(()) });
    let serves = move || drop(serve(input, output, opened, SILENCE, Arc::new(|_| {})));
    std::thread::Builder::new().stack_size(128 * 1024).spawn(serves).expect("a thread");
    let ends = Box::new(Ends(copy(&weir)));
    Arc::new(RemoteHost::greet(copy(&weir), weir, hello, SILENCE, ends).expect("welcomed"))
}

/// Longer than anything here takes.
const SILENCE: Duration = Duration::from_secs(60);

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// How long it takes and how much memory is printed, because the numbers of a busy machine are no test.
#[test]
#[ignore = "make check PART=scale: half a minute of two thousand threads"]
fn a_thousand_clients_behind_agents_make_one_load() {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let folder = scratch.path().join("001-echo");
    std::fs::create_dir(&folder).expect("a folder");
    let (one, log) = one_load(scratch.path());
    let (successful, latencies) = (one.window.successful, log.len());
    assert!(successful > 100, "{successful}");

    let (before, begun) = (resident_mib(), Instant::now());
    let client = |number: u64| {
        let name = format!("c{number}");
        let done = one.clone();
        let on_role = move |spec: &RoleSpec| match spec.name.as_str() {
            "client" => {
                let reports = [
                    ClientReport::Ready,
                    ClientReport::WindowStart { unix_ms: 0 },
                    ClientReport::WindowEnd,
                    ClientReport::Done(Box::new(done.clone())),
                ];
                let reports = reports.iter().map(|report| serde_json::to_string(report).expect("JSON")).collect();
                FakeRole { reports, ..FakeRole::default() }
            }
            _ => role(spec),
        };
        let facts = HostFacts {
            name: name.clone(),
            work: Some(format!("/tmp/weir-{name}").into()),
            cpus: vec![0],
            ..HostFacts::default()
        };
        let host = FakeHost::new(serves, on_role).with_facts(facts, number as i64 * 1_000_000_007);
        let file = format!("/tmp/weir-{name}/001-echo/clients/{name}/latency.hlog");
        host.write(Path::new(&file), &log, false).expect("memory");
        behind_an_agent(host)
    };
    let clients: Vec<Arc<dyn Host>> = (0..CLIENTS).map(client).collect();
    let hosts = hosts(clients, &host_named("p", 0), &host_named("o", 0));
    let reached = begun.elapsed();
    let measured = run_with(&hosts, &folder, CLIENTS as u32);
    let load = measured.load.unwrap_or_else(|| panic!("{:?}", measured.error));
    assert_eq!((load.hosts.len() as u64, load.window.successful), (CLIENTS, successful * CLIENTS));
    assert_eq!(measured.clocks.len() as u64, CLIENTS + 2);
    println!(
        "{CLIENTS} hosts: reached in {:.1} s, a trial in {:.1} s, {} MiB for both sides; a client's log has {latencies} bytes",
        reached.as_secs_f64(),
        (begun.elapsed() - reached).as_secs_f64(),
        resident_mib() - before,
    );
}
