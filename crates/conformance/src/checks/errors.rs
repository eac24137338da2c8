//! Checks that 404, 500 and 503 from the origin arrive unchanged, after one try.

use weir_model::text::list;

use super::reference;
use crate::cell::{Cell, first_words};
use crate::testbed::Testbed;

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let mut odd = Vec::new();
    let mut retries = Vec::new();
    for status in [404, 500, 503] {
        let target = format!("/status/{status}");
        let right = reference(bed, &target)?;
        let before = bed.counters().map_err(Cell::unknown)?;
        let response = bed.product().get(&target);
        let response = response.map_err(|failure| Cell::failure(&failure).with(format!("at {status}")))?;
        let asked = bed.counters().map_err(Cell::unknown)?.since(&before).requests;
        if response.status != status {
            let says = format!("{status} as {}", response.status);
            return Ok(Cell::no(says).with(first_words(&response).unwrap_or_default()));
        }
        if response.body != right.body {
            odd.push(status.to_string());
        }
        if asked > 1 {
            retries.push(format!("at {status} the origin is asked {asked} times"));
        }
    }
    let cell = match (odd.is_empty(), retries.is_empty()) {
        (true, true) => return Ok(Cell::yes()),
        (false, true) => Cell::odd("yes, own page"),
        (true, false) => Cell::odd("yes, retries"),
        (false, false) => Cell::odd("own page, retries"),
    };
    let cell = if odd.is_empty() { cell } else { cell.with(format!("a body of its own at {}", list(&odd))) };
    Ok(cell.with(retries.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, raw_response};
    use crate::table::cell_of;

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(cell_of("errors", &mut FakeTestbed::good()), Cell::yes());
        let hides = FakeTestbed::but(|asked| {
            (asked.target == "/status/500").then(|| Reply::Keep(raw_response(502, "", b"bad")))
        });
        assert_eq!(cell_of("errors", &mut { hides }).says, "500 as 502");
        let decorates = FakeTestbed::but(|asked| {
            (asked.target == "/status/404").then(|| Reply::Keep(raw_response(404, "", b"sorry")))
        });
        let cell = cell_of("errors", &mut { decorates });
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("yes, own page", Some("a body of its own at 404")));
        let mut retries = FakeTestbed::good();
        retries.asked = 3;
        assert_eq!(cell_of("errors", &mut retries).says, "yes, retries");
    }
}
