//! Checks that the product waits for a response that takes the origin 2 s.

use std::time::Duration;

use crate::cell::{Cell, about};
use crate::testbed::Testbed;

pub const DELAY: Duration = Duration::from_secs(2);
pub const TIMEOUT: Duration = Duration::from_secs(10);

pub fn after(bed: &mut dyn Testbed, target: &str, delay: Duration, timeout: Duration) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let before = bed.counters().map_err(Cell::unknown)?;
    let response = endpoint.ask(&endpoint.request("GET", target, &[]), false, timeout)?;
    if response.status != 200 {
        let cell = Cell::status(&response);
        return Err(Cell { says: format!("{} after {}", response.status, about(response.took)), ..cell });
    }
    if response.took < delay {
        return Ok(Cell::odd("yes, too soon").with(format!("the response came after {}", about(response.took))));
    }
    Ok(match bed.counters().map(|counters| counters.since(&before).requests) {
        Ok(0 | 1) | Err(_) => Cell::yes(),
        Ok(n) => Cell::odd("yes, retries").with(format!("the origin was asked {n} times")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::either;
    use crate::fake::{FakeTestbed, Reply, raw_response};

    fn says(mut bed: FakeTestbed) -> String {
        either(after(&mut bed, "/delay/300ms", Duration::from_millis(300), Duration::from_millis(900))).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(says(FakeTestbed::good()), "yes");
        // The time differs in each run, so the test only asserts that there is one.
        let gives_up = says(FakeTestbed::but(|_| Some(Reply::Keep(raw_response(504, "", b"")))));
        assert!(gives_up.starts_with("504 after "), "{gives_up}");
        assert_eq!(says(FakeTestbed::but(|_| Some(Reply::Keep(raw_response(200, "", b"ok"))))), "yes, too soon");
        assert_eq!(says(FakeTestbed::but(|_| Some(Reply::Silence))), "hangs");
        let mut asks_twice = FakeTestbed::good();
        asks_twice.asked = 2;
        assert_eq!(says(asks_twice), "yes, retries");
    }
}
