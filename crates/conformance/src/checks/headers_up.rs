//! Checks which request headers the product keeps, adds, drops or changes on their way to the origin.
//! `headers_down` uses its comparison.

use crate::cell::Cell;
use crate::testbed::Testbed;
use weir_model::text::list;
use weir_product::client::{Endpoint, Response, TIMEOUT};

/// The headers sent beside `Host`: those that clients send, those that proxies often write themselves, and unusual
/// ones.
const SENT: [(&str, &str); 17] = [
    ("User-Agent", "weir"),
    ("Accept", "*/*"),
    ("Accept-Encoding", "gzip, br"),
    ("Authorization", "Basic d2Vpcjp3ZWly"),
    ("Cookie", "a=1; b=2"),
    ("Referer", "http://weir.test/"),
    ("Content-Type", "text/plain"),
    ("If-None-Match", "\"weir\""),
    ("Via", "1.1 weir"),
    ("Forwarded", "for=192.0.2.1"),
    ("X-Forwarded-For", "192.0.2.1"),
    ("X-Forwarded-Proto", "https"),
    ("X-Real-IP", "192.0.2.1"),
    ("X-Weir-Twice", "one"),
    ("X-Weir-Twice", "two"),
    ("X-Weir-Empty", ""),
    ("x_weir_underscore", "1"),
];

/// Headers for one connection only (RFC 9110, section 7.6.1): a proxy must not forward them.
const HOP: [(&str, &str); 5] = [
    ("Connection", "keep-alive, x-weir-hop"),
    ("X-Weir-Hop", "1"),
    ("Keep-Alive", "timeout=5"),
    ("TE", "trailers"),
    ("Proxy-Connection", "keep-alive"),
];

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let response = ask(&endpoint, &SENT)?;
    // The request says that the client accepts gzip, and the origin never compresses.
    if let Some(coding) = response.header("Content-Encoding") {
        let packs = format!("the product packs responses ({coding})");
        let plain = SENT.map(|(name, value)| (name, if name == "Accept-Encoding" { "identity" } else { value }));
        return Err(match ask(&endpoint, &plain) {
            Ok(response) if response.header("Content-Encoding").is_some() => Cell::unknown(packs),
            Ok(response) => compare_with_origin(bed, &response, &plain).with(packs),
            Err(cell) => cell,
        });
    }
    Ok(compare_with_origin(bed, &response, &SENT))
}

fn ask(endpoint: &Endpoint, sent: &[(&str, &str)]) -> Result<Response, Cell> {
    let sent: Vec<(&str, &str)> = sent.iter().chain(&HOP).copied().collect();
    match endpoint.ask(&endpoint.request("GET", "/headers", &sent), false, TIMEOUT) {
        Err(failure) => Err(Cell::failure(&failure)),
        Ok(response) if response.status != 200 => Err(Cell::status(&response)),
        Ok(response) => Ok(response),
    }
}

/// Compares with the head that reached the origin, as the origin reports it.
fn compare_with_origin(bed: &dyn Testbed, response: &Response, sent: &[(&str, &str)]) -> Cell {
    let head = String::from_utf8_lossy(&response.body).into_owned();
    let arrived: Vec<(String, String)> = head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    if arrived.is_empty() || !head.starts_with("GET /headers ") {
        return Cell::unknown("what came back is not the head that reached the origin");
    }
    let authority = bed.product().authority();
    let ours: Vec<(&str, &str)> = [("Host", authority.as_str())].into_iter().chain(sent.iter().copied()).collect();
    let origin = bed.origin().authority();
    judge(compare(&ours, &arrived), &arrived, &origin)
}

/// The differences between headers sent and headers that arrived.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// Names that arrived and were not sent.
    pub added: Vec<String>,
    /// Names that did not arrive.
    pub dropped: Vec<String>,
    /// Values that arrived otherwise than they were sent.
    pub changed: Vec<Change>,
}

/// A header whose value was changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the header.
    pub name: String,
    /// The value sent.
    pub was: String,
    /// The value that arrived.
    pub is: String,
}

impl HeaderChanges {
    /// `+2 -1 ~1`, or `as sent`.
    pub fn counts(&self) -> String {
        let counts = [('+', self.added.len()), ('-', self.dropped.len()), ('~', self.changed.len())];
        let words: Vec<String> = counts.iter().filter(|(_, n)| *n > 0).map(|(sign, n)| format!("{sign}{n}")).collect();
        if words.is_empty() { "as sent".to_owned() } else { words.join(" ") }
    }

    /// The counts, with the names as notes; `shown` describes a change.
    pub fn cell(&self, shown: impl Fn(&Change) -> String) -> Cell {
        let changed: Vec<String> = self.changed.iter().map(shown).collect();
        let notes = [("adds", &self.added), ("drops", &self.dropped), ("changes", &changed)];
        let named = notes.into_iter().filter(|(_, names)| !names.is_empty());
        named.fold(Cell::reading(self.counts()), |cell, (does, names)| cell.with(format!("{does} {}", list(names))))
    }
}

/// Compares by name, ignoring case. A repeated name counts with all its values.
pub fn compare(sent: &[(&str, &str)], arrived: &[(String, String)]) -> HeaderChanges {
    let mut changes = HeaderChanges::default();
    let mut seen: Vec<String> = Vec::new();
    for (name, _) in sent {
        if seen.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            continue;
        }
        seen.push((*name).to_owned());
        let was = values(sent.iter().map(|(n, v)| (*n, *v)), name);
        let is = values(arrived.iter().map(|(n, v)| (n.as_str(), v.as_str())), name);
        match is {
            None => changes.dropped.push((*name).to_owned()),
            Some(is) if Some(&is) == was.as_ref() => {}
            Some(is) => {
                changes.changed.push(Change { name: (*name).to_owned(), was: was.unwrap_or_default(), is });
            }
        }
    }
    for (name, _) in arrived {
        let known = seen.iter().chain(&changes.added).any(|other| other.eq_ignore_ascii_case(name));
        if !known {
            changes.added.push(name.clone());
        }
    }
    changes
}

fn values<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>, name: &str) -> Option<String> {
    let all: Vec<&str> = headers.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn judge(mut changes: HeaderChanges, arrived: &[(String, String)], origin: &str) -> Cell {
    let is_hop = |name: &str| HOP.iter().any(|(hop, _)| hop.eq_ignore_ascii_case(name));
    let (hop, added): (Vec<String>, Vec<String>) = changes.added.into_iter().partition(|name| is_hop(name));
    changes.added = added;
    let cell = changes.cell(|change| changed(change, origin));
    // The product has its own connection to the origin, and may send its own headers for it.
    let passed_on: Vec<&str> = HOP
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| hop.iter().any(|hop| hop.eq_ignore_ascii_case(name)) && !own_words(name, arrived))
        .collect();
    if passed_on.is_empty() {
        return cell;
    }
    let note = format!("sends on {}, of the client's connection alone", list(&passed_on));
    Cell { verdict: crate::Verdict::Odd, ..cell }.with(note)
}

/// True when a connection header arrives with another value than was sent: it then belongs to the product's own
/// connection.
fn own_words(name: &str, arrived: &[(String, String)]) -> bool {
    let sent = HOP.iter().find(|(hop, _)| hop.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let got = values(arrived.iter().map(|(n, v)| (n.as_str(), v.as_str())), name);
    got.as_deref() != sent
}

/// A change as text that is the same in every run; ports are not, so they are left out.
fn changed(Change { name, was, is }: &Change, origin: &str) -> String {
    let host = was.rsplit_once(':').map_or(was.as_str(), |(host, _)| host);
    match name.as_str() {
        "Host" if is == origin => "Host (the origin's address)".to_owned(),
        "Host" if is == host => "Host (without the port)".to_owned(),
        "Host" => format!("Host ({is})"),
        _ if is.starts_with(was.as_str()) && !was.is_empty() => format!("{name} (appends to it)"),
        _ if is.ends_with(was.as_str()) && !was.is_empty() => format!("{name} (puts something before it)"),
        _ => format!("{name} (replaces it)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::fake::{FakeTestbed, Received, Reply, origin, raw_response};
    use crate::table::cell_of;

    /// A product that forwards the head after `change`.
    fn sends(change: impl Fn(String) -> String + Send + Sync + 'static) -> Cell {
        cell_of(
            "headers-to-origin",
            &mut FakeTestbed::but(move |asked| {
                Some(Reply::Keep(origin(&Received { head: change(asked.head.clone()), ..asked.clone() })))
            }),
        )
    }

    fn without_hop(head: &str) -> String {
        let hop = |line: &&str| !HOP.iter().any(|(name, _)| line.starts_with(&format!("{name}:")));
        head.split("\r\n").filter(hop).collect::<Vec<_>>().join("\r\n")
    }

    #[test]
    fn kept_added_dropped_changed() {
        let kept = sends(|head| without_hop(&head));
        assert_eq!((kept.says.as_str(), kept.note, kept.verdict), ("as sent", None, Verdict::Reading));
        let cell = sends(|head| {
            without_hop(&head)
                .replace("Via: 1.1 weir\r\n", "")
                .replace(
                    "X-Forwarded-For: 192.0.2.1",
                    "x-forwarded-for: 192.0.2.1, 127.0.0.1\r\nX-Request-Id: 7\r\nConnection: close",
                )
                .replace("X-Forwarded-Proto: https", "X-Forwarded-Proto: http")
        });
        assert_eq!(cell.says, "+1 -1 ~2");
        let note =
            "adds X-Request-Id; drops Via; changes X-Forwarded-For (appends to it) and X-Forwarded-Proto (replaces it)";
        assert_eq!((cell.note.as_deref(), cell.verdict), (Some(note), Verdict::Reading));
    }

    #[test]
    fn headers_of_one_connection_must_not_be_sent_on() {
        let cell = sends(|head| head);
        assert_eq!((cell.says.as_str(), cell.verdict), ("as sent", Verdict::Odd));
        assert!(
            cell.note.expect("a note").contains("sends on Connection, X-Weir-Hop, Keep-Alive, TE and Proxy-Connection")
        );
    }

    #[test]
    fn a_packed_answer_is_not_taken_for_a_head() {
        let packs =
            |_: &Received| Some(Reply::Keep(raw_response(200, "Content-Encoding: gzip\r\n", b"\x1f\x8b:\n\x03:\n")));
        let cell = cell_of("headers-to-origin", &mut FakeTestbed::but(packs));
        assert_eq!((cell.says.as_str(), cell.verdict), ("?", Verdict::Unknown));
        assert_eq!(cell.note.expect("a note"), "the product packs responses (gzip)");
        let when_asked = move |asked: &Received| asked.head.contains("gzip").then(|| packs(asked)).flatten();
        let cell = cell_of("headers-to-origin", &mut FakeTestbed::but(when_asked));
        assert_eq!(cell.says, "as sent");
        assert!(cell.note.expect("a note").ends_with("the product packs responses (gzip)"));
    }

    #[test]
    fn values_that_come_in_one_line_or_in_two_are_the_same() {
        let one = [("X-Weir-Twice".to_owned(), "one, two".to_owned())];
        assert_eq!(compare(&[("x-weir-twice", "one"), ("X-Weir-Twice", "two")], &one), HeaderChanges::default());
    }

    #[test]
    fn hosts_are_told_apart() {
        let host = |is: &str| {
            changed(&Change { name: "Host".into(), was: "127.0.0.1:1".into(), is: is.into() }, "127.0.0.1:2")
        };
        assert_eq!(
            [host("127.0.0.1:2"), host("127.0.0.1"), host("origin")],
            ["Host (the origin's address)", "Host (without the port)", "Host (origin)"]
        );
    }
}
