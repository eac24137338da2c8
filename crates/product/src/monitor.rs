//! Asks a product's parts for the numbers that they tell about themselves, each second of a load, and writes them into
//! `monitor-<part>.csv`. [`crate::requester`] starts it. A response is a flat JSON object. With `#name` at the address's end it
//! is text, and the lines that are whole numbers are added up under that name.
//!
//! It does not know what the numbers mean. A part that does not answer, because a fault has it, has no row for that second.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_model::text::csv_cell;

use crate::http::Http;

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// How long a response may take.
const WITHIN: Duration = Duration::from_millis(500);

/// Threads that ask until this is dropped.
#[derive(Debug, Default)]
pub struct Monitors {
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl Monitors {
    /// Asks each part at its address, and writes into files in `folder`.
    pub fn start(parts: &[(String, String)], folder: &Path) -> Monitors {
        let start = |(part, address): &(String, String)| {
            let (address, sum) = match address.split_once('#') {
                Some((address, name)) => (address, Some(name.to_owned())),
                None => (address.as_str(), None),
            };
            let (address, path) = target(address)?;
            // A full disk shows when the measurement itself is written.
            let mut rows = csv::Writer::from_path(folder.join(format!("monitor-{part}.csv"))).ok()?;
            let (stop, stopped) = channel::<()>();
            let ask = move || {
                let http = Http::new(address, WITHIN);
                let _ = rows.write_record(["time_ms", "name", "value"]);
                loop {
                    write(&mut rows, &http, &path, sum.as_deref());
                    if stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            };
            Some((stop, std::thread::Builder::new().spawn(ask).ok()?))
        };
        Monitors { threads: parts.iter().filter_map(start).collect() }
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        for (stop, thread) in self.threads.drain(..) {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Where to ask, and for which path.
fn target(address: &str) -> Option<(SocketAddr, String)> {
    let (host, path) = address.strip_prefix("http://")?.split_once('/').unwrap_or((&address["http://".len()..], ""));
    Some((host.parse().ok()?, format!("/{path}")))
}

/// Asks once, and writes a row for each number of the response, or their `sum` under its name.
fn write(rows: &mut csv::Writer<File>, http: &Http, path: &str, sum: Option<&str>) {
    let Ok(response) = http.get(path) else { return };
    let numbers: BTreeMap<String, serde_json::Value> = match sum {
        Some(name) => summed(&response.body).map(|sum| (name.to_owned(), sum.into())).into_iter().collect(),
        None => serde_json::from_slice(&response.body).unwrap_or_default(),
    };
    let time_ms = jiff::Timestamp::now().as_millisecond().to_string();
    for (name, value) in numbers.iter().filter(|(_, value)| value.is_number()) {
        let _ = rows.write_record([&time_ms, &csv_cell(name), &value.to_string()]);
    }
    let _ = rows.flush();
}

/// The sum of the lines that are whole numbers; `None` where none is.
fn summed(text: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter_map(|line| line.trim().parse::<u64>().ok()).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// A store may be made of several databases, each with a size.
    #[test]
    fn the_numbers_of_a_text_are_summed() {
        let text = "total-files-size\n\nDB 0 (/data/0-0):\n1200\nDB 1 (/data/0-1):\n34";
        assert_eq!(summed(text.as_bytes()), Some(1_234));
        assert_eq!(summed(b"total-files-size\n"), None, "no database is open yet");
    }

    #[test]
    fn numbers_are_kept_with_their_time_and_other_things_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                let _ = socket.read(&mut [0; 1024]);
                let body = r#"{"size_bytes":17,"busy":0.5,"name":"store"}"#;
                let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = socket.write_all(format!("{head}{body}").as_bytes());
            }
        });
        let dir = tempfile::tempdir().expect("a folder");
        let parts = [
            ("store-1".to_owned(), format!("http://{addr}/stats")),
            ("gone".to_owned(), "http://127.0.0.1:1/".to_owned()),
        ];
        let monitors = Monitors::start(&parts, dir.path());
        let read =
            |part: &str| std::fs::read_to_string(dir.path().join(format!("monitor-{part}.csv"))).unwrap_or_default();
        for _ in 0..100 {
            if read("store-1").lines().count() >= 3 {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(monitors);
        let text = read("store-1");
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows[0], ["time_ms", "name", "value"]);
        assert_eq!((&rows[1][1..], &rows[2][1..]), (&["busy", "0.5"][..], &["size_bytes", "17"][..]));
        assert!(rows[1][0].parse::<u64>().expect("a time") > 1_600_000_000_000);
        assert_eq!(read("gone"), "time_ms,name,value\n", "nobody answered");
    }
}
