//! Does a second connection resume the session of the first?

use weir_model::suite::Protocol;

use super::secure;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "https-resumption",
    title: "HTTPS: resumption",
    asks: "Two connections one after the other of a client that keeps tickets, in TLS 1.3 and in TLS 1.2: does the second resume the session of \
           the first?",
    protocol: Protocol::Https11,
    when: When::Any,
    run,
};

fn run(rig: &mut dyn Rig) -> Cell {
    secure::resumption(rig)
}

#[cfg(test)]
mod tests {
    use weir_wire::tls::Version;

    use super::super::secure::{rig, tls};
    use super::*;

    #[test]
    fn yes_no_and_in_one_version_only() {
        assert_eq!(run(&mut rig(Some(tls(|_| {})), "http/1.1").0), Cell::yes());
        assert_eq!(run(&mut rig(Some(tls(|options| options.resumption = false)), "http/1.1").0).says, "no");
        let new = run(&mut rig(Some(tls(|options| options.versions = (Version::Tls13, Version::Tls13))), "http/1.1").0);
        assert_eq!((new.says.as_str(), new.note.as_deref()), ("yes", Some("TLS 1.3 only; it refuses TLS 1.2")));
        assert_eq!(run(&mut rig(None, "http/1.1").0).says, "TLS fails");
    }
}
