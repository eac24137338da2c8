//! What TLS comes to where HTTP/2 is spoken over it.

use weir_model::suite::Protocol;

use super::secure;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "h2-tls",
    title: "HTTP/2: TLS agreed on",
    asks: "As for HTTPS above, with h2 by ALPN.",
    protocol: Protocol::H2,
    when: When::Any,
    run,
};

fn run(rig: &mut dyn Rig) -> Cell {
    secure::agreed(rig, "h2")
}

#[cfg(test)]
mod tests {
    use super::super::secure::{rig, tls};
    use super::*;

    #[test]
    fn alpn_is_said() {
        let cell = run(&mut rig(Some(tls(|_| {})), "h2").0);
        assert!(cell.note.as_deref().is_some_and(|note| note.contains("ALPN h2")), "{cell:?}");
        assert_eq!(run(&mut rig(None, "h2").0).says, "TLS fails");
    }
}
