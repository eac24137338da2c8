//! Checks that POST carries 1 MiB to the origin and back.

use crate::cell::{Cell, with_body};
use crate::testbed::Testbed;
use weir_product::client::TIMEOUT;

const SIZE: usize = 1 << 20;

pub fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let endpoint = bed.product();
    let body = pattern(SIZE);
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/octet-stream"), ("Content-Length", length.as_str())];
    let request = [endpoint.request("POST", "/echo", &headers), body.clone()].concat();
    with_body(&body, endpoint.ask(&request, false, TIMEOUT))?;
    Ok(Cell::yes())
}

/// Bytes without a short period, so that swapped blocks are noticed.
pub fn pattern(size: usize) -> Vec<u8> {
    (0..size as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeTestbed, Reply, raw_response};
    use crate::table::cell_of;

    #[test]
    fn yes_and_no() {
        assert_eq!(cell_of("post", &mut FakeTestbed::good()), Cell::yes());
        assert_eq!(
            cell_of("post", &mut FakeTestbed::but(|_| Some(Reply::Keep(raw_response(413, "", b"too large"))))).says,
            "413"
        );
        let swaps = |asked: &crate::fake::Received| {
            let mut body = asked.body.clone();
            let (a, b) = body.split_at_mut(SIZE / 2);
            a.swap_with_slice(b);
            Some(Reply::Keep(raw_response(200, "", &body)))
        };
        assert_eq!(cell_of("post", &mut FakeTestbed::but(swaps)).says, "wrong body");
        assert_eq!(cell_of("post", &mut FakeTestbed::but(|_| Some(Reply::Close(Vec::new())))).says, "closes");
    }
}
