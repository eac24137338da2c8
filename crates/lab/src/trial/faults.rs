//! Provokes the faults of a load in the product's parts, at their times in the measured window. They are sent ahead, and each part's
//! host provokes them; those of the pool's members the origin itself ([`super::origin`]), and slow clients the client. [`super::running_load`]
//! calls it.
//!
//! It knows neither what the client sees of them, nor what comes of it.

use std::time::Duration;

use weir_host::Disturbance;
use weir_model::At;
use weir_model::fault::{Fault, FaultKind, FaultRecord};
use weir_model::product::{Product, ProductKind};
use weir_product::failure::Failure;
use weir_product::running::Running;

/// The faults of a load.
#[derive(Debug, Default)]
pub struct Faults {
    steps: Vec<Step>,
    /// The window's start by the clock of each part's host; empty before it.
    begun: Vec<At>,
    records: Vec<FaultRecord>,
}

/// The beginning or the end of a fault.
#[derive(Debug)]
struct Step {
    at: Duration,
    /// Which of the records.
    fault: usize,
    begins: bool,
    what: Disturbance,
    parts: Vec<usize>,
}

impl Faults {
    /// The faults of a load in a product.
    ///
    /// # Errors
    /// The product has no such part.
    pub fn new(faults: &[Fault], product: &Product) -> Result<Faults, Failure> {
        let mut steps = Vec::new();
        let of_part = |fault: &Fault| fault.member.is_none() && !fault.what.is_of_clients();
        for (index, fault) in faults.iter().enumerate().filter(|(_, fault)| of_part(fault)) {
            let parts = parts_of(fault, product)?;
            let (begin, end) = disturbances(fault.what);
            let step = |at, begins, what| Step { at, fault: index, begins, what, parts: parts.clone() };
            steps.extend([step(fault.at, true, begin), step(fault.end(), false, end)]);
        }
        steps.sort_by_key(|step| step.at);
        // A member's and slow clients are there by the origin's and the client's clock, as they were planned.
        let times = |fault: &Fault| {
            let of_member = fault.member.is_some() && product.kind != ProductKind::Direct;
            let planned = of_member || fault.what.is_of_clients();
            if planned { (fault.at.as_secs_f64(), fault.end().as_secs_f64()) } else { (0.0, 0.0) }
        };
        let record = |fault: &Fault| {
            let (began_s, ended_s) = times(fault);
            FaultRecord { what: fault.what, part: fault.target(), began_s, ended_s, memory_bytes: None }
        };
        Ok(Faults { steps, begun: Vec::new(), records: faults.iter().map(record).collect() })
    }

    /// Sends all steps ahead, for a window that begins at this time of this machine.
    ///
    /// # Errors
    /// A part's supervisor is gone.
    pub fn begin(&mut self, window: At, running: &mut Running) -> Result<(), Failure> {
        self.begun = running.part_times(window);
        for step in &self.steps {
            for part in &step.parts {
                running.disturb(*part, step.what, self.begun[*part].plus(step.at))?;
            }
        }
        Ok(())
    }

    /// Tells when each fault began and ended, of those that were provoked. The load is over, and the faults with it: none goes
    /// beyond the window.
    pub fn end(mut self, running: Option<&mut Running>) -> Vec<FaultRecord> {
        let Some(running) = running.filter(|_| !self.begun.is_empty()) else {
            self.records.retain(|record| record.ended_s > 0.0);
            return self.records;
        };
        for step in &self.steps {
            let done = step.parts.iter().map(|part| {
                let (begun, of_part) = (self.begun[*part], running.disturbed(*part).into_iter());
                let due = begun.plus(step.at);
                of_part
                    .filter(|(what, at)| *what == step.what && at.mono_ns >= due.mono_ns)
                    .map(|(_, at)| at.mono_ns.saturating_sub(begun.mono_ns))
                    .min()
            });
            // With several parts, the last one counts.
            let Some(done) = done.collect::<Option<Vec<u64>>>().and_then(|times| times.into_iter().max()) else {
                continue;
            };
            let record = &mut self.records[step.fault];
            let now = done as f64 / 1e9;
            if step.begins { record.began_s = now } else { record.ended_s = now }
        }
        self.records.retain(|record| record.ended_s > 0.0);
        self.records
    }
}

/// What begins a fault, and what ends it.
fn disturbances(what: FaultKind) -> (Disturbance, Disturbance) {
    match what {
        FaultKind::Kill => (Disturbance::Kill, Disturbance::Start),
        FaultKind::Freeze => (Disturbance::Freeze, Disturbance::Thaw),
        FaultKind::DiskFull => (Disturbance::FillDisk, Disturbance::FreeDisk),
        FaultKind::Slow
        | FaultKind::Reset
        | FaultKind::Unavailable
        | FaultKind::SlowReaders
        | FaultKind::SlowWriters => {
            unreachable!("a suite has them of members and clients alone")
        }
    }
}

fn parts_of(fault: &Fault, product: &Product) -> Result<Vec<usize>, Failure> {
    let wrong = |message: String| {
        let remedy = "name such products in the workload's `products`, or another part in the fault";
        Err(Failure::at("start", message, "", remedy))
    };
    let ProductKind::Proxy(program) = &product.kind else {
        return wrong(format!("{} is no program in which a fault can be provoked", product.title));
    };
    let parts = fault.parts(program);
    let bare = |part: &usize| program.parts[*part].process.scratch.is_empty();
    match parts.iter().find(|part| fault.what == FaultKind::DiskFull && bare(part)) {
        // Of all parts, those with a scratch folder are meant.
        _ if parts.is_empty() && fault.part == "all" => {
            wrong(format!("{} has no scratch folder that can be full", product.title))
        }
        _ if parts.is_empty() => wrong(format!("{} has no part {:?}", product.title, fault.part)),
        Some(part) => wrong(format!("{} has no scratch folder that can be full", program.parts[*part].name)),
        None => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use weir_model::units::ByteCount;

    /// A product of one part without a scratch folder.
    fn product() -> Product {
        let text = include_str!("../../tests/no-scratch.toml");
        Product::parse("echo", "product.toml", text, BTreeMap::new(), BTreeMap::new()).expect("a product")
    }

    #[test]
    fn each_fault_begins_and_ends_in_the_order_of_their_times() {
        let second = Duration::from_secs;
        let fault = |what, at, lasts| Fault {
            what,
            part: "all".into(),
            at: second(at),
            lasts: second(lasts),
            ..Fault::default()
        };
        let product = product();
        let faults = [fault(FaultKind::Freeze, 3, 1), fault(FaultKind::Kill, 1, 9)];
        let order: Vec<_> =
            Faults::new(&faults, &product).unwrap().steps.iter().map(|step| (step.at.as_secs(), step.what)).collect();
        let expected =
            [(1, Disturbance::Kill), (3, Disturbance::Freeze), (4, Disturbance::Thaw), (10, Disturbance::Start)];
        assert_eq!(order, expected);
    }

    #[test]
    fn what_a_product_lacks_is_said() {
        let product = product();
        let fault = |part: &str, what| Fault {
            what,
            part: part.into(),
            at: Duration::ZERO,
            lasts: Duration::from_secs(1),
            disk: Some(ByteCount(1)),
            ..Fault::default()
        };
        for (fault, text) in [
            (fault("store-7", FaultKind::Kill), "has no part \"store-7\""),
            (fault("front", FaultKind::DiskFull), "no scratch folder"),
            (fault("all", FaultKind::DiskFull), "no scratch folder"),
        ] {
            let error = Faults::new(&[fault], &product).unwrap_err();
            assert!(error.to_string().contains(text), "{error:?}");
        }
    }
}
