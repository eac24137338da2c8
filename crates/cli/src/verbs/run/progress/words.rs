//! The words of a run's progress: names of cases and parts, the line on a trial that ended, the order of products so far.
//! Called by `progress`.

use std::collections::BTreeSet;

use console::style;
use weir_lab::trial::Part;
use weir_model::metric::Metric;
use weir_model::record::{CaseId, Measurement, Severity, Verdict};
use weir_model::suite::{Entry, Suite};
use weir_model::text::{counted, fixed_us, human_rate};
use weir_report::summary::Provisional;

/// From this width on, a finished trial is shown with its median.
const ROOM_FOR_MEDIAN: usize = 100;

/// Names cases; without the profile where the suite has only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseNames {
    profile: bool,
    widest: usize,
}

impl CaseNames {
    /// Those of a suite's cases.
    pub fn of(suite: &Suite) -> CaseNames {
        let profiles: BTreeSet<&str> = suite.entries.iter().map(|e| e.profile.as_str()).collect();
        let mut names = CaseNames { profile: profiles.len() > 1, widest: 0 };
        let loads = suite.loads.iter().map(|load| load.name.clone()).max_by_key(|name| name.chars().count());
        let workloads = suite.workloads.iter().map(|one| one.name.clone()).max_by_key(|name| name.chars().count());
        let (workload, load) = (workloads.unwrap_or_default(), loads.unwrap_or_default());
        let widest = suite.entries.iter().map(|Entry { product, profile }| {
            let (product, profile) = (product.clone(), profile.clone());
            names.describe(&CaseId { product, profile, workload: workload.clone(), load: load.clone() }).chars().count()
        });
        names.widest = widest.max().unwrap_or(0);
        names
    }

    /// `haproxy · tiny · capacity`.
    pub fn describe(&self, case: &CaseId) -> String {
        format!("{} · {} · {}", self.product(&case.product, &case.profile), case.workload, case.load)
    }

    /// `haproxy`, or `haproxy tuned`.
    fn product(&self, product: &str, profile: &str) -> String {
        if self.profile { format!("{product} {profile}") } else { product.to_owned() }
    }
}

/// `round 3 of 9`, `20 % of the rate, 1 of 7`, `64 connections, 3 of 5`, `coarse trial 4 at 1.2k/s`.
pub fn describe_part(part: Part) -> String {
    match part {
        Part::Round { round, of } => format!("round {round} of {of}"),
        Part::Share { share, point, of } => format!("{:.0} % of the rate, {point} of {of}", share * 100.0),
        Part::Connections { connections, point, of } => {
            format!("{}, {point} of {of}", counted(u64::from(connections), "connection"))
        }
        Part::Probe { number, kind, rate } => {
            let at = rate.map_or(String::new(), |rate| format!(" at {}", human_rate(rate)));
            format!("{} trial {}{at}", kind.as_str(), number + 1)
        }
    }
}

/// A line on a trial that ended: its number, its case, and what came of it.
pub fn finished(m: &Measurement, of: usize, names: &CaseNames, width: usize) -> String {
    let number = format!("[{:>w$}/{of}]", m.trial, w = of.to_string().len());
    let head = format!("{number} {:<w$}", names.describe(&m.case), w = names.widest);
    let Some(load) = &m.load else {
        let why = m.error.as_ref().map(|e| format!("{}: {}", e.stage, e.message)).unwrap_or_default();
        return format!("{head}  {} {why}", style("error").red().for_stderr());
    };
    let verdict = match m.verdict {
        Verdict::Valid => style("valid").green(),
        Verdict::Suspect => style("suspect").yellow(),
        other => style(other.as_str()).red(),
    };
    let median =
        if width >= ROOM_FOR_MEDIAN { format!("  p50 {:>7}", fixed_us(load.latency.p50_us)) } else { String::new() };
    // Notes do not change the verdict; they are in the report.
    let grave = m.findings.iter().filter(|f| f.severity > Severity::Note);
    let findings: Vec<&str> = grave.map(|f| f.check.as_str()).collect();
    let line = format!(
        "{head} {:>9}{median}  p99 {:>7}  {} {}",
        human_rate(load.rate),
        fixed_us(load.latency.p99_us),
        verdict.for_stderr(),
        findings.join(" ")
    );
    line.trim_end().to_owned()
}

/// `Provisional, 1 of 2 workloads: nginx 51.7k/s, haproxy 50.8k/s, 2 more; 1 not ranked`: in at most `room` characters, but
/// always with one product.
pub fn ranking(so_far: &Provisional, names: &CaseNames, room: usize) -> String {
    let over = match so_far.workloads < so_far.of {
        true => format!(", {} of {} workloads", so_far.workloads, so_far.of),
        false => String::new(),
    };
    let value = |value: f64| match so_far.metric {
        Metric::Rate => human_rate(value),
        _ => format!("p99 {}", fixed_us(value)),
    };
    let product =
        |(entry, mean): &(Entry, f64)| format!("{} {}", names.product(&entry.product, &entry.profile), value(*mean));
    let others = [(so_far.without, "without a number"), (so_far.excluded, "not ranked")];
    let others = others.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("; {n} {what}")).collect::<String>();
    let all: Vec<String> = so_far.products.iter().map(product).collect();
    let text = |kept: usize| {
        let more = all.len() - kept;
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        format!("Provisional{over}: {}{more}{others}", all[..kept].join(", "))
    };
    let fits = |text: &String| text.chars().count() <= room;
    (1..=all.len()).rev().map(text).find(fits).unwrap_or_else(|| text(1.min(all.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_trial_are_named() {
        use weir_model::load::ProbeKind::{Coarse, Guess};
        assert_eq!(describe_part(Part::Round { round: 3, of: 9 }), "round 3 of 9");
        assert_eq!(describe_part(Part::Share { share: 0.2, point: 1, of: 7 }), "20 % of the rate, 1 of 7");
        assert_eq!(describe_part(Part::Connections { connections: 1, point: 1, of: 5 }), "1 connection, 1 of 5");
        assert_eq!(describe_part(Part::Probe { number: 0, kind: Guess, rate: None }), "guess trial 1");
        assert_eq!(
            describe_part(Part::Probe { number: 3, kind: Coarse, rate: Some(1_200.0) }),
            "coarse trial 4 at 1.2k/s"
        );
    }

    fn quick() -> Suite {
        let catalogue = crate::library::catalogue(&[]).expect("built in");
        catalogue.suite("quick").expect("built in")
    }

    fn case(product: &str) -> CaseId {
        CaseId { product: product.into(), profile: "tuned".into(), workload: "medium".into(), load: "capacity".into() }
    }

    #[test]
    fn a_profile_is_named_where_there_are_two() {
        let mut suite = quick();
        let names = CaseNames::of(&suite);
        assert_eq!(names.describe(&case("haproxy")), "haproxy · medium · capacity");
        assert_eq!(names.widest, "haproxy · medium · capacity".chars().count());
        suite.entries[0].profile = "stock".into();
        assert_eq!(CaseNames::of(&suite).describe(&case("haproxy")), "haproxy tuned · medium · capacity");
    }

    #[test]
    fn a_ranking_keeps_to_its_room_and_counts_the_rest() {
        let entry = |product: &str| Entry { product: product.into(), profile: "tuned".into() };
        let products = [("nginx", 51_700.0), ("haproxy", 50_800.0), ("envoy", 21_400.0), ("caddy", 9_630.0)];
        let mut so_far = Provisional {
            metric: Metric::Rate,
            products: products.map(|(product, rate)| (entry(product), rate)).into(),
            workloads: 2,
            of: 2,
            without: 0,
            excluded: 0,
        };
        let names = CaseNames::of(&quick());
        let all = "Provisional: nginx 51.7k/s, haproxy 50.8k/s, envoy 21.4k/s, caddy 9.63k/s";
        assert_eq!(ranking(&so_far, &names, 80), all);
        assert_eq!(ranking(&so_far, &names, 60), "Provisional: nginx 51.7k/s, haproxy 50.8k/s, 2 more");
        assert_eq!(ranking(&so_far, &names, 10), "Provisional: nginx 51.7k/s, 3 more");
        (so_far.workloads, so_far.without, so_far.excluded) = (1, 3, 1);
        so_far.products.truncate(2);
        assert_eq!(
            ranking(&so_far, &names, 100),
            "Provisional, 1 of 2 workloads: nginx 51.7k/s, haproxy 50.8k/s; 3 without a number; 1 not ranked"
        );
        so_far.metric = Metric::P99;
        assert!(ranking(&so_far, &names, 200).contains("nginx p99 51.7 ms"));
    }
}
