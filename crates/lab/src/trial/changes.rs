//! Changes the product's route during a load, at times that the load has planned. [`super::running_load`] asks it between the clients'
//! reports. It knows neither what a change is to the product, nor what the client sees of it.

use std::time::Duration;

use weir_host::Clock;
use weir_host::stop::Stop;
use weir_model::At;
use weir_model::change::ChangeRecord;
use weir_model::suite::Load;
use weir_product::failure::Failure;
use weir_product::running::Running;

/// The changes of a load.
#[derive(Debug, Default)]
pub struct Changes {
    /// When each is due, from the window's start.
    due: Vec<Duration>,
    /// The window's start; `None` before it is known.
    window: Option<At>,
    record: ChangeRecord,
}

impl Changes {
    /// Those of a load.
    pub fn new(load: &Load) -> Changes {
        Changes { due: load.changes(), ..Changes::default() }
    }

    /// The window begins at this time.
    pub fn begin(&mut self, window: At) {
        self.window = Some(window);
    }

    /// How long until the next is due; `None`: there is none.
    pub fn next_in(&self, clock: &dyn Clock) -> Option<Duration> {
        let due = self.due.get(self.record.began_s.len())?;
        Some(clock.left(self.window?.plus(*due)))
    }

    /// Makes the next one.
    ///
    /// # Errors
    /// The product does not take it.
    pub fn make_next(&mut self, clock: &dyn Clock, running: &mut Running, stop: &Stop) -> Result<(), Failure> {
        let Some(window) = self.window else { return Ok(()) };
        let began = clock.now().mono_ns.saturating_sub(window.mono_ns);
        self.record.began_s.push(began as f64 / 1e9);
        make(running, stop, "load")
    }

    /// The changes that were made; `None`: the load makes none.
    pub fn end(self) -> Option<ChangeRecord> {
        (!self.due.is_empty()).then_some(self.record)
    }
}

/// Makes the next change of a product's route, at this stage of a trial.
///
/// # Errors
/// The product does not take it.
pub fn make(running: &mut Running, stop: &Stop, stage: &str) -> Result<(), Failure> {
    running.change(stop).or_else(|why| {
        running.still_runs(stage)?;
        let found = format!("the route could not be changed: {why}");
        let remedy = "see what it says in the trial's folder, and `reload` in its product file";
        Err(Failure::at(stage, found, running.evidence(), remedy))
    })
}
