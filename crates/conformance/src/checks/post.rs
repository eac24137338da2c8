//! POST: 1 MiB there and back.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::PATIENCE;

/// Of the table.
pub const CHECK: Check = Check {
    name: "post",
    title: "POST 1 MiB each way",
    asks: "POST of 1 MiB to the origin's echo: does the same come back?",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

const SIZE: usize = 1 << 20;

fn run(rig: &mut dyn Rig) -> Cell {
    let door = rig.product();
    let body = pattern(SIZE);
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/octet-stream"), ("Content-Length", length.as_str())];
    let request = [door.request("POST", "/echo", &headers), body.clone()].concat();
    match door.ask(&request, false, PATIENCE) {
        Err(trouble) => Cell::trouble(&trouble),
        Ok(heard) if heard.status != 200 => Cell::status(&heard),
        Ok(heard) if heard.body != body => Cell::no("wrong body").with(format!("{} bytes came back", heard.body.len())),
        Ok(_) => Cell::yes(),
    }
}

/// Bytes without a short period, so that one block in the place of another shows.
pub fn pattern(size: usize) -> Vec<u8> {
    (0..size as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer};

    #[test]
    fn yes_and_no() {
        assert_eq!(run(&mut TestRig::good()), Cell::yes());
        assert_eq!(run(&mut TestRig::but(|_| Some(Say::Next(answer(413, "", b"too large"))))).says, "413");
        let swaps = |asked: &crate::fake::Asked| {
            let mut body = asked.body.clone();
            let (a, b) = body.split_at_mut(SIZE / 2);
            a.swap_with_slice(b);
            Some(Say::Next(answer(200, "", &body)))
        };
        assert_eq!(run(&mut TestRig::but(swaps)).says, "wrong body");
        assert_eq!(run(&mut TestRig::but(|_| Some(Say::Last(Vec::new())))).says, "closes");
    }
}
