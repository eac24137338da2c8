//! One measured load: the client runs it, vitals sample the processes, and the samples are written to files. The series and the
//! search of a trial call it.

use std::path::Path;
use std::time::Duration;

use weir_host::Storage;
use weir_host::files::{FileError, pretty};
use weir_model::change::ChangeRecord;
use weir_model::counters::OriginCounters;
use weir_model::fault::FaultRecord;
use weir_model::gateway::AccessLog;
use weir_model::load::{LoadResult, LoadSpec};
use weir_vitals::Window;

use super::running_load::RunningLoad;
use crate::progress::{Observer, RunEvent};
use weir_host::role::ClientReport;
use weir_product::failure::Failure;

/// The result of a measured load.
#[derive(Debug)]
pub struct Measured {
    /// The client's result.
    pub load: LoadResult,
    /// The kernel's numbers of the roles and the host during the window.
    pub window: Window,
    /// What the origin counted during the load; `None` for a product, which has no counters.
    pub counters: Option<OriginCounters>,
    /// What the product logged; `None` where it has no log.
    pub access_log: Option<AccessLog>,
    /// The faults that were provoked.
    pub faults: Vec<FaultRecord>,
    /// The changes of the route; `None` where there were to be none.
    pub changes: Option<ChangeRecord>,
}

/// Follows a load to its end, without the origin's counters.
pub fn measure(mut running_load: RunningLoad<'_>, observer: &mut dyn Observer) -> Result<Measured, Failure> {
    let mut window = None;
    let load = loop {
        match running_load.receive()? {
            Some(ClientReport::Done(result)) => break *result,
            Some(ClientReport::Failed(why)) => return Err(running_load.failed(why)),
            Some(report) => window = follow(&mut running_load, &report, observer)?.or(window),
            None => {}
        }
    };
    ended(running_load, window, load)
}

/// What a load that has ended was.
fn ended(running_load: RunningLoad<'_>, window: Option<Window>, load: LoadResult) -> Result<Measured, Failure> {
    let Some(window) = window else {
        return Err(running_load.failed("the client ended without a measured window"));
    };
    let (faults, changes) = running_load.end()?;
    let changes = changes.map(|changes| changes.used(&window.series));
    let faults = faults.into_iter().map(|fault| fault.used(&window.series, load.window_start_ms)).collect();
    Ok(Measured { load, window, counters: None, access_log: None, faults, changes })
}

/// How long one of two loads is listened to at a time.
const LISTENS: Duration = Duration::from_millis(50);

/// Follows two loads in bursts to their end, without their origins' counters. `first` begins; the other's bursts come when its own are
/// over.
///
/// # Errors
/// Which of them failed, and how.
pub fn measure_both(
    mut running_loads: [RunningLoad<'_>; 2],
    turn: Duration,
    first: usize,
) -> Result<[Measured; 2], (usize, Failure)> {
    let of = |nth: usize| move |failure: Failure| (nth, failure);
    running_loads.iter_mut().for_each(RunningLoad::start_together);
    let mut windows = [None, None];
    let mut loads = [None, None];
    while loads.iter().any(Option::is_none) {
        if running_loads.iter().all(RunningLoad::is_ready) {
            let start = running_loads[first].soon();
            running_loads[first].begin(start).map_err(of(first))?;
            running_loads[1 - first].begin(start.plus(turn)).map_err(of(1 - first))?;
        }
        for nth in 0..2 {
            if loads[nth].is_some() {
                continue;
            }
            let running_load = &mut running_loads[nth];
            match running_load.receive_within(LISTENS).map_err(of(nth))? {
                Some(ClientReport::Done(result)) => loads[nth] = Some(*result),
                Some(ClientReport::Failed(why)) => return Err((nth, running_load.failed(why))),
                Some(report) => {
                    windows[nth] = follow(running_load, &report, &mut ()).map_err(of(nth))?.or(windows[nth].take());
                }
                None => {}
            }
        }
    }
    let ([a, b], [of_a, of_b]) = (running_loads, windows);
    let [Some(load_a), Some(load_b)] = loads else { return Err((0, b.failed("a load has no result"))) };
    Ok([ended(a, of_a, load_a).map_err(of(0))?, ended(b, of_b, load_b).map_err(of(1))?])
}

/// Handles a report of a client whose load is measured. Returns the window when it is over.
pub fn follow(
    running_load: &mut RunningLoad<'_>,
    report: &ClientReport,
    observer: &mut dyn Observer,
) -> Result<Option<Window>, Failure> {
    match report {
        ClientReport::Warmup(row) => {
            observer.notify(RunEvent::Stage("warming up"));
            observer.notify(RunEvent::Second(row));
        }
        ClientReport::WindowStart { .. } => {
            observer.notify(RunEvent::Stage("measuring"));
            running_load.begin_window()?;
        }
        ClientReport::Second(row) => observer.notify(RunEvent::Second(row)),
        ClientReport::WindowEnd => return running_load.end_window().map(Some),
        _ => {}
    }
    Ok(None)
}

/// The longest time a client can take, whatever the product does: connecting and draining are each bounded by the timeout,
/// warm-up and window by their lengths.
pub fn longest(spec: &LoadSpec) -> Duration {
    let timeout_s = spec.timeout_s.max(spec.connect_timeout_s.unwrap_or_default());
    Duration::from_secs_f64(spec.warmup_s + spec.duration_s + 3.0 * timeout_s + 30.0)
}

/// Writes the samples of vitals and the CPU time that sampling took.
pub fn write_files(folder: &Path, window: &Window, storage: &dyn Storage) -> Result<(), FileError> {
    let path = folder.join("resources.csv");
    let mut writer = csv::Writer::from_writer(Vec::new());
    let rows = window.series.iter().try_for_each(|row| writer.serialize(row)).map_err(std::io::Error::from);
    let bytes = rows.and_then(|()| writer.into_inner().map_err(|e| e.into_error()));
    bytes.and_then(|bytes| storage.write(&path, &bytes)).map_err(FileError::at(&path))?;
    let costs = serde_json::json!({
        "vitals_cpu_us": window.own_cpu_us,
        "window_s": window.length_s,
        "late_s": window.late_s,
    });
    let path = folder.join("observer.json");
    storage.write(&path, &pretty(&costs)?).map_err(FileError::at(&path))
}
