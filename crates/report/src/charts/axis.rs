//! Places values on an axis and picks readable ticks. It knows numbers, but no pixels and no products.

use weir_model::metric::Metric;
use weir_model::text::{Unit, significant};

/// A fitted axis shows at least this share of its values above and below their middle.
const FITTED_LEAST: f64 = 0.05;

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// Unit, empty for none.
    pub unit: String,
    /// How values are spread.
    pub scale: Scale,
}

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// Evenly, around the values: for small changes of a number that is never near zero. The axis says so.
    Fitted,
    /// By their logarithm; values must be positive.
    Log,
    /// A share `p` of requests (0 to 1) by `-log10(1 - p)`: each tick is ten times as rare as the one before.
    Percentile,
}

/// An axis with its ends: the values 0 and 1 of [`Span::place`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    scale: Scale,
    low: f64,
    high: f64,
}

/// A place on an axis with a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// In the axis' unit.
    pub value: f64,
    /// As drawn.
    pub text: String,
}

impl Axis {
    /// A linear axis from zero.
    pub fn linear(label: &str, unit: &str) -> Axis {
        Axis { label: label.to_string(), unit: unit.to_string(), scale: Scale::Linear }
    }

    /// A linear axis of a metric.
    pub fn of_metric(metric: Metric, unit: Unit) -> Axis {
        Axis::linear(metric.entry().name, unit.name)
    }

    /// Seconds, from left to right.
    pub fn time() -> Axis {
        Axis::linear("Time", Unit::SECONDS.name)
    }

    /// The share of requests that were answered within a time.
    pub fn percentiles() -> Axis {
        Axis { scale: Scale::Percentile, ..Axis::linear("Share of requests answered within", "") }
    }

    /// "Latency, ms (log scale)".
    pub fn title(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        let scale = match self.scale {
            Scale::Log => " (log scale)",
            Scale::Fitted => " (does not begin at 0)",
            Scale::Linear | Scale::Percentile => "",
        };
        format!("{}{unit}{scale}", self.label)
    }
}

/// `p` as a distance: 0 at 0, 1 at 90 %, 2 at 99 %.
pub fn rarity(p: f64) -> f64 {
    -(1.0 - p).max(1e-12).log10()
}

impl Span {
    /// The span that shows all `values`; a logarithmic one ends on ticks.
    pub fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Span {
        let fits = |x: &f64| x.is_finite() && (scale != Scale::Log || *x > 0.0);
        let (least, most) =
            values.filter(fits).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let any = least <= most;
        match scale {
            Scale::Linear => {
                // A little more than the data, not up to the next tick: that would waste up to half of the room.
                Span { scale, low: 0.0, high: if any && most > 0.0 { most * 1.02 } else { 1.0 } }
            }
            Scale::Fitted => {
                let (least, most) = if any { (least, most) } else { (0.0, 1.0) };
                // Noise of a per mille must not fill the picture.
                let middle = (least + most) / 2.0;
                let half = ((most - least) * 0.6).max(middle.abs() * FITTED_LEAST).max(f64::MIN_POSITIVE);
                let low = middle - half;
                Span { scale, low: if least >= 0.0 { low.max(0.0) } else { low }, high: middle + half }
            }
            Scale::Log => {
                let (least, most) = if any { (least, most) } else { (1.0, 10.0) };
                let (low, high) = (step_below(least), step_above(most));
                Span { scale, low, high: if high > low * 1.9 { high } else { low * 10.0 } }
            }
            Scale::Percentile => Span { scale, low: 0.0, high: if any { most } else { 0.99 } },
        }
    }

    /// A linear span from zero to exactly `high`.
    pub fn exact(high: f64) -> Span {
        Span { scale: Scale::Linear, low: 0.0, high: if high > 0.0 && high.is_finite() { high } else { 1.0 } }
    }

    /// Where `value` stands: 0 at the low end, 1 at the high end.
    pub fn place(&self, value: f64) -> f64 {
        let (low, high, value) = match self.scale {
            Scale::Linear | Scale::Fitted => (self.low, self.high, value),
            Scale::Log => (self.low.log10(), self.high.log10(), value.max(f64::MIN_POSITIVE).log10()),
            Scale::Percentile => (rarity(self.low), rarity(self.high), rarity(value)),
        };
        if high > low { (value - low) / (high - low) } else { 0.0 }
    }

    /// The upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Scale and both ends, as the page's script reads them.
    pub fn data(&self) -> String {
        let scale = match self.scale {
            Scale::Linear | Scale::Fitted => "linear",
            Scale::Log => "log",
            Scale::Percentile => "percentile",
        };
        format!("{scale} {} {}", self.low, self.high)
    }

    /// Ticks inside the span.
    pub fn ticks(&self) -> Vec<Tick> {
        let values: Vec<f64> = match self.scale {
            Scale::Linear | Scale::Fitted => {
                let step = step_above(((self.high - self.low) / 7.0).max(1e-12));
                let (first, last) = ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
                (first..=last).map(|i| i as f64 * step).collect()
            }
            Scale::Log => self.log_ticks(),
            Scale::Percentile => return percentile_ticks(self.high),
        };
        values.into_iter().map(|value| Tick { value, text: tick_text(value) }).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match decades {
            d if d <= 1.05 => &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d <= 3.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|x| *x >= self.low * 0.999 && *x <= self.high * 1.001).collect()
    }
}

/// 0, 50, 90, 99, 99.9 ... %.
fn percentile_ticks(high: f64) -> Vec<Tick> {
    let ticks =
        [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (0.99999, "99.999")];
    let inside = ticks.into_iter().filter(|(value, _)| *value <= high + 1e-9);
    inside.map(|(value, text)| Tick { value, text: format!("{text} %") }).collect()
}

/// A tick's number without zeros that say nothing.
pub(super) fn tick_text(value: f64) -> String {
    let text = significant(value, 6);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

fn step_above(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let steps = STEPS.iter().chain(&[10.0]);
    steps.map(|step| step * power).find(|candidate| *candidate >= x * 0.999_999).unwrap_or(10.0 * power)
}

fn step_below(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    STEPS.iter().rev().map(|step| step * power).find(|candidate| *candidate <= x * 1.000_001).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(span: Span) -> Vec<String> {
        span.ticks().into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn linear_axes_start_at_zero_and_hold_their_values() {
        let span = Span::of(Scale::Linear, [45_100.0, 30_000.0].into_iter());
        assert_eq!(texts(span), ["0", "10,000", "20,000", "30,000", "40,000"]);
        assert_eq!(texts(Span::of(Scale::Linear, [0.7].into_iter())), ["0", "0.2", "0.4", "0.6"]);
        assert_eq!(span.place(0.0), 0.0);
        assert!(span.place(45_100.0) < 1.0);
    }

    #[test]
    fn fitted_axes_are_around_their_values_and_say_so() {
        let span = Span::of(Scale::Fitted, [19.5, 20.6].into_iter());
        assert_eq!(texts(span), ["19.5", "20", "20.5", "21"]);
        assert!(span.place(19.5) > 0.0 && span.place(20.6) < 1.0);
        let still = Span::of(Scale::Fitted, [1000.0, 1000.1].into_iter());
        assert!(still.place(1000.1) - still.place(1000.0) < 0.01, "a per mille does not fill the picture");
        assert!(Span::of(Scale::Fitted, [0.0, 1.0].into_iter()).place(0.0) >= 0.0);
        assert_eq!(Axis { scale: Scale::Fitted, ..Axis::linear("CPU", "") }.title(), "CPU (does not begin at 0)");
    }

    #[test]
    fn log_axes_hold_their_values() {
        let span = Span::of(Scale::Log, [0.08, 12.0].into_iter());
        assert_eq!(texts(span), ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]);
        assert!(span.place(0.08) > 0.0 && span.place(12.0) < 1.0);
    }

    #[test]
    fn percentiles_are_spread_by_rarity() {
        let span = Span::of(Scale::Percentile, [0.0, 0.9999].into_iter());
        assert!((span.place(0.99) - 0.5).abs() < 1e-9);
        assert_eq!(texts(span), ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }

    #[test]
    fn axes_without_values_do_not_panic() {
        for scale in [Scale::Linear, Scale::Fitted, Scale::Log, Scale::Percentile] {
            assert!(!Span::of(scale, [f64::NAN].into_iter()).ticks().is_empty());
            assert!(Span::of(scale, std::iter::empty()).place(1.0).is_finite());
        }
        assert!(!Span::of(Scale::Log, [5.0].into_iter()).ticks().is_empty());
    }
}
