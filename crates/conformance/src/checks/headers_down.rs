//! Headers on their way to the client: which are kept, added, dropped, changed.

use weir_model::suite::Protocol;

use super::headers_up::compare;
use super::{listed, reference};
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "headers-to-client",
    title: "Headers to the client",
    asks: "An answer with Server, Content-Type and Content-Length, as it reached the client: how many headers are added (+), dropped (-) \
           and changed (~)?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const TARGET: &str = "/bytes/128";

fn run(rig: &mut dyn Rig) -> Cell {
    let right = match reference(rig, TARGET) {
        Ok(right) => right,
        Err(cell) => return cell,
    };
    let heard = match rig.product().get(TARGET) {
        Err(trouble) => return Cell::trouble(&trouble),
        Ok(heard) if heard.status != right.status => return Cell::status(&heard),
        Ok(heard) => heard,
    };
    let sent: Vec<(&str, &str)> = right.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let fate = compare(&sent, &heard.headers);
    let mut cell = Cell::reading(fate.counts());
    if !fate.added.is_empty() {
        cell = cell.with(format!("adds {}", listed(&fate.added)));
    }
    if !fate.dropped.is_empty() {
        cell = cell.with(format!("drops {}", listed(&fate.dropped)));
    }
    if !fate.changed.is_empty() {
        let words: Vec<String> = fate.changed.iter().map(|(name, _, is)| format!("{name} (to {is})")).collect();
        cell = cell.with(format!("changes {}", listed(&words)));
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer};

    fn says(head: &'static str) -> Cell {
        run(&mut TestRig::but(move |_| {
            let whole = String::from_utf8(answer(200, "", &[b'x'; 128])).expect("text");
            Some(Say::Next(whole.replacen("Server: weir-origin\r\n", head, 1).into_bytes()))
        }))
    }

    #[test]
    fn kept_added_dropped_changed() {
        assert_eq!(run(&mut TestRig::good()).says, "as sent");
        let cell = says("server: x\r\nDate: now\r\nVia: 1.1 y\r\n");
        assert_eq!(cell.says, "+2 -1 ~1");
        assert_eq!(cell.note.as_deref(), Some("adds Date and Via; drops Content-Type; changes Server (to x)"));
        assert_eq!(run(&mut TestRig::but(|_| Some(Say::Next(answer(502, "", b""))))).says, "502");
    }
}
