//! Redis's protocol, over sockets: commands, versions, pipelining, expiry, faults and counters.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use common::{TIMEOUT, counters_when};
use weir_model::load::DriverChoice;
use weir_model::suite::Protocol;
use weir_origin::{Options, Origin, ResponseOptions};
use weir_wire::redis::encode;

on_each_driver!(
    commands_do_what_they_say,
    requests_may_be_pipelined_and_cut_anywhere,
    large_values_come_back_whole,
    workers_share_one_store,
    what_is_malformed_is_told_and_ends_the_connection,
    delayed_answers_come_late_and_in_order,
    faults_do_what_they_say,
    a_store_that_loses_and_lies_does_so_as_often_as_told,
    counters_balance,
    addresses_are_counted_apart,
    a_frozen_origin_answers_afterwards,
);

fn start(driver: DriverChoice, faults: &str) -> Origin {
    let responses = ResponseOptions { faults: faults.parse().expect("faults"), ..ResponseOptions::default() };
    Origin::start(Options { driver, protocol: Protocol::Redis, responses, ..Options::default() }).expect("an origin")
}

struct Client(TcpStream);

impl Client {
    fn new(origin: &Origin) -> Client {
        let stream = TcpStream::connect(origin.addr()).expect("accepted");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        Client(stream)
    }

    fn send(&mut self, request: &str) {
        let mut bytes = Vec::new();
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        encode::request(&mut bytes, &words);
        self.0.write_all(&bytes).expect("sent");
    }

    /// Reads exactly this.
    fn expect(&mut self, wanted: &str) {
        let mut got = Vec::new();
        while got.len() < wanted.len() && wanted.as_bytes().starts_with(&got) {
            let mut byte = [0];
            match self.0.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => got.push(byte[0]),
                // The ring that this thread made to choose a driver may interrupt it.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}, with {:?}", String::from_utf8_lossy(&got)),
            }
        }
        assert_eq!(String::from_utf8_lossy(&got), wanted);
    }

    fn ask(&mut self, request: &str, wanted: &str) {
        self.send(request);
        self.expect(wanted);
    }

    /// Reads until the peer closes; an error is a reset.
    fn rest(&mut self) -> Option<Vec<u8>> {
        let mut rest = Vec::new();
        loop {
            match self.0.read_to_end(&mut rest) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => return read.ok().map(|_| rest),
            }
        }
    }
}

fn commands_do_what_they_say(driver: DriverChoice) {
    let origin = start(driver, "none");
    let mut client = Client::new(&origin);
    for (request, wanted) in [
        ("GET a", "$-1\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("get a", "$1\r\n1\r\n"),
        ("SET a 2 NX", "$-1\r\n"),
        ("SET b 2 XX", "$-1\r\n"),
        ("SET a 22 xx", "+OK\r\n"),
        ("MGET a b", "*2\r\n$2\r\n22\r\n$-1\r\n"),
        ("TTL a", ":-1\r\n"),
        ("TTL b", ":-2\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("TTL a", ":100\r\n"),
        ("EXPIRE b 100", ":0\r\n"),
        ("SET e x EX 100 NX", "+OK\r\n"),
        ("TTL e", ":100\r\n"),
        ("EXISTS a b e", ":2\r\n"),
        ("EXPIRE e 0", ":1\r\n"),
        ("GET e", "$-1\r\n"),
        ("DEL a b", ":1\r\n"),
        ("INCR n", ":1\r\n"),
        ("INCR n", ":2\r\n"),
        ("GET n", "$1\r\n2\r\n"),
        ("SET t text", "+OK\r\n"),
        ("INCR t", "-ERR value is not an integer or out of range\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("PING", "+PONG\r\n"),
        ("PING there", "$5\r\nthere\r\n"),
        ("WAIT 2 100", ":2\r\n"),
        ("AUTH anything", "+OK\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("SELECT 1", "-ERR DB index is out of range\r\n"),
        ("CLIENT SETNAME me", "+OK\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("FROB x", "-ERR unknown command 'FROB'\r\n"),
        ("GET", "-ERR wrong arguments for 'GET'\r\n"),
        ("SET a 1 MAYBE", "-ERR wrong arguments for 'SET'\r\n"),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        (
            "HELLO 2",
            "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        ),
        (
            "HELLO 3",
            "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        ),
        ("GET nothing", "_\r\n"),
        ("FLUSHALL", "+OK\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("SET p 1 PX 40", "+OK\r\n"),
        ("QUIT", "+OK\r\n"),
    ] {
        client.ask(request, wanted);
    }
    assert_eq!(client.rest(), Some(Vec::new()), "closed");
    std::thread::sleep(Duration::from_millis(45));
    let mut other = Client::new(&origin);
    other.ask("GET p", "$-1\r\n");
    other.0.write_all(b"PING\r\n\r\nSET inline 1\r\nGET inline\r\n").expect("sent");
    other.expect("+PONG\r\n+OK\r\n$1\r\n1\r\n");
}

fn requests_may_be_pipelined_and_cut_anywhere(driver: DriverChoice) {
    let origin = start(driver, "none");
    let mut client = Client::new(&origin);
    let (mut bytes, mut wanted) = (Vec::new(), String::new());
    for n in 0..50 {
        let (key, value) = (format!("k{}", n % 7), format!("{n:0>40}"));
        encode::request(&mut bytes, &[b"SET", key.as_bytes(), value.as_bytes()]);
        encode::request(&mut bytes, &[b"GET", key.as_bytes()]);
        wanted += &format!("+OK\r\n$40\r\n{value}\r\n");
    }
    for length in [bytes.len(), 977, 13] {
        for piece in bytes.chunks(length) {
            client.0.write_all(piece).expect("sent");
        }
        client.expect(&wanted);
    }
    let counters = counters_when(&origin, |counters| counters.answered == 300);
    assert_eq!((counters.requests, counters.hits, counters.keys), (300, 150, 7));
    assert!(counters.max_in_flight_per_connection > 1);
}

fn large_values_come_back_whole(driver: DriverChoice) {
    let origin = start(driver, "none");
    let mut client = Client::new(&origin);
    let value = "0123456789abcdef".repeat(1 << 14);
    client.ask(&format!("SET big {value}"), "+OK\r\n");
    for _ in 0..8 {
        client.send("GET big");
    }
    (0..8).for_each(|_| client.expect(&format!("${}\r\n{value}\r\n", value.len())));
    let counters = counters_when(&origin, |counters| counters.answered == 9);
    assert_eq!((counters.body_bytes_in, counters.body_bytes_out), (1 << 18, 8 << 18));
}

fn workers_share_one_store(driver: DriverChoice) {
    let options = Options { threads: 3, driver, protocol: Protocol::Redis, ..Options::default() };
    let origin = Origin::start(options).expect("an origin");
    let mut clients: Vec<Client> = (0..12).map(|_| Client::new(&origin)).collect();
    for n in 1..=100 {
        clients[n * 5 % 12].ask("INCR n", &format!(":{n}\r\n"));
    }
}

fn what_is_malformed_is_told_and_ends_the_connection(driver: DriverChoice) {
    let origin = start(driver, "none");
    let mut client = Client::new(&origin);
    client.0.write_all(b"*1\r\n$4\r\nPING\r\n*1\r\n:5\r\n").expect("sent");
    client.expect("+PONG\r\n-ERR Protocol error: ");
    assert!(client.rest().is_some());
    counters_when(&origin, |counters| (counters.malformed, counters.connections_open) == (1, 0));
}

fn delayed_answers_come_late_and_in_order(driver: DriverChoice) {
    let delay = Some("1ms..30ms".parse().expect("a delay"));
    let responses = ResponseOptions { delay, ..ResponseOptions::default() };
    let options = Options { driver, protocol: Protocol::Redis, responses, ..Options::default() };
    let origin = Origin::start(options).expect("an origin");
    let mut client = Client::new(&origin);
    let begun = Instant::now();
    for n in 0..20 {
        client.send(&format!("SET k{n} {n}"));
        client.send(&format!("GET k{n}"));
        client.send("PING");
    }
    for n in 0..20 {
        client.expect(&format!("+OK\r\n${}\r\n{n}\r\n+PONG\r\n", n.to_string().len()));
    }
    assert!(begun.elapsed() > Duration::from_millis(20), "{:?}", begun.elapsed());
    counters_when(&origin, |counters| counters.answered == 40);
    client.send("GET k1");
    client.0.shutdown(Shutdown::Write).expect("shut down");
    assert_eq!(client.rest(), Some(b"$1\r\n1\r\n".to_vec()), "answered before it closes");
}

fn faults_do_what_they_say(driver: DriverChoice) {
    let origin = start(driver, "busy");
    let mut client = Client::new(&origin);
    client.ask("SET a 1", "-BUSY the origin was told to be busy\r\n");
    client.ask("PING", "+PONG\r\n");
    assert_eq!(origin.counters().keys, 0);

    let origin = start(driver, "reset");
    let mut client = Client::new(&origin);
    client.send("SET a 1");
    assert_eq!(client.rest(), None, "reset");
    assert_eq!((origin.counters().keys, origin.counters().faults["reset"]), (1, 1), "done, and not said");

    let origin = start(driver, "close");
    let mut client = Client::new(&origin);
    client.send("SET a 1");
    assert_eq!(client.rest(), Some(b"+O".to_vec()));

    let origin = start(driver, "stall");
    let mut client = Client::new(&origin);
    client.0.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    client.send("SET a 1");
    client.send("PING");
    assert_eq!(client.rest(), None, "a timeout");
    client.0.shutdown(Shutdown::Write).expect("shut down");
    client.0.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    assert_eq!(client.rest(), Some(Vec::new()));
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered), (1, 0));
}

fn a_store_that_loses_and_lies_does_so_as_often_as_told(driver: DriverChoice) {
    let origin = start(driver, "lose=20%,stale=30%");
    let mut client = Client::new(&origin);
    let (mut lost, mut stale, mut before, mut now) = (0, 0, "$-1\r\n".to_owned(), "$-1\r\n".to_owned());
    for n in 0..400 {
        let value = format!("{n:0>5}");
        let faults = origin.counters().faults;
        client.ask(&format!("SET k {value}"), "+OK\r\n");
        if origin.counters().faults.get("lose") == faults.get("lose") {
            before = std::mem::replace(&mut now, format!("$5\r\n{value}\r\n"));
        } else {
            lost += 1;
        }
        let faults = origin.counters().faults;
        client.send("GET k");
        if origin_lied(&origin, &faults) {
            stale += 1;
            client.expect(&before);
        } else {
            client.expect(&now);
        }
    }
    assert!((45..115).contains(&lost) && (75..165).contains(&stale), "{lost} lost, {stale} stale");
    let faults = origin.counters().faults;
    assert_eq!((faults["lose"], faults["stale"]), (lost, stale));
}

/// Whether the answer under way is stale; waits until the request was counted.
fn origin_lied(origin: &Origin, before: &std::collections::BTreeMap<String, u64>) -> bool {
    let reads = |counters: &weir_model::counters::OriginCounters| counters.hits + counters.misses;
    let sets = origin.counters().operations["set"];
    let counters = counters_when(origin, |counters| reads(counters) == sets && counters.answered == counters.requests);
    counters.faults.get("stale") != before.get("stale")
}

fn counters_balance(driver: DriverChoice) {
    let origin = start(driver, "none");
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&origin)).collect();
    clients[0].ask("PING", "+PONG\r\n");
    for (n, client) in clients.iter_mut().enumerate().skip(1) {
        client.ask(&format!("SET k{n} value"), "+OK\r\n");
        client.ask(&format!("GET k{n}"), "$5\r\nvalue\r\n");
        client.ask("GET none", "$-1\r\n");
    }
    let counters = counters_when(&origin, |counters| counters.answered == 6);
    assert_eq!((counters.requests, counters.own_requests, counters.keys), (6, 1, 2));
    assert_eq!((counters.hits, counters.misses), (2, 2));
    assert_eq!((counters.connections_accepted, counters.connections_used), (3, 2));
    assert_eq!((counters.connections_by_protocol["redis"], counters.connections_reaching[&2]), (2, 2));
    let operations: Vec<_> = counters.operations.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(operations, [("get", 4), ("ping", 1), ("set", 2)]);
    let client = clients.pop().expect("one");
    // What was not read makes it a reset.
    let mut client = client;
    client.send("GET none");
    counters_when(&origin, |counters| counters.answered == 7);
    drop(client);
    counters_when(&origin, |counters| counters.connections_open == 2);
}

fn addresses_are_counted_apart(driver: DriverChoice) {
    let any = Options::default().listen;
    let options = Options { threads: 2, driver, also: vec![any, any], protocol: Protocol::Redis, ..Options::default() };
    let origin = Origin::start(options).expect("an origin");
    for (n, addr) in origin.addrs().iter().enumerate() {
        for _ in 0..=n {
            let mut client = Client(TcpStream::connect(addr).expect("accepted"));
            client.ask("INCR all", "");
            client.expect(":");
        }
    }
    let counters = counters_when(&origin, |counters| counters.answered == 6);
    let seen = counters.addresses.iter().map(|a| (a.connections_accepted, a.connections_used, a.requests, a.answered));
    assert_eq!(seen.collect::<Vec<_>>(), [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)]);
    assert_eq!(counters.addresses[2].address, origin.addrs()[2].to_string());
    assert_eq!((counters.connections_accepted, counters.keys), (6, 3), "a store for each address");
}

fn a_frozen_origin_answers_afterwards(driver: DriverChoice) {
    let origin = start(driver, "none");
    let mut client = Client::new(&origin);
    client.ask("SET a 1", "+OK\r\n");
    let begun = Instant::now();
    origin.freeze(Duration::from_millis(300));
    // The threads finish the turn that they are in.
    std::thread::sleep(Duration::from_millis(50));
    client.ask("GET a", "$1\r\n1\r\n");
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    origin.freeze(Duration::from_secs(600));
    let begun = Instant::now();
    origin.stop();
    assert!(begun.elapsed() < Duration::from_secs(30), "a frozen origin stops");
}
