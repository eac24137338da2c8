//! Both sides of a connection, with a wire in between that the test can damage: every request, every damage, silence, and what
//! is sent in a measured window.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_fake_host::{FakeHost, FakeProgram, FakeRole};
use weir_host::agent::frame::{Frame, FrameReader, FrameWriter};
use weir_host::agent::remote::{Carrier, RemoteHost};
use weir_host::agent::serve::{End, Opened, serve};
use weir_host::agent::{Hello, VERSION};
use weir_host::role::ClientReport;
use weir_host::{Disturbance, Host, HostError, HostFacts, LocalHost, ProgramSpec, ReceiveError, RoleProcess, RoleSpec};
use weir_model::load::LoadSecond;
use weir_model::product::Signal;
use weir_model::record::Role;
use weir_vitals::Watched;
use weir_vitals::clock::{mono_ns, now};

/// What is done to the next frame that the agent sends.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Flip,
    Cut,
    Repeat,
    Drop,
    /// Nothing is passed on any more, in neither direction.
    Stall,
}

/// Two sides and the wire between them.
struct Both {
    host: Result<RemoteHost, HostError>,
    /// The agent's end.
    end: Receiver<End>,
    /// Called about silence, with the groups of roles.
    silent: Receiver<Vec<u32>>,
    damage: Arc<Mutex<Option<Damage>>>,
    /// Texts of the frames that the agent sent.
    frames: Arc<Mutex<Vec<(Instant, String)>>>,
    dropped: Arc<Mutex<bool>>,
}

struct Ends(Vec<UnixStream>);

impl Carrier for Ends {
    fn end(&self) -> String {
        self.0.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        "; its carrier's last words".to_owned()
    }
}

fn hello() -> Hello {
    Hello {
        version: VERSION.into(),
        run: "a".into(),
        who: "root@ctl".into(),
        name: "m1".into(),
        address: Some(Ipv4Addr::LOCALHOST.into()),
        own_disk: true,
        ..Hello::default()
    }
}

/// Longer than a heartbeat's interval.
const SILENCE: Duration = Duration::from_millis(2500);

/// More than anything here takes.
const LONG: Duration = Duration::from_secs(20);

struct NoticeDrop(Arc<Mutex<bool>>);

impl Drop for NoticeDrop {
    fn drop(&mut self) {
        *self.0.lock().expect("no panic") = true;
    }
}

fn connect(host: Arc<dyn Host>) -> Both {
    connect_to(Ok(host))
}

fn connect_to(host: Result<Arc<dyn Host>, String>) -> Both {
    let pair = || UnixStream::pair().expect("a socket pair");
    let ((weir, weir_wire), (agent, agent_wire)) = (pair(), pair());
    let copy = |stream: &UnixStream| stream.try_clone().expect("another descriptor");
    let (damage, frames) = (Arc::<Mutex<Option<Damage>>>::default(), Arc::<Mutex<Vec<_>>>::default());

    // weir to agent.
    let (mut from, mut to, stalls) = (copy(&weir_wire), copy(&agent_wire), Arc::clone(&damage));
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if matches!(*stalls.lock().expect("no panic"), Some(Damage::Stall)) {
                continue;
            }
            if std::io::Write::write_all(&mut to, &buffer[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    // Agent to weir, frame by frame.
    let (from, to, damages, seen) = (copy(&agent_wire), copy(&weir_wire), Arc::clone(&damage), Arc::clone(&frames));
    std::thread::spawn(move || {
        let (mut reader, encoded) = (FrameReader::new(from), Encoded::default());
        let mut writer = FrameWriter::new(encoded.clone());
        while let Ok(frame) = reader.read() {
            seen.lock().expect("no panic").push((Instant::now(), String::from_utf8_lossy(frame.text()).into_owned()));
            writer.write(&frame).expect("memory");
            let bytes = std::mem::take(&mut *encoded.0.lock().expect("no panic"));
            if !pass_on(&to, bytes, &damages) {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });

    let (sender, end) = channel();
    let (told, silent) = channel();
    let told = Mutex::new(told);
    let dropped = Arc::<Mutex<bool>>::default();
    let kept = NoticeDrop(Arc::clone(&dropped));
    let streams = (copy(&agent), agent);
    std::thread::spawn(move || {
        let open = |greeted: &Hello| {
            assert_eq!(greeted, &hello());
            host.map(|host| Opened { host, kept: Box::new(kept) })
        };
        let on_silence = move |groups: &[u32]| drop(told.lock().expect("no panic").send(groups.to_vec()));
        let end = serve(streams.0, streams.1, open, SILENCE, Arc::new(on_silence)).expect("threads");
        let _ = sender.send(end);
    });
    let ends = Box::new(Ends(vec![copy(&weir), weir_wire, agent_wire]));
    let host = RemoteHost::greet(copy(&weir), weir, hello(), SILENCE, ends);
    Both { host, end, silent, damage, frames, dropped }
}

#[derive(Clone, Default)]
struct Encoded(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether more can follow.
fn pass_on(mut to: &UnixStream, mut bytes: Vec<u8>, damage: &Mutex<Option<Damage>>) -> bool {
    use std::io::Write;
    let mut damage = damage.lock().expect("no panic");
    match *damage {
        None => {}
        // It stays stalled.
        Some(Damage::Stall) => return true,
        Some(Damage::Flip) => *bytes.last_mut().expect("a header at least") ^= 1,
        Some(Damage::Cut) => {
            let _ = to.write_all(&bytes[..bytes.len() - 1]);
            return false;
        }
        Some(Damage::Repeat) => bytes.extend(bytes.clone()),
        Some(Damage::Drop) => bytes.clear(),
    }
    *damage = None;
    to.write_all(&bytes).is_ok()
}

/// A clock that is five seconds ahead, and a role that answers.
fn fake() -> FakeHost {
    let program = |spec: &ProgramSpec| FakeProgram { output: spec.argv.join(" "), ..FakeProgram::default() };
    let role = |_: &RoleSpec| FakeRole {
        running: None,
        reports: ["\"first\"".to_owned(), "\"second\"".to_owned()].into(),
        responses: Some(Box::new(|line| format!("\"answer to {line}\""))),
    };
    let facts = HostFacts { name: "m1".into(), cpus: vec![0, 3], work: Some("/work".into()), ..HostFacts::default() };
    FakeHost::new(program, role).with_facts(facts, 5_000_000_000)
}

fn program() -> ProgramSpec {
    ProgramSpec { argv: vec!["/bin/nginx".into(), "-g".into()], output: "/work/log".into(), ..ProgramSpec::default() }
}

fn role(hold: bool) -> RoleSpec {
    RoleSpec { name: "origin".into(), args: vec!["origin".into()], output: "/work/origin.log".into(), hold }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn processes_do_on_the_host_what_they_are_asked_to() {
    let fake = fake();
    let both = connect(Arc::new(fake.clone()));
    let host = both.host.expect("welcome");
    assert_eq!(host.facts(), fake.facts());
    let mut process = host.start(&program()).expect("started");
    assert_eq!((process.root(), process.ended()), (1, None));
    process.signal(Signal::Hup).expect("it runs");
    let at = now();
    process.disturb(Disturbance::Freeze, Some(at)).expect("it runs");
    assert_eq!(process.disturbed(), [(Disturbance::Freeze, at)]);
    assert_eq!(process.stop(Duration::ZERO).code, Some(0));
    drop(host.start(&program()).expect("started"));
    let calls = ["start nginx", "signal nginx HUP", "freeze nginx", "end nginx", "start nginx", "end nginx"];
    assert_eq!(fake.calls(), calls);
    drop(host);
    assert!(matches!(both.end.recv_timeout(LONG), Ok(End::Goodbye)), "a goodbye");
    assert!(*both.dropped.lock().expect("no panic"), "its folder and lease are given back");
}

#[test]
fn a_program_that_ends_is_noticed_without_asking() {
    let ended = weir_host::Ended { code: Some(3), signal: None, forced: false, left_over: 2, lost: false };
    let program_ends = move |_: &ProgramSpec| FakeProgram { ended: Some(ended), ..FakeProgram::default() };
    let both = connect(Arc::new(FakeHost::new(program_ends, |_| FakeRole::default())));
    let host = both.host.expect("welcome");
    let mut process = host.start(&program()).expect("started");
    let before = both.frames.lock().expect("no panic").len();
    assert_eq!(process.wait(LONG), Some(ended));
    assert!(both.frames.lock().expect("no panic").len() <= before + 2, "one event, and perhaps a heartbeat");
    assert_eq!(process.stop(LONG), ended);
}

#[test]
fn roles_say_and_answer_and_end() {
    let fake = fake();
    let both = connect(Arc::new(fake.clone()));
    let host = both.host.expect("welcome");
    let origin = host.start_role(&role(false)).expect("started");
    assert_eq!((origin.pid(), origin.alive()), (1, true));
    assert_eq!(origin.receive(LONG).expect("a line"), "\"first\"");
    assert_eq!(origin.ask("counters", LONG).expect("a response"), "\"answer to counters\"");
    assert_eq!(origin.receive(LONG).expect("a line"), "\"second\"");
    assert_eq!(origin.receive(Duration::from_millis(20)), Err(ReceiveError::Timeout));
    origin.send("a line").expect("it runs");
    assert_eq!(origin.receive(LONG).expect("a line"), "\"answer to a line\"");
    origin.end();
    assert_eq!(origin.receive(LONG), Err(ReceiveError::Ended));
    until("its end", || !origin.alive());
    assert!(origin.send("too late").is_err());
    let other = host.start_role(&role(false)).expect("started");
    drop(other);
    assert_eq!(fake.calls(), ["start origin", "end origin", "start origin", "end origin"]);
}

#[test]
fn windows_ports_and_calls() {
    let fake = fake();
    let both = connect(Arc::new(fake.clone()));
    let host = both.host.expect("welcome");
    let sampler = host.watch(vec![Watched::below(Role::Proxy, 7)].into(), vec![(Role::Origin, 8)]).expect("watched");
    sampler.begin_window(now(), None).expect("planned");
    assert_eq!(sampler.end_window().expect("a window").usage[0].role, Role::Proxy);
    sampler.stop();
    assert_eq!(fake.calls(), ["watch proxy"]);
    assert_eq!(host.descendants(9), [9]);
    assert_eq!(host.owns_listener(9, SocketAddr::from(([127, 0, 0, 1], 9))), Ok(()));
    assert!(host.accepts(SocketAddr::from(([127, 0, 0, 1], 9)), LONG));
    assert_eq!(host.free_ports(IpAddr::V4(Ipv4Addr::LOCALHOST), 3).expect("free").len(), 3);
    // An address that this machine does not have.
    let refused = host.free_ports(Ipv4Addr::new(192, 0, 2, 1).into(), 1).expect_err("not here").to_string();
    assert!(refused.contains("no free port on 192.0.2.1"), "{refused}");
    let mut heard = Vec::new();
    let result = host.call("doctor", json!({"of": [1, 2]}), &mut |value| heard.push(value));
    assert_eq!(result.expect("called"), json!({"of": [1, 2]}));
    assert_eq!(heard, [json!({"of": [1, 2]})]);
}

#[test]
fn files_go_there_and_come_back() {
    let fake = fake();
    let host = connect(Arc::new(fake.clone())).host.expect("welcome");
    let large: Vec<u8> = (0..1_300_000_u32).map(|number| (number * 7) as u8).collect();
    for (path, bytes) in [("/work/t/large", &large[..]), ("/work/t/deep/small", b"s"), ("/work/empty", b"")] {
        host.write(Path::new(path), bytes, true).expect("written");
        assert_eq!(host.read(Path::new(path)).expect("read"), bytes);
    }
    assert_eq!(fake.files()[Path::new("/work/t/large")], large);
    assert_eq!(host.list(Path::new("/work/t")).expect("a folder"), ["deep/small", "large"].map(PathBuf::from));
    let here = tempfile::tempdir().expect("a temporary folder");
    host.fetch(Path::new("/work/t"), here.path()).expect("fetched");
    assert_eq!(std::fs::read(here.path().join("large")).expect("here"), large);
    assert_eq!(std::fs::read(here.path().join("deep/small")).expect("here"), b"s");
    let full = host.fetch(Path::new("/work/t"), Path::new("/dev/null")).expect_err("no folder").to_string();
    assert!(full.contains("/dev/null"), "{full}");
    host.create_dir(Path::new("/work/new")).expect("made");
    host.remove(Path::new("/work/t/large"));
    let missing = host.read(Path::new("/work/t/large")).expect_err("removed");
    assert_eq!(missing.error.kind(), std::io::ErrorKind::NotFound);
    assert!(missing.to_string().starts_with("/work/t/large: ") && missing.to_string().ends_with("(on host m1)"));
    host.write(Path::new("/work/log"), b"one\ntwo\nthree", false).expect("written");
    assert_eq!(host.last_lines(Path::new("/work/log"), 2), "two\nthree");
}

#[test]
fn errors_of_a_real_host_keep_their_text() {
    let host = connect(Arc::new(LocalHost::new("/no/such/weir".into()))).host.expect("welcome");
    let output = tempfile::tempdir().expect("a temporary folder");
    let spec = ProgramSpec { output: output.path().join("log"), ..program() };
    let error = host.start(&spec).expect_err("no weir").to_string();
    assert!(error.contains("No such file or directory") && error.ends_with("(on host m1)"), "{error}");
    let spec = RoleSpec { output: output.path().join("log"), ..role(false) };
    let error = host.start_role(&spec).expect_err("no weir").to_string();
    assert!(error.starts_with("weir could not start its origin: No such file"), "{error}");
    let error =
        host.watch(vec![Watched::below(Role::Proxy, 4_000_000)].into(), Vec::new()).expect_err("no such process");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    let error = host.owns_listener(1, SocketAddr::from(([127, 0, 0, 1], 1))).expect_err("nobody");
    assert!(error.starts_with("nothing listens on 127.0.0.1:1"), "{error}");
    let error = host.call("doctor", Value::Null, &mut |_| {}).expect_err("nothing offered").to_string();
    assert_eq!(error, "this host offers no doctor (on host m1)");
}

#[test]
fn a_clock_that_is_ahead_is_read_with_its_error() {
    let host = connect(Arc::new(fake())).host.expect("welcome");
    let reading = host.read_clock().expect("read");
    assert!(reading.offset_ns.abs_diff(5_000_000_000) <= reading.error_ns, "{reading:?}");
    let here = now();
    let there = host.at(here);
    assert!(there.mono_ns.abs_diff(here.mono_ns + 5_000_000_000) <= reading.error_ns, "{there:?}");
    assert_eq!(there.unix_ns, here.unix_ns);
    assert!(mono_ns() >= here.mono_ns);
}

#[test]
fn damage_on_the_way_ends_both_sides_and_says_what_it_was() {
    for (damage, said) in [
        (Damage::Flip, "wrong checksum"),
        (Damage::Cut, "ended within a message"),
        (Damage::Repeat, "lost or repeated a message"),
        (Damage::Drop, "lost or repeated a message"),
    ] {
        let fake = fake();
        let both = connect(Arc::new(fake.clone()));
        let host = both.host.expect("welcome");
        let mut process = host.start(&program()).expect("started");
        let origin = host.start_role(&role(false)).expect("started");
        while origin.receive(Duration::from_millis(100)).is_ok() {}
        assert_eq!(host.lost(), None);
        *both.damage.lock().expect("no panic") = Some(damage);
        // After a frame that is missing, the next one shows it.
        let _ = host.descendants(1);
        until("the loss", || host.lost().is_some());
        let why = host.lost().expect("lost");
        assert!(why.contains(said) && why.ends_with("; its carrier's last words"), "{damage:?}: {why}");
        let killed = process.ended().expect("everything there has ended");
        assert!(killed.forced);
        assert_eq!((origin.alive(), origin.receive(LONG)), (false, Err(ReceiveError::Ended)));
        assert!(matches!(host.read_clock(), Err(HostError::Lost { host, .. }) if host == "m1"));
        assert!(host.read(Path::new("/work/log")).expect_err("lost").to_string().contains("the host m1 is lost: "));
        assert!(matches!(both.end.recv_timeout(LONG), Ok(End::Lost(_))), "{damage:?}");
        assert!(fake.calls().contains(&"end nginx".to_owned()) && fake.calls().contains(&"end origin".to_owned()));
    }
}

#[test]
fn silence_ends_both_sides() {
    let fake = fake();
    let both = connect(Arc::new(fake.clone()));
    let host = both.host.expect("welcome");
    let origin = host.start_role(&role(false)).expect("started");
    // Heartbeats alone keep it alive.
    std::thread::sleep(SILENCE + Duration::from_millis(500));
    assert_eq!(host.lost(), None);
    let begun = Instant::now();
    *both.damage.lock().expect("no panic") = Some(Damage::Stall);
    // Somebody who waits for a reply is told, too.
    assert!(host.descendants(1).is_empty());
    assert!(begun.elapsed() >= SILENCE - Duration::from_millis(1100), "{:?}", begun.elapsed());
    let why = host.lost().expect("lost");
    assert!(why.starts_with("nothing was heard of it for 2 s"), "{why}");
    // The carrier's end reached the agent; in any case its watchdog knows whom to kill.
    if let Ok(groups) = both.silent.recv_timeout(Duration::from_millis(500)) {
        assert_eq!(groups, [origin.pid()]);
    }
    assert!(both.end.recv_timeout(LONG).is_ok());
    until("the role's end", || fake.calls().contains(&"end origin".to_owned()));
}

/// Nobody reads what the agent says, and nobody speaks to it: its writer is stuck, and its watchdog acts.
#[test]
fn a_full_pipe_does_not_stop_the_watchdog() {
    let (agent, weir) = UnixStream::pair().expect("a socket pair");
    let fake = fake();
    fake.write(Path::new("/work/large"), &vec![7; 3_000_000], false).expect("written");
    let (told, silent) = channel();
    let told = Mutex::new(told);
    let own = fake.clone();
    let input = agent.try_clone().expect("another descriptor");
    std::thread::spawn(move || {
        let open = |_: &Hello| Ok(Opened { host: Arc::new(own), kept: Box::new(()) });
        let on_silence = move |groups: &[u32]| drop(told.lock().expect("no panic").send(groups.to_vec()));
        serve(input, agent, open, SILENCE, Arc::new(on_silence))
    });
    let mut writer = FrameWriter::new(weir.try_clone().expect("another descriptor"));
    let mut say = |message: Value| {
        writer.write(&Frame::new(message.to_string().into_bytes(), &[])).expect("the agent reads");
    };
    say(json!({"hello": hello()}));
    say(json!({"request": [1, {"start_role": [1, role(false)]}]}));
    for id in 2..12 {
        say(json!({"request": [id, {"read": ["/work/large", 0]}]}));
    }
    assert_eq!(silent.recv_timeout(LONG).expect("it acts"), [1]);
    drop(weir);
}

#[test]
fn in_a_measured_window_only_heartbeats_are_sent() {
    let second = |successful| {
        let row = ClientReport::Second(LoadSecond { successful, length_s: 1.0, ..LoadSecond::default() });
        serde_json::to_string(&row).expect("JSON")
    };
    let script = format!(
        "echo '{{\"connecting\":{{\"open\":1,\"of\":1}}}}'; echo '{{\"window_start\":{{\"unix_ms\":1}}}}'; \
         sleep 1.2; echo '{}'; sleep 1; echo '{}'; sleep 1; echo '\"window_end\"'; read line",
        second(1),
        second(2)
    );
    let scratch = tempfile::tempdir().expect("a temporary folder");
    for hold in [true, false] {
        let both = connect(Arc::new(LocalHost::new("/bin/sh".into())));
        let host = both.host.expect("welcome");
        let args = vec!["-c".to_owned(), script.clone()];
        let spec = RoleSpec { name: "client".into(), args, output: scratch.path().join("log"), hold };
        let client = host.start_role(&spec).expect("started");
        let begun = Instant::now();
        let lines: Vec<(String, Duration)> =
            (0..5).map(|_| (client.receive(LONG).expect("a line"), begun.elapsed())).collect();
        let texts: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        assert!(texts[0].contains("connecting") && texts[1].contains("window_start"), "{texts:?}");
        assert_eq!(texts[2..], [&second(1), &second(2), "\"window_end\""]);
        assert!(lines[2].1 < Duration::from_secs(3), "a heartbeat brought it: {lines:?}");
        let frames = both.frames.lock().expect("no panic").clone();
        let place = |what: &str| frames.iter().position(|(_, text)| text.contains(what)).expect("sent");
        let from = place("connecting") + 1;
        let window = &frames[from..place("window_end")];
        // The reply that the role was started may come behind its first line.
        let others: Vec<_> =
            window.iter().filter(|(_, text)| !text.contains("\"beat\"") && !text.contains("reply")).collect();
        assert_eq!(others.is_empty(), hold, "{others:?}");
        client.end();
    }
}

#[test]
fn a_host_that_is_not_opened_says_why() {
    let both = connect_to(Err("in use by run b of root@other since 18:02 UTC (agent 4711)".into()));
    let refused = both.host.expect_err("refused").to_string();
    assert_eq!(refused, "the host m1 is in use by run b of root@other since 18:02 UTC (agent 4711)");
    assert!(matches!(both.end.recv_timeout(LONG), Ok(End::Refused)));
}

#[test]
fn another_version_of_weir_is_refused() {
    let (weir, agent) = UnixStream::pair().expect("a socket pair");
    let copy = |stream: &UnixStream| stream.try_clone().expect("another descriptor");
    let (input, output) = (copy(&agent), agent);
    let served = std::thread::spawn(|| serve(input, output, |_| panic!("it is opened"), SILENCE, Arc::new(|_| {})));
    let ends = Box::new(Ends(vec![copy(&weir)]));
    let other = Hello { version: "99.0.0".into(), ..hello() };
    let refused = RemoteHost::greet(copy(&weir), weir, other, SILENCE, ends).expect_err("refused").to_string();
    assert_eq!(
        refused,
        format!(
            "the host m1 is of weir {VERSION}, and this is weir 99.0.0\n  expected: the same version there, as its image or by \
             --weir FILE"
        )
    );
    assert!(matches!(served.join().expect("no panic"), Ok(End::Refused)));
}

#[test]
fn a_role_and_a_program_end_with_the_connection() {
    let fake = fake();
    let both = connect(Arc::new(fake.clone()));
    let host = both.host.expect("welcome");
    let process = host.start(&program()).expect("started");
    let origin: Arc<dyn RoleProcess> = host.start_role(&role(false)).expect("started");
    drop(host);
    let mut calls = fake.calls();
    calls.sort();
    assert_eq!(calls, ["end nginx", "end origin", "start nginx", "start origin"]);
    // What is left on this side ends nothing twice, and waits for nobody.
    let begun = Instant::now();
    drop((process, origin));
    assert!(begun.elapsed() < LONG);
}
