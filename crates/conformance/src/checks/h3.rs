//! HTTP/3: weir shows which products have it, but does not test it. Listed in `table::CHECKS`; `run` calls
//! [`described`].

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "h3",
    title: "HTTP/3",
    asks: "Whether the product's file says that it has HTTP/3. weir does not speak it: nothing is asked.",
    protocol: Protocol::H3,
    when: When::Any,
    run,
};

/// Never called, because no product is started with HTTP/3.
fn run(_bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    Ok(described())
}

/// The cell for products that have HTTP/3.
pub fn described() -> Cell {
    Cell::new(crate::Verdict::Absent, "described").with("it has HTTP/3, as its file says; weir does not measure that")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeTestbed;

    fn run(_bed: &mut dyn Testbed) -> Cell {
        super::run(_bed).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn it_is_described_and_never_measured() {
        assert_eq!(run(&mut FakeTestbed::good()).says, "described");
    }
}
