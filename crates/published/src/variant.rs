//! Parses the `variant` of a published figure, and finds the part of a measurement that it belongs to. `ratios`,
//! `facts`, `run_cases`, the document's tables and the charts use it.

use weir_model::metric::Window;
use weir_model::record::Measurement;

/// What distinguishes figures of the same case and product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Variant {
    /// Nothing: the figure is for the whole case.
    Whole,
    /// `4c`: the number of cores of the proxy's machine.
    Cores(u32),
    /// `round 3`: the third measurement without a restart, or the third point of another series.
    Round(u32),
    /// `50000 connections`: a point of a curve, which `points` finds.
    Connections(u32),
    /// `10000 requests/s`: the same.
    Rate(f64),
    /// `top`: the proxy's machine, at a moment of the measurement.
    Machine,
    /// `pid 33301`: one process of the product, at such a moment.
    Process(u32),
    /// A variant without a counterpart in a measurement, such as a process of another program.
    Other,
}

impl Variant {
    pub fn parse(text: &str) -> Variant {
        if text.is_empty() {
            return Variant::Whole;
        }
        if let Some(cores) = text.strip_suffix('c').and_then(|number| number.parse().ok()) {
            return Variant::Cores(cores);
        }
        if let Some(round) = text.strip_prefix("round ").and_then(|number| number.parse().ok()) {
            return Variant::Round(round);
        }
        if let Some(connections) = text.strip_suffix(" connections").and_then(|number| number.parse().ok()) {
            return Variant::Connections(connections);
        }
        if text == "top" {
            return Variant::Machine;
        }
        if let Some(pid) = text.strip_prefix("pid ").and_then(|number| number.parse().ok()) {
            return Variant::Process(pid);
        }
        let rate = text.strip_suffix(" requests/s").and_then(|number| number.parse().ok());
        rate.map_or(Variant::Other, Variant::Rate)
    }

    /// The part of a measurement that the variant belongs to; `None` when there is none.
    pub fn window(self, measurement: &Measurement) -> Option<Window<'_>> {
        match self {
            Variant::Whole | Variant::Cores(_) | Variant::Machine => Window::of_trial(measurement),
            Variant::Round(round) => measurement.points.iter().find(|point| point.point == round).map(Window::of_point),
            Variant::Connections(_) | Variant::Rate(_) | Variant::Process(_) | Variant::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_told_apart() {
        use Variant::{Connections, Cores, Machine, Other, Process, Rate, Round, Whole};
        let all = ["", "4c", "16c", "round 3", "200 connections", "5e3 requests/s"].map(Variant::parse);
        assert_eq!(all, [Whole, Cores(4), Cores(16), Round(3), Connections(200), Rate(5e3)]);
        let listed = ["top", "pid 34028", "pid 491 (another program)", "c"].map(Variant::parse);
        assert_eq!(listed, [Machine, Process(34_028), Other, Other]);
    }
}
