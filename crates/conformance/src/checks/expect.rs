//! 100-continue: who says it, the product or the origin?
//!
//! Told apart in two steps. The head as it reached the origin shows whether the product took the question upon itself (it then
//! sends no `Expect` on). Where it did not, a body is announced that the origin refuses before it says 100: a 100 that comes
//! all the same is the product's, and the origin's own 413 in its place means that the product waits for the origin.

use std::time::Duration;

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::{Door, PATIENCE, Said, Trouble};

/// Of the table.
pub const CHECK: Check = Check {
    name: "100-continue",
    title: "100-continue",
    asks: "A POST that waits for 100 Continue before its body: does the \"product\" say it, or the \"origin\" through it, or nobody \
           within 1 s?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

/// How long a client waits for 100 before it sends the body all the same.
const WAITS: Duration = Duration::from_secs(1);

/// A byte more than weir's origin takes: it says 413 at once.
const TOO_MUCH: &str = "67108865";

fn run(rig: &mut dyn Rig) -> Cell {
    with(&rig.product(), WAITS)
}

fn with(door: &Door, waits: Duration) -> Cell {
    let asked = match ask(door, waits) {
        Ok(asked) => asked,
        Err(cell) => return cell,
    };
    let arrived = asked.head.to_lowercase();
    if !asked.hundred {
        let cell = Cell::no("nobody").with(format!("the body is taken without it, after {:.0} s", waits.as_secs_f64()));
        return if arrived.contains("\r\nexpect:") { cell.with("Expect reaches the origin") } else { cell };
    }
    if !arrived.contains("\r\nexpect:") {
        return Cell::new(crate::Verdict::Yes, "product");
    }
    let request = door.request("POST", "/echo", &[("Expect", "100-continue"), ("Content-Length", TOO_MUCH)]);
    let first = door.open().and_then(|mut line| {
        line.send(&request, false, PATIENCE)?;
        line.first(waits)
    });
    match first {
        Ok(Said::Interim(_)) => {
            Cell::new(crate::Verdict::Yes, "product").with("it says it before the origin does, and sends Expect on")
        }
        Ok(Said::Answer(heard)) if heard.status == 413 && heard.body.starts_with(b"this origin echoes") => {
            Cell::new(crate::Verdict::Yes, "origin")
        }
        // A limit of the product's own hides what the origin would have said.
        _ => Cell::new(crate::Verdict::Yes, "origin").with("Expect is sent on; that the product waits was not seen"),
    }
}

struct Answered {
    hundred: bool,
    /// The head as the origin got it.
    head: String,
}

fn ask(door: &Door, waits: Duration) -> Result<Answered, Cell> {
    let trouble = |trouble: Trouble| Cell::trouble(&trouble);
    let mut line = door.open().map_err(trouble)?;
    let head = door.request("POST", "/headers", &[("Expect", "100-continue"), ("Content-Length", "5")]);
    line.send(&head, false, PATIENCE).map_err(trouble)?;
    let hundred = match line.first(waits) {
        Ok(Said::Interim(100)) => true,
        Ok(Said::Interim(status)) => return Err(Cell::odd(status.to_string())),
        Ok(Said::Answer(heard)) => return Err(Cell::status(&heard).with("before the body was sent")),
        Err(Trouble::Silent(_)) => false,
        Err(other) => return Err(trouble(other)),
    };
    line.more(b"hello", PATIENCE).map_err(trouble)?;
    let heard = line.answer(PATIENCE).map_err(|t| Cell::trouble(&t).with("after the body"))?;
    if heard.status != 200 {
        return Err(Cell::status(&heard).with("after the body"));
    }
    Ok(Answered { hundred, head: String::from_utf8_lossy(&heard.body).into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Asked, Fake, Say, TestRig, answer, origin};
    use crate::rig::Rig;

    const HUNDRED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

    /// A product with this to say to `Expect`; what it sends on has the header or not.
    fn says(sends_on: bool, expects: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static) -> String {
        let answers = move |asked: &Asked| {
            let head = if sends_on { asked.head.clone() } else { asked.head.replace("Expect: 100-continue\r\n", "") };
            Say::Next(origin(&Asked { head, ..asked.clone() }))
        };
        let rig = TestRig::new(Fake::expecting(expects, answers));
        with(&rig.product(), Duration::from_millis(200)).says
    }

    #[test]
    fn who_says_it_is_told_apart() {
        let hundred = |_: &Asked| Some(Say::Next(HUNDRED.to_vec()));
        assert_eq!(says(false, hundred), "product");
        assert_eq!(says(true, hundred), "product");
        let as_the_origin = |asked: &Asked| match asked.header("content-length") {
            Some("5") => Some(Say::Next(HUNDRED.to_vec())),
            _ => Some(Say::Last(answer(413, "", b"this origin echoes at most 67108864 bytes.\n"))),
        };
        assert_eq!(says(true, as_the_origin), "origin");
        assert_eq!(says(true, |_| None), "nobody");
        assert_eq!(says(true, |_| Some(Say::Last(answer(417, "", b"")))), "417");
        assert_eq!(says(true, |_| Some(Say::Last(Vec::new()))), "closes");
    }
}
