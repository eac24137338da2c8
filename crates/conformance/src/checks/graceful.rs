//! A graceful stop: is what is in flight answered, and nothing new begun?

use std::time::{Duration, Instant};

use weir_model::suite::Protocol;

use crate::cell::{Cell, about};
use crate::rig::{Rig, pause};
use crate::table::{Check, When};
use crate::talk::{PATIENCE, Trouble};

/// Of the table.
pub const CHECK: Check = Check {
    name: "graceful-stop",
    title: "Graceful stop",
    asks: "A request of 1 s is in flight when the product gets its signal for a graceful stop: is it answered, are new connections refused \
           meanwhile, and does the product end?",
    protocol: Protocol::Http11,
    when: When::Last,
    run,
};

/// How long a product may take to end when nothing is in flight any more.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Before and after the signal: time for what was sent to arrive.
const SETTLES: Duration = Duration::from_millis(300);

fn run(rig: &mut dyn Rig) -> Cell {
    within(rig, ENDS_WITHIN)
}

fn within(rig: &mut dyn Rig, ends_within: Duration) -> Cell {
    let door = rig.product();
    let in_flight = door.open().and_then(|mut line| {
        line.send(&door.request("GET", "/bytes/128?delay=1000ms", &[]), false, PATIENCE)?;
        Ok(line)
    });
    let mut line = match in_flight {
        Ok(line) => line,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    pause(rig.stop(), SETTLES);
    if let Err(why) = rig.ask_to_end() {
        return Cell::unknown(why);
    }
    let told = Instant::now();
    pause(rig.stop(), SETTLES);
    let fresh = door.ask(&door.request("GET", "/bytes/1", &[]), false, Duration::from_millis(300));
    let answered = line.answer(PATIENCE);
    drop(line);
    let ended = rig.has_ended(ends_within);
    let took = told.elapsed();
    let end = match (&answered, ended) {
        (_, true) => format!("it ends within {} of the signal", about(took.max(Duration::from_millis(1)))),
        (_, false) => format!("it has not ended {} after the signal", about(took)),
    };
    let refused = match &fresh {
        Err(Trouble::Refused | Trouble::Reset | Trouble::Closed) => None,
        Err(trouble) => {
            Some(format!("a new connection {}", if matches!(trouble, Trouble::Silent(_)) { "hangs" } else { "fails" }))
        }
        Ok(heard) if heard.status == 200 => Some("a new connection is still served".to_owned()),
        Ok(heard) => Some(format!("a new connection gets {}", heard.status)),
    };
    let cell = match answered {
        Ok(heard) if heard.status == 200 && heard.body.len() == 128 => match (ended, &refused) {
            (true, None) => Cell::yes(),
            (true, Some(_)) => Cell::odd("yes, accepts"),
            (false, _) => Cell::odd("yes, stays"),
        },
        Ok(heard) => Cell::status(&heard).with("to what was in flight"),
        Err(trouble) => Cell { says: "cut off".to_owned(), ..Cell::trouble(&trouble) }
            .with(format!("what was in flight: it {}", trouble.word())),
    };
    cell.with(refused.unwrap_or_default()).with(end)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::fake::{Fake, Say, TestRig};

    #[test]
    fn one_that_answers_and_stays_open_is_told_from_one_that_does_not() {
        let mut accepts = TestRig::good();
        let ended = accepts.ended.clone();
        accepts.on_end = Some(Box::new(move || ended.store(true, Ordering::SeqCst)));
        let cell = run(&mut accepts);
        assert_eq!(cell.says, "yes, accepts");
        assert!(cell.note.expect("a note").starts_with("a new connection is still served; it ends within"));
        let cell = within(&mut TestRig::good(), Duration::from_millis(50));
        assert_eq!(cell.says, "yes, stays");
    }

    #[test]
    fn one_that_closes_its_door_is_graceful() {
        let asked_to = Arc::new(AtomicBool::new(false));
        let closed = asked_to.clone();
        let mut rig = TestRig::new(Fake::but(move |asked| {
            (closed.load(Ordering::SeqCst) && asked.target == "/bytes/1").then(|| Say::Last(Vec::new()))
        }));
        let ended = rig.ended.clone();
        rig.on_end = Some(Box::new(move || {
            asked_to.store(true, Ordering::SeqCst);
            ended.store(true, Ordering::SeqCst);
        }));
        assert_eq!(run(&mut rig).says, "yes");
    }

    #[test]
    fn one_that_goes_at_once_cuts_off() {
        let product = Fake::faithful();
        let addr = product.addr;
        let mut rig = TestRig::new(Fake::faithful());
        rig.product_door = Some(crate::talk::Door::plain(addr, rig.stop.clone()));
        let gone = Mutex::new(Some(product));
        let ended = rig.ended.clone();
        rig.on_end = Some(Box::new(move || {
            drop(gone.lock().expect("not poisoned").take());
            ended.store(true, Ordering::SeqCst);
        }));
        let cell = run(&mut rig);
        assert_eq!((cell.says.as_str(), cell.verdict), ("cut off", crate::Verdict::No), "{cell:?}");
    }
}
