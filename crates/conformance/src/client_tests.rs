//! The client of `weir_product` against fake servers that misbehave.

use std::time::Duration;

use weir_host::stop::Stop;
use weir_product::client::{Endpoint, RequestError, Response};

use crate::fake::{Fake, Received, Reply};

const SHORT: Duration = Duration::from_millis(300);

fn said(bytes: &'static [u8]) -> Result<Response, RequestError> {
    let fake = Fake::new(move |_: &Received| Reply::Close(bytes.to_vec()));
    Endpoint::plain(fake.addr, Stop::new()).ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, SHORT)
}

#[test]
fn answers_are_read_with_all_that_came_before() {
    let response =
        said(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    let response = response.expect("a response");
    assert_eq!((response.interim.as_slice(), response.status, response.body.as_slice()), (&[103][..], 200, &b"ok"[..]));
    assert_eq!(response.framing, weir_wire::http1::Framing::Chunked);
    let response = said(b"HTTP/1.0 200 OK\r\n\r\nto the end").expect("a response");
    assert_eq!(
        (response.version, response.keep_alive, response.body.as_slice()),
        ("HTTP/1.0", false, &b"to the end"[..])
    );
}

#[test]
fn every_way_to_fail_has_its_name() {
    assert_eq!(said(b""), Err(RequestError::Closed));
    assert_eq!(said(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), Err(RequestError::Cut));
    assert!(matches!(said(b"SSH-2.0-x\r\n\r\n"), Err(RequestError::Malformed(_))));
    let silent = Fake::new(|_: &Received| Reply::Silence);
    let endpoint = Endpoint::plain(silent.addr, Stop::new());
    assert!(matches!(endpoint.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, SHORT), Err(RequestError::Silent(_))));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    assert_eq!(Endpoint::plain(nobody, Stop::new()).get("/"), Err(RequestError::Refused));
}

#[test]
fn a_wish_to_stop_ends_the_wait() {
    let silent = Fake::new(|_: &Received| Reply::Silence);
    let stop = Stop::new();
    let endpoint = Endpoint::plain(silent.addr, stop.clone());
    let waits =
        std::thread::spawn(move || endpoint.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, Duration::from_secs(60)));
    std::thread::sleep(Duration::from_millis(50));
    stop.set();
    assert_eq!(waits.join().expect("it returns"), Err(RequestError::Stopped));
}
