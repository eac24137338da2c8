//! Two products that are compared: the facts about them, from the document and from the records of the run, and possible causes why they
//! stand in another order here. A cause has an id, a meaning, and a function that returns its evidence in a [`Pair`], or `None`. No cause
//! knows a product's name.
//!
//! To add one: an entry in [`CAUSES`], a test in which it is found and one in which it is not.

use weir_model::metric::{Metric, Window};
use weir_model::record::{Measurement, OWN_RESPONSES, Role, Severity, Verdict};
use weir_model::suite::Entry;
use weir_model::text::{counted, percent, short, unique};
use weir_stats::{Estimate, median};

use crate::figures::{Figure, FigureKind, Source, Variant};
use crate::ratios::{Comparison, ComparisonRow, excludes_one, ratio};
use crate::run_cases::{Context, RunCase};

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
    /// Requests a second that the load offered.
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
    /// Successful responses/s.
    pub rate: f64,
    /// Requests a second that were due; `None` in a closed load.
    pub offered: Option<f64>,
    /// Connections to the origin that carried a request, per request that reached it; `None` without counters.
    pub connections_per_request: Option<f64>,
    /// The same connections per client connection; a product that keeps them needs about one. `None` without counters.
    pub connections_per_client: Option<f64>,
    /// Share of requests without a successful response.
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
    pub responds_itself: bool,
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
        responds_itself: measurements.iter().any(|m| m.findings.iter().any(|finding| finding.check == OWN_RESPONSES)),
    })
}

/// A published or measured fact that may explain the order of two products.
pub(super) struct Cause {
    pub id: &'static str,
    /// One sentence.
    pub meaning: &'static str,
    /// Returns the evidence in a pair; an empty text where the ratios of the pair are the evidence.
    pub find: fn(&Pair) -> Option<String>,
}

/// All causes, in the order in which they are shown.
pub(super) const CAUSES: [Cause; 13] = [
    Cause {
        id: "interval",
        meaning: "the measured ratio has no interval, or one that includes the published order",
        find: |pair| match pair.measured_ratio {
            Some(ratio) if ratio.n < 2 => Some("one block".to_string()),
            Some(ratio) if !excludes_one(&ratio) => Some(String::new()),
            _ => None,
        },
    },
    Cause {
        id: "published-close",
        meaning: "the published figures, measured once each, differ by no more than two measurements of one product do (3 %)",
        find: |pair| {
            let difference = (pair.published_ratio - 1.0).abs();
            (difference <= CLOSE).then(|| percent(difference))
        },
    },
    Cause {
        id: "published-offered",
        meaning: "the published rate is the one that was offered, not what the product can carry",
        find: |pair| {
            let offered = was_offered(&pair.behind.published).filter(|_| pair.metric.higher_is_better())?;
            Some(format!("{} {}/s", pair.behind.title, short(offered)))
        },
    },
    Cause {
        id: "published-errors",
        meaning: "some of the published requests failed",
        find: |pair| of_both(pair, |member| published_errors(&member.published)),
    },
    Cause {
        id: "published-priority",
        meaning: "the product that was published behind had a lower scheduling priority",
        find: |pair| Some(format!("{} nice {}", pair.behind.title, pair.behind.published.nice?)),
    },
    Cause {
        id: "published-loads",
        meaning: "the published latencies are of different offered rates",
        find: |pair| different_rates(pair, |member| member.published.offered),
    },
    Cause {
        id: "origin-connections",
        meaning: "a product opened connections to the origin for requests, which costs CPU time in both",
        find: |pair| {
            let found = [opened_by_one(&pair.ahead, &pair.behind), opened_under_another_profile(&pair.behind)];
            joined(found.into_iter().flatten())
        },
    },
    Cause {
        id: "answered-itself",
        meaning: "the product answered requests here that it did not pass on",
        find: |pair| pair.behind.measured.responds_itself.then(|| pair.behind.title.clone()),
    },
    Cause {
        id: "offered",
        meaning: "the product carried all that it was offered here, so its rate is not its capacity",
        find: |pair| {
            let facts = &pair.ahead.measured;
            let offered = facts.offered.filter(|_| pair.metric.higher_is_better())?;
            (facts.rate >= offered * (1.0 - SAME_RATE)).then(|| format!("{} {}/s", pair.ahead.title, short(offered)))
        },
    },
    Cause {
        id: "errors",
        meaning: "some of the requests here had no successful response",
        find: |pair| {
            of_both(pair, |member| {
                let errors = member.measured.error_share;
                (errors >= MANY_ERRORS).then(|| percent(errors))
            })
        },
    },
    Cause {
        id: "idle-cpu",
        meaning: "a product left CPU time unused here, so the client, the origin or the connections limited the rate",
        find: |pair| {
            // If only the product that leads here had CPU time left, this does not explain why the other fell back.
            if !pair.metric.higher_is_better() || !has_idle_cpu(&pair.ahead.measured) {
                return None;
            }
            of_both(pair, |member| has_idle_cpu(&member.measured).then(|| busy(&member.measured)))
        },
    },
    Cause {
        id: "suspect",
        meaning: "checks made trials suspect",
        find: |pair| {
            of_both(pair, |member| {
                let checks = &member.measured.suspect;
                (!checks.is_empty()).then(|| checks.join(" "))
            })
        },
    },
    Cause {
        id: "loads",
        meaning: "the latencies measured here are of different offered rates",
        find: |pair| different_rates(pair, |member| member.measured.offered),
    },
];

/// Two windows of the same product on the same machine differ by about this share.
const CLOSE: f64 = 0.03;

/// Rates that differ by less than this share count as the same rate.
const SAME_RATE: f64 = 0.02;

/// From this share of failed requests on they matter.
const MANY_ERRORS: f64 = 0.001;

/// A proxy that uses less than this share of its cores did not limit the rate.
const BUSY: f64 = 0.8;

/// From this number of connections per request on, a product opens them for requests and not for clients.
const OPENS_OFTEN: f64 = 0.2;

/// The largest pool, in connections per client connection: the pools of several workers are not shared.
const LARGEST_POOL: f64 = 1.5;

/// The offered rate, if the published rate reached it: the figure is then no capacity.
pub(super) fn was_offered(published: &PublishedFacts) -> Option<f64> {
    let (rate, offered) = (published.rate?, published.offered?);
    (rate >= offered * (1.0 - SAME_RATE)).then_some(offered)
}

/// "11 % status 502".
pub(super) fn published_errors(published: &PublishedFacts) -> Option<String> {
    let many = published.errors.iter().filter(|(_, share)| *share >= MANY_ERRORS);
    joined(many.map(|(what, share)| format!("{} {what}", percent(*share))))
}

/// Connections per request, for a product that opened them for requests: many of them, and more than a pool with one
/// for each client connection can hold. A short load fills a pool, and so opens many connections for few requests.
pub(super) fn opens(facts: &MeasuredFacts) -> Option<f64> {
    let beyond_a_pool = facts.connections_per_client.is_none_or(|each| each > LARGEST_POOL);
    facts.connections_per_request.filter(|connections| *connections >= OPENS_OFTEN && beyond_a_pool)
}

fn opened_by_one(one: &Member, other: &Member) -> Option<String> {
    let (connections, others) = (opens(&one.measured)?, other.measured.connections_per_request?);
    opens(&other.measured).is_none().then(|| {
        format!("{} {} per 100 requests, {} {}", one.title, per_100(connections), other.title, per_100(others))
    })
}

fn opened_under_another_profile(member: &Member) -> Option<String> {
    let facts = &member.measured;
    let own = facts.connections_per_request.filter(|_| opens(facts).is_none())?;
    let (other, connections) = member.other_profiles.iter().find_map(|other| Some((other, opens(other)?)))?;
    Some(format!(
        "{} {} per 100 requests and {}/s with {}, {} and {}/s with {}",
        member.title,
        per_100(connections),
        short(other.rate),
        other.profile,
        per_100(own),
        short(facts.rate),
        facts.profile
    ))
}

/// "99.8".
fn per_100(connections_per_request: f64) -> String {
    short((connections_per_request * 100.0).min(100.0))
}

fn has_idle_cpu(facts: &MeasuredFacts) -> bool {
    facts.cores_busy.is_some_and(|busy| busy < f64::from(facts.cores) * BUSY)
}

/// "0.55 of 1 core".
fn busy(facts: &MeasuredFacts) -> String {
    format!("{} of {}", short(facts.cores_busy.unwrap_or(0.0)), counted(u64::from(facts.cores), "core"))
}

/// Latencies at different rates belong to different loads: both rates, where they differ.
fn different_rates(pair: &Pair, offered: impl Fn(&Member) -> Option<f64>) -> Option<String> {
    let (a, b) = (offered(&pair.ahead)?, offered(&pair.behind)?);
    let differ = !pair.metric.higher_is_better() && (a / b - 1.0).abs() > SAME_RATE;
    differ.then(|| format!("{} {}/s, {} {}/s", pair.ahead.title, short(a), pair.behind.title, short(b)))
}

/// The evidence of each of the two products that has some, after its title.
fn of_both(pair: &Pair, evidence: impl Fn(&Member) -> Option<String>) -> Option<String> {
    let both = [&pair.ahead, &pair.behind].into_iter();
    joined(both.filter_map(|member| Some(format!("{} {}", member.title, evidence(member)?))))
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::METRICS;
    use weir_stats::Estimate;

    /// A pair without any cause.
    fn plain() -> Pair {
        let facts = |profile: &str| MeasuredFacts {
            profile: profile.to_string(),
            rate: 20_000.0,
            connections_per_request: Some(0.002),
            cores_busy: Some(0.98),
            cores: 1,
            ..MeasuredFacts::default()
        };
        let member = |title: &str, rate: f64| Member {
            title: title.to_string(),
            published: PublishedFacts { rate: Some(rate), ..PublishedFacts::default() },
            measured: facts("tuned"),
            other_profiles: vec![facts("stock")],
        };
        Pair {
            metric: METRICS[0],
            ahead: member("Alder", 30_000.0),
            behind: member("Birch", 10_000.0),
            published_ratio: 3.0,
            measured_ratio: Some(Estimate { value: 0.8, low: 0.7, high: 0.9, n: 6, level: 0.97 }),
        }
    }

    /// The same pair with the 99th percentile of latency.
    fn latency() -> Pair {
        Pair { metric: METRICS[1], ..plain() }
    }

    /// The ids and evidence found after `change` was applied to a pair without any cause.
    fn found_in(mut pair: Pair, change: impl Fn(&mut Pair)) -> Vec<(&'static str, String)> {
        change(&mut pair);
        CAUSES.iter().filter_map(|cause| Some((cause.id, (cause.find)(&pair)?))).collect()
    }

    fn assert_found(pair: Pair, change: impl Fn(&mut Pair), id: &'static str, evidence: &str) {
        assert_eq!(found_in(pair, change), [(id, evidence.to_string())]);
    }

    fn assert_none(pair: Pair, change: impl Fn(&mut Pair)) {
        assert_eq!(found_in(pair, change), []);
    }

    #[test]
    fn nothing_recorded_is_no_cause() {
        assert_none(plain(), |_| {});
        assert_none(latency(), |_| {});
    }

    #[test]
    fn an_interval_that_includes_the_published_order_is_a_cause() {
        let ratio = |low, high, n| {
            move |pair: &mut Pair| {
                pair.measured_ratio = Some(Estimate { value: 0.99, low, high, n, level: 0.97 });
            }
        };
        assert_found(plain(), ratio(0.95, 1.02, 6), "interval", "");
        assert_found(plain(), ratio(0.99, 0.99, 1), "interval", "one block");
        assert_none(plain(), ratio(0.95, 0.99, 6));
    }

    #[test]
    fn published_figures_that_hardly_differ_are_a_cause() {
        assert_found(plain(), |pair| pair.published_ratio = 1.014, "published-close", "1.4 %");
    }

    #[test]
    fn a_published_rate_that_was_offered_is_a_cause() {
        let behind = |offered| move |pair: &mut Pair| pair.behind.published.offered = Some(offered);
        assert_found(plain(), behind(10_100.0), "published-offered", "Birch 10,100/s");
        assert_none(latency(), behind(10_100.0));
        assert_none(plain(), |pair| {
            behind(12_000.0)(pair);
            pair.ahead.published.offered = Some(30_000.0);
        });
    }

    #[test]
    fn published_errors_are_a_cause() {
        let errors =
            |share| move |pair: &mut Pair| pair.ahead.published.errors = vec![("status 502".to_string(), share)];
        assert_found(plain(), errors(0.107), "published-errors", "Alder 11 % status 502");
        assert_none(plain(), errors(0.0001));
    }

    #[test]
    fn a_lower_priority_of_the_one_behind_is_a_cause() {
        assert_found(plain(), |pair| pair.behind.published.nice = Some(5.0), "published-priority", "Birch nice 5");
        assert_none(plain(), |pair| pair.ahead.published.nice = Some(5.0));
    }

    #[test]
    fn latencies_at_different_rates_are_a_cause() {
        let published = |behind| {
            move |pair: &mut Pair| {
                (pair.ahead.published.offered, pair.behind.published.offered) = (Some(10_000.0), Some(behind));
            }
        };
        assert_found(latency(), published(200_000.0), "published-loads", "Alder 10,000/s, Birch 200,000/s");
        assert_none(latency(), published(10_100.0));
        let measured = |pair: &mut Pair| {
            (pair.ahead.measured.offered, pair.behind.measured.offered) = (Some(10_000.0), Some(20_000.0));
        };
        assert_found(latency(), measured, "loads", "Alder 10,000/s, Birch 20,000/s");
    }

    #[test]
    fn a_connection_for_each_request_is_a_cause_where_one_of_two_opens_it() {
        let often = |per_client| {
            move |pair: &mut Pair| {
                pair.ahead.measured.connections_per_request = Some(0.998);
                pair.ahead.measured.connections_per_client = per_client;
            }
        };
        let evidence = "Alder 99.8 per 100 requests, Birch 0.200";
        assert_found(plain(), often(None), "origin-connections", evidence);
        assert_found(plain(), often(Some(2.4)), "origin-connections", evidence);
        assert_none(plain(), often(Some(1.0)));
        let both = |pair: &mut Pair| {
            often(None)(pair);
            pair.behind.measured.connections_per_request = Some(1.0);
        };
        assert_none(plain(), both);
        assert_none(plain(), |pair| {
            often(None)(pair);
            pair.behind.measured.connections_per_request = None;
        });
        // The product that opens connections leads here all the same.
        assert_none(plain(), |pair| pair.behind.measured.connections_per_request = Some(1.0));
    }

    #[test]
    fn a_connection_for_each_request_under_another_profile_is_a_cause() {
        let change = |pair: &mut Pair| {
            pair.behind.other_profiles[0].connections_per_request = Some(1.0);
            pair.behind.other_profiles[0].rate = 7_000.0;
        };
        let evidence = "Birch 100 per 100 requests and 7,000/s with stock, 0.200 and 20,000/s with tuned";
        assert_found(plain(), change, "origin-connections", evidence);
        assert_none(plain(), |pair| pair.ahead.other_profiles[0].connections_per_request = Some(1.0));
    }

    #[test]
    fn other_work_than_answering_is_a_cause() {
        assert_found(plain(), |pair| pair.behind.measured.responds_itself = true, "answered-itself", "Birch");
        assert_found(plain(), |pair| pair.behind.measured.error_share = 0.02, "errors", "Birch 2.0 %");
        assert_none(plain(), |pair| pair.behind.measured.error_share = 0.0005);
        let checks = ["quiet-steal", "steady"].map(str::to_string);
        let suspect = |pair: &mut Pair| pair.behind.measured.suspect = checks.to_vec();
        assert_found(plain(), suspect, "suspect", "Birch quiet-steal steady");
    }

    #[test]
    fn a_measured_rate_that_was_offered_is_a_cause() {
        let ahead = |offered| move |pair: &mut Pair| pair.ahead.measured.offered = Some(offered);
        assert_found(plain(), ahead(20_100.0), "offered", "Alder 20,100/s");
        assert_none(plain(), ahead(30_000.0));
        assert_none(plain(), |pair| pair.behind.measured.offered = Some(20_000.0));
    }

    #[test]
    fn cpu_time_left_over_is_a_cause_of_a_rate() {
        let idle = |pair: &mut Pair| pair.ahead.measured.cores_busy = Some(0.55);
        assert_found(plain(), idle, "idle-cpu", "Alder 0.550 of 1 core");
        assert_none(latency(), idle);
        assert_none(plain(), |pair| pair.behind.measured.cores_busy = Some(0.55));
    }
}
