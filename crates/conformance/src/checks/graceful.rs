//! Checks a graceful stop: requests in flight get their responses, and no new ones are accepted.

use std::time::{Duration, Instant};

use crate::cell::{Cell, about, word};
use crate::testbed::{Testbed, pause};
use weir_product::client::{RequestError, TIMEOUT};

/// How long a product may take to end once nothing is in flight.
pub const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Time for sent data to arrive, before and after the signal.
const SETTLES: Duration = Duration::from_millis(300);

pub fn within(bed: &mut dyn Testbed, ends_within: Duration) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let in_flight = endpoint.open().and_then(|mut conn| {
        conn.send(&endpoint.request("GET", "/bytes/128?delay=1000ms", &[]), false, TIMEOUT)?;
        Ok(conn)
    });
    let mut conn = in_flight?;
    pause(bed.stop(), SETTLES);
    if let Err(why) = bed.terminate() {
        return Ok(Cell::unknown(why));
    }
    let told = Instant::now();
    pause(bed.stop(), SETTLES);
    let fresh = endpoint.ask(&endpoint.request("GET", "/bytes/1", &[]), false, Duration::from_millis(300));
    let answered = conn.read_response(TIMEOUT);
    drop(conn);
    let ended = bed.has_ended(ends_within);
    let took = told.elapsed();
    let end = match (&answered, ended) {
        (_, true) => format!("it ends within {} of the signal", about(took.max(Duration::from_millis(1)))),
        (_, false) => format!("it has not ended {} after the signal", about(took)),
    };
    let refused = match &fresh {
        Err(RequestError::Refused | RequestError::Reset | RequestError::Closed) => None,
        Err(failure) => Some(format!(
            "a new connection {}",
            if matches!(failure, RequestError::Silent(_)) { "hangs" } else { "fails" }
        )),
        Ok(response) if response.status == 200 => Some("a new connection is still served".to_owned()),
        Ok(response) => Some(format!("a new connection gets {}", response.status)),
    };
    let cell = match answered {
        Ok(response) if response.status == 200 && response.body.len() == 128 => match (ended, &refused) {
            (true, None) => Cell::yes(),
            (true, Some(_)) => Cell::odd("yes, accepts"),
            (false, _) => Cell::odd("yes, stays"),
        },
        Ok(response) => Cell::status(&response).with("to what was in flight"),
        Err(failure) => Cell { says: "cut off".to_owned(), ..Cell::failure(&failure) }
            .with(format!("what was in flight: it {}", word(&failure))),
    };
    Ok(cell.with(refused.unwrap_or_default()).with(end))
}

#[cfg(test)]
mod tests {
    use crate::table::cell_of;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::cell::either;
    use crate::fake::{Fake, FakeTestbed, Reply};

    #[test]
    fn one_that_answers_and_stays_open_is_told_from_one_that_does_not() {
        let mut accepts = FakeTestbed::good();
        let ended = accepts.ended.clone();
        accepts.on_end = Some(Box::new(move || ended.store(true, Ordering::SeqCst)));
        let cell = cell_of("graceful-stop", &mut accepts);
        assert_eq!(cell.says, "yes, accepts");
        assert!(cell.note.expect("a note").starts_with("a new connection is still served; it ends within"));
        let cell = either(within(&mut FakeTestbed::good(), Duration::from_millis(50)));
        assert_eq!(cell.says, "yes, stays");
    }

    #[test]
    fn one_that_closes_its_door_is_graceful() {
        let asked_to = Arc::new(AtomicBool::new(false));
        let closed = asked_to.clone();
        let mut bed = FakeTestbed::new(Fake::but(move |asked| {
            (closed.load(Ordering::SeqCst) && asked.target == "/bytes/1").then(|| Reply::Close(Vec::new()))
        }));
        let ended = bed.ended.clone();
        bed.on_end = Some(Box::new(move || {
            asked_to.store(true, Ordering::SeqCst);
            ended.store(true, Ordering::SeqCst);
        }));
        assert_eq!(cell_of("graceful-stop", &mut bed).says, "yes");
    }

    #[test]
    fn one_that_goes_at_once_cuts_off() {
        let product = Fake::faithful();
        let addr = product.addr;
        let mut bed = FakeTestbed::new(Fake::faithful());
        bed.product_endpoint = Some(weir_product::client::Endpoint::plain(addr, bed.stop.clone()));
        let gone = Mutex::new(Some(product));
        let ended = bed.ended.clone();
        bed.on_end = Some(Box::new(move || {
            drop(gone.lock().expect("not poisoned").take());
            ended.store(true, Ordering::SeqCst);
        }));
        let cell = cell_of("graceful-stop", &mut bed);
        assert_eq!((cell.says.as_str(), cell.verdict), ("cut off", crate::Verdict::No), "{cell:?}");
    }
}
