//! GET: the origin's answer, whole, three times over one connection.

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::PATIENCE;

/// Of the table.
pub const CHECK: Check = Check {
    name: "get",
    title: "GET",
    asks: "Three GETs of 11,268 bytes over one connection: are status and body the origin's, and is the connection kept?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGET: &str = "/bytes/11268";

fn run(rig: &mut dyn Rig) -> Cell {
    ask(rig)
}

/// Over whatever the product is spoken to with.
pub fn ask(rig: &dyn Rig) -> Cell {
    let right = match reference(rig, TARGET) {
        Ok(right) => right,
        Err(cell) => return cell,
    };
    let door = rig.product();
    let mut line = match door.open() {
        Ok(line) => line,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    for nth in 1..=3 {
        let heard = match line.ask(&door.request("GET", TARGET, &[]), false, PATIENCE) {
            Ok(heard) => heard,
            Err(trouble) => return Cell::trouble(&trouble).with(format!("at request {nth} of a connection")),
        };
        if heard.status != right.status {
            return Cell::status(&heard);
        }
        if heard.body != right.body {
            return Cell::no("wrong body").with(format!(
                "{} bytes; the origin's {}",
                heard.body.len(),
                right.body.len()
            ));
        }
        if !heard.keep_alive && nth < 3 {
            return Cell::odd("yes, closes").with(format!("it closes the client's connection after request {nth}"));
        }
    }
    Cell::yes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer, closing, origin};

    fn says(mut rig: TestRig) -> String {
        run(&mut rig).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut TestRig::good()), Cell::yes());
        let status = run(&mut TestRig::but(|_| Some(Say::Next(answer(503, "", b"<b>not</b> now")))));
        assert_eq!((status.says.as_str(), status.note.as_deref()), ("503", Some("it answers 503: not now")));
        assert_eq!(says(TestRig::but(|_| Some(Say::Next(answer(200, "", b"short"))))), "wrong body");
        assert_eq!(says(TestRig::but(|asked| Some(Say::Last(origin(asked))))), "closes", "without a word of it");
        assert_eq!(says(TestRig::but(|asked| Some(closing(asked)))), "yes, closes");
        assert_eq!(says(TestRig::but(|asked| (asked.nth == 1).then_some(Say::Last(Vec::new())))), "closes");
    }
}
