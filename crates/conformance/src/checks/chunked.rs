//! Chunked bodies, both ways: do they come through, and are they still chunked on the other side?

use weir_model::suite::Protocol;
use weir_wire::http1::Framing;
use weir_wire::http1::encode::{LAST_CHUNK, chunk};

use super::post::pattern;
use super::reference;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::{Door, Heard, PATIENCE, Trouble};

/// Of the table.
pub const CHECK: Check = Check {
    name: "chunked",
    title: "Chunked both ways",
    asks: "POST of 256 KiB in chunks of 4 KiB, and GET of an answer in chunks: are the bytes right? \
           \"buffers\": a request arrives with Content-Length, having been kept until it was whole; \
           \"unchunks\": an answer does.",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const SIZE: usize = 256 * 1024;
const ANSWER: &str = "/bytes/262144?chunked=1";

fn run(rig: &mut dyn Rig) -> Cell {
    let door = rig.product();
    let body = pattern(SIZE);
    match post(&door, "/echo", &body) {
        Err(trouble) => return Cell::trouble(&trouble).with("at a chunked request"),
        Ok(heard) if heard.status != 200 => return Cell::status(&heard).with("at a chunked request"),
        Ok(heard) if heard.body != body => return Cell::no("wrong body").with("of a chunked request"),
        Ok(_) => {}
    }
    let right = match reference(rig, ANSWER) {
        Ok(right) => right,
        Err(cell) => return cell,
    };
    let answer = match door.get(ANSWER) {
        Err(trouble) => return Cell::trouble(&trouble).with("at a chunked answer"),
        Ok(heard) if heard.status != 200 => return Cell::status(&heard).with("at a chunked answer"),
        Ok(heard) if heard.body != right.body => return Cell::no("wrong body").with("of a chunked answer"),
        Ok(heard) => heard,
    };
    let arrived = post(&door, "/headers", &body).map(|heard| String::from_utf8_lossy(&heard.body).to_lowercase());
    let buffers = arrived.is_ok_and(|head| !head.contains("transfer-encoding"));
    match (buffers, answer.framing) {
        (false, Framing::Chunked) => Cell::yes(),
        (true, Framing::Chunked) => {
            Cell::odd("yes, buffers").with("a chunked request reaches the origin with Content-Length")
        }
        (false, _) => Cell::odd("yes, unchunks").with(unchunked(&answer)),
        (true, _) => Cell::odd("yes, neither kept")
            .with("a chunked request reaches the origin with Content-Length")
            .with(unchunked(&answer)),
    }
}

fn unchunked(answer: &Heard) -> String {
    format!("a chunked answer reaches the client with {}", crate::talk::framing(answer))
}

fn post(door: &Door, target: &str, body: &[u8]) -> Result<Heard, Trouble> {
    let mut request = door.request("POST", target, &[("Transfer-Encoding", "chunked")]);
    for piece in body.chunks(4096) {
        chunk(&mut request, piece);
    }
    request.extend_from_slice(LAST_CHUNK);
    door.ask(&request, false, PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Asked, Say, TestRig, answer, origin};

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut TestRig::good()), Cell::yes());
        let refuses = |asked: &Asked| asked.header("transfer-encoding").map(|_| Say::Next(answer(411, "", b"")));
        assert_eq!(run(&mut TestRig::but(refuses)).says, "411");
        let buffers = |asked: &Asked| {
            let head = asked.head.replace("Transfer-Encoding: chunked", "Content-Length: 262144");
            (asked.path() == "/headers").then(|| Say::Next(answer(200, "", head.as_bytes())))
        };
        assert_eq!(run(&mut TestRig::but(buffers)).says, "yes, buffers");
        let unchunks = |asked: &Asked| {
            let plain = Asked { target: "/bytes/262144".into(), ..asked.clone() };
            (asked.target == ANSWER).then(|| Say::Next(origin(&plain)))
        };
        let cell = run(&mut TestRig::but(unchunks));
        assert_eq!(
            (cell.says.as_str(), cell.note.as_deref()),
            ("yes, unchunks", Some("a chunked answer reaches the client with Content-Length"))
        );
        let both = move |asked: &Asked| buffers(asked).or_else(|| unchunks(asked));
        assert_eq!(run(&mut TestRig::but(both)).says, "yes, neither kept");
        let short = |asked: &Asked| (asked.path() == "/echo").then(|| Say::Next(answer(200, "", b"")));
        assert_eq!(run(&mut TestRig::but(short)).says, "wrong body");
    }
}
