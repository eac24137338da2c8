//! Checks HTTP/2, without TLS (prior knowledge) and over TLS: a GET, and ten at once on one connection. Listed in
//! `table::CHECKS`.

use std::time::Duration;

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::{Cell, about};
use crate::client::{Http2, TIMEOUT};
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry without TLS.
pub const CLEARTEXT: Check = Check {
    name: "h2c",
    title: "HTTP/2 without TLS",
    asks: "HTTP/2 with prior knowledge: GET of 11,268 bytes, then ten answers that the origin gives after 100 ms, asked for at once on one \
           connection: do they come side by side?",
    protocol: Protocol::H2c,
    when: When::Any,
    run: ask,
};

/// The entry with TLS.
pub const OVER_TLS: Check = Check {
    name: "h2",
    title: "HTTP/2 over TLS",
    asks: "The check above over TLS, with h2 by ALPN.",
    protocol: Protocol::H2,
    when: When::Any,
    run: ask,
};

const TARGET: &str = "/bytes/11268";
const SLOW: &str = "/bytes/128?delay=100ms";
/// Ten requests one after the other would take 1 s.
const SIDE_BY_SIDE: Duration = Duration::from_millis(700);

/// The check itself, with and without TLS.
pub fn ask(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let mut conn = Http2::open(&bed.product())?;
    let one = conn.get_all(&[TARGET], TIMEOUT)?;
    match one.first() {
        Some(response) if response.status != right.status => return Err(Cell::status(response)),
        Some(response) if response.body == right.body => {}
        _ => return Err(Cell::no("wrong body")),
    }
    let streams = conn.streams();
    let most = if streams < 100 { format!("takes {streams} streams at a time") } else { String::new() };
    let ten = match conn.get_all(&[SLOW; 10], TIMEOUT) {
        Ok(response) => response,
        Err(failure) => return Err(Cell::odd("yes, one only").with(format!("ten at once: it {failure}")).with(most)),
    };
    if let Some(wrong) = ten.iter().find(|response| response.status != 200) {
        return Err(Cell::odd("yes, one only").with(format!("of ten at once one gets {}", wrong.status)).with(most));
    }
    let took = ten.iter().map(|response| response.took).max().unwrap_or_default();
    if took < SIDE_BY_SIDE {
        return Err(Cell::yes().with(most));
    }
    Ok(Cell::odd("yes, in turn").with(format!("ten answers of 100 ms each take {}", about(took))).with(most))
}

#[cfg(test)]
mod tests {
    use super::super::tls::{bed, tls};
    use super::*;
    use crate::client::Endpoint;
    use crate::fake::{Fake, serial_http2};

    fn ask(bed: &mut dyn Testbed) -> Cell {
        super::ask(bed).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn yes_no_and_odd() {
        let (mut good, _keep) = bed(None, "h2");
        if let Some(endpoint) = &mut good.product_endpoint {
            endpoint.tls = None;
        }
        assert_eq!(ask(&mut good), Cell::yes());
        let product = Fake::faithful();
        good.product_endpoint = Some(Endpoint::plain(product.addr, good.stop.clone()));
        let cell = ask(&mut good);
        assert_eq!(cell.verdict, crate::Verdict::No, "{cell:?}");
        let origin = good.origin_endpoint.clone().expect("an origin").addr;
        good.product_endpoint = Some(Endpoint::plain(serial_http2(origin), good.stop.clone()));
        assert_eq!(ask(&mut good).says, "yes, in turn");
    }

    #[test]
    fn over_tls() {
        assert_eq!(ask(&mut bed(Some(tls(|_| {})), "h2").0), Cell::yes());
        let one_only = tls(|options| options.alpn = vec!["http/1.1".to_owned()]);
        assert_eq!(ask(&mut bed(Some(one_only), "h2").0).says, "TLS fails");
    }
}
