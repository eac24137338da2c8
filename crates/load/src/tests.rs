//! Loads in a simulated world that need what is private to this crate; all others are in `tests/it`.

mod echo;
#[path = "../tests/common/script.rs"]
pub(crate) mod script;

use weir_model::At;
use weir_model::load::LoadResult;
use weir_net::Next;
use weir_net::sim::{SimDriver, World};

use crate::{LoadError, LoadTasks, StopFlag};

/// Runs a load to its end in a world.
pub(crate) fn drive(world: &World, load: LoadTasks<SimDriver>) -> Result<LoadResult, LoadError> {
    let LoadTasks { mut controller, workers } = load;
    for make in workers {
        let driver = world.driver("client");
        let task = make(&driver);
        world.add_task(driver, task);
    }
    loop {
        let now = At { mono_ns: world.now(), unix_ns: world.unix_now() };
        match controller.turn(now, &StopFlag::new(), &mut |_| ())? {
            Next::Poll(until) => world.run_to(until.unwrap_or_default()),
            Next::Over => return controller.finish(&mut |_| ()),
        }
    }
}
