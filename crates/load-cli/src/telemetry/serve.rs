//! Answers scrapes of `--metrics`: one small thread, one connection at a time. The text is written when it is asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{Shared, exposition, last};

/// How long a scraper may take to ask and to read.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request.
const LONGEST: u64 = 16 << 10;

/// Listens, and returns the address with its port. The thread ends with the process.
pub fn start(address: SocketAddr, shared: Shared) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let served = listener.local_addr()?;
    let respond_to_all = move || {
        for connection in listener.incoming().flatten() {
            // A scraper that hung up is no reason to stop listening.
            let _ = respond(&connection, &shared);
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(respond_to_all)?;
    Ok(served)
}

fn respond(mut connection: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(connection.take(LONGEST)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The head is read to its end: a close with unread bytes would reset the connection.
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET", "/metrics") => ("200 OK", exposition::CONTENT_TYPE, exposition::text(&last(shared))),
        ("GET", _) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".to_owned()),
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapes_are_answered_and_nothing_else() {
        let shared = Shared::default();
        let address = start("127.0.0.1:0".parse().expect("an address"), shared.clone()).expect("a port");
        *shared.lock().expect("whole") = std::sync::Arc::new(super::super::load::tests::families());
        let ask = |text: &str| {
            let mut connection = TcpStream::connect(address).expect("listens");
            connection.write_all(text.as_bytes()).expect("sent");
            let mut response = String::new();
            connection.read_to_string(&mut response).expect("a response");
            response
        };
        let response = ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("# EOF\n"), "{response}");
        assert!(response.contains("application/openmetrics-text; version=1.0.0"), "{response}");
        assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask("\r\n\r\n").starts_with("HTTP/1.1 405"));
        drop(TcpStream::connect(address).expect("listens still"));
        assert!(ask("GET /metrics?a=1 HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    }
}
