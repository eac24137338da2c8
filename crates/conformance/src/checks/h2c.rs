//! HTTP/2 with prior knowledge: the same GET, and ten at once on one connection.

use std::time::Duration;

use weir_model::suite::Protocol;

use super::reference;
use crate::cell::{Cell, about};
use crate::rig::Rig;
use crate::table::{Check, When};
use crate::talk::{PATIENCE, Two};

/// Of the table.
pub const CHECK: Check = Check {
    name: "h2c",
    title: "HTTP/2 without TLS",
    asks: "HTTP/2 with prior knowledge: GET of 11,268 bytes, then ten answers that the origin gives after 100 ms, asked for at once on one \
           connection: do they come side by side?",
    protocol: Protocol::H2c,
    when: When::Any,
    run: ask,
};

const TARGET: &str = "/bytes/11268";
const SLOW: &str = "/bytes/128?delay=100ms";
/// Ten one behind the other take 1 s.
const SIDE_BY_SIDE: Duration = Duration::from_millis(700);

/// For HTTP/2 over TLS, too.
pub fn ask(rig: &mut dyn Rig) -> Cell {
    let right = match reference(rig, TARGET) {
        Ok(right) => right,
        Err(cell) => return cell,
    };
    let mut two = match Two::open(&rig.product()) {
        Ok(two) => two,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    let one = match two.get_all(&[TARGET], PATIENCE) {
        Ok(heard) => heard,
        Err(trouble) => return Cell::trouble(&trouble),
    };
    match one.first() {
        Some(heard) if heard.status != right.status => return Cell::status(heard),
        Some(heard) if heard.body == right.body => {}
        _ => return Cell::no("wrong body"),
    }
    let streams = two.streams();
    let most = if streams < 100 { format!("takes {streams} streams at a time") } else { String::new() };
    let ten = match two.get_all(&[SLOW; 10], PATIENCE) {
        Ok(heard) => heard,
        Err(trouble) => return Cell::odd("yes, one only").with(format!("ten at once: it {trouble}")).with(most),
    };
    if let Some(wrong) = ten.iter().find(|heard| heard.status != 200) {
        return Cell::odd("yes, one only").with(format!("of ten at once one gets {}", wrong.status)).with(most);
    }
    let took = ten.iter().map(|heard| heard.took).max().unwrap_or_default();
    if took < SIDE_BY_SIDE {
        return Cell::yes().with(most);
    }
    Cell::odd("yes, in turn").with(format!("ten answers of 100 ms each take {}", about(took))).with(most)
}

#[cfg(test)]
mod tests {
    use super::super::secure::rig;
    use super::*;
    use crate::fake::{Fake, serial_two};
    use crate::talk::Door;

    #[test]
    fn yes_no_and_odd() {
        let (mut good, _keep) = rig(None, "h2");
        if let Some(door) = &mut good.product_door {
            door.tls = None;
        }
        assert_eq!(ask(&mut good), Cell::yes());
        let product = Fake::faithful();
        good.product_door = Some(Door::plain(product.addr, good.stop.clone()));
        let cell = ask(&mut good);
        assert_eq!(cell.verdict, crate::Verdict::No, "{cell:?}");
        let origin = good.origin_door.clone().expect("an origin").addr;
        good.product_door = Some(Door::plain(serial_two(origin), good.stop.clone()));
        assert_eq!(ask(&mut good).says, "yes, in turn");
    }
}
