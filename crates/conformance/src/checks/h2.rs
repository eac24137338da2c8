//! HTTP/2 over TLS: as without.

use weir_model::suite::Protocol;

use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "h2",
    title: "HTTP/2 over TLS",
    asks: "The check above over TLS, with h2 by ALPN.",
    protocol: Protocol::H2,
    when: When::Any,
    run: super::h2c::ask,
};

#[cfg(test)]
mod tests {
    use super::super::h2c::ask;
    use super::super::secure::{rig, tls};
    use crate::cell::Cell;

    #[test]
    fn yes_and_no() {
        assert_eq!(ask(&mut rig(Some(tls(|_| {})), "h2").0), Cell::yes());
        let one_only = tls(|options| options.alpn = vec!["http/1.1".to_owned()]);
        assert_eq!(ask(&mut rig(Some(one_only), "h2").0).says, "TLS fails");
    }
}
