//! A client that speaks HTTP/1.0: with and without `Host`, with keep-alive, and of an answer that the origin sends in chunks.

use weir_model::suite::Protocol;
use weir_wire::http1::Framing;

use super::reference;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::{Door, Heard, PATIENCE, Trouble, version};

/// Of the table.
pub const CHECK: Check = Check {
    name: "http-1.0",
    title: "HTTP/1.0 client",
    asks: "Requests of HTTP/1.0 with Host and without, for an answer with a length and for one in chunks, which such a client does not \
           know: are they answered so that it understands?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const PLAIN: &str = "/bytes/300";
const CHUNKED: &str = "/bytes/300?chunked=1";

fn run(rig: &mut dyn Rig) -> Cell {
    let right = match reference(rig, PLAIN) {
        Ok(right) => right,
        Err(cell) => return cell,
    };
    let door = rig.product();
    let authority = door.authority();
    let host = format!("Host: {authority}\r\n");
    let heard = match ask(&door, PLAIN, &host) {
        Err(trouble) => return Cell::trouble(&trouble),
        Ok(heard) if heard.status != 200 => return Cell::status(&heard),
        Ok(heard) if heard.body != right.body => return Cell::no("wrong body"),
        Ok(heard) => heard,
    };
    let says = format!("answers as {}", version(heard.version));
    match ask(&door, CHUNKED, &host) {
        Ok(heard) if heard.framing == Framing::Chunked => {
            return Cell::no("sends chunks").with("a client of HTTP/1.0 takes the chunks' sizes for the body");
        }
        // The strict reader has another name for the same.
        Err(Trouble::Malformed(why)) if why.contains("Transfer-Encoding") => return Cell::no("sends chunks").with(why),
        Ok(heard) if heard.status == 200 && heard.body == right.body => {}
        Ok(heard) if heard.status == 200 => return Cell::no("wrong body").with("of an answer in chunks"),
        Ok(heard) => return Cell::status(&heard).with("for an answer in chunks"),
        Err(trouble) => return Cell::trouble(&trouble).with("at an answer in chunks"),
    }
    let kept = ask(&door, PLAIN, &format!("{host}Connection: keep-alive\r\n")).is_ok_and(|heard| heard.keep_alive);
    let notes = if kept {
        format!("{says}; keeps the connection when asked to")
    } else {
        format!("{says}; closes even when asked not to")
    };
    match ask(&door, PLAIN, "") {
        Ok(heard) if heard.status == 200 => Cell::yes().with(notes),
        Ok(heard) => Cell::odd("yes, with Host").with(format!("without Host it answers {}", heard.status)).with(notes),
        Err(trouble) => Cell::odd("yes, with Host").with(format!("without Host it {}", trouble.word())).with(notes),
    }
}

fn ask(door: &Door, target: &str, headers: &str) -> Result<Heard, Trouble> {
    door.ask(format!("GET {target} HTTP/1.0\r\n{headers}\r\n").as_bytes(), false, PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Asked, Say, TestRig, answer, closing, origin};

    #[test]
    fn yes_no_and_odd() {
        let good = run(&mut TestRig::good());
        assert_eq!(good.says, "yes", "{good:?}");
        let only_11 = |asked: &Asked| asked.head.contains("HTTP/1.0").then(|| Say::Last(answer(426, "", b"")));
        assert_eq!(run(&mut TestRig::but(only_11)).says, "426");
        let with_host = |asked: &Asked| asked.header("host").is_none().then(|| Say::Last(answer(400, "", b"")));
        let cell = run(&mut TestRig::but(with_host));
        assert_eq!(cell.says, "yes, with Host");
        assert!(cell.note.expect("a note").starts_with("without Host it answers 400"));
        let chunks = |asked: &Asked| {
            let newer = Asked { head: asked.head.replace("HTTP/1.0", "HTTP/1.1"), ..asked.clone() };
            Some(Say::Last(origin(&newer)))
        };
        assert_eq!(run(&mut TestRig::but(chunks)).says, "sends chunks");
        assert!(
            run(&mut TestRig::but(|asked| Some(closing(asked))))
                .note
                .expect("a note")
                .ends_with("closes even when asked not to")
        );
    }
}
