//! A product that was started and verified, and stays while another is measured: its load comes in slices. [`crate::duet`] starts two.
//!
//! A slice is a trial of its own, with its own client, counters and audit, against a product that runs already. This module does not
//! know what the other side is, nor what the numbers mean.

use std::path::Path;
use std::time::Instant;

use weir_host::stop::Stop;
use weir_model::record::Measurement;
use weir_product::failure::Failure;

use super::points::PointSpec;
use super::series::RunningTrial;
use super::{Abort, TrialContext, TrialSpec, blank, conclude, connections, failed, measure, set_up};
use crate::plan::Planned;

/// A product with its origin, ready for slices.
#[derive(Debug)]
pub struct Side<'a> {
    running: RunningTrial<'a>,
}

impl<'a> Side<'a> {
    /// Starts and verifies it. `trial` says what each slice asks, and has the folder of the product's files.
    ///
    /// # Errors
    /// Which step failed, and why.
    pub fn start(context: &'a TrialContext, trial: &'a TrialSpec<'a>, stop: &Stop) -> Result<Side<'a>, Failure> {
        let product = context.product(&trial.planned.case.product, "start")?;
        Ok(Side { running: set_up(context, trial, product, stop, &mut ())? })
    }

    /// Measures a slice, with its files in `folder`. A slice that failed is a measurement with an error in it.
    ///
    /// # Errors
    /// [`Abort`] only.
    pub fn slice(&mut self, planned: &Planned, folder: &Path, stop: &Stop) -> Result<Measurement, Abort> {
        let clock = Instant::now();
        let trial = self.running.trial;
        let mut measurement = blank(self.running.context, &TrialSpec { planned, ..*trial });
        // The arrivals are the same for both sides of a block.
        let point = PointSpec {
            point: planned.block,
            of: planned.block,
            rate: trial.rate,
            connections: trial.load.connections,
        };
        match self.running.measure_load(&point, folder.to_owned(), stop, &mut ()) {
            Ok(mut measured) => {
                connections::add(&mut measured.window.series, &measured.load);
                measure::write_files(folder, &measured.window).map_err(|error| Abort::Journal(error.into()))?;
                let point = self.running.audited(&point, measured, None);
                measurement.points.push(point);
                conclude(&mut measurement, trial.load, Vec::new(), self.running.context.hosts.clients.len());
            }
            Err(Failure::Stopped) => return Err(Abort::Stopped),
            Err(Failure::File(error)) => return Err(Abort::Journal(error.into())),
            Err(Failure::Trial(error)) => measurement = failed(measurement, error),
        }
        measurement.took_s = clock.elapsed().as_secs_f64();
        Ok(measurement)
    }

    /// Ends it.
    pub fn stop(self) {
        let RunningTrial { product, origin, running, .. } = self.running;
        let _ = running.map(|running| running.stop(product));
        let _ = origin.stop();
    }
}
