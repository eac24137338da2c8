//! HTTP/1.1 over TLS: the same GET.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "https",
    title: "HTTPS (HTTP/1.1)",
    asks: "The check GET over TLS.",
    protocol: Protocol::Https11,
    when: When::Any,
    run,
};

fn run(rig: &mut dyn Rig) -> Cell {
    super::get::ask(rig)
}

#[cfg(test)]
mod tests {
    use super::super::secure::{rig, tls};
    use super::*;

    #[test]
    fn yes_and_no() {
        assert_eq!(run(&mut rig(Some(tls(|_| {})), "http/1.1").0), Cell::yes());
        let cell = run(&mut rig(None, "http/1.1").0);
        assert_eq!(cell.says, "TLS fails", "{cell:?}");
    }
}
