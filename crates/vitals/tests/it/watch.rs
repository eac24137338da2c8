//! Tests with real processes. The roots are shells that run commands from standard input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use weir_model::At;
use weir_model::record::{ResourceSecond, Role, RoleUsage};
use weir_vitals::clock::now;
use weir_vitals::{Connections, Watch, Watched, Window};

/// A few hundred milliseconds of CPU.
const BURN: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";

/// A shell that runs lines and prints results; it ends with the test.
struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Supervisor {
    fn start() -> Supervisor {
        let mut child = Command::new("sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh starts");
        let output = BufReader::new(child.stdout.take().expect("is piped"));
        let input = child.stdin.take();
        Supervisor { child, input, output }
    }

    fn watched(&self, include_root: bool) -> Watched {
        let of = if include_root { Watched::process } else { Watched::below };
        of(Role::Proxy, self.child.id())
    }

    /// Runs a command line that prints `lines` lines, and returns them.
    fn run(&mut self, line: &str, lines: usize) -> Vec<String> {
        writeln!(self.input.as_mut().expect("is open"), "{line}").expect("the shell lives");
        let read = |_| {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the shell answers");
            line.trim().to_owned()
        };
        (0..lines).map(read).collect()
    }

    /// CPU seconds of the shell itself and of the children it waited for, by its own account.
    fn times(&mut self) -> (f64, f64) {
        let lines = self.run("times", 2);
        let sum = |line: &String| line.split_whitespace().map(minutes).sum();
        (sum(&lines[0]), sum(&lines[1]))
    }
}

/// `0m0.123s`
fn minutes(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').expect("is a time");
    minutes.parse::<f64>().expect("is a number") * 60.0 + seconds.parse::<f64>().expect("is a number")
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Each child in these tests ends by itself, within a time limit.
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cpu_s(usage: &RoleUsage) -> f64 {
    (usage.cpu_user_us + usage.cpu_system_us) as f64 / 1e6
}

fn rows<'w>(window: &'w Window, who: &str) -> Vec<&'w ResourceSecond> {
    window.series.iter().filter(|row| row.who == who).collect()
}

#[test]
fn a_child_that_ends_in_the_window_keeps_its_cpu() {
    let mut supervisor = Supervisor::start();
    let before = supervisor.times().1;
    let watch = Watch::start(vec![supervisor.watched(false)]).unwrap();
    watch.begin_window(now(), None).unwrap();
    supervisor.run(&format!("sh -c '{BURN}'; echo"), 1);
    let window = watch.end_window().unwrap();
    let truth = supervisor.times().1 - before;
    let seen = cpu_s(&window.usage[0]);
    assert!(truth > 0.05, "the child used {truth} s: too little to test with");
    assert!((seen - truth).abs() < 0.04, "seen {seen} s, the shell says {truth} s");
    watch.stop();
}

#[test]
fn a_spike_of_memory_between_two_samples_is_seen() {
    const SPIKE: usize = 200 << 20;
    let range = SPIKE as u64..SPIKE as u64 * 3 / 2;
    let mut supervisor = Supervisor::start();
    let watch = Watch::start(vec![Watched::process(Role::Client, std::process::id())]).unwrap();
    // What was before is not the window's.
    drop(std::hint::black_box(vec![1_u8; 2 * SPIKE]));
    let usage = || {
        watch.begin_window(now(), None).unwrap();
        drop(std::hint::black_box(vec![1_u8; SPIKE]));
        watch.end_window().unwrap().usage.remove(0)
    };
    let alone = usage();
    for bytes in [alone.rss_max_bytes, alone.pss_max_bytes.expect("known")] {
        assert!(range.contains(&bytes), "{alone:?}");
    }
    // A process that is about to end has no memory any more. The proportional set is read a moment later, of other processes then.
    let input = supervisor.input.as_mut().expect("is open");
    writeln!(input, "for i in $(seq 3000); do /bin/true; done").expect("the shell lives");
    for _ in 0..5 {
        let beside = usage();
        assert!(range.contains(&beside.rss_max_bytes), "{beside:?}");
    }
    watch.stop();
}

#[test]
fn what_is_written_to_disk_is_told_from_what_is_sent() {
    let mut supervisor = Supervisor::start();
    let file = tempfile::Builder::new().tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let watch = Watch::start(vec![supervisor.watched(false)]).unwrap();
    let written = |watch: &Watch, supervisor: &mut Supervisor, to: &str| {
        watch.begin_window(now(), None).unwrap();
        supervisor.run(&format!("head -c 3000000 /dev/zero | cat > {to}; echo"), 1);
        let usage = watch.end_window().unwrap().usage.remove(0);
        usage.disk_written_bytes.expect("known of own processes")
    };
    assert_eq!(written(&watch, &mut supervisor, "/dev/null"), 0);
    let seen = written(&watch, &mut supervisor, &file.path().display().to_string());
    assert!((3_000_000..3_200_000).contains(&seen), "{seen}");
    watch.stop();
}

#[test]
fn a_child_that_ends_after_some_rows_is_counted_once() {
    let mut supervisor = Supervisor::start();
    let before = supervisor.times().1;
    let watch = Watch::start(vec![supervisor.watched(false)]).unwrap();
    watch.begin_window(now(), None).unwrap();
    // Lives over at least one whole row, and the next one begins after it ended.
    supervisor.run(&format!("sh -c '{BURN}; sleep 1.2; {BURN}'; sleep 0.9; sh -c '{BURN}'; echo"), 1);
    let window = watch.end_window().unwrap();
    let truth = supervisor.times().1 - before;
    let seen = cpu_s(&window.usage[0]);
    assert!((seen - truth).abs() < 0.06, "seen {seen} s, the shell says {truth} s");
    assert!(rows(&window, "proxy").len() >= 2);
    watch.stop();
}

#[test]
fn the_root_counts_only_when_asked_for() {
    let mut supervisor = Supervisor::start();
    let without = Watch::start(vec![supervisor.watched(false)]).unwrap();
    let with = Watch::start(vec![supervisor.watched(true)]).unwrap();
    let before = supervisor.times().0;
    without.begin_window(now(), None).unwrap();
    with.begin_window(now(), None).unwrap();
    supervisor.run(&format!("{BURN}; echo"), 1);
    let (without, with) = (without.end_window().unwrap(), with.end_window().unwrap());
    let truth = supervisor.times().0 - before;
    assert!(cpu_s(&without.usage[0]) < 0.01, "{:?}", without.usage[0]);
    assert_eq!((without.usage[0].processes_max, without.usage[0].rss_max_bytes), (Some(0), 0));
    let seen = cpu_s(&with.usage[0]);
    assert!((seen - truth).abs() < 0.04, "seen {seen} s, the shell says {truth} s");
    assert_eq!(with.usage[0].processes_max, Some(1));
    // A loop of a shell is user time, mostly.
    assert!(with.usage[0].cpu_user_us > with.usage[0].cpu_system_us);
}

#[test]
fn a_tree_is_counted_whole() {
    let mut supervisor = Supervisor::start();
    supervisor.run("sh -c 'sleep 8 & sleep 8 & sleep 8 & echo; wait' & ", 1);
    let watch = Watch::start(vec![supervisor.watched(false)]).unwrap();
    watch.begin_window(now(), None).unwrap();
    let usage = watch.end_window().unwrap().usage.remove(0);
    assert_eq!((usage.processes_max, usage.threads_max), (Some(4), Some(4)));
    assert!(usage.rss_max_bytes > 100_000, "{usage:?}");
    assert!(usage.pss_max_bytes.is_none_or(|pss| pss <= usage.rss_max_bytes), "{usage:?}");
    // Standard input, output and error, at least, of four processes.
    assert!(usage.fds_max.is_some_and(|fds| fds >= 12), "{usage:?}");
    watch.stop();
}

#[test]
fn rows_add_up_to_the_window() {
    let mut supervisor = Supervisor::start();
    let watch = Watch::start(vec![supervisor.watched(true)]).unwrap();
    let begin = Instant::now();
    watch.begin_window(now(), None).unwrap();
    supervisor.run(&format!("{BURN}; sleep 1.6; {BURN}; sleep 1; echo"), 1);
    let window = watch.end_window().unwrap();
    let took = begin.elapsed().as_secs_f64();
    assert!(window.length_s <= took && window.length_s > 2.0, "{} s in {took} s", window.length_s);
    for who in ["proxy", "host"] {
        let length: f64 = rows(&window, who).iter().map(|row| row.length_s).sum();
        assert!((length - window.length_s).abs() < 1e-6, "{who}: {length} of {}", window.length_s);
    }
    let own = rows(&window, "proxy");
    let cpu: f64 = own.iter().map(|r| (r.cpu_user.unwrap() + r.cpu_system.unwrap()) * r.length_s).sum();
    assert!((cpu - cpu_s(&window.usage[0])).abs() < 1e-4, "{cpu} {:?}", window.usage[0]);
    let switches: u64 = own.iter().map(|r| r.switches_voluntary.unwrap() + r.switches_involuntary.unwrap()).sum();
    assert_eq!(Some(switches), window.usage[0].switches.map(|(voluntary, involuntary)| voluntary + involuntary));
    let cost = watch.stop();
    assert!(cost.cpu_us >= window.own_cpu_us && cost.samples >= 4 && cost.reads > 20, "{cost:?}");
}

#[test]
fn the_host_row_has_what_this_kernel_has() {
    let watch = Watch::start(Vec::new()).unwrap();
    watch.begin_window(now(), None).unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    let window = watch.end_window().unwrap();
    assert!(window.usage.is_empty());
    for row in rows(&window, "host") {
        let cores = [row.cpu_user, row.cpu_system, row.cpu_idle, row.cpu_iowait, row.cpu_irq, row.cpu_steal];
        let busy: f64 = cores.iter().map(|c| c.expect("Linux says it")).sum();
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        // At least half of one CPU of the time must show up; the machine may have more CPUs than this test may use.
        assert!(busy > 0.5 * cpus.min(1.0), "{row:?}");
        assert!(row.rss_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(row.tcp_established.is_some() && row.net_in_bytes.is_some() && row.listen_overflows.is_some());
        assert_eq!(row.psi_cpu.is_some(), std::fs::read("/proc/pressure/cpu").is_ok());
        assert!(row.psi_cpu.is_none_or(|share| (0.0..=1.0).contains(&share)));
        assert!(
            row.load_1m.is_some() && row.memory_free_bytes.is_some() && row.swap_free_bytes <= row.swap_total_bytes
        );
        assert!(row.threads_running >= Some(1) && row.threads > row.threads_running, "{row:?}");
    }
}

#[test]
fn a_root_that_is_not_there_is_named() {
    let mut supervisor = Supervisor::start();
    let watched = supervisor.watched(false);
    let watch = Watch::start(vec![watched.clone()]).unwrap();
    supervisor.child.kill().unwrap();
    supervisor.child.wait().unwrap();
    watch.begin_window(now(), None).unwrap();
    let error = watch.end_window().unwrap_err();
    assert_eq!(error.to_string(), format!("process {} (proxy) has ended", supervisor.child.id()));
    let error = Watch::start(vec![watched.clone()]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(
        error.to_string().starts_with(&format!("cannot watch process {} (proxy)", supervisor.child.id())),
        "{error}"
    );
}

#[test]
fn a_root_that_ends_in_the_window_leaves_what_was_seen() {
    let mut supervisor = Supervisor::start();
    let watch = Watch::start(vec![supervisor.watched(true)]).unwrap();
    watch.begin_window(now(), None).unwrap();
    supervisor.run(&format!("{BURN}; sleep 1.1; echo"), 1);
    supervisor.child.kill().unwrap();
    supervisor.child.wait().unwrap();
    let window = watch.end_window().unwrap();
    assert!(cpu_s(&window.usage[0]) > 0.03, "{:?}", window.usage[0]);
}

/// Counts how often it was asked, and returns no number the second time.
#[derive(Default)]
struct Asked {
    times: u64,
    received: u64,
}

impl Connections for Asked {
    fn request(&mut self) {
        self.times += 1;
    }

    fn receive(&mut self) -> Option<u64> {
        self.received += 1;
        assert_eq!(self.times, self.received, "received once each time, and after it was asked");
        (self.times != 2).then_some(self.times)
    }
}

#[test]
fn the_connections_are_requested_once_a_row() {
    let supervisor = Supervisor::start();
    let own = Watched::process(Role::Origin, std::process::id());
    let counters: Box<dyn Connections> = Box::new(Asked::default());
    let watch =
        Watch::start_with_connections(vec![supervisor.watched(true), own].into(), vec![(Role::Origin, counters)])
            .unwrap();
    watch.begin_window(now(), None).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    let window = watch.end_window().unwrap();
    let open = |who: &str| rows(&window, who).iter().map(|row| row.connections_open).collect::<Vec<_>>();
    assert_eq!(open("origin"), [Some(1), None, Some(3)]);
    assert_eq!((open("proxy"), open("host")), (vec![None; 3], vec![None; 3]));
}

#[test]
fn an_end_without_a_begin_is_refused() {
    let watch = Watch::start(Vec::new()).unwrap();
    assert_eq!(watch.end_window().unwrap_err().to_string(), "no window is open");
    watch.begin_window(now(), None).unwrap();
    watch.end_window().unwrap();
    assert!(watch.end_window().is_err());
    watch.begin_window(now().plus(Duration::from_secs(60)), None).unwrap();
    assert_eq!(watch.end_window().unwrap_err().to_string(), "no window is open");
}

#[test]
fn a_window_planned_ahead_has_its_length_and_the_times_of_another_clock() {
    let watch = Watch::start(Vec::new()).unwrap();
    let from = At { unix_ns: 3_000_000_000, ..now().plus(Duration::from_millis(200)) };
    watch.begin_window(from, Some(from.plus(Duration::from_millis(1_300)))).unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    let window = watch.end_window().unwrap();
    // However late the samples came: the window says by how much.
    let off_s = (window.length_s - 1.3).abs();
    assert!(off_s <= window.late_s + 1e-3, "{} s, {} s late", window.length_s, window.late_s);
    assert_eq!(window.series.len(), window.length_s.ceil() as usize, "{:?}", window.series);
    let times: Vec<f64> = window.series.iter().map(|row| row.time_ms as f64).collect();
    let latest = 4_300.0 + window.late_s * 1e3 + 1.0;
    assert!(times[0] >= 4_000.0 && times.is_sorted() && times.iter().all(|ms| *ms <= latest), "{times:?}, {latest}");
}

#[test]
fn a_roles_processes_are_listed_as_the_kernel_shows_them() {
    let mut supervisor = Supervisor::start();
    // One that burns at a lower priority, and one that sleeps.
    supervisor.run("(sleep 8 &) ; echo", 1);
    let watch = Watch::start(vec![supervisor.watched(true).on(vec![0])]).unwrap();
    watch.begin_window(now(), None).unwrap();
    supervisor.run(&format!("nice -n 5 sh -c '{BURN}; echo; sleep 8; :' & echo"), 2);
    let owners = watch.end_window().unwrap().owners.remove(0);
    let [busiest, others @ ..] = &owners.roles[0].processes[..] else { panic!("{owners:?}") };
    // Children count from this process.
    let own = i64::from(rustix::process::getpriority_process(None).expect("known"));
    let nice = (own + 5).min(19);
    assert_eq!((busiest.nice, busiest.priority, busiest.name.as_str()), (nice, nice + 20, "sh"));
    assert!(busiest.used > 0.0 && busiest.cpu_s >= 0.05, "{busiest:?}");
    assert!(busiest.virtual_bytes > busiest.resident_bytes && busiest.resident_bytes > busiest.shared_bytes);
    assert!(others.iter().all(|other| other.used <= busiest.used), "{others:?}");
    let shell = others.iter().find(|other| other.pid == supervisor.child.id());
    assert_eq!(shell.map(|shell| (shell.nice, shell.priority)), Some((own, own + 20)), "{others:?}");
    let cpu = &owners.cpus[0];
    let parts = cpu.user.unwrap() + cpu.nice.unwrap();
    assert!(cpu.processes.is_some_and(|all| parts <= all + 1e-9) && cpu.iowait <= cpu.idle && cpu.softirq <= cpu.irq);
    watch.stop();
}
