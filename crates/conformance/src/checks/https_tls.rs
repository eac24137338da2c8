//! What TLS comes to with a client that takes versions 1.2 and 1.3 and all suites: version, suite, key exchange, kind of key, ALPN.

use weir_model::suite::Protocol;

use super::secure;
use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "https-tls",
    title: "HTTPS: TLS agreed on",
    asks: "Version and cipher suite that come out with a client that takes TLS 1.2 and 1.3 and every suite, and whether one that knows TLS 1.2 \
           alone is served.",
    protocol: Protocol::Https11,
    when: When::Any,
    run,
};

fn run(rig: &mut dyn Rig) -> Cell {
    secure::agreed(rig, "http/1.1")
}

#[cfg(test)]
mod tests {
    use weir_wire::tls::Version;

    use super::super::secure::{rig, tls};
    use super::*;

    #[test]
    fn what_was_agreed_on_is_said() {
        let both = run(&mut rig(Some(tls(|_| {})), "http/1.1").0);
        assert!(both.says.starts_with("1.3 AES-"), "{both:?}");
        let note = both.note.expect("a note");
        assert!(
            note.contains("P-256 key") && note.contains("ALPN http/1.1") && note.contains("takes TLS 1.2, too"),
            "{note}"
        );
        let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        let old = tls(|options| {
            options.versions = (Version::Tls12, Version::Tls12);
            options.suites = vec![suite.to_owned()];
            options.alpn = vec!["http/1.1".to_owned()];
        });
        let old = run(&mut rig(Some(old), "http/1.1").0);
        assert_eq!(old.says, "1.2 AES-128-GCM");
        assert!(old.note.expect("a note").contains(suite));
        let new = run(&mut rig(Some(tls(|options| options.versions = (Version::Tls13, Version::Tls13))), "http/1.1").0);
        assert!(new.note.expect("a note").contains("refuses TLS 1.2"));
    }
}
