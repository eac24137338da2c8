//! What is known of one side of a comparison: of the published figure from its document, of ours from the records. Causes are
//! looked for in these and nowhere else. Knows no cause.

use weir_model::record::{ANSWERS_ITSELF, Measurement, Role, Severity, Verdict};
use weir_model::suite::Entry;
use weir_stats::{Estimate, median};

use super::compare::{ComparedRow, Comparison};
use super::data::{Figure, FigureKind, Source};
use super::ours::{Ours, OwnCase};
use super::quantity::{Compared, error_shares};
use super::variant::{Moment, Variant};
use weir_report::summary::{all_cpu_us, usage_of};

/// Two products, the first of which was published as the better one.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub compared: Compared,
    pub ahead: Side,
    pub behind: Side,
    /// The first over the second, as published.
    pub published_ratio: f64,
    /// The same here, within blocks.
    pub our_ratio: Option<Estimate>,
}

/// One of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    /// As a reader knows it.
    pub title: String,
    pub published: PublishedFacts,
    /// Under the profile that is compared.
    pub ours: OwnFacts,
    /// The same product under the other profiles of the run.
    pub otherwise: Vec<OwnFacts>,
}

/// What the document says of the measurement.
#[derive(Debug, Clone, Default)]
pub(super) struct PublishedFacts {
    /// Requests a second.
    pub rate: Option<f64>,
    /// Requests a second that were asked for.
    pub offered: Option<f64>,
    /// What became of requests that had no right answer, as the end of a sentence, and their share of all.
    pub errors: Vec<(String, f64)>,
    /// Scheduling priority where it was lower than others'.
    pub nice: Option<f64>,
}

/// What the records say of ours; medians over blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OwnFacts {
    pub profile: String,
    /// Right answers a second.
    pub rate: f64,
    /// Requests a second that were due; `None` in a closed load.
    pub offered: Option<f64>,
    /// Connections to the origin that carried a request, for each request that reached it; `None` without counters.
    pub connections_per_request: Option<f64>,
    /// The same connections for each that the client had; a product that keeps them needs about one. `None` likewise.
    pub connections_per_client: Option<f64>,
    /// Share of requests without a right answer.
    pub error_share: f64,
    /// Cores that the proxy kept busy in the mean; `None` when that was not seen.
    pub cores_busy: Option<f64>,
    /// Cores that the proxy was given.
    pub cores: u32,
    /// CPU time of the proxy for one answer, us; `None` when that was not seen.
    pub cpu_us: Option<f64>,
    /// Names of the checks that made trials suspect.
    pub suspect: Vec<String>,
    /// It answered requests that it did not pass on.
    pub answers_itself: bool,
}

/// Everything that is known of two rows of a comparison, under a profile.
pub(super) fn pair(
    ours: &Ours<'_>,
    source: &Source,
    comparison: &Comparison,
    profile: usize,
    (ahead, behind): (usize, usize),
) -> Option<Pair> {
    let case = ours.case(&comparison.case)?;
    let rows = [comparison.rows.get(ahead)?, comparison.rows.get(behind)?];
    let own = |row: &ComparedRow| row.ours.get(profile).cloned().flatten();
    let blocks = [own(rows[0])?.by_block, own(rows[1])?.by_block];
    let [ahead, behind] = rows.map(|row| side(ours, source, comparison, case, row, profile));
    Some(Pair {
        compared: comparison.compared,
        ahead: ahead?,
        behind: behind?,
        published_ratio: rows[0].published / rows[1].published,
        our_ratio: weir_stats::paired_ratio(
            &blocks[0],
            &blocks[1],
            weir_report::summary::LEVEL,
            weir_report::summary::SEED,
        ),
    })
}

fn side(
    ours: &Ours<'_>,
    source: &Source,
    comparison: &Comparison,
    case: &OwnCase<'_>,
    row: &ComparedRow,
    profile: usize,
) -> Option<Side> {
    let variant = Variant::parse(&comparison.variant);
    let entry = &row.ours.get(profile)?.as_ref()?.entry;
    let others = ours.entries(&row.product).into_iter().filter(|other| *other != entry);
    Some(Side {
        title: row.title.clone(),
        published: published(source, &comparison.case, &row.product, &comparison.variant),
        ours: own(case, variant, entry)?,
        otherwise: others.filter_map(|other| own(case, variant, other)).collect(),
    })
}

/// What the document says of a case and product.
pub(super) fn published(source: &Source, case: &str, product: &str, variant: &str) -> PublishedFacts {
    let value = |metric: &str| source.result(case, product, variant, metric).map(|figure| figure.value);
    let rate = value("rate");
    let duration = source.condition(case, product, variant, "duration").map(|figure| figure.value);
    let asked = source.condition(case, product, variant, "requests").map(|figure| figure.value);
    let by_rate = rate.zip(duration).map(|(rate, duration)| rate * duration);
    // As many as were counted, else as were asked for, else as came at that rate in that time.
    let requests = value("requests").or(asked).or(by_rate);
    let of_all = |figure: &Figure| Some((error_words(&figure.metric)?, figure.value / requests?));
    let own = source
        .figures
        .iter()
        .filter(|f| f.kind == FigureKind::Result && f.case == case && f.product == product && f.variant == variant);
    let nice = source.figures.iter().filter(|f| f.metric == "nice" && f.product == product && f.value > 0.0);
    PublishedFacts {
        rate,
        offered: source.condition(case, product, variant, "rate-offered").map(|figure| figure.value),
        errors: own.filter_map(of_all).filter(|(_, share)| *share > 0.0).collect(),
        // Other programs than the product are in a listing too, and say so.
        nice: nice.filter(|f| !f.variant.contains('(')).map(|f| f.value).reduce(f64::max),
    }
}

/// What became of a request, as the end of a sentence about some; `None` for metrics that are no errors.
fn error_words(metric: &str) -> Option<String> {
    if let Some(status) = metric.strip_prefix("status-") {
        return (!status.starts_with(['2', '3'])).then(|| format!("were answered with status {status}"));
    }
    Some(match metric {
        "non-2xx-3xx" | "server-errors" => "were answered with a status other than 2xx and 3xx".to_string(),
        "timeouts" | "errors-timeout" => "timed out".to_string(),
        "errors-connect" | "errors-read" | "errors-write" => {
            format!("failed to {}", metric.trim_start_matches("errors-"))
        }
        _ => return None,
    })
}

/// What the records say of an entry in a case; `None` when nothing was measured.
pub(super) fn own(case: &OwnCase<'_>, variant: Variant, entry: &Entry) -> Option<OwnFacts> {
    let moments = case.moments(variant, entry);
    let middle =
        |value: &dyn Fn(&Moment<'_>) -> Option<f64>| median(&moments.iter().filter_map(value).collect::<Vec<f64>>());
    let measurements: Vec<&Measurement> = case.all(entry).collect();
    let mut suspect: Vec<String> = Vec::new();
    for measurement in measurements.iter().filter(|m| m.verdict == Verdict::Suspect) {
        for finding in measurement.findings.iter().filter(|finding| finding.severity == Severity::Warning) {
            if !suspect.contains(&finding.check) {
                suspect.push(finding.check.clone());
            }
        }
    }
    Some(OwnFacts {
        profile: entry.profile.clone(),
        rate: middle(&|moment| Some(moment.load.rate))?,
        offered: middle(&|moment| moment.load.offered_rate),
        connections_per_request: middle(&|moment| {
            let counters = moment.origin?;
            (counters.requests > 0).then(|| counters.connections_used as f64 / counters.requests as f64)
        }),
        connections_per_client: middle(&|moment| {
            let most = moment.load.most_open;
            (most > 0).then_some(moment.origin?.connections_used as f64 / f64::from(most.max(1)))
        }),
        error_share: middle(&|moment| Some(error_shares(moment.load).0)).unwrap_or(0.0),
        cores_busy: middle(&|moment| usage_of(moment.usage, Role::Proxy).map(|usage| usage.cores_busy)),
        cpu_us: middle(&|moment| all_cpu_us(moment.load, moment.usage, Role::Proxy)),
        cores: measurements.iter().map(|measurement| measurement.cores).max().unwrap_or(1),
        suspect,
        answers_itself: measurements.iter().any(|m| m.findings.iter().any(|finding| finding.check == ANSWERS_ITSELF)),
    })
}
