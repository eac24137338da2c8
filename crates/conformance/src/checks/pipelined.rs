//! Pipelined requests: three in one piece.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::PATIENCE;

/// Of the table.
pub const CHECK: Check = Check {
    name: "pipelined",
    title: "Pipelined requests",
    asks: "Three GETs sent in one piece, the second of which the origin answers after 100 ms: do three answers come, in order?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGETS: [&str; 3] = ["/bytes/1", "/bytes/2?delay=100ms", "/bytes/3"];

fn run(rig: &mut dyn Rig) -> Cell {
    let door = rig.product();
    let requests = TARGETS.map(|target| door.request("GET", target, &[]));
    let mut line = match door.open() {
        Ok(line) => line,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    if let Err(trouble) = line.send_all(&requests, PATIENCE) {
        return Cell::trouble(&trouble);
    }
    for nth in 0..TARGETS.len() {
        match line.answer(PATIENCE) {
            Err(trouble) if nth == 0 => return Cell::trouble(&trouble),
            Err(trouble) => {
                let note = format!("after {nth} of 3 answers it {}", trouble.word());
                return Cell::no(format!("{nth} of 3")).with(note).with(trouble.detail().unwrap_or_default());
            }
            Ok(heard) if heard.status != 200 => {
                return Cell::status(&heard).with(format!("at the request {} of 3", nth + 1));
            }
            Ok(heard) if heard.body.len() != nth + 1 => return Cell::no("wrong order"),
            Ok(heard) if !heard.keep_alive && nth < 2 => {
                let note = format!(
                    "answer {} of 3 ends the connection; the requests behind it have to be sent again",
                    nth + 1
                );
                return Cell::odd(format!("{} of 3", nth + 1)).with(note);
            }
            Ok(_) => {}
        }
    }
    Cell::yes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Asked, Say, TestRig, answer, closing, origin};

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut TestRig::good()), Cell::yes());
        let one = run(&mut TestRig::but(|asked| Some(Say::Last(origin(asked)))));
        assert_eq!((one.says.as_str(), one.note.as_deref()), ("1 of 3", Some("after 1 of 3 answers it closes")));
        let turned = |asked: &Asked| {
            let target = format!("/bytes/{}", 3 - asked.nth);
            Some(Say::Next(origin(&Asked { target, ..asked.clone() })))
        };
        assert_eq!(run(&mut TestRig::but(turned)).says, "wrong order");
        assert_eq!(run(&mut TestRig::but(|_| Some(Say::Next(answer(400, "", b""))))).says, "400");
        let cell = run(&mut TestRig::but(|asked| Some(closing(asked))));
        assert_eq!((cell.says.as_str(), cell.verdict), ("1 of 3", crate::Verdict::Odd));
    }
}
