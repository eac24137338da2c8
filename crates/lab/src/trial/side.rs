//! A product that was started and verified, and stays: it is measured together with another, in turn. [`crate::duet`] starts two.
//!
//! Each has a client of its own, whose load comes in bursts; those of one fall between those of the other. What both do meanwhile is
//! recorded and audited for each, as a trial. This module does not know what the numbers mean.

use std::path::Path;
use std::time::Duration;

use weir_host::stop::Stop;
use weir_model::load::Bursts;
use weir_model::record::Measurement;
use weir_product::failure::Failure;

use super::measure::{Measured, measure_both};
use super::points::PointSpec;
use super::series::{Prepared, RunningTrial};
use super::{Abort, Trial, TrialContext, TrialSpec, blank, conclude, connections, failed, measure, set_up};
use crate::plan::Planned;

/// A product with its origin, ready to be measured.
#[derive(Debug)]
pub struct Side<'a> {
    running: RunningTrial<'a>,
}

/// A slice of one of two products: which trial it is, and where its files go.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'s> {
    /// The trial.
    pub planned: &'s Planned,
    /// Its folder.
    pub folder: &'s Path,
}

impl<'a> Side<'a> {
    /// Starts and verifies it. `spec` says what each slice asks, and has the folder of the product's files.
    ///
    /// # Errors
    /// Which step failed, and why.
    pub fn start(context: &'a TrialContext, spec: &'a TrialSpec<'a>, stop: &'a Stop) -> Result<Side<'a>, Failure> {
        let product = context.product(&spec.planned.case.product, "start")?;
        Ok(Side { running: set_up(Trial { context, spec, product, stop }, &mut ())? })
    }

    /// Ends it.
    pub fn stop(self) {
        let RunningTrial { trial, mut started, .. } = self.running;
        let _ = started.stop(trial.product);
    }

    fn point(&self, slice: Slice<'_>) -> PointSpec {
        let TrialSpec { rate, load, .. } = *self.running.trial.spec;
        // The arrivals are the same for both sides of a block.
        let block = slice.planned.block;
        PointSpec { point: block, of: block, rate, connections: load.connections }
    }

    fn prepare(&self, slice: Slice<'_>, turn: Duration) -> Result<Prepared, Failure> {
        let mut prepared = self.running.prepare(&self.point(slice), slice.folder.to_owned())?;
        let turn_s = turn.as_secs_f64();
        prepared.client.spec.bursts = Some(Bursts { on_s: turn_s, off_s: turn_s });
        Ok(prepared)
    }

    /// The slice as it is before anything was measured.
    fn blank(&self, slice: Slice<'_>) -> Measurement {
        blank(self.running.trial.context, &TrialSpec { planned: slice.planned, ..*self.running.trial.spec })
    }
}

/// Measures two products at the same time, in turns of this length. `first` has the first turn. A product that failed has an error in
/// its measurement; the other then has none.
///
/// # Errors
/// [`Abort`] only.
pub fn measure_pair(
    sides: &mut [Side<'_>; 2],
    slices: [Slice<'_>; 2],
    turn: Duration,
    first: usize,
) -> Result<[Option<Measurement>; 2], Abort> {
    let clock = sides[0].running.trial.context.hosts.clock();
    let began = clock.now();
    let mut measurements = [0, 1].map(|nth| Some(sides[nth].blank(slices[nth])));
    match attempt(sides, slices, turn, first, &mut measurements) {
        Ok(()) => {}
        Err((_, Failure::Stopped)) => return Err(Abort::Stopped),
        Err((_, Failure::File(error))) => return Err(Abort::Journal(error.into())),
        Err((nth, Failure::Trial(error))) => {
            measurements[1 - nth] = None;
            measurements[nth] = measurements[nth].take().map(|measurement| failed(measurement, error));
        }
    }
    for measurement in measurements.iter_mut().flatten() {
        measurement.took_s = clock.since(began).as_secs_f64();
    }
    Ok(measurements)
}

/// Notes with the owners of the CPUs of each what the roles of the other used of them.
fn know_each_other(measured: &mut [Measured; 2]) {
    let roles = |of: &Measured| of.window.owners.iter().map(|machine| machine.roles.clone()).collect::<Vec<_>>();
    let [of_a, of_b] = [roles(&measured[0]), roles(&measured[1])];
    for (measured, others) in measured.iter_mut().zip([of_b, of_a]) {
        for (machine, roles) in measured.window.owners.iter_mut().zip(others) {
            machine.beside = roles;
        }
    }
}

/// Which side failed, and how.
type Failed = (usize, Failure);

fn attempt(
    sides: &mut [Side<'_>; 2],
    slices: [Slice<'_>; 2],
    turn: Duration,
    first: usize,
    measurements: &mut [Option<Measurement>; 2],
) -> Result<(), Failed> {
    let of = |nth: usize| move |failure: Failure| (nth, failure);
    let prepared =
        [sides[0].prepare(slices[0], turn).map_err(of(0))?, sides[1].prepare(slices[1], turn).map_err(of(1))?];
    let [a, b] = sides;
    let a = a.running.connect(&prepared[0]).map_err(of(0))?;
    let b = b.running.connect(&prepared[1]).map_err(of(1))?;
    let roots = [a.roots(), b.roots()];
    let running_loads = [a.watch(&roots[1]).map_err(of(0))?, b.watch(&roots[0]).map_err(of(1))?];
    let mut measured = measure_both(running_loads, turn, first)?;
    know_each_other(&mut measured);
    for (nth, (measured, before)) in measured.into_iter().zip(prepared).enumerate() {
        let (side, slice) = (&sides[nth], slices[nth]);
        let mut measured = side.running.settled(&side.point(slice), before, measured).map_err(of(nth))?;
        connections::add(&mut measured.window.series, &measured.load);
        let storage = side.running.trial.context.hosts.storage();
        measure::write_files(slice.folder, &measured.window, storage.as_ref())
            .map_err(|error| (nth, Failure::File(error)))?;
        let point = side.running.audited(&side.point(slice), measured, None);
        let Some(measurement) = &mut measurements[nth] else { continue };
        measurement.points.push(point);
        conclude(measurement, side.running.trial.spec.load, Vec::new(), side.running.trial.context.hosts.clients.len());
    }
    Ok(())
}
