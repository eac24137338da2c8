//! Values computed by hand, and what happens at the edges.

use weir_stats::{
    Estimate, Ranked, detectable_difference, median, median_interval, paired_noise, paired_ratio, relative_noise,
    shared_ranks,
};

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

fn between(low: f64, high: f64) -> Estimate {
    Estimate { value: (low + high) / 2.0, low, high, n: 5, level: 0.9375 }
}

#[test]
fn medians() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[f64::NAN, 7.0, f64::INFINITY]), Some(7.0));
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[f64::NAN]), None);
}

#[test]
fn few_blocks_reach_a_lower_level() {
    let one = median_interval(&[42.0], 0.95, 1).unwrap();
    assert_eq!(one, Estimate { value: 42.0, low: 42.0, high: 42.0, n: 1, level: 0.0 });
    let three = median_interval(&[11.0, 9.0, 10.0], 0.95, 1).unwrap();
    assert_eq!(three, Estimate { value: 10.0, low: 9.0, high: 11.0, n: 3, level: 0.75 });
    let five = median_interval(&[5.0, 4.0, 3.0, 2.0, 1.0], 0.95, 1).unwrap();
    assert_eq!(five, Estimate { value: 3.0, low: 1.0, high: 5.0, n: 5, level: 0.9375 });
    let with_a_hole = median_interval(&[11.0, f64::NAN, 9.0, 10.0], 0.95, 1).unwrap();
    assert_eq!(with_a_hole, three);
}

#[test]
fn intervals_refuse_what_is_no_level_or_no_data() {
    for level in [0.0, 1.0, -0.5, 2.0, f64::NAN] {
        assert_eq!(median_interval(&[1.0, 2.0], level, 0), None);
        assert_eq!(paired_ratio(&[1.0, 2.0], &[1.0, 2.0], level, 0), None);
    }
    assert_eq!(median_interval(&[f64::NEG_INFINITY], 0.9, 0), None);
}

#[test]
fn ratio_of_three_blocks_is_widened_to_student() {
    // Ratios 1, 2, 4: logs 0, ln 2, 2 ln 2. Mean ln 2, standard deviation ln 2, t(0.975, 2) = 4.30265.
    let e = paired_ratio(&[10.0, 40.0, 80.0], &[10.0, 20.0, 20.0], 0.95, 1).unwrap();
    close(e.value, 2.0);
    let half = 4.302_652_73 * 2_f64.ln() / 3_f64.sqrt();
    assert!((e.low.ln() - (2_f64.ln() - half)).abs() < 1e-6, "{e:?}");
    assert!((e.high.ln() - (2_f64.ln() + half)).abs() < 1e-6, "{e:?}");
    assert_eq!((e.n, e.level), (3, 0.95));
}

#[test]
fn ratio_of_six_blocks_needs_no_assumption() {
    // Six pairs carry 1 - 2/64 = 96.9 %: smallest to largest ratio.
    let a = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6];
    let e = paired_ratio(&a, &[1.0; 6], 0.95, 1).unwrap();
    close(e.low, 1.1);
    close(e.high, 1.6);
    close(e.value, (1.3_f64 * 1.4).sqrt());
    assert_eq!((e.n, e.level), (6, 0.95));
}

#[test]
fn ratio_of_one_block_promises_nothing() {
    let e = paired_ratio(&[3.0, f64::NAN, 0.0, -1.0], &[2.0, 1.0, 1.0, 1.0], 0.95, 1).unwrap();
    close(e.value, 1.5);
    assert_eq!((e.low, e.high, e.n, e.level), (e.value, e.value, 1, 0.0));
    assert_eq!(paired_ratio(&[1.0], &[1.0, 2.0], 0.95, 1), None);
    assert_eq!(paired_ratio(&[0.0], &[1.0], 0.95, 1), None);
}

#[test]
fn ranks_of_a_chain_of_overlaps() {
    // A ~ B, B ~ C, A above C.
    let (a, b, c) = (between(10.0, 12.0), between(8.0, 11.0), between(7.0, 9.0));
    let place = |index, rank_low, rank_high| Ranked { index, rank_low, rank_high };
    assert_eq!(shared_ranks(&[c, a, b], true, |_, _| true), [place(1, 1, 2), place(2, 1, 3), place(0, 2, 3)]);
    assert_eq!(shared_ranks(&[c, a, b], false, |_, _| true), [place(0, 1, 2), place(2, 1, 3), place(1, 2, 3)]);
}

#[test]
fn ranks_of_clear_and_of_equal_products() {
    let place = |index, rank_low, rank_high| Ranked { index, rank_low, rank_high };
    let apart = [between(1.0, 2.0), between(5.0, 6.0), between(3.0, 4.0)];
    assert_eq!(shared_ranks(&apart, true, |_, _| true), [place(1, 1, 1), place(2, 2, 2), place(0, 3, 3)]);
    let same = [between(1.0, 2.0); 3];
    assert_eq!(shared_ranks(&same, true, |_, _| true), [place(0, 1, 3), place(1, 1, 3), place(2, 1, 3)]);
    let touching = [between(1.0, 2.0), between(2.0, 3.0)];
    assert_eq!(shared_ranks(&touching, true, |_, _| true), [place(1, 1, 2), place(0, 1, 2)]);
    assert_eq!(shared_ranks(&[], true, |_, _| true), []);
}

#[test]
fn what_is_not_a_number_is_not_ranked_above_anything() {
    let ranks = shared_ranks(&[between(f64::NAN, f64::NAN), between(5.0, 6.0), between(1.0, 2.0)], true, |_, _| true);
    assert_eq!(ranks.iter().map(|r| r.index).collect::<Vec<_>>(), [1, 0, 2]);
    assert_eq!((ranks[1].rank_low, ranks[1].rank_high), (1, 3));
}

#[test]
fn noise_is_the_corrected_mad() {
    // Median 100, deviations 2 1 0 1 90: MAD 1; 1.206 corrects five values.
    close(relative_noise(&[98.0, 99.0, 100.0, 101.0, 190.0]).unwrap(), 1.206 * 1.482_602_218_505_602 / 100.0);
    // Of twelve: the median is 6.5, that of the deviations 3, and beyond the table the correction is n / (n - 0.8).
    let twelve: Vec<f64> = (1..=12).map(f64::from).collect();
    close(relative_noise(&twelve).unwrap(), 3.0 * 1.482_602_218_505_602 * 12.0 / 11.2 / 6.5);
    assert_eq!(relative_noise(&[5.0, 5.0, 5.0]), Some(0.0));
    assert_eq!(relative_noise(&[5.0]), None);
    assert_eq!(relative_noise(&[-1.0, 0.0, 1.0]), None);
    assert_eq!(relative_noise(&[5.0, f64::NAN]), None);
}

#[test]
fn pairing_cancels_what_both_share() {
    let moods = [1.0, 0.8, 1.3, 0.9, 1.1];
    let other: Vec<f64> = moods.iter().map(|x| x * 3.0).collect();
    assert!(paired_noise(&moods, &other).unwrap() < 1e-12);
    assert!(relative_noise(&moods).unwrap() > 0.1);
    assert_eq!(paired_noise(&[1.0, 2.0], &[1.0]), None);
}

#[test]
fn detectable_difference_by_the_tables() {
    // 3 blocks: t = 4.3027 + 1.0607; s = sqrt(2 ln(1 + 0.0001)) = 0.014142; / sqrt 3; exp.
    let by_hand = ((4.302_653 + 1.060_660) * 0.014_141_782 / 3_f64.sqrt()).exp();
    assert!((detectable_difference(0.01, 3, 0.95) - by_hand).abs() < 1e-6);
    // Many blocks: the normal's 1.95996 + 0.84162, to within the t distribution's excess at 1,000.
    let normal = ((1.959_964 + 0.841_621) * 0.014_141_782 / 1000_f64.sqrt()).exp();
    assert!((detectable_difference(0.01, 1000, 0.95) - normal).abs() < 1e-5);
    assert_eq!(detectable_difference(0.0, 5, 0.95), 1.0);
    for (noise, blocks, level) in [(0.01, 1, 0.95), (f64::NAN, 5, 0.95), (-1.0, 5, 0.95), (0.01, 5, 1.0)] {
        assert_eq!(detectable_difference(noise, blocks, level), f64::INFINITY);
    }
}

#[test]
fn an_estimate_survives_json() {
    let e = median_interval(&[1.0, 2.0, 3.0], 0.95, 1).unwrap();
    let text = serde_json::to_string(&e).unwrap();
    assert_eq!(text, r#"{"value":2.0,"low":1.0,"high":3.0,"n":3,"level":0.75}"#);
    assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), e);
}
