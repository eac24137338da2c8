//! HEAD: the head of what GET would get, and no body.

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::{PATIENCE, Trouble};

/// Of the table.
pub const CHECK: Check = Check {
    name: "head",
    title: "HEAD",
    asks: "HEAD of 11,268 bytes, then GET on the same connection: is the answer without a body, with the length that GET would have?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGET: &str = "/bytes/11268";

fn run(rig: &mut dyn Rig) -> Cell {
    let right = match reference(rig, TARGET) {
        Ok(right) => right,
        Err(cell) => return cell,
    };
    let door = rig.product();
    let mut line = match door.open() {
        Ok(line) => line,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    let heard = match line.ask(&door.request("HEAD", TARGET, &[]), true, PATIENCE) {
        Ok(heard) => heard,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    if heard.status != right.status {
        return Cell::status(&heard);
    }
    // A body that must not be there would be read as the answer to what is asked next.
    if heard.keep_alive {
        match line.ask(&door.request("GET", TARGET, &[]), false, PATIENCE) {
            Ok(next) if next.body == right.body => {}
            Ok(_) | Err(Trouble::Malformed(_)) => return Cell::no("sends a body"),
            Err(trouble) => return Cell::trouble(&trouble).with("at a GET behind the HEAD"),
        }
    }
    let cell = match heard.header("content-length") {
        Some(length) if length == right.body.len().to_string() => Cell::yes(),
        Some(length) => {
            Cell::no("wrong length").with(format!("Content-Length: {length}; GET has {}", right.body.len()))
        }
        None => Cell::odd("yes, no length").with("the origin's Content-Length is left out"),
    };
    if heard.keep_alive { cell } else { cell.with("it closes the connection afterwards") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Asked, Say, TestRig, answer, origin};

    fn to_head(bytes: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> String {
        run(&mut TestRig::but(move |asked| (asked.method == "HEAD").then(|| Say::Next(bytes(asked))))).says
    }

    #[test]
    fn yes_no_and_odd() {
        assert_eq!(run(&mut TestRig::good()), Cell::yes());
        assert_eq!(to_head(|asked| origin(&Asked { method: "GET".into(), ..asked.clone() })), "sends a body");
        assert_eq!(to_head(|_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), "yes, no length");
        assert_eq!(to_head(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()), "wrong length");
        assert_eq!(to_head(|_| answer(405, "", b"")), "405");
    }
}
