//! HTTP/3: weir shows which products have it, but does not test it.

use crate::cell::Cell;

/// The cell for products that have HTTP/3.
pub fn described() -> Cell {
    Cell::new(crate::Verdict::Absent, "described").with("it has HTTP/3, as its file says; weir does not measure that")
}

#[cfg(test)]
mod tests {
    use crate::fake::FakeTestbed;
    use crate::table::cell_of;

    #[test]
    fn it_is_described_and_never_measured() {
        assert_eq!(cell_of("h3", &mut FakeTestbed::good()).says, "described");
    }
}
