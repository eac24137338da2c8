//! Provokes the faults of a load in the product's parts, at their times in the measured window. `measure` calls it.
//!
//! It knows neither what the client sees of them, nor what comes of it.

use std::time::{Duration, Instant};

use weir_host::Disturbance;
use weir_model::fault::{Fault, FaultKind, FaultRecord};
use weir_model::product::{Product, ProductKind};
use weir_product::failure::Failure;
use weir_product::running::Running;

/// The faults of a load, and how far they have come.
#[derive(Debug, Default)]
pub struct Faults {
    steps: Vec<Step>,
    /// Those that are done come first.
    next: usize,
    /// The window's start; `None` before it.
    begun: Option<Instant>,
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
        for (index, fault) in faults.iter().enumerate() {
            let parts = parts_of(fault, product)?;
            let (begin, end) = disturbances(fault.what);
            let step = |at, begins, what| Step { at, fault: index, begins, what, parts: parts.clone() };
            steps.extend([step(fault.at, true, begin), step(fault.end(), false, end)]);
        }
        steps.sort_by_key(|step| step.at);
        let record =
            |fault: &Fault| FaultRecord { what: fault.what, part: fault.part.clone(), began_s: 0.0, ended_s: 0.0 };
        Ok(Faults { steps, next: 0, begun: None, records: faults.iter().map(record).collect() })
    }

    /// The window has begun.
    pub fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// How long until the next step; `None`: there is none.
    pub fn wait(&self) -> Option<Duration> {
        let (begun, step) = (self.begun?, self.steps.get(self.next)?);
        Some(step.at.saturating_sub(begun.elapsed()))
    }

    /// Does what is due.
    ///
    /// # Errors
    /// A part's supervisor is gone.
    pub fn advance(&mut self, running: &mut Running) -> Result<(), Failure> {
        while self.wait() == Some(Duration::ZERO) {
            let (Some(step), Some(begun)) = (self.steps.get(self.next), self.begun) else { break };
            running.disturb(&step.parts, step.what)?;
            let record = &mut self.records[step.fault];
            let now = begun.elapsed().as_secs_f64();
            if step.begins {
                record.began_s = now
            } else {
                record.ended_s = now
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Ends what has not ended yet, and tells when each fault began and ended.
    ///
    /// # Errors
    /// A part's supervisor is gone.
    pub fn end(mut self, running: Option<&mut Running>) -> Result<Vec<FaultRecord>, Failure> {
        if let Some(running) = running {
            for step in self.steps.drain(self.next..).filter(|step| !step.begins) {
                running.disturb(&step.parts, step.what)?;
            }
        }
        self.records.retain(|record| record.ended_s > 0.0);
        Ok(self.records)
    }
}

/// What begins a fault, and what ends it.
fn disturbances(what: FaultKind) -> (Disturbance, Disturbance) {
    match what {
        FaultKind::Kill => (Disturbance::Kill, Disturbance::Start),
        FaultKind::Freeze => (Disturbance::Freeze, Disturbance::Thaw),
        FaultKind::DiskFull => (Disturbance::FillDisk, Disturbance::FreeDisk),
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
        let text = r#"
            [product]
            title = "Echo"
            about = "answers"
            home = "https://example.com/"
            speaks = ["http/1.1"]
            [[install]]
            method = "system"
            binary = "echo"
            [version]
            command = ["{{ binary }}", "--version"]
            pattern = "([0-9.]+)"
            [process]
            command = ["{{ binary }}"]
            [profile.stock]
            about = "as it is"
            [profile.tuned]
            about = "as it should be"
        "#;
        Product::parse("echo", "product.toml", text, BTreeMap::new(), BTreeMap::new()).expect("a product")
    }

    #[test]
    fn each_fault_begins_and_ends_in_the_order_of_their_times() {
        let second = Duration::from_secs;
        let fault =
            |what, at, lasts| Fault { what, part: "all".into(), at: second(at), lasts: second(lasts), disk: None };
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
