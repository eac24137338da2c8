//! Runs loads from specification to result, and writes a key-value load's keys before it. How a load gets its threads is in
//! `threads`.

use std::time::Duration;

use weir_model::load::{LoadResult, LoadSpec};
use weir_net::Driver;

use crate::capacity::Resources;
use crate::controller::{LoadOptions, LoadTasks};
use crate::error::LoadError;
use crate::gate::Gate;
use crate::output::Outputs;
use crate::plan::Plan;
use crate::preload::{add_preload, check_preload, preload_spec};
use crate::progress::Progress;
use crate::stop::StopFlag;
use crate::threads;

/// Runs a load, and blocks until it is over. Worker threads make the load; the calling thread merges their intervals
/// and calls `progress`.
///
/// # Errors
/// When no load was possible: a wrong specification, too few descriptors or ports, no driver, not one connection, a
/// stop before the start, or an output file that cannot be written. Failures of requests are counted instead.
pub fn run(
    spec: &LoadSpec,
    outputs: &Outputs,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    run_gated(spec, outputs, None, stop, progress)
}

/// Like [`run`]. With a gate the load makes its connections, reports [`Progress::Ready`], and starts when the gate says.
///
/// # Errors
/// As for [`run`], and [`LoadError::Late`].
pub fn run_gated(
    spec: &LoadSpec,
    outputs: &Outputs,
    gate: Option<&Gate>,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    Job { spec, outputs, gate, stop, resources: &Resources::of_host(spec.driver)? }.run(progress)
}

/// The same as tasks for drivers of the caller's, which is in charge of time. A gated load waits for
/// [`Controller::start_at`](crate::Controller::start_at). Keys that the load begins with are written by the load of
/// [`preload_spec`](crate::preload_spec), for so long (`preloaded`). `nonce` is what differs from load to load; `now` is [`weir_net::Io::now`].
///
/// # Errors
/// A wrong specification, and an output file that cannot be written.
pub fn load_tasks<D: Driver + 'static>(
    spec: &LoadSpec,
    outputs: &Outputs,
    gated: bool,
    preloaded: Option<Duration>,
    nonce: u64,
    now: u64,
) -> Result<LoadTasks<D>, LoadError> {
    let options = LoadOptions { spec, outputs, resources: &Resources::unlimited(), gated, nonce, preloaded, now };
    LoadTasks::new(options)
}

/// What [`run`] is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub spec: &'a LoadSpec,
    pub outputs: &'a Outputs,
    pub gate: Option<&'a Gate>,
    pub stop: &'a StopFlag,
    /// The host's.
    pub resources: &'a Resources,
}

impl Job<'_> {
    /// Keys to preload are written first, by a load of their own.
    pub(crate) fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<LoadResult, LoadError> {
        let Some(spec) = preload_spec(self.spec) else {
            return threads::run(self, None, progress);
        };
        // Nothing is written for a load that cannot be run.
        Plan::new(self.spec, self.resources)?;
        let of = Plan::new(&spec, self.resources)?.shares.iter().map(|share| share.requests).sum();
        let begun = threads::now();
        let mut written = 0;
        let outputs = Outputs::default();
        let first = Job { spec: &spec, outputs: &outputs, gate: None, ..*self };
        let first = threads::run(&first, None, &mut |news| {
            if let Progress::Second(row) = news {
                written += row.successful;
                progress(Progress::Preloading { written, of });
            }
        })?;
        check_preload(&first, of)?;
        let took = Duration::from_nanos(threads::now() - begun);
        let mut result = threads::run(self, Some(took), progress)?;
        add_preload(&mut result, first);
        Ok(result)
    }
}
