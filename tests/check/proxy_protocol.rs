//! The PROXY protocol on both ends, alone and through HAProxy: it takes the client's header, believes it, and sends one of its own,
//! which the origin requires.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{OriginUnderTest, Running, all_right, number, run, scratch};
use serde_json::Value;

/// The origin's counters; they are asked for over a connection that begins with a header, too.
fn counters(origin: &OriginUnderTest) -> Value {
    let mut socket = std::net::TcpStream::connect(&origin.addr).expect("the origin listens");
    let request = "PROXY UNKNOWN\r\nGET /_weir/counters HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut socket, request.as_bytes()).expect("sent");
    let text = std::io::read_to_string(socket).expect("answered");
    let (_, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn the_origin_takes_what_the_client_sends_and_nothing_else() {
    let origin = OriginUnderTest::start(&["--proxy-protocol"]);
    let url = origin.url("/bytes/128");
    for (version, connections) in [("v1", 3), ("v2", 4)] {
        let args = [&url, "--proxy-protocol", version, "-n", "100", "-c", &connections.to_string()];
        assert_eq!(number(&all_right(&args), "/total/connections"), f64::from(connections));
    }
    all_right(&[&url, "--proxy-protocol", "v2", "-n", "20", "-c", "1", "--close"]);
    run(&["load", "-q", &url, "-n", "5", "-c", "1", "--timeout", "1s"]).expect(1);
    let counted = counters(&origin);
    let of = |key: &str| number(&counted, &format!("/proxy_protocol/{key}"));
    // One of version 1 is this test's own.
    // With --close one connection more shows that there is a target.
    assert_eq!((of("v1"), of("v2"), of("without_addresses")), (3.0 + 1.0, 4.0 + 1.0 + 20.0, 1.0), "{counted:#}");
    assert!(of("refused") >= 1.0, "{counted:#}");
    assert_eq!(number(&counted, "/requests"), 220.0, "nothing without a header is a request");
}

#[test]
fn below_tls_there_is_a_header_too() {
    let origin = OriginUnderTest::start(&["--proxy-protocol", "--tls"]);
    let url = origin.https("/bytes/128");
    for http in ["1.1", "2"] {
        all_right(&[&url, "--proxy-protocol", "v2", "--http", http, "-n", "50", "-c", "2"]);
    }
}

#[test]
fn haproxy_believes_the_clients_header_and_sends_its_own() {
    let origin = OriginUnderTest::start(&["--proxy-protocol"]);
    let scratch = scratch();
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let server = &origin.addr;
    for (send, version) in [("send-proxy", "v1"), ("send-proxy-v2", "v2")] {
        let config = scratch.path().join(format!("{version}.cfg"));
        let text = format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
             frontend in\n bind 127.0.0.1:{port} accept-proxy\n http-response set-header x-client %[src]\n default_backend out\n\
             backend out\n server origin {server} {send}\n"
        );
        std::fs::write(&config, text).expect("written");
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let _haproxy = Running(command.spawn().expect("haproxy is installed"));
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "haproxy does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = format!("http://127.0.0.1:{port}/bytes/128");
        // Connection 0 is that of 198.18.0.1.
        let args =
            [&url, "--proxy-protocol", version, "-n", "200", "-c", "1", "--expect-header", "x-client: 198.18.0.1"];
        all_right(&args);
        all_right(&[&url, "--proxy-protocol", version, "-n", "200", "-c", "8", "--expect-header", "x-client"]);
        let counted = counters(&origin);
        assert!(number(&counted, &format!("/proxy_protocol/{version}")) >= 2.0, "{counted:#}");
        assert_eq!(counted["proxy_protocol"]["refused"], 0, "{counted:#}");
        // Without a header HAProxy closes the connection.
        run(&["load", "-q", &url, "-n", "2", "-c", "1", "--timeout", "1s"]).expect(1);
    }
}
