//! HTTP/3: weir says who has it, and does not measure it.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "h3",
    title: "HTTP/3",
    asks: "Whether the product's file says that it has HTTP/3. weir does not speak it: nothing is asked.",
    protocol: Protocol::H3,
    when: When::Any,
    run,
};

/// Never called on a product that was started for it: none is.
fn run(_: &mut dyn Rig) -> Cell {
    described()
}

/// For products that have it.
pub fn described() -> Cell {
    Cell::new(crate::Verdict::Absent, "described").with("it has HTTP/3, as its file says; weir does not measure that")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::TestRig;

    #[test]
    fn it_is_described_and_never_measured() {
        assert_eq!(run(&mut TestRig::good()).says, "described");
    }
}
