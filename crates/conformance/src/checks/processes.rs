//! Counts the processes and threads of a product with one worker. Listed in `table::CHECKS`.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "processes",
    title: "Processes / threads",
    asks: "Most processes and threads under the load of the check below, of a product told to use one worker.",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    Ok(match bed.under_load() {
        Ok(loaded) => Cell::reading(format!("{} / {}", loaded.usage.processes_max, loaded.usage.threads_max)),
        Err(why) => Cell::unknown(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeTestbed;
    use crate::testbed::LoadSample;

    fn run(bed: &mut dyn Testbed) -> Cell {
        super::run(bed).unwrap_or_else(|cell| cell)
    }

    #[test]
    fn both_are_said() {
        let mut bed = FakeTestbed::good();
        assert_eq!(run(&mut bed), Cell::unknown("no load"));
        bed.load = Some(LoadSample { usage: bed.usage.clone(), rate: 1.0, errors: 0 });
        assert_eq!(run(&mut bed), Cell::reading("2 / 3"));
    }
}
