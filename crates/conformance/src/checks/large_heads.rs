//! Finds the largest request head that passes, and what happens to the next larger one.
//!
//! The largest one tried has 63 KiB: weir's origin accepts 64 KiB, and products add headers of their own.

use crate::cell::Cell;
use crate::testbed::Testbed;
use weir_product::client::{Endpoint, TIMEOUT};

const SIZES: [usize; 4] = [8, 16, 32, 63];

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let one = grow(&endpoint, usize::MAX);
    let many = grow(&endpoint, 1024);
    let cell = one.cell();
    Ok(if many.words() == one.words() {
        cell
    } else {
        cell.with(format!("in headers of 1 KiB each: {}", many.words()))
    })
}

/// The largest head that passed, and what happened to the next.
struct LargestHead {
    passed: Option<usize>,
    then: Option<Cell>,
}

impl LargestHead {
    fn words(&self) -> String {
        match (self.passed, &self.then) {
            (Some(passed), None) => format!("{passed} KiB"),
            (Some(passed), Some(then)) => format!("{passed} KiB, then {}", then.says),
            (None, Some(then)) => format!("8 KiB: {}", then.says),
            (None, None) => String::new(),
        }
    }

    fn cell(&self) -> Cell {
        let note = self.then.as_ref().and_then(|then| then.note.clone()).unwrap_or_default();
        match (self.passed, &self.then) {
            (_, None) => Cell::reading(self.words()),
            (Some(_), Some(_)) => Cell::reading(self.words()).with(note),
            (None, Some(_)) => Cell::no(self.words()).with(note),
        }
    }
}

/// A request whose head has exactly `bytes` bytes, in headers of at most `line` bytes each.
fn request(endpoint: &Endpoint, bytes: usize, line: usize) -> Vec<u8> {
    // The length of `X-Weir-10: ` and the line's end.
    const AROUND: usize = 13;
    let mut head = endpoint.request("GET", "/bytes/1", &[]);
    head.truncate(head.len() - 2);
    for nth in 10.. {
        let left = bytes - 2 - head.len();
        // The remainder must not be shorter than a header's name, so the last two headers share it.
        let size = match left {
            _ if left <= line => left,
            _ if left < line.saturating_mul(2) => left / 2,
            _ => line,
        };
        head.extend_from_slice(format!("X-Weir-{nth}: {}\r\n", "x".repeat(size - AROUND)).as_bytes());
        if size == left {
            break;
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Sends larger and larger heads until one fails.
fn grow(endpoint: &Endpoint, line: usize) -> LargestHead {
    let mut passed = None;
    for kib in SIZES {
        let cell = match endpoint.ask(&request(endpoint, kib * 1024, line), false, TIMEOUT) {
            Ok(response) if response.status == 200 => {
                passed = Some(kib);
                continue;
            }
            Ok(response) => Cell::status(&response),
            Err(failure) => Cell::failure(&failure),
        };
        return LargestHead { passed, then: Some(cell) };
    }
    LargestHead { passed, then: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, raw_response};
    use crate::table::cell_of;

    fn takes(head: usize, line: usize) -> Cell {
        cell_of(
            "large-headers",
            &mut FakeTestbed::but(move |asked| {
                let longest = asked.head.lines().map(str::len).max().unwrap_or(0);
                let refuse = asked.head.len() > head || longest > line;
                refuse.then(|| Reply::Close(raw_response(431, "Connection: close\r\n", b"too large")))
            }),
        )
    }

    #[test]
    fn heads_are_as_large_as_is_said() {
        let endpoint =
            Endpoint::plain(std::net::SocketAddr::from(([127, 0, 0, 1], 15_000)), weir_host::stop::Stop::new());
        for kib in SIZES {
            for line in [1024, usize::MAX] {
                let head = request(&endpoint, kib * 1024, line);
                assert_eq!(head.len(), kib * 1024);
                let headers = weir_wire::http1::headers(&head).count();
                assert!(if line == 1024 { headers > kib && headers < 100 } else { headers == 2 }, "{kib} {headers}");
                assert!(head.split(|b| *b == b'\n').all(|one| one.len() < line), "{kib}");
            }
        }
    }

    #[test]
    fn the_largest_is_found_and_what_follows() {
        assert_eq!(takes(usize::MAX, usize::MAX), Cell::reading("63 KiB"));
        let by_head = takes(32 * 1024, usize::MAX);
        assert_eq!(by_head.says, "32 KiB, then 431");
        assert_eq!(by_head.note.as_deref(), Some("it returns 431: too large"));
        let by_line = takes(usize::MAX, 8 * 1024);
        assert_eq!(by_line.says, "8 KiB, then 431");
        assert!(by_line.note.expect("a note").ends_with("in headers of 1 KiB each: 63 KiB"));
        assert_eq!(takes(1024, 1024).says, "8 KiB: 431");
        let closes = cell_of(
            "large-headers",
            &mut FakeTestbed::but(|asked| (asked.head.len() > 9_000).then(|| Reply::Close(Vec::new()))),
        );
        assert_eq!(closes.says, "8 KiB, then closes");
    }
}
