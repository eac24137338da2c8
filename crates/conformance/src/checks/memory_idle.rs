//! Measures the memory of an idle product. Listed in `table::CHECKS`.

use std::time::Duration;

use weir_model::suite::Protocol;

use crate::cell::{Cell, size};
use crate::table::{Check, When};
use crate::testbed::{Testbed, memory, pause};

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "memory-idle",
    title: "Memory, idle",
    asks: "Memory of all its processes (proportional set size) 1 s after it answered its first request.",
    protocol: Protocol::Http11,
    when: When::First,
    run,
};

const SETTLES: Duration = Duration::from_secs(1);

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    pause(bed.stop(), SETTLES);
    Ok(match bed.sample() {
        Ok(usage) => {
            let (bytes, kind) = memory(&usage);
            let cell = Cell::reading(size(bytes));
            if kind == "PSS" {
                cell
            } else {
                cell.with("the sum of resident sets: the kernel does not say the proportional one")
            }
        }
        Err(why) => Cell::unknown(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeTestbed;

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn the_proportional_set_where_there_is_one() {
        let mut bed = FakeTestbed::good();
        assert_eq!(run(&mut bed), Cell::reading("8.0 MiB"));
        bed.usage.pss_max_bytes = None;
        let cell = run(&mut bed);
        assert_eq!(cell.says, "9.0 MiB");
        assert!(cell.note.is_some());
    }
}
