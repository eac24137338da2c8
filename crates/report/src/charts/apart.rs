//! The direct path beside slow products: where it carries many times what they do, its curve would press theirs flat, and what
//! somebody wants to see is theirs. Then it is not drawn, and said in words. Knows curves, nothing of runs.

use crate::chart::Curve;
use crate::chart::axis::Scale;
use weir_model::text::short;

/// So many times the highest product is too far: of the height of the picture less than a third would be left to the products.
const TOO_FAR: f64 = 3.0;

/// Curves, told apart.
#[derive(Debug, Default)]
pub struct Told {
    /// To be drawn.
    pub drawn: Vec<Curve>,
    /// Not to be drawn.
    pub apart: Vec<Curve>,
    /// What to say of them.
    pub notes: Vec<String>,
}

/// Takes curves of the direct path (those with the flag) out of a picture in which they would be too far above all others.
/// Nothing is too far on a logarithmic axis.
pub fn told(curves: Vec<(bool, Curve)>, scale: Scale, unit: &str) -> Told {
    let highest = curves.iter().filter(|(direct, _)| !direct).map(|(_, curve)| most(curve)).fold(0.0, f64::max);
    let mut told = Told::default();
    for (direct, curve) in curves {
        if direct && scale == Scale::Linear && highest > 0.0 && most(&curve) > highest * TOO_FAR {
            told.notes.push(format!(
                "Not drawn: {}, up to {} {unit}, {} times the highest of the others, which it would press flat. Its numbers are in the \
                 CSV.",
                curve.name,
                short(most(&curve)),
                short(most(&curve) / highest)
            ));
            told.apart.push(curve);
        } else {
            told.drawn.push(curve);
        }
    }
    told
}

fn most(curve: &Curve) -> f64 {
    curve.points.iter().map(|point| point.interval.map_or(point.y, |(_, high)| high.max(point.y))).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{CurvePoint, Dash};

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

    fn drawn(direct: f64, product: f64, scale: Scale) -> (usize, usize, usize) {
        let curves = vec![(true, curve("direct", &[direct])), (false, curve("Alder", &[1.0, product]))];
        let told = told(curves, scale, "requests/s");
        (told.drawn.len(), told.apart.len(), told.notes.len())
    }

    #[test]
    fn what_would_press_the_others_flat_is_said_and_not_drawn() {
        assert_eq!(drawn(31_000.0, 10_000.0, Scale::Linear), (1, 1, 1));
        assert_eq!(drawn(29_000.0, 10_000.0, Scale::Linear), (2, 0, 0));
        assert_eq!(drawn(31_000.0, 10_000.0, Scale::Log), (2, 0, 0));
        let told = told(
            vec![(true, curve("direct", &[107_000.0, 108_000.0])), (false, curve("Alder", &[20_000.0]))],
            Scale::Linear,
            "requests/s",
        );
        assert_eq!(told.drawn[0].name, "Alder");
        assert!(told.notes[0].starts_with("Not drawn: direct, up to 108,000 requests/s, 5.40 times the highest"));
    }

    #[test]
    fn a_fast_product_or_one_alone_is_drawn() {
        let fast = vec![(false, curve("Birch", &[90_000.0])), (false, curve("Alder", &[1_000.0]))];
        assert_eq!(told(fast, Scale::Linear, "").drawn.len(), 2);
        assert_eq!(
            told(vec![(true, curve("direct", &[5.0]))], Scale::Linear, "").drawn.len(),
            1,
            "there is nothing to press"
        );
    }
}
