//! Collects the facts about two products that are compared: from the document about the published figures, and from the
//! records about the run. `causes` looks for causes in these facts only; `tables` shows some of them.

use weir_model::metric::{Metric, Window};
use weir_model::record::{ANSWERS_ITSELF, Measurement, Role, Severity, Verdict};
use weir_model::suite::Entry;
use weir_model::text::unique;
use weir_stats::{Estimate, median};

use super::context::Context;
use super::figures::{Figure, FigureKind, Source};
use super::ratios::{Comparison, ComparisonRow, excludes_one, ratio};
use super::run_cases::RunCase;
use super::variant::Variant;

/// Two products. The first one was published as the better.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub metric: Metric,
    pub ahead: Member,
    pub behind: Member,
    /// The first product divided by the second, as published.
    pub published_ratio: f64,
    /// The same ratio as measured, within blocks.
    pub measured_ratio: Option<Estimate>,
}

/// One product of a pair.
#[derive(Debug, Clone, Default)]
pub(super) struct Member {
    /// The name shown to readers.
    pub title: String,
    pub published: PublishedFacts,
    /// Measured under the profile that is compared.
    pub measured: MeasuredFacts,
    /// The same product under the other profiles of the run.
    pub other_profiles: Vec<MeasuredFacts>,
}

/// The document's facts about the measurement.
#[derive(Debug, Clone, Default)]
pub(super) struct PublishedFacts {
    /// Requests a second.
    pub rate: Option<f64>,
    /// Requests a second that were asked for.
    pub offered: Option<f64>,
    /// Kinds of failed requests, such as "status 502", and their share of all requests.
    pub errors: Vec<(String, f64)>,
    /// The scheduling priority, if it was lower than that of others.
    pub nice: Option<f64>,
}

/// The facts in the run's records; medians over blocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MeasuredFacts {
    pub profile: String,
    /// Right answers a second.
    pub rate: f64,
    /// Requests a second that were due; `None` in a closed load.
    pub offered: Option<f64>,
    /// Connections to the origin that carried a request, per request that reached it; `None` without counters.
    pub connections_per_request: Option<f64>,
    /// The same connections per client connection; a product that keeps them needs about one. `None` without counters.
    pub connections_per_client: Option<f64>,
    /// Share of requests without a right answer.
    pub error_share: f64,
    /// The mean number of cores that the proxy used; `None` when unknown.
    pub cores_busy: Option<f64>,
    /// The number of cores that the proxy was given.
    pub cores: u32,
    /// CPU time of the proxy per response, in µs; `None` when unknown.
    pub cpu_us: Option<f64>,
    /// The names of the checks that made trials suspect.
    pub suspect: Vec<String>,
    /// The product answered requests by itself.
    pub answers_itself: bool,
}

impl Pair {
    /// True when the interval of the measured ratio excludes the published order.
    pub fn is_sure(&self) -> bool {
        self.measured_ratio.is_some_and(|ratio| excludes_one(&ratio))
    }

    /// True when one of the two products ran under that profile.
    pub fn has_profile(&self, profile: &str) -> bool {
        [&self.ahead, &self.behind].iter().any(|member| member.measured.profile == profile)
    }
}

/// All facts about two rows of a comparison.
pub(super) fn pair(
    context: &Context<'_>,
    comparison: &Comparison,
    (ahead, behind): (&ComparisonRow, &ComparisonRow),
) -> Option<Pair> {
    let case = context.cases.case(&comparison.case)?;
    let variant = Variant::parse(&comparison.variant);
    let member = |row: &ComparisonRow| {
        let entry = &row.measured.as_ref()?.entry;
        let others = context.cases.entries(&row.product).into_iter().filter(|other| *other != entry);
        Some(Member {
            title: row.title.clone(),
            published: published(context.source, &comparison.case, &row.product, &comparison.variant),
            measured: measured(case, variant, entry)?,
            other_profiles: others.filter_map(|other| measured(case, variant, other)).collect(),
        })
    };
    Some(Pair {
        metric: comparison.metric,
        ahead: member(ahead)?,
        behind: member(behind)?,
        published_ratio: ahead.published / behind.published,
        measured_ratio: ratio(ahead, behind),
    })
}

/// The document's facts about a case and product.
pub(super) fn published(source: &Source, case: &str, product: &str, variant: &str) -> PublishedFacts {
    let rate = source.result(case, product, variant, "rate").map(|figure| figure.value);
    let requests = requests(source, case, product, variant);
    let of_all = |figure: &Figure| Some((failure(&figure.metric)?, figure.value / requests?));
    let own = source
        .figures
        .iter()
        .filter(|f| f.kind == FigureKind::Result && f.case == case && f.product == product && f.variant == variant);
    let nice = source.figures.iter().filter(|f| f.metric == "nice" && f.product == product && f.value > 0.0);
    PublishedFacts {
        rate,
        offered: source.condition(case, product, variant, "rate-offered").map(|figure| figure.value),
        errors: own.filter_map(of_all).filter(|(_, share)| *share > 0.0).collect(),
        // A listing may contain other programs than the product; their names show it.
        nice: nice.filter(|f| !f.variant.contains('(')).map(|f| f.value).reduce(f64::max),
    }
}

/// The number of requests of a published measurement: those counted, else those asked for, else the rate multiplied by the time.
pub(super) fn requests(source: &Source, case: &str, product: &str, variant: &str) -> Option<f64> {
    let result = |metric: &str| source.result(case, product, variant, metric).map(|figure| figure.value);
    let condition = |metric: &str| source.condition(case, product, variant, metric).map(|figure| figure.value);
    let by_rate = || Some(result("rate")? * condition("duration")?);
    result("requests").or_else(|| condition("requests")).or_else(by_rate)
}

/// The kind of failure that a metric counts; `None` for other metrics.
fn failure(metric: &str) -> Option<String> {
    if let Some(status) = metric.strip_prefix("status-") {
        return (!status.starts_with(['2', '3'])).then(|| format!("status {status}"));
    }
    Some(match metric {
        "non-2xx-3xx" | "server-errors" => "a status other than 2xx and 3xx".to_string(),
        "timeouts" | "errors-timeout" => "timed out".to_string(),
        "errors-connect" | "errors-read" | "errors-write" => format!("{} failed", metric.trim_start_matches("errors-")),
        _ => return None,
    })
}

/// The facts in the records about an entry in a case; `None` when nothing was measured.
pub(super) fn measured(case: &RunCase<'_>, variant: Variant, entry: &Entry) -> Option<MeasuredFacts> {
    let windows = case.windows(variant, entry);
    let middle =
        |value: &dyn Fn(&Window<'_>) -> Option<f64>| median(&windows.iter().filter_map(value).collect::<Vec<f64>>());
    let measurements: Vec<&Measurement> = case.all(entry).collect();
    let suspect = measurements.iter().filter(|m| m.verdict == Verdict::Suspect).flat_map(|m| &m.findings);
    let suspect = suspect.filter(|finding| finding.severity == Severity::Warning);
    let suspect = unique(suspect.map(|finding| finding.check.clone()));
    Some(MeasuredFacts {
        profile: entry.profile.clone(),
        rate: middle(&|window| window.rate)?,
        offered: middle(&|window| window.load.offered_rate),
        connections_per_request: middle(&|window| {
            let counters = window.origin?;
            (counters.requests > 0).then(|| counters.connections_used as f64 / counters.requests as f64)
        }),
        connections_per_client: middle(&|window| {
            let most = window.load.most_open;
            (most > 0).then_some(window.origin?.connections_used as f64 / f64::from(most.max(1)))
        }),
        error_share: middle(&|window| Metric::ErrorShare.value(window)).unwrap_or(0.0),
        cores_busy: middle(&|window| window.role(Role::Proxy).map(|usage| usage.cores_busy)),
        cpu_us: middle(&|window| Metric::Cpu.value(window)),
        cores: measurements.iter().map(|measurement| measurement.cores).max().unwrap_or(1),
        suspect,
        answers_itself: measurements.iter().any(|m| m.findings.iter().any(|finding| finding.check == ANSWERS_ITSELF)),
    })
}
