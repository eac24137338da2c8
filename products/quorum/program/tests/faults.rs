//! A proxy and three stores as processes, which are killed, frozen and started again below the load: whatever was
//! acknowledged is read, and nothing older.

#[allow(dead_code)]
#[path = "../src/message.rs"]
mod message;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use message::{Message, Meta, op, status};

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// A proxy and its stores, in a folder of their own.
struct Cluster {
    folder: PathBuf,
    ports: Vec<u16>,
    /// Three stores and the proxy.
    processes: Vec<Option<Child>>,
}

impl Cluster {
    fn start(durability: &str) -> Cluster {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("weir-quorum-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let listeners: Vec<_> = (0..7).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(listeners);
        let listen: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let (stores, proxy, monitors) = (&listen[..3], &listen[3], &listen[4..]);
        let text = format!(
            "listen = {proxy:?}\nstores = {stores:?}\nmonitors = {monitors:?}\npath = {folder:?}\n\
             durability = \"{durability}\"\nstore_timeout_ms = 200\n"
        );
        std::fs::write(folder.join("quorum.toml"), text).unwrap();
        let mut cluster = Cluster { folder, ports, processes: vec![None, None, None, None] };
        (0..4).for_each(|process| cluster.run(process));
        let mut client = cluster.client();
        while client.ask(op::GET, "anything", "").0 != status::NO_KEY {
            std::thread::sleep(Duration::from_millis(20));
        }
        cluster
    }

    fn run(&mut self, process: usize) {
        let verb = ["store-1", "store-2", "store-3", "proxy"][process];
        let file = self.folder.join("quorum.toml");
        self.processes[process] =
            Some(Command::new(env!("CARGO_BIN_EXE_weir-quorum")).arg(verb).arg(file).spawn().unwrap());
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.ports[process])).is_err() {
            assert!(Instant::now() < end, "{verb} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        // The proxy tries to connect ten times a second.
        std::thread::sleep(Duration::from_millis(250));
    }

    fn kill(&mut self, process: usize) {
        let mut child = self.processes[process].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }

    fn signal(&self, process: usize, signal: &str) {
        let pid = self.processes[process].as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn client(&self) -> Client {
        Client { port: self.ports[3], stream: None }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for mut child in self.processes.iter_mut().filter_map(Option::take) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Client {
    port: u16,
    stream: Option<TcpStream>,
}

impl Client {
    /// Status, value and version.
    fn ask(&mut self, opcode: u8, key: &str, value: &str) -> (u8, String, u32) {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let payload = if value.is_empty() { Bytes::new() } else { Bytes::from(format!("\0{value}")) };
        let meta = Meta { ttl: if opcode == op::GET { 0 } else { 1000 }, request: Some(id), ..Meta::default() };
        let (namespace, key) = (Bytes::from("ns"), Bytes::from(key.to_owned()));
        let request = Message { opcode, opaque: number, meta, namespace, key, payload, ..Message::default() };
        let mut bytes = BytesMut::new();
        request.encode(&mut bytes);
        let port = self.port;
        let stream = self.stream.get_or_insert_with(|| {
            let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stream
        });
        stream.write_all(&bytes).unwrap();
        let (mut input, mut part) = (BytesMut::new(), [0; 4096]);
        loop {
            let length = stream.read(&mut part).unwrap();
            assert!(length > 0, "the proxy closed the connection");
            input.extend_from_slice(&part[..length]);
            if let Some(response) = Message::take(&mut input).unwrap() {
                assert_eq!((response.opaque, response.opcode), (number, opcode));
                let value = response.payload.get(1..).unwrap_or_default();
                return (response.status.unwrap(), String::from_utf8(value.to_vec()).unwrap(), response.meta.version);
            }
        }
    }

    fn value(&mut self, key: &str) -> Option<String> {
        match self.ask(op::GET, key, "") {
            (status::OK, value, _) => Some(value),
            (status::NO_KEY, ..) => None,
            (status, ..) => panic!("{key}: {status}"),
        }
    }
}

#[test]
fn every_operation_does_what_juno_says() {
    let cluster = Cluster::start("wal");
    let mut client = cluster.client();
    let mut status = |opcode, value| client.ask(opcode, "k", value).0;
    assert_eq!(status(op::NOP, ""), status::OK);
    assert_eq!(status(op::UPDATE, "a"), status::NO_KEY);
    assert_eq!(status(op::DESTROY, ""), status::OK);
    assert_eq!(status(op::CREATE, "a"), status::OK);
    assert_eq!(status(op::CREATE, "b"), status::DUPLICATE_KEY);
    assert_eq!(status(op::UPDATE, "c"), status::OK);
    assert_eq!(status(op::SET, "d"), status::OK);
    assert_eq!(status(99, ""), status::NOT_SUPPORTED);
    assert_eq!(status(op::SET, &"x".repeat(204_801)), status::BAD_PARAMETER);
    assert_eq!(client.ask(op::GET, "k", ""), (status::OK, "d".to_owned(), 3));
    assert_eq!(client.ask(op::DESTROY, "k", "").0, status::OK);
    assert_eq!(client.value("k"), None);
    assert_eq!(client.ask(op::UPDATE, "k", "e").0, status::NO_KEY, "a mark is no record");
    assert_eq!(client.ask(op::CREATE, "k", "f"), (status::OK, String::new(), 1));
    assert_eq!(client.value("k").unwrap(), "f");
    // The monitor answers a flat object of numbers.
    let mut stream = TcpStream::connect(("127.0.0.1", cluster.ports[4])).unwrap();
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let body = response.split_once("\r\n\r\n").unwrap().1;
    assert!(body.starts_with("{\"size_bytes\":") && body.contains("\"compactions\":0,"), "{response}");
}

#[test]
fn a_store_that_missed_writes_is_never_believed() {
    for missing in 0..3 {
        let mut cluster = Cluster::start("wal");
        let mut client = cluster.client();
        let key = |number: usize| format!("key-{number}");
        for number in 0..80 {
            assert_eq!(client.ask(op::SET, &key(number), "old").0, status::OK);
        }
        cluster.kill(missing);
        let mut expected: HashMap<usize, Option<&str>> = HashMap::new();
        for number in 0..120 {
            let (opcode, value, after) = match number {
                0..20 => (op::UPDATE, "new", Some("new")),
                20..40 => (op::SET, "new", Some("new")),
                40..60 => (op::DESTROY, "", None),
                60..80 => (op::GET, "", Some("old")),
                _ => (op::CREATE, "new", Some("new")),
            };
            assert_eq!(client.ask(opcode, &key(number), value).0, status::OK, "{number} without {missing}");
            expected.insert(number, after);
        }
        cluster.run(missing);
        // Each of the others away in turn, so that every read is answered by the one that missed the writes.
        for away in (0..3).filter(|away| *away != missing) {
            cluster.kill(away);
            for number in 0..120 {
                assert_eq!(
                    client.value(&key(number)).as_deref(),
                    expected[&number],
                    "{number}: {missing} missed, {away} away"
                );
            }
            cluster.run(away);
        }
        // What it missed is refused by none that it has.
        for number in 40..60 {
            assert_eq!(client.ask(op::CREATE, &key(number), "again").0, status::OK, "{number}");
        }
    }
}

#[test]
fn one_store_away_is_not_noticed_and_two_are() {
    let mut cluster = Cluster::start("none");
    let mut client = cluster.client();
    cluster.signal(0, "-STOP");
    for number in 0..6 {
        assert_eq!(client.ask(op::CREATE, &format!("frozen-{number}"), "v").0, status::OK);
    }
    cluster.kill(1);
    assert!([status::NO_STORE, status::RECORD_LOCKED].contains(&client.ask(op::SET, "frozen-1", "w").0));
    cluster.signal(0, "-CONT");
    std::thread::sleep(Duration::from_millis(700));
    for number in 0..6 {
        assert_eq!(client.value(&format!("frozen-{number}")).as_deref(), Some("v"));
    }
    cluster.kill(2);
    let start = Instant::now();
    assert_eq!(client.ask(op::SET, "frozen-1", "w").0, status::NO_STORE);
    assert!(start.elapsed() < Duration::from_millis(150), "a store that is known to be away is not waited for");
}

#[test]
fn an_orderly_stop_loses_nothing_even_without_a_log() {
    let mut cluster = Cluster::start("none");
    let mut client = cluster.client();
    for number in 0..50 {
        assert_eq!(client.ask(op::SET, &format!("kept-{number}"), "v").0, status::OK);
    }
    for store in 0..3 {
        cluster.signal(store, "-TERM");
        assert!(cluster.processes[store].take().unwrap().wait().unwrap().success());
    }
    (0..3).for_each(|store| cluster.run(store));
    for number in 0..50 {
        assert_eq!(client.value(&format!("kept-{number}")).as_deref(), Some("v"), "{number}");
    }
}

/// What a key may hold: one value if all is well, more after a write of which it is not known whether it was done.
type Possible = Vec<Option<String>>;

/// Random operations on keys of its own, until told to stop; what they hold then, and how many were acknowledged.
fn worker(mut client: Client, name: u32, stop: &AtomicBool) -> (HashMap<String, Possible>, u32) {
    let (mut keys, mut acknowledged): (HashMap<String, Possible>, u32) = (HashMap::new(), 0);
    let mut random = 0x9E37_79B9_u32.wrapping_mul(name + 1);
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        count += 1;
        let key = format!("{name}-{}", random % 25);
        let value = format!("{name}-{count}");
        let possible = keys.entry(key.clone()).or_insert_with(|| vec![None]);
        let opcode =
            [op::GET, op::CREATE, op::UPDATE, op::SET, op::DESTROY, op::GET, op::UPDATE][(random >> 8) as usize % 7];
        let written = (opcode != op::DESTROY).then(|| value.clone());
        let (status, read, _) =
            client.ask(opcode, &key, if matches!(opcode, op::GET | op::DESTROY) { "" } else { &value });
        let seen = match (opcode, status) {
            (op::GET, status::OK) => Some(read),
            (op::GET | op::UPDATE, status::NO_KEY) => None,
            (op::GET, _) => continue,
            (_, status::OK) => {
                acknowledged += 1;
                assert!(opcode != op::CREATE || possible.contains(&None), "{key} was made twice: {possible:?}");
                assert!(opcode != op::UPDATE || possible.iter().any(Option::is_some), "{key} was not there");
                *possible = vec![written];
                continue;
            }
            (op::CREATE, status::DUPLICATE_KEY) => {
                assert!(possible.iter().any(Option::is_some), "{key} is there, and must not be");
                continue;
            }
            _ => {
                possible.push(written);
                continue;
            }
        };
        assert!(possible.contains(&seen), "{key} is {seen:?}, expected one of {possible:?}");
        *possible = vec![seen];
    }
    (keys, acknowledged)
}

#[test]
fn random_operations_and_faults_lose_nothing_and_read_nothing_old() {
    let mut cluster = Cluster::start("wal");
    let stop = AtomicBool::new(false);
    let (keys, acknowledged) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|name| {
                let (client, stop) = (cluster.client(), &stop);
                scope.spawn(move || worker(client, name, stop))
            })
            .collect();
        for turn in 0..12 {
            let store = turn * 7 % 3;
            std::thread::sleep(Duration::from_millis(300));
            if turn % 3 == 1 {
                cluster.signal(store, "-STOP");
                std::thread::sleep(Duration::from_millis(if turn % 2 == 0 { 250 } else { 900 }));
                cluster.signal(store, "-CONT");
            } else {
                cluster.kill(store);
                std::thread::sleep(Duration::from_millis(200));
                cluster.run(store);
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut all = (HashMap::new(), 0);
        for worker in workers {
            let (keys, acknowledged) = worker.join().unwrap();
            all.0.extend(keys);
            all.1 += acknowledged;
        }
        all
    });
    assert!(acknowledged > 200, "{acknowledged} writes were acknowledged");
    let mut client = cluster.client();
    for away in 0..3 {
        cluster.kill(away);
        for (key, possible) in &keys {
            let seen = client.value(key);
            assert!(possible.contains(&seen), "{key} is {seen:?}, expected one of {possible:?}; {away} is away");
        }
        cluster.run(away);
    }
}
