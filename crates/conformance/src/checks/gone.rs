//! Checks how fast a client gets an error when the origin is down, and which one.

use std::time::Duration;

use crate::cell::{Cell, about, word};
use crate::testbed::{Testbed, pause};

/// Time for the closed connections to be noticed before the next request.
const SETTLES: Duration = Duration::from_millis(200);
const TIMEOUT: Duration = Duration::from_secs(10);

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    if let Err(failure) = endpoint.get("/bytes/128") {
        return Ok(Cell::failure(&failure).with("before the origin went"));
    }
    bed.stop_origin();
    pause(bed.stop(), SETTLES);
    let cell = asked_without(bed, TIMEOUT).unwrap_or_else(|cell| cell);
    Ok(match bed.start_origin() {
        Ok(()) => cell,
        Err(why) => cell.with(format!("weir's origin did not come back: {why}")),
    })
}

fn asked_without(bed: &mut dyn Testbed, timeout: Duration) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let ask = |target: &str| endpoint.ask(&endpoint.request("GET", target, &[]), false, timeout);
    let first = ask("/bytes/128?x=gone")?;
    if first.status < 500 {
        return Ok(Cell::odd(first.status.to_string()).with(format!("it returns {} without an origin", first.status)));
    }
    let cell = Cell::reading(format!("{} in {}", first.status, about(first.took)));
    // A product that has noticed that the origin is down may respond differently to the next request.
    Ok(match ask("/bytes/128") {
        Ok(next) if next.status == first.status => cell,
        Ok(next) if next.status == 200 => cell.with("what it has cached it serves all the same"),
        Ok(next) => cell.with(format!("the next gets {}", next.status)),
        Err(failure) => cell.with(format!("at the next it {}", word(&failure))),
    })
}

#[cfg(test)]
mod tests {
    use crate::table::cell_of;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;
    use crate::cell::either;
    use crate::fake::{FakeTestbed, Reply, raw_response};

    /// A product that does this without an origin; the argument is the number of requests before.
    fn without(does: impl Fn(u64) -> Option<Reply> + Send + Sync + 'static) -> FakeTestbed {
        let (up, nth) = (Arc::new(AtomicBool::new(true)), AtomicU64::new(0));
        let is_up = up.clone();
        let mut bed = FakeTestbed::but(move |_| {
            if is_up.load(Ordering::SeqCst) { None } else { does(nth.fetch_add(1, Ordering::SeqCst)) }
        });
        bed.on_origin = Some(Box::new(move |comes| up.store(comes, Ordering::SeqCst)));
        bed
    }

    #[test]
    fn what_the_client_gets_is_said() {
        let cell = cell_of("origin-gone", &mut without(|_| Some(Reply::Keep(raw_response(502, "", b"")))));
        assert!(cell.says.starts_with("502 in "), "{cell:?}");
        let cell = cell_of(
            "origin-gone",
            &mut without(|nth| Some(Reply::Keep(raw_response(if nth == 0 { 502 } else { 503 }, "", b"")))),
        );
        assert_eq!(cell.note.as_deref(), Some("the next gets 503"));
        let caches = |nth| (nth == 0).then(|| Reply::Keep(raw_response(503, "", b"")));
        let cell = cell_of("origin-gone", &mut without(caches));
        assert_eq!(cell.note.as_deref(), Some("what it has cached it serves all the same"));
        assert_eq!(cell_of("origin-gone", &mut without(|_| Some(Reply::Close(Vec::new())))).says, "closes");
        let cell = cell_of("origin-gone", &mut without(|_| None));
        assert_eq!((cell.says.as_str(), cell.verdict), ("200", crate::Verdict::Odd), "it responds by itself");
        let mut hangs = without(|_| Some(Reply::Silence));
        hangs.stop_origin();
        assert_eq!(either(asked_without(&mut hangs, Duration::from_millis(200))).says, "hangs");
    }
}
