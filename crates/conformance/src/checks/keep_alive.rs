//! Keep-alive to the origin, measured: connections made for 1,000 requests.

use std::collections::BTreeMap;

use weir_model::suite::Protocol;

use super::listed;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::{Door, PATIENCE, Trouble};

/// Of the table.
pub const CHECK: Check = Check {
    name: "keep-alive",
    title: "Upstream keep-alive",
    asks: "1,000 requests over 10 client connections at a time: how many connections are made to the origin? 10 or fewer is keep-alive as it \
           is meant; 1,000 is none.",
    protocol: Protocol::Http11,
    when: When::Early,
    run,
};

const CONNECTIONS: u64 = 10;
const EACH: u64 = 100;

fn run(rig: &mut dyn Rig) -> Cell {
    let before = match rig.counters() {
        Ok(counters) => counters,
        Err(why) => return Cell::unknown(why),
    };
    let door = rig.product();
    let clients: Vec<Client> = std::thread::scope(|scope| {
        let door = &door;
        let threads: Vec<_> = (0..CONNECTIONS).map(|nth| scope.spawn(move || client(door, nth))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let after = match rig.counters() {
        Ok(counters) => counters.since(&before),
        Err(why) => return Cell::unknown(why),
    };
    let right: u64 = clients.iter().map(|client| client.right).sum();
    let reconnects: u64 = clients.iter().map(|client| client.reconnects).sum();
    if let Some(trouble) = clients.iter().find_map(|client| client.trouble.clone()) {
        return Cell::no(trouble).with(format!("after {right} right answers"));
    }
    let made = after.connections_accepted;
    let says = match made {
        0 | 1 => format!("{made} connection"),
        n => format!("{} connections", grouped(n)),
    };
    // A few more than clients is a race when the first requests come at once; a tenth of the requests is no keep-alive.
    let cell = match made {
        n if n <= 2 * CONNECTIONS => Cell::yes(),
        n if n < CONNECTIONS * EACH / 10 => Cell::odd(""),
        _ => Cell::no(""),
    };
    let cell = Cell { says, ..cell };
    let cell =
        if reconnects > 0 { cell.with(format!("the client had to connect anew {reconnects} times")) } else { cell };
    match connection_headers(&after.connection_headers) {
        Some(words) if made > 2 * CONNECTIONS => cell.with(words),
        _ => cell,
    }
}

/// What the product said of its connections to the origin.
fn connection_headers(counts: &BTreeMap<String, u64>) -> Option<String> {
    let words: Vec<String> = counts
        .iter()
        .filter(|(name, n)| *name != "(none)" && **n > 0)
        .map(|(name, n)| format!("{name} {} times", grouped(*n)))
        .collect();
    (!words.is_empty()).then(|| format!("it says Connection: {}", listed(&words)))
}

#[derive(Debug, Default)]
struct Client {
    right: u64,
    reconnects: u64,
    trouble: Option<String>,
}

fn client(door: &Door, nth: u64) -> Client {
    let mut client = Client::default();
    let mut line = None;
    while client.right < EACH {
        let fresh = line.is_none();
        // Never the same target twice: a product that caches has to ask for each.
        let request = door.request("GET", &format!("/bytes/128?x={nth}-{}", client.right), &[]);
        let asked = match line.take() {
            Some(open) => Ok(open),
            None => door.open(),
        }
        .and_then(|mut open: crate::talk::Line| {
            let heard = open.ask(&request, false, PATIENCE)?;
            Ok((open, heard))
        });
        match asked {
            Ok((open, heard)) if heard.status == 200 && heard.body.len() == 128 => {
                client.right += 1;
                if heard.keep_alive {
                    line = Some(open);
                } else if client.right < EACH {
                    client.reconnects += 1;
                }
            }
            Ok((_, heard)) => {
                client.trouble = Some(heard.status.to_string());
                return client;
            }
            // The product may end a connection between two requests.
            Err(Trouble::Closed | Trouble::Reset) if !fresh => client.reconnects += 1,
            Err(trouble) => {
                client.trouble = Some(trouble.word().to_owned());
                return client;
            }
        }
    }
    client
}

/// `1,000`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer, closing};

    #[test]
    fn connections_are_counted() {
        let cell = run(&mut TestRig::good());
        assert_eq!((cell.says.as_str(), cell.verdict), ("10 connections", crate::Verdict::Yes));
        let cell = run(&mut TestRig::but(|asked| (asked.nth == 4).then(|| closing(asked))));
        assert_eq!((cell.says.as_str(), cell.verdict), ("200 connections", crate::Verdict::No));
        assert_eq!(cell.note.as_deref(), Some("the client had to connect anew 190 times"));
        assert_eq!(run(&mut TestRig::but(|_| Some(Say::Next(answer(502, "", b""))))).says, "502");
    }

    #[test]
    fn what_it_says_of_connections_is_told() {
        let counts = BTreeMap::from([("(none)".to_owned(), 3), ("close".to_owned(), 1_000)]);
        assert_eq!(connection_headers(&counts).as_deref(), Some("it says Connection: close 1,000 times"));
        assert_eq!(connection_headers(&BTreeMap::from([("(none)".to_owned(), 3)])), None);
    }
}
