//! Checks which response headers the product keeps, adds, drops or changes on their way to the client.

use super::headers_up::compare;

use super::reference;
use crate::cell::{Cell, with_status};
use crate::testbed::Testbed;

const TARGET: &str = "/bytes/128";

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let response = with_status(200, bed.product().get(TARGET))?;
    let sent: Vec<(&str, &str)> = right.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Ok(compare(&sent, &response.headers).cell(|change| format!("{} (to {})", change.name, change.is)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, raw_response};
    use crate::table::cell_of;

    fn says(head: &'static str) -> Cell {
        cell_of(
            "headers-to-client",
            &mut FakeTestbed::but(move |_| {
                let whole = String::from_utf8(raw_response(200, "", &[b'x'; 128])).expect("text");
                Some(Reply::Keep(whole.replacen("Server: weir-origin\r\n", head, 1).into_bytes()))
            }),
        )
    }

    #[test]
    fn kept_added_dropped_changed() {
        assert_eq!(cell_of("headers-to-client", &mut FakeTestbed::good()).says, "as sent");
        let cell = says("server: x\r\nDate: now\r\nVia: 1.1 y\r\n");
        assert_eq!(cell.says, "+2 -1 ~1");
        assert_eq!(cell.note.as_deref(), Some("adds Date and Via; drops Content-Type; changes Server (to x)"));
        assert_eq!(
            cell_of("headers-to-client", &mut FakeTestbed::but(|_| Some(Reply::Keep(raw_response(502, "", b""))))).says,
            "502"
        );
    }
}
