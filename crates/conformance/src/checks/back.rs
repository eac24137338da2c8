//! Checks how long after its restart the origin is used again.

use std::time::{Duration, Instant};

use crate::cell::{Cell, about, word};
use crate::testbed::{Testbed, pause};

/// The pause between requests while the origin is down.
const BETWEEN: Duration = Duration::from_millis(150);
/// The pause between requests that test whether the product has recovered.
const EVERY: Duration = Duration::from_millis(10);
/// The longest wait for the recovery.
pub const WITHIN: Duration = Duration::from_secs(30);

pub fn within(bed: &mut dyn Testbed, within: Duration) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let mut asked = 0;
    // Each request has a new target, because a product that caches must ask the origin for each.
    let mut ask = |timeout: Duration| {
        asked += 1;
        endpoint.ask(&endpoint.request("GET", &format!("/bytes/128?x=back-{asked}"), &[]), false, timeout)
    };
    bed.stop_origin();
    for _ in 0..3 {
        pause(bed.stop(), BETWEEN);
        // The response itself is the subject of another check (`gone`).
        let _ = ask(Duration::from_secs(2));
    }
    if let Err(why) = bed.start_origin() {
        return Ok(Cell::unknown(format!("weir's origin did not come back: {why}")));
    }
    let begun = Instant::now();
    let mut last = None;
    while begun.elapsed() < within && !bed.stop().is_requested() {
        let begun_at = Instant::now();
        match ask(Duration::from_secs(2).min(within)) {
            Ok(response) if response.status == 200 && response.body.len() == 128 => {
                let says =
                    if last.is_none() { "at once".to_owned() } else { format!("after {}", about(begun.elapsed())) };
                let verdict = if begun_at.duration_since(begun) < Duration::from_secs(1) {
                    crate::Verdict::Yes
                } else {
                    crate::Verdict::Reading
                };
                let until = last.map(|last: String| format!("until then {last}")).unwrap_or_default();
                return Ok(Cell::new(verdict, says).with(until));
            }
            Ok(response) => last = Some(response.status.to_string()),
            Err(failure) => last = Some(format!("it {}", word(&failure))),
        }
        pause(bed.stop(), EVERY);
    }
    let last = last.unwrap_or_default();
    Ok(Cell::no(format!("not in {}", about(within))).with(format!("last response: {last}")))
}

#[cfg(test)]
mod tests {
    use crate::table::cell_of;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::Verdict;
    use crate::cell::either;
    use crate::fake::{FakeTestbed, Reply, raw_response};

    /// A product that still sends this many errors after the origin went down.
    fn recovers_after(errors: u64) -> FakeTestbed {
        let left = Arc::new(AtomicU64::new(0));
        let counts = left.clone();
        let mut bed = FakeTestbed::but(move |_| {
            let one_less = |n: u64| n.checked_sub(1);
            counts
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok()
                .then(|| Reply::Keep(raw_response(503, "", b"")))
        });
        bed.on_origin = Some(Box::new(move |comes| {
            if !comes {
                left.store(errors, Ordering::SeqCst);
            }
        }));
        bed
    }

    #[test]
    fn recovery_is_timed() {
        assert_eq!(cell_of("origin-back", &mut recovers_after(3)).says, "at once");
        let cell = cell_of("origin-back", &mut recovers_after(6));
        assert!(cell.says.starts_with("after ") && cell.verdict == Verdict::Yes, "{cell:?}");
        assert_eq!(cell.note.as_deref(), Some("until then 503"));
        let never = either(within(&mut recovers_after(u64::MAX), Duration::from_millis(200)));
        assert_eq!((never.says.as_str(), never.verdict), ("not in 0.2 s", Verdict::No));
    }
}
