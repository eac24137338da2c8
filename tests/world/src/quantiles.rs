//! Quantiles computed a second time, from a list of times: tests compare them with those of a result. It does not know how the load
//! generator records a time.

use weir_model::load::Quantiles;

/// Samples, percentiles, and the least, the mean and the deviation, these to a thousandth of a nanosecond: sums depend on their order.
pub type Numbers = (u64, [f64; 8], [f64; 3]);

/// The numbers of a result.
pub fn numbers(of: &Quantiles) -> Numbers {
    let percentiles = [of.p50_us, of.p75_us, of.p90_us, of.p95_us, of.p99_us, of.p999_us, of.p9999_us, of.max_us];
    (of.count, percentiles, [of.min_us, of.mean_us, of.stdev_us].map(|us| (us * 1e6).round() / 1e6))
}

/// What an HDR histogram from 1 µs with 3 digits makes of nanoseconds: it has steps of 512 ns up to 2^20 ns, and of twice as much for each
/// power of two above.
pub fn by_hand(nanos: impl Iterator<Item = u64>) -> Numbers {
    let step = |value: u64| 512 << (64 - value.leading_zeros()).saturating_sub(20);
    let mut all: Vec<(u64, u64)> = nanos.map(|value| (value - value % step(value), step(value))).collect();
    all.sort_unstable();
    let (Some((least, _)), n) = (all.first(), all.len() as f64) else { return numbers(&Quantiles::default()) };
    let us = |nanos: u64| if nanos < 512 { 0.0 } else { nanos as f64 / 1e3 };
    let at = |q: f64| all[(q * n).ceil() as usize - 1];
    let percentiles = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0].map(|q| us(at(q).0 + at(q).1 - 1));
    let middle = |(low, step): &(u64, u64)| (low + step / 2) as f64;
    let mean = all.iter().map(middle).sum::<f64>() / n;
    let deviation = (all.iter().map(|one| (middle(one) - mean).powi(2)).sum::<f64>() / n).sqrt();
    // The lowest step counts as nothing.
    let excess = all.iter().filter(|(low, _)| *low == 0).count() as f64 * 256.0 / n;
    let moments = [us(*least), (mean - excess) / 1e3, deviation / 1e3];
    (all.len() as u64, percentiles, moments.map(|us| (us * 1e6).round() / 1e6))
}
