//! One measured load: the client runs it, vitals sample the processes, and the samples are written to files. The series and the
//! search of a trial call it.

use std::path::Path;
use std::time::Duration;

use weir_host::files::{FileError, pretty};
use weir_model::counters::OriginCounters;
use weir_model::fault::FaultRecord;
use weir_model::load::{LoadResult, LoadSpec};
use weir_vitals::Window;

use super::work::Work;
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
    /// The faults that were provoked.
    pub faults: Vec<FaultRecord>,
}

/// Follows a load to its end, without the origin's counters.
pub fn measure(mut work: Work<'_>, observer: &mut dyn Observer) -> Result<Measured, Failure> {
    let mut window = None;
    let load = loop {
        match work.receive()? {
            Some(ClientReport::Done(result)) => break *result,
            Some(ClientReport::Failed(why)) => return Err(work.failed(why)),
            Some(report) => window = follow(&mut work, &report, observer)?.or(window),
            None => {}
        }
    };
    let Some(window) = window else {
        return Err(work.failed("the client ended without a measured window"));
    };
    let faults = work.end()?;
    Ok(Measured { load, window, counters: None, faults })
}

/// Handles a report of a client whose load is measured. Returns the window when it is over.
pub fn follow(
    work: &mut Work<'_>,
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
            work.begin_window()?;
        }
        ClientReport::Second(row) => observer.notify(RunEvent::Second(row)),
        ClientReport::WindowEnd => return work.end_window().map(Some),
        _ => {}
    }
    Ok(None)
}

/// The longest time a client can take, whatever the product does: connecting and draining are each bounded by the timeout,
/// warm-up and window by their lengths.
pub fn longest(spec: &LoadSpec) -> Duration {
    Duration::from_secs_f64(spec.warmup_s + spec.duration_s + 3.0 * spec.timeout_s + 30.0)
}

/// Writes the samples of vitals and the CPU time that sampling took.
pub fn write_files(folder: &Path, window: &Window) -> Result<(), FileError> {
    let path = folder.join("resources.csv");
    let io = FileError::at(&path);
    let mut writer = csv::Writer::from_path(&path).map_err(|e| io(e.into()))?;
    for row in &window.series {
        writer.serialize(row).map_err(|e| io(e.into()))?;
    }
    writer.flush().map_err(io)?;
    let costs = serde_json::json!({
        "vitals_cpu_us": window.own_cpu_us,
        "window_s": window.length_s,
        "late_s": window.late_s,
    });
    let path = folder.join("observer.json");
    std::fs::write(&path, pretty(&costs)?).map_err(FileError::at(&path))
}
