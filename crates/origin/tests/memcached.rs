//! Memcached's protocol, over sockets: commands, expiry, requests without a reply, and lies. What all protocols of keys and
//! values share is tested with Redis's.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{TIMEOUT, counters_when};
use weir_model::load::DriverChoice;
use weir_model::suite::Protocol;
use weir_origin::{Options, Origin, ResponseOptions};

on_each_driver!(
    commands_do_what_they_say,
    values_expire,
    requests_without_a_reply_are_counted,
    what_is_malformed_is_told_and_ends_the_connection,
    faults_do_what_they_say,
);

fn start(driver: DriverChoice, faults: &str) -> (Origin, Client) {
    let responses = ResponseOptions { faults: faults.parse().expect("faults"), ..ResponseOptions::default() };
    let options = Options { driver, protocol: Protocol::Memcached, responses, ..Options::default() };
    let origin = Origin::start(options).expect("an origin");
    let stream = TcpStream::connect(origin.addr()).expect("accepted");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    (origin, Client(stream))
}

struct Client(TcpStream);

impl Client {
    /// Sends this, and reads exactly that.
    fn ask(&mut self, request: &str, wanted: &str) {
        self.0.write_all(request.as_bytes()).expect("sent");
        let mut got = vec![0; wanted.len()];
        self.0.read_exact(&mut got).expect("as many bytes");
        assert_eq!(String::from_utf8_lossy(&got), wanted, "{request}");
    }

    fn is_closed(&mut self) -> bool {
        self.0.read_to_end(&mut Vec::new()).is_ok_and(|rest| rest == 0)
    }
}

fn commands_do_what_they_say(driver: DriverChoice) {
    let (origin, mut client) = start(driver, "none");
    for (request, wanted) in [
        ("version\r\n", "VERSION 1.6.0\r\n"),
        ("get a\r\n", "END\r\n"),
        ("set a 7 0 1\r\n1\r\n", "STORED\r\n"),
        ("get a\r\n", "VALUE a 7 1\r\n1\r\nEND\r\n"),
        ("add a 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("replace b 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("append b 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("replace a 8 0 2\r\n22\r\n", "STORED\r\n"),
        ("append a 9 9 1\r\n3\r\n", "STORED\r\n"),
        ("prepend a 9 9 1\r\n1\r\n", "STORED\r\n"),
        ("add b 0 0 0\r\n\r\n", "STORED\r\n"),
        ("get b none a\r\n", "VALUE b 0 0\r\n\r\nVALUE a 8 4\r\n1223\r\nEND\r\n"),
        ("incr a 7\r\n", "1230\r\n"),
        ("decr a 2000\r\n", "0\r\n"),
        ("incr none 1\r\n", "NOT_FOUND\r\n"),
        ("incr b 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("cas none 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"),
        ("cas b 0 0 1 77\r\nx\r\n", "EXISTS\r\n"),
        ("delete b\r\n", "DELETED\r\n"),
        ("delete b\r\n", "NOT_FOUND\r\n"),
        ("touch b 100\r\n", "NOT_FOUND\r\n"),
        ("touch a 100\r\n", "TOUCHED\r\n"),
        ("frob x\r\n", "ERROR\r\n"),
        ("mg a v\r\n", "ERROR\r\n"),
        ("set c 1 0 1\r\n1\r\ngets c\r\n", "STORED\r\nVALUE c 1 1 "),
    ] {
        client.ask(request, wanted);
    }
    let mut version = [0; 1];
    client.0.read_exact(&mut version).expect("a version");
    let version = char::from(version[0]);
    client.ask("", "\r\n1\r\nEND\r\n");
    client.ask(&format!("cas c 2 0 1 {version}\r\n2\r\n"), "STORED\r\n");
    client.ask(&format!("cas c 3 0 1 {version}\r\n3\r\n"), "EXISTS\r\n");
    client.ask("get c\r\nflush_all\r\nget c\r\n", "VALUE c 2 1\r\n2\r\nEND\r\nOK\r\nEND\r\n");
    client.ask("quit\r\n", "");
    assert!(client.is_closed());
    let counters = counters_when(&origin, |counters| counters.answered == counters.requests);
    let others = counters.operations["connection"] + counters.operations["unknown"];
    assert_eq!((counters.keys, others, counters.own_requests), (0, 5, 5));
    assert_eq!(counters.connections_by_protocol["memcached"], 1);
}

fn values_expire(driver: DriverChoice) {
    let (origin, mut client) = start(driver, "none");
    client.ask("set a 0 1 1\r\n1\r\nset b 0 -1 1\r\n1\r\n", "STORED\r\nSTORED\r\n");
    // A date of 1970, and one of 2038.
    client.ask("set c 0 2592001 1\r\n1\r\nset d 0 2147483647 1\r\n1\r\n", "STORED\r\nSTORED\r\n");
    client.ask("get a b c d\r\n", "VALUE a 0 1\r\n1\r\nVALUE d 0 1\r\n1\r\nEND\r\n");
    client.ask("touch d -1\r\nget d\r\n", "TOUCHED\r\nEND\r\n");
    std::thread::sleep(Duration::from_millis(1_010));
    client.ask("get a\r\n", "END\r\n");
    assert_eq!(origin.counters().keys, 0);
}

fn requests_without_a_reply_are_counted(driver: DriverChoice) {
    let (origin, mut client) = start(driver, "none");
    client.ask("set a 0 0 1 noreply\r\n1\r\nincr a 1 noreply\r\n", "");
    let counters = counters_when(&origin, |counters| counters.answered == 2);
    assert_eq!((counters.requests, counters.keys), (2, 1));
    client.ask("touch a 9 noreply\r\nget a\r\ndelete a noreply\r\nget a\r\n", "VALUE a 0 1\r\n2\r\nEND\r\nEND\r\n");
    let counters = counters_when(&origin, |counters| counters.answered == 6);
    assert_eq!((counters.requests, counters.hits, counters.misses), (6, 1, 1));
}

fn what_is_malformed_is_told_and_ends_the_connection(driver: DriverChoice) {
    let (origin, mut client) = start(driver, "none");
    let told = "CLIENT_ERROR a line is no command of memcached, or has not the words that its command needs\r\n";
    client.ask("get a\r\nset a 0 0\r\n", &format!("END\r\n{told}"));
    assert!(client.is_closed());
    counters_when(&origin, |counters| (counters.malformed, counters.connections_open) == (1, 0));
}

fn faults_do_what_they_say(driver: DriverChoice) {
    let (origin, mut client) = start(driver, "busy");
    client.ask("set a 0 0 1\r\n1\r\n", "SERVER_ERROR busy, as the origin was told to be\r\n");
    client.ask("set a 0 0 1 noreply\r\n1\r\nversion\r\n", "VERSION 1.6.0\r\n");
    let counters = counters_when(&origin, |counters| counters.answered == 2);
    assert_eq!((counters.keys, counters.faults["busy"]), (0, 2));

    let (origin, mut client) = start(driver, "lose");
    client.ask("set a 0 0 1\r\n1\r\ndelete a\r\nget a\r\n", "STORED\r\nNOT_FOUND\r\nEND\r\n");
    assert_eq!((origin.counters().keys, origin.counters().faults["lose"]), (0, 1), "nothing was there to be removed");

    let (origin, mut client) = start(driver, "stale");
    client.ask("set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nEND\r\n");
    client.ask("set a 0 0 1\r\n2\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
    assert_eq!(origin.counters().faults["stale"], 2);
}
