//! Checks that path and query reach the origin unchanged, byte for byte.
//!
//! The origin reports what reached it: an unknown path in the body of its 404, and a query through `/headers`, whose
//! response is the request's head.

use crate::cell::Cell;
use crate::testbed::Testbed;
use weir_product::client::Endpoint;

const TARGETS: [&str; 18] = [
    "/p/plain",
    "/p/trailing/",
    "/p/a%2Fb",
    "/p/a%2fb",
    "/p/%7Ea",
    "/p/a%20b",
    "/p/%C3%A9",
    "/p//double",
    "/p/./dot",
    "/p/../dots",
    "/p/%2E%2E/dots",
    "/p/a;v=1,2",
    "/p/~!$&()*+:@",
    "/headers?",
    "/headers?x=a%2Fb%20c+d",
    "/headers?x=//a/../b",
    "/headers?x=1&x=2&x=&x",
    "/headers?x=a?b",
];

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    for target in TARGETS {
        match arrived(&endpoint, target) {
            Ok(is) if is == target => {}
            Ok(is) => changed.push(format!("{target} becomes {is}")),
            Err(cell) => refused.push((target, cell.says)),
        }
        if bed.stop().is_requested() {
            break;
        }
    }
    if refused.len() == TARGETS.len() {
        let says = refused.pop().map(|(_, says)| says).unwrap_or_default();
        return Ok(Cell::no(says).with("to every target"));
    }
    let mut words = Vec::new();
    if !changed.is_empty() {
        words.push(format!("changes {}", changed.len()));
    }
    if !refused.is_empty() {
        words.push(format!("refuses {}", refused.len()));
    }
    if words.is_empty() {
        return Ok(Cell::yes());
    }
    let refusals = refused.iter().map(|(target, says)| format!("{target} gets {says}"));
    Ok(Cell::odd(words.join(", ")).with(changed.into_iter().chain(refusals).collect::<Vec<_>>().join(", ")))
}

/// The target that reached the origin.
fn arrived(endpoint: &Endpoint, target: &str) -> Result<String, Cell> {
    let response = endpoint.get(target)?;
    let body = String::from_utf8_lossy(&response.body);
    let found = match response.status {
        404 => {
            body.strip_prefix("nothing is at `").and_then(|rest| rest.split_once('`')).map(|(path, _)| path.to_owned())
        }
        200 => body.strip_prefix("GET ").and_then(|rest| rest.split_once(' ')).map(|(target, _)| target.to_owned()),
        _ => None,
    };
    found.ok_or_else(|| Cell::status(&response))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Received, Reply, origin, raw_response};
    use crate::table::cell_of;

    fn sends(change: impl Fn(&str) -> String + Send + Sync + 'static) -> Cell {
        cell_of(
            "path",
            &mut FakeTestbed::but(move |asked| {
                let target = change(&asked.target);
                let head = asked.head.replacen(&asked.target, &target, 1);
                Some(Reply::Keep(origin(&Received { target, head, ..asked.clone() })))
            }),
        )
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("path", &mut FakeTestbed::good()), Cell::yes());
        let cell = sends(|target| target.replace("//", "/").replace("%2F", "/"));
        assert_eq!(cell.says, "changes 4");
        assert!(cell.note.expect("a note").starts_with("/p/a%2Fb becomes /p/a/b, /p//double becomes /p/double"));
        assert_eq!(sends(|target| target.trim_end_matches('?').to_owned()).says, "changes 1");
        let refuses = cell_of(
            "path",
            &mut FakeTestbed::but(|asked| asked.target.contains("..").then(|| Reply::Keep(raw_response(400, "", b"")))),
        );
        assert_eq!(refuses.says, "refuses 2");
        assert_eq!(
            cell_of("path", &mut FakeTestbed::but(|_| Some(Reply::Keep(raw_response(502, "", b""))))).says,
            "502"
        );
    }
}
