//! Knees of curves whose shape is known.

use proptest::prelude::*;
use weir_stats::{Bend, knee};

/// Latency of a single server at a share of its capacity (M/M/1).
fn queue(load: f64) -> f64 {
    1.0 / (1.0 - load)
}

#[test]
fn the_example_of_the_paper() {
    // y = 5 - 1 / (x + 0.1) at ten points: their figure 2 puts the knee at x = 0.22.
    let xs: Vec<f64> = (0..10).map(|i| f64::from(i) / 9.0).collect();
    let ys: Vec<f64> = xs.iter().map(|x| 5.0 - 1.0 / (x + 0.1)).collect();
    assert_eq!(knee(&xs, &ys, Bend::Down, 1.0), Some(2));
    // The same curve turned by half a turn bends up, at the other end.
    let (turned_x, turned_y): (Vec<f64>, Vec<f64>) = (xs.iter().map(|x| -x).collect(), ys.iter().map(|y| -y).collect());
    assert_eq!(knee(&turned_x, &turned_y, Bend::Up, 1.0), Some(2));
}

#[test]
fn latency_climbs_near_capacity() {
    let loads = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98];
    let latencies: Vec<f64> = loads.iter().map(|l| queue(*l)).collect();
    assert_eq!(knee(&loads, &latencies, Bend::Up, 1.0), Some(8));
    // By order of magnitude it climbs earlier.
    let magnitudes: Vec<f64> = latencies.iter().map(|l| l.ln()).collect();
    assert!(knee(&loads, &magnitudes, Bend::Up, 1.0).unwrap() < 8);
}

#[test]
fn two_straight_pieces_meet_at_the_knee() {
    let xs: Vec<f64> = (0..20).map(f64::from).collect();
    let flat_then_steep: Vec<f64> = xs.iter().map(|x| if *x < 13.0 { 1.0 } else { 1.0 + 5.0 * (x - 13.0) }).collect();
    assert_eq!(knee(&xs, &flat_then_steep, Bend::Up, 1.0), Some(13));
    let steep_then_flat: Vec<f64> = xs.iter().map(|x| x.min(4.0)).collect();
    assert_eq!(knee(&xs, &steep_then_flat, Bend::Down, 1.0), Some(4));
    // Bent the other way there is none.
    assert_eq!(knee(&xs, &flat_then_steep, Bend::Down, 1.0), None);
    assert_eq!(knee(&xs, &steep_then_flat, Bend::Up, 1.0), None);
}

#[test]
fn curves_without_a_knee() {
    let xs: Vec<f64> = (0..10).map(f64::from).collect();
    let line: Vec<f64> = xs.iter().map(|x| 3.0 * x + 1.0).collect();
    let wavy: Vec<f64> = xs.iter().map(|x| 3.0 * x + 1.0 + (x * 2.0).sin()).collect();
    for bend in [Bend::Up, Bend::Down] {
        assert_eq!(knee(&xs, &line, bend, 1.0), None);
        assert_eq!(knee(&xs, &wavy, bend, 1.0), None, "a wave on a line is no knee");
        assert_eq!(knee(&xs, &[7.0; 10], bend, 1.0), None);
        assert_eq!(knee(&[7.0; 10], &xs, bend, 1.0), None);
        assert_eq!(knee(&xs[..3], &[1.0, 1.0, 9.0], bend, 1.0), None);
        assert_eq!(knee(&xs, &line[..5], bend, 1.0), None);
        assert_eq!(knee(&xs, &line, bend, f64::NAN), None);
    }
}

#[test]
fn more_sensitivity_asks_for_a_plainer_knee() {
    let xs: Vec<f64> = (0..10).map(f64::from).collect();
    let slight: Vec<f64> = xs.iter().map(|x| x.powf(1.8)).collect();
    assert!(knee(&xs, &slight, Bend::Up, 0.5).is_some());
    assert_eq!(knee(&xs, &slight, Bend::Up, 3.0), None);
}

#[test]
fn points_without_a_number_are_skipped_and_places_kept() {
    let xs = [4.0, 0.0, f64::NAN, 1.0, 2.0, 3.0, 5.0];
    let ys = [9.0, 1.0, 3.0, 1.0, 1.0, 1.0, f64::INFINITY];
    assert_eq!(knee(&xs, &ys, Bend::Up, 1.0), Some(5));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_knee_of_two_pieces_is_found(bend_at in 3_u32..17, slope in 3.0..50.0) {
        let xs: Vec<f64> = (0..20).map(f64::from).collect();
        let ys: Vec<f64> = xs.iter().map(|x| x + slope * (x - f64::from(bend_at)).max(0.0)).collect();
        prop_assert_eq!(knee(&xs, &ys, Bend::Up, 1.0), Some(bend_at as usize));
    }

    #[test]
    fn units_do_not_matter(
        ys in prop::collection::vec(0.0..100.0, 4..20), wide in 1e-6..1e6, tall in 1e-6..1e6, sensitivity in 0.3..3.0
    ) {
        let xs: Vec<f64> = (0..ys.len()).map(|i| i as f64).collect();
        // Powers of two scale without rounding.
        let two = |x: f64| x.log2().round().exp2();
        let scaled_xs: Vec<f64> = xs.iter().map(|x| x * two(wide)).collect();
        let scaled_ys: Vec<f64> = ys.iter().map(|y| y * two(tall)).collect();
        for bend in [Bend::Up, Bend::Down] {
            let (one, other) = (knee(&xs, &ys, bend, sensitivity), knee(&scaled_xs, &scaled_ys, bend, sensitivity));
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn nothing_panics(
        xs in prop::collection::vec(any::<f64>(), 0..20), ys in prop::collection::vec(any::<f64>(), 0..20), s: f64
    ) {
        let same = xs.len().min(ys.len());
        for bend in [Bend::Up, Bend::Down] {
            for at in [knee(&xs, &ys, bend, s), knee(&xs[..same], &ys[..same], bend, s), knee(&xs[..same], &ys[..same], bend, 1.0)] {
                prop_assert!(at.is_none_or(|at| at < same));
            }
        }
    }
}
