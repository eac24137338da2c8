//! Networks of namespaces: who reaches whom, how fast, and that nothing of them stays. They need root.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weir_host::netns::{Links, Namespace, Network, remove_leftovers};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// The tests run one at a time, because each network removes leftovers. Another user fails: `make check` has this part, which says so.
fn root() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    assert!(rustix::process::geteuid().is_root(), "NOT SHOWN: network namespaces can be made by root only");
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn network(hosts: &[&str], rate: Option<u64>) -> Network {
    let links = Links { rate, ..Links::default() };
    Network::create(hosts.iter().copied(), &links).unwrap_or_else(|error| panic!("{error}"))
}

fn namespaces() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().expect("a name")).collect()
}

/// Names of the network's namespaces that exist.
fn left_of(bridge: &str) -> Vec<String> {
    let prefix = bridge.trim_end_matches("net");
    namespaces().into_iter().filter(|name| name.starts_with(prefix)).collect()
}

fn lock_of(bridge: &str) -> std::path::PathBuf {
    let id = bridge.trim_start_matches("weir-").trim_end_matches("-net");
    std::path::Path::new("/run/weir").join(format!("net-{id}"))
}

/// A connection from one host to another: the client's end and the server's.
fn connected(from: &Namespace, to: &Namespace) -> (TcpStream, TcpStream) {
    let listener = to.inside(|| TcpListener::bind((to.address, 0))).expect("its address is there");
    let addr = listener.local_addr().expect("bound");
    let client = from.inside(|| TcpStream::connect_timeout(&addr, LONG)).expect("reached");
    let (server, peer) = listener.accept().expect("accepted");
    assert_eq!(peer.ip(), from.address);
    (client, server)
}

/// How long these bytes take from one host to another.
fn time_of(bytes: usize, from: &Namespace, to: &Namespace) -> Duration {
    let (mut client, mut server) = connected(from, to);
    let began = Instant::now();
    let sender = std::thread::spawn(move || client.write_all(&vec![7; bytes]));
    let mut received = Vec::new();
    server.read_to_end(&mut received).expect("received");
    sender.join().expect("no panic").expect("sent");
    assert_eq!(received.len(), bytes);
    began.elapsed()
}

fn interfaces() -> BTreeSet<String> {
    let table = std::fs::read_to_string("/proc/net/dev").expect("read");
    table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn hosts_reach_each_other_and_the_root_namespace_stays_as_it_was() {
    let _alone = root();
    let before = interfaces();
    let network = network(&["client-1", "proxy", "origin"], None);
    assert_eq!(interfaces(), before);
    let [client, proxy, origin] = network.hosts() else { panic!("{network:?}") };
    for (from, to) in [(client, proxy), (proxy, origin), (origin, client), (proxy, proxy)] {
        connected(from, to);
    }
    let range = |host: &Namespace| {
        host.inside(|| std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")).expect("read")
    };
    assert_eq!(range(client).split_whitespace().collect::<Vec<_>>(), ["1024", "65535"]);
    let local = client.inside(|| TcpListener::bind("127.0.0.1:0")).expect("loopback is up");
    let addr = local.local_addr().expect("bound");
    assert!(TcpStream::connect_timeout(&addr, LONG).is_err(), "another namespace's loopback is not ours");

    let entered = client.enter();
    let said =
        Command::new(&entered[0]).args(&entered[1..]).args(["ip", "-o", "-4", "addr", "show", "dev", "eth0"]).output();
    let said = String::from_utf8(said.expect("nsenter runs").stdout).expect("text");
    assert!(said.contains(&format!("{}/24", client.address)), "{said}");

    let bridge = network.bridge();
    assert_eq!(left_of(&bridge).len(), 4);
    assert!(lock_of(&bridge).exists());
    drop(network);
    assert_eq!(left_of(&bridge), Vec::<String>::new());
    assert!(!lock_of(&bridge).exists());
    assert_eq!(interfaces(), before);
}

#[test]
fn a_rate_limits_both_ways() {
    let _alone = root();
    const BYTES: usize = 4_000_000;
    let slow = network(&["a", "b"], Some(40_000_000));
    let fast = network(&["a", "b"], None);
    let [a, b] = slow.hosts() else { panic!("{slow:?}") };
    // 0.8 s by the rate, less the bursts of both ends of two links.
    for (from, to) in [(a, b), (b, a)] {
        let took = time_of(BYTES, from, to);
        assert!(took > Duration::from_millis(600), "{BYTES} bytes at 40 Mbit/s took {took:?}");
    }
    let took = time_of(BYTES, &fast.hosts()[0], &fast.hosts()[1]);
    assert!(took < Duration::from_millis(600), "{BYTES} bytes without a limit took {took:?}");
}

/// This test's program, to run [`makes_a_network`] in a process of its own.
fn another(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--ignored", "--exact", "makes_a_network", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The first line that it writes after the mark.
fn response(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let found = lines.find_map(|line| Some(line.expect("text").split_once("made: ")?.1.to_owned()));
    found.expect("a response")
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn makes_a_network() {
    let hosts = std::env::var("HOSTS").unwrap_or_else(|_| "a b".into());
    let made = Network::create(hosts.split(' '), &Links::default());
    println!("made: {:?}", made.as_ref().map(Network::bridge).map_err(ToString::to_string));
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn what_a_killed_owner_left_is_removed_and_nothing_else() {
    let _alone = root();
    let this = std::env::current_exe().expect("this test");
    let mut children = [another(&this).spawn().expect("started"), another(&this).spawn().expect("started")];
    let bridges = children.each_mut().map(|child| {
        let response = response(child);
        response.trim_start_matches("Ok(\"").trim_end_matches("\")").to_owned()
    });
    let own = network(&["a"], None);
    let _ = children[0].kill();
    let _ = children[0].wait();
    assert_eq!(left_of(&bridges[0]).len(), 3, "a kill leaves it behind");

    let removed = remove_leftovers().expect("removed");
    let expected = ["a", "b", "net"].map(|host| bridges[0].replace("-net", &format!("-{host}")));
    assert!(expected.iter().all(|name| removed.contains(name)), "{removed:?}");
    assert_eq!(left_of(&bridges[0]), Vec::<String>::new());
    assert!(!lock_of(&bridges[0]).exists());
    assert_eq!(left_of(&bridges[1]).len(), 3, "its owner lives");
    assert_eq!(left_of(&own.bridge()).len(), 2);

    let _ = children[1].kill();
    let _ = children[1].wait();
    // A new network removes leftovers by itself.
    drop(network(&["a"], None));
    assert_eq!(left_of(&bridges[1]), Vec::<String>::new());
}

#[test]
fn what_cannot_be_made_is_said_and_leaves_nothing() {
    let _alone = root();
    let wrong = Network::create(["a", "b/c"], &Links::default()).expect_err("no name of a file").to_string();
    assert!(wrong.contains("`ip netns add weir-") && wrong.contains("Invalid netns name"), "{wrong}");
    let id = wrong.split("weir-").nth(1).and_then(|rest| rest.get(..8)).expect("an id");
    assert_eq!(left_of(&format!("weir-{id}-net")), Vec::<String>::new());

    let this = std::env::current_exe().expect("this test");
    let mut child = another(&this).env("PATH", "/none").spawn().expect("started");
    let said = response(&mut child);
    assert!(said.contains("no `ip` in PATH\\n  expected: the package iproute2"), "{said}");
    child.wait().expect("it ends when its input does");

    // Somebody else may not look into the target folder.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("netns");
    std::fs::copy(&this, &copy).expect("copied");
    for path in [folder.path(), &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let mut child = another(&copy).uid(65_534).gid(65_534).current_dir("/").spawn().expect("started");
    let said = response(&mut child);
    assert!(said.contains("not root\\n  expected: root, or --topology local"), "{said}");
    child.wait().expect("it ends when its input does");
}

#[test]
fn an_address_of_the_network_is_not_reached_from_outside() {
    let _alone = root();
    let network = network(&["a"], None);
    let host = &network.hosts()[0];
    let listener = host.inside(|| TcpListener::bind((host.address, 0))).expect("bound");
    let addr: SocketAddr = listener.local_addr().expect("bound");
    listener.set_nonblocking(true).expect("set");
    let _ = TcpStream::connect_timeout(&addr, Duration::from_millis(300));
    assert!(listener.accept().is_err(), "the root namespace has no way to {addr}");
}
