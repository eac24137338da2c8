//! Measures how many cores a product with one worker uses. Listed in `table::CHECKS`.

use weir_model::suite::Protocol;

use crate::Verdict;
use crate::cell::Cell;
use crate::table::{Check, When};
use crate::testbed::Testbed;

/// The entry in the table.
pub const CHECK: Check = Check {
    name: "cores",
    title: "Cores used, one worker",
    asks: "CPU seconds a second over 3 s of closed load (64 connections), of a product told to use one worker and free to run on every CPU. \
           Client and origin run beside it.",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

/// One worker uses one core; the rest is the delay of the kernel's accounting.
const ONE: f64 = 1.1;

fn run(bed: &mut dyn Testbed) -> Result<Cell, Cell> {
    let loaded = bed.under_load().map_err(Cell::unknown)?;
    let cores = loaded.usage.cores_busy;
    let cell = Cell::reading(format!("{cores:.1}"));
    let cell = if cores > ONE {
        Cell { verdict: Verdict::Odd, ..cell }.with("more than the one that it was told to use")
    } else {
        cell
    };
    Ok(match loaded.errors {
        0 => cell,
        n if loaded.rate == 0.0 => cell.with(format!("no request was answered rightly, {n} were not")),
        n => cell.with(format!("{n} requests without a right answer")),
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

    fn cell(cores_busy: f64, errors: u64) -> Cell {
        let mut bed = FakeTestbed::good();
        bed.usage.cores_busy = cores_busy;
        bed.load = Some(LoadSample { usage: bed.usage.clone(), rate: 9.0, errors });
        run(&mut bed)
    }

    #[test]
    fn more_than_one_is_odd() {
        assert_eq!(cell(0.97, 0), Cell::reading("1.0"));
        assert_eq!((cell(1.42, 0).says.as_str(), cell(1.42, 0).verdict), ("1.4", Verdict::Odd));
        assert_eq!(cell(0.5, 3).note.as_deref(), Some("3 requests without a right answer"));
        assert_eq!(run(&mut FakeTestbed::good()).verdict, Verdict::Unknown);
    }
}
