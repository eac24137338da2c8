//! Writes the percentile text of HdrHistogram (`.hgrm`) in milliseconds, which its plotter and many scripts read. `weir
//! load --hgrm` and the format of wrk2 use it.
//!
//! There are two flavours. HdrHistogram itself (`outputPercentileDistribution`) writes percentiles with twelve decimals
//! and leaves the last column of the last row empty. wrk2, whose text comes from the C library, writes six decimals and
//! `inf`.

use hdrhistogram::Histogram;

/// Steps for each halving of the distance to 100 %, as both write it.
const TICKS: u32 = 5;

/// Nanoseconds in a millisecond.
const NANOS: f64 = 1e6;

/// Which tool's text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// HdrHistogram's own.
    Hdr,
    /// wrk2's.
    Wrk2,
}

impl Flavour {
    /// Characters of the percentile, its decimals, characters of the count and of the last column.
    fn widths(self) -> (usize, usize, usize, usize) {
        match self {
            Flavour::Hdr => (14, 12, 10, 14),
            Flavour::Wrk2 => (12, 6, 12, 12),
        }
    }
}

/// The text. The histogram's values are nanoseconds.
pub fn spectrum(histo: &Histogram<u64>, flavour: Flavour) -> String {
    let (percentile, decimals, count, last) = flavour.widths();
    let (header, inverse) = ("TotalCount", "1/(1-Percentile)");
    let mut out = format!("{:>12} {:>percentile$} {header:>count$} {inverse:>last$}\n\n", "Value", "Percentile");
    let mut total = 0;
    for step in histo.iter_quantiles(TICKS) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (ms(histo, step.value_iterated_to()), step.quantile_iterated_to());
        out.push_str(&format!("{value:>12.3} {quantile:>percentile$.decimals$} {total:>count$}"));
        out.push_str(&match flavour {
            _ if quantile < 1.0 => format!(" {:>last$.2}\n", 1.0 / (1.0 - quantile)),
            Flavour::Hdr => "\n".to_owned(),
            Flavour::Wrk2 => format!(" {:>last$}\n", "inf"),
        });
    }
    out + &foot(histo)
}

fn foot(histo: &Histogram<u64>) -> String {
    // Buckets overlap but for the first by half: so many sub-buckets make up the values there are.
    let buckets = usize::from(histo.buckets());
    let sub_buckets = histo.distinct_values() * 2 / (buckets + 1);
    let of = |value: f64| if histo.is_empty() { 0.0 } else { value / NANOS };
    format!(
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n#[Max     = {:>12.3}, Total count    = {:>12}]\n#[Buckets = \
         {buckets:>12}, SubBuckets     = {sub_buckets:>12}]\n",
        of(histo.mean()),
        of(histo.stdev()),
        ms(histo, histo.max()),
        histo.len()
    )
}

/// The lowest step, below half a microsecond, is 0.
fn ms(histo: &Histogram<u64>, nanos: u64) -> f64 {
    if nanos <= histo.highest_equivalent(0) { 0.0 } else { histo.highest_equivalent(nanos) as f64 / NANOS }
}
