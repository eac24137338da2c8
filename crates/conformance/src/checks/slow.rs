//! A slow origin: is an answer that takes 2 s waited for?

use std::time::Duration;

use weir_model::suite::Protocol;

use crate::cell::{Cell, about};
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "slow-origin",
    title: "Origin takes 2 s",
    asks: "GET of an answer that the origin gives after 2 s: is it waited for, and is the origin asked only once?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const DELAY: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);

fn run(rig: &mut dyn Rig) -> Cell {
    after(rig, "/delay/2s", DELAY, PATIENCE)
}

fn after(rig: &mut dyn Rig, target: &str, delay: Duration, patience: Duration) -> Cell {
    let door = rig.product();
    let before = match rig.counters() {
        Ok(counters) => counters,
        Err(why) => return Cell::unknown(why),
    };
    let heard = match door.ask(&door.request("GET", target, &[]), false, patience) {
        Err(trouble) => return Cell::trouble(&trouble),
        Ok(heard) => heard,
    };
    if heard.status != 200 {
        let cell = Cell::status(&heard);
        return Cell { says: format!("{} after {}", heard.status, about(heard.took)), ..cell };
    }
    if heard.took < delay {
        return Cell::odd("yes, too soon").with(format!("the answer came after {}", about(heard.took)));
    }
    match rig.counters().map(|counters| counters.since(&before).requests) {
        Ok(0 | 1) | Err(_) => Cell::yes(),
        Ok(n) => Cell::odd("yes, retries").with(format!("the origin was asked {n} times")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer};

    fn says(mut rig: TestRig) -> String {
        after(&mut rig, "/delay/300ms", Duration::from_millis(300), Duration::from_millis(900)).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(says(TestRig::good()), "yes");
        // The time is a reading: that there is one is all that can be asserted.
        let gives_up = says(TestRig::but(|_| Some(Say::Next(answer(504, "", b"")))));
        assert!(gives_up.starts_with("504 after "), "{gives_up}");
        assert_eq!(says(TestRig::but(|_| Some(Say::Next(answer(200, "", b"ok"))))), "yes, too soon");
        assert_eq!(says(TestRig::but(|_| Some(Say::Nothing))), "hangs");
        let mut asks_twice = TestRig::good();
        asks_twice.asked = 2;
        assert_eq!(says(asks_twice), "yes, retries");
    }
}
