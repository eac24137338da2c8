//! 404, 500 and 503 of the origin: do they come through as they are, after one try?

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "errors",
    title: "404, 500, 503 passed on",
    asks: "Answers of 404, 500 and 503: do status and body come through, and is the origin asked only once?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

fn run(rig: &mut dyn Rig) -> Cell {
    let mut odd = Vec::new();
    let mut retries = Vec::new();
    for status in [404, 500, 503] {
        let target = format!("/status/{status}");
        let right = match reference(rig, &target) {
            Ok(right) => right,
            Err(cell) => return cell,
        };
        let before = match rig.counters() {
            Ok(counters) => counters,
            Err(why) => return Cell::unknown(why),
        };
        let heard = match rig.product().get(&target) {
            Err(trouble) => return Cell::trouble(&trouble).with(format!("at {status}")),
            Ok(heard) => heard,
        };
        let asked = match rig.counters() {
            Ok(counters) => counters.since(&before).requests,
            Err(why) => return Cell::unknown(why),
        };
        if heard.status != status {
            return Cell::no(format!("{status} as {}", heard.status)).with(heard.first_words().unwrap_or_default());
        }
        if heard.body != right.body {
            odd.push(status.to_string());
        }
        if asked > 1 {
            retries.push(format!("at {status} the origin is asked {asked} times"));
        }
    }
    let cell = match (odd.is_empty(), retries.is_empty()) {
        (true, true) => return Cell::yes(),
        (false, true) => Cell::odd("yes, own page"),
        (true, false) => Cell::odd("yes, retries"),
        (false, false) => Cell::odd("own page, retries"),
    };
    let cell = if odd.is_empty() { cell } else { cell.with(format!("a body of its own at {}", super::listed(&odd))) };
    cell.with(retries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer};

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut TestRig::good()), Cell::yes());
        let hides = TestRig::but(|asked| (asked.target == "/status/500").then(|| Say::Next(answer(502, "", b"bad"))));
        assert_eq!(run(&mut { hides }).says, "500 as 502");
        let decorates =
            TestRig::but(|asked| (asked.target == "/status/404").then(|| Say::Next(answer(404, "", b"sorry"))));
        let cell = run(&mut { decorates });
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("yes, own page", Some("a body of its own at 404")));
        let mut retries = TestRig::good();
        retries.asked = 3;
        assert_eq!(run(&mut retries).says, "yes, retries");
    }
}
