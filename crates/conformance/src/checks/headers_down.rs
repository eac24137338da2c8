//! Checks which response headers the product keeps, adds, drops or changes on their way to the client. Listed in
//! `table::CHECKS`.

use weir_model::suite::Protocol;

use super::headers_up::compare;
use weir_model::text::list;

use super::reference;
use crate::cell::Cell;
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
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

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let response = match bed.product().get(TARGET) {
        Err(failure) => return Err(Cell::failure(&failure)),
        Ok(response) if response.status != right.status => return Err(Cell::status(&response)),
        Ok(response) => response,
    };
    let sent: Vec<(&str, &str)> = right.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let changes = compare(&sent, &response.headers);
    let mut cell = Cell::reading(changes.counts());
    if !changes.added.is_empty() {
        cell = cell.with(format!("adds {}", list(&changes.added)));
    }
    if !changes.dropped.is_empty() {
        cell = cell.with(format!("drops {}", list(&changes.dropped)));
    }
    if !changes.changed.is_empty() {
        let words: Vec<String> = changes.changed.iter().map(|(name, _, is)| format!("{name} (to {is})")).collect();
        cell = cell.with(format!("changes {}", list(&words)));
    }
    Ok(cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, answer};

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    fn says(head: &'static str) -> Cell {
        run(&mut FakeTestbed::but(move |_| {
            let whole = String::from_utf8(answer(200, "", &[b'x'; 128])).expect("text");
            Some(Reply::Keep(whole.replacen("Server: weir-origin\r\n", head, 1).into_bytes()))
        }))
    }

    #[test]
    fn kept_added_dropped_changed() {
        assert_eq!(run(&mut FakeTestbed::good()).says, "as sent");
        let cell = says("server: x\r\nDate: now\r\nVia: 1.1 y\r\n");
        assert_eq!(cell.says, "+2 -1 ~1");
        assert_eq!(cell.note.as_deref(), Some("adds Date and Via; drops Content-Type; changes Server (to x)"));
        assert_eq!(run(&mut FakeTestbed::but(|_| Some(Reply::Keep(answer(502, "", b""))))).says, "502");
    }
}
