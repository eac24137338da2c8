//! HTTP/3: weir shows which products have it, but does not test it. Listed in `table::CHECKS`; `run` calls
//! [`described`].

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::table::Check;
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check::new(
    "h3",
    "HTTP/3",
    "Whether the product's file says that it has HTTP/3. weir does not speak it: nothing is asked.",
    run,
)
.over(Protocol::H3);

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

    #[test]
    fn it_is_described_and_never_measured() {
        assert_eq!(CHECK.cell(&mut FakeTestbed::good()).says, "described");
    }
}
