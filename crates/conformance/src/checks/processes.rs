//! Processes and threads that a product told to use one worker runs.

use weir_model::suite::Protocol;

use crate::cell::Cell;
use crate::rig::Rig;
use crate::table::{Check, When};

/// Of the table.
pub const CHECK: Check = Check {
    name: "processes",
    title: "Processes / threads",
    asks: "Most processes and threads under the load of the check below, of a product told to use one worker.",
    protocol: Protocol::Http11,
    when: When::Any,
    run,
};

fn run(rig: &mut dyn Rig) -> Cell {
    match rig.loaded() {
        Ok(loaded) => Cell::reading(format!("{} / {}", loaded.usage.processes_max, loaded.usage.threads_max)),
        Err(why) => Cell::unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::TestRig;
    use crate::rig::Loaded;

    #[test]
    fn both_are_said() {
        let mut rig = TestRig::good();
        assert_eq!(run(&mut rig), Cell::unknown("no load"));
        rig.load = Some(Loaded { usage: rig.usage.clone(), rate: 1.0, errors: 0 });
        assert_eq!(run(&mut rig), Cell::reading("2 / 3"));
    }
}
