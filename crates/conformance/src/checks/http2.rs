//! Checks HTTP/2, without TLS (prior knowledge) and over TLS: a GET, and ten at once on one connection.

use std::time::Duration;

use super::reference;
use crate::cell::{Cell, about, with_body};
use crate::testbed::Testbed;
use weir_product::client::{Http2, RequestError, Response, TIMEOUT};

pub(super) const TARGET: &str = "/bytes/11268";
const SLOW: &str = "/bytes/128?delay=100ms";
/// Ten requests one after the other would take 1 s.
const SIDE_BY_SIDE: Duration = Duration::from_millis(700);

/// The check itself, with and without TLS.
pub fn ask(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let right = reference(bed, TARGET)?;
    let mut conn = Http2::open(&bed.product(), TIMEOUT)?;
    with_body(&right.body, conn.get_all(&[TARGET], TIMEOUT).map(|mut one| one.remove(0)))?;
    let streams = conn.streams();
    side_by_side(streams, |targets| conn.get_all(targets, TIMEOUT))
}

/// Ten requests at once, on a connection that allows so many streams.
pub(super) fn side_by_side(
    streams: u32,
    mut get_all: impl FnMut(&[&str]) -> Result<Vec<Response>, RequestError>,
) -> Result<Cell, Cell> {
    let most = if streams < 100 { format!("takes {streams} streams at a time") } else { String::new() };
    let one_only = |why: String| Cell::odd("yes, one only").with(why).with(most.clone());
    let ten = get_all(&[SLOW; 10]).map_err(|failure| one_only(format!("ten at once: {failure}")))?;
    if let Some(wrong) = ten.iter().find(|response| response.status != 200) {
        return Ok(one_only(format!("of ten at once one gets {}", wrong.status)));
    }
    let took = ten.iter().map(|response| response.took).max().unwrap_or_default();
    if took < SIDE_BY_SIDE {
        return Ok(Cell::yes().with(most));
    }
    Ok(Cell::odd("yes, in turn").with(format!("ten responses of 100 ms each take {}", about(took))).with(most))
}

#[cfg(test)]
mod tests {
    use super::super::tls::{bed, tls};
    use super::*;
    use crate::cell::either;
    use crate::fake::{Fake, serial_http2};
    use weir_product::client::Endpoint;

    #[test]
    fn yes_no_and_odd() {
        let (mut good, _keep) = bed(None, "h2");
        if let Some(endpoint) = &mut good.product_endpoint {
            endpoint.tls = None;
        }
        assert_eq!(either(ask(&mut good)), Cell::yes());
        let product = Fake::faithful();
        good.product_endpoint = Some(Endpoint::plain(product.addr, good.stop.clone()));
        let cell = either(ask(&mut good));
        assert_eq!(cell.verdict, crate::Verdict::No, "{cell:?}");
        let origin = good.origin_endpoint.clone().expect("an origin").addr;
        good.product_endpoint = Some(Endpoint::plain(serial_http2(origin), good.stop.clone()));
        assert_eq!(either(ask(&mut good)).says, "yes, in turn");
    }

    #[test]
    fn over_tls() {
        assert_eq!(either(ask(&mut bed(Some(tls(|_| {})), "h2").0)), Cell::yes());
        let one_only = tls(|options| options.alpn = vec!["http/1.1".to_owned()]);
        assert_eq!(either(ask(&mut bed(Some(one_only), "h2").0)).says, "TLS fails");
    }
}
