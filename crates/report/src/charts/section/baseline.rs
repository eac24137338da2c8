//! Removes the direct path from a chart in which it would be so far above the products that their curves looked flat,
//! and adds a note that says so. Used by `curves` and by `weir-published`.

use crate::charts::Curve;
use crate::charts::axis::Scale;
use weir_model::text::short;

/// The direct path is too far above when it reaches more than this many times the highest product: less than a third of
/// the chart's height would be left to the products.
const TOO_FAR: f64 = 3.0;

/// Curves of a picture, and those that it leaves out.
#[derive(Debug, Default)]
pub struct Separated {
    /// To be drawn.
    pub drawn: Vec<Curve>,
    /// Not to be drawn, only among the numbers.
    pub csv_only: Vec<Curve>,
    /// A sentence for each that is left out.
    pub notes: Vec<String>,
}

/// Removes the curves of the direct path (those with the flag) from a chart in which they would be too far above all others.
/// On a logarithmic axis no curve is too far above the others.
pub fn separate(curves: Vec<(bool, Curve)>, scale: Scale, unit: &str) -> Separated {
    let highest = curves.iter().filter(|(direct, _)| !direct).map(|(_, curve)| most(curve)).fold(0.0, f64::max);
    let mut separated = Separated::default();
    for (direct, curve) in curves {
        if direct && scale == Scale::Linear && highest > 0.0 && most(&curve) > highest * TOO_FAR {
            separated.notes.push(format!(
                "Not drawn: {}, up to {} {unit}, {} times the highest of the others, which it would press flat. Its numbers are in the \
                 CSV.",
                curve.name,
                short(most(&curve)),
                short(most(&curve) / highest)
            ));
            separated.csv_only.push(curve);
        } else {
            separated.drawn.push(curve);
        }
    }
    separated
}

fn most(curve: &Curve) -> f64 {
    curve.points.iter().map(|point| point.interval.map_or(point.y, |(_, high)| high.max(point.y))).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::{CurvePoint, Dash};

    fn curve(name: &str, rates: &[f64]) -> Curve {
        let point = |(x, y): (usize, &f64)| CurvePoint { x: x as f64, y: *y, interval: None, hollow: false };
        Curve {
            name: name.to_string(),
            colour: "#000000".to_string(),
            dash: Dash::Solid,
            points: rates.iter().enumerate().map(point).collect(),
            knee: None,
        }
    }

    fn counts(direct: f64, product: f64, scale: Scale) -> (usize, usize, usize) {
        let curves = vec![(true, curve("direct", &[direct])), (false, curve("Alder", &[1.0, product]))];
        let separated = separate(curves, scale, "requests/s");
        (separated.drawn.len(), separated.csv_only.len(), separated.notes.len())
    }

    #[test]
    fn a_curve_far_above_the_others_is_noted_and_not_drawn() {
        assert_eq!(counts(31_000.0, 10_000.0, Scale::Linear), (1, 1, 1));
        assert_eq!(counts(29_000.0, 10_000.0, Scale::Linear), (2, 0, 0));
        assert_eq!(counts(31_000.0, 10_000.0, Scale::Log), (2, 0, 0));
        let separated = separate(
            vec![(true, curve("direct", &[107_000.0, 108_000.0])), (false, curve("Alder", &[20_000.0]))],
            Scale::Linear,
            "requests/s",
        );
        assert_eq!(separated.drawn[0].name, "Alder");
        assert!(separated.notes[0].starts_with("Not drawn: direct, up to 108,000 requests/s, 5.40 times the highest"));
    }

    #[test]
    fn a_fast_product_or_one_alone_is_drawn() {
        let fast = vec![(false, curve("Birch", &[90_000.0])), (false, curve("Alder", &[1_000.0]))];
        assert_eq!(separate(fast, Scale::Linear, "").drawn.len(), 2);
        assert_eq!(
            separate(vec![(true, curve("direct", &[5.0]))], Scale::Linear, "").drawn.len(),
            1,
            "there is nothing to press"
        );
    }
}
