//! The points of a load: what is measured one after another without a restart of the product. The series of a trial calls it.
//!
//! Afterwards it merges the findings of all points into those of the trial. Pure functions: they do not know how a point is
//! measured, nor what the checks look at.

use std::path::{Path, PathBuf};

use weir_model::load::ProbeKind;
use weir_model::record::{Finding, Point};
use weir_model::suite::{Load, LoadKind, Series};
use weir_model::text::list;

use weir_audit::RateIntent;

/// One point to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSpec {
    /// 1-based.
    pub point: u32,
    /// Points in all.
    pub of: u32,
    /// Requests a second, for open loads.
    pub rate: Option<f64>,
    /// Connections.
    pub connections: u32,
}

impl PointSpec {
    /// Where its files go: the last point's are the trial's own.
    pub fn folder(&self, trial: &Path) -> PathBuf {
        if self.point == self.of { trial.to_owned() } else { trial.join(format!("point-{}", self.point)) }
    }
}

/// A part of a trial, for progress messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    /// The same load again.
    Round {
        /// 1-based.
        round: u32,
        /// How many.
        of: u32,
    },
    /// The open load at a multiple of its rate.
    Share {
        /// The multiple.
        share: f64,
        /// 1-based.
        point: u32,
        /// How many.
        of: u32,
    },
    /// The load over so many connections.
    Connections {
        /// How many connections.
        connections: u32,
        /// 1-based.
        point: u32,
        /// How many.
        of: u32,
    },
    /// A trial of a search.
    Probe {
        /// 1-based.
        number: usize,
        /// What it is for.
        kind: ProbeKind,
        /// Requests a second; `None` for the closed load.
        rate: Option<f64>,
    },
}

/// All points of a load in order; a single one when the load is not a series.
pub fn points(load: &Load, rate: Option<f64>) -> Vec<PointSpec> {
    let of = load.series.points();
    let one = |point, rate, connections| PointSpec { point, of, rate, connections };
    match &load.series {
        Series::Once => vec![one(1, rate, load.connections)],
        Series::Rounds(rounds) => (1..=*rounds).map(|point| one(point, rate, load.connections)).collect(),
        Series::Shares(shares) => {
            (1..).zip(shares).map(|(n, share)| one(n, rate.map(|rate| rate * share), load.connections)).collect()
        }
        Series::Connections(counts) => (1..).zip(counts).map(|(n, count)| one(n, rate, *count)).collect(),
    }
}

/// How a point is named; `None` when it is the only one.
pub fn part(load: &Load, spec: &PointSpec) -> Option<Part> {
    let (point, of) = (spec.point, spec.of);
    match &load.series {
        Series::Once => None,
        Series::Rounds(_) => Some(Part::Round { round: point, of }),
        Series::Shares(shares) => {
            shares.get(point.saturating_sub(1) as usize).map(|&share| Part::Share { share, point, of })
        }
        Series::Connections(_) => Some(Part::Connections { connections: spec.connections, point, of }),
    }
}

/// What the load's rate is meant to be. A curve over shares of a rate goes beyond what the product can carry.
pub fn rate_intent(load: &Load) -> RateIntent {
    match (&load.kind, &load.series) {
        (LoadKind::Open { .. }, Series::Shares(_)) => RateIntent::Either,
        (LoadKind::Open { .. }, _) if load.saturating => RateIntent::TooMuch,
        _ => RateIntent::Carried,
    }
}

/// One finding of every check that found something at a point, in order of appearance. The most severe one is reported. Among
/// equals, it is that of the last point, whose numbers are the trial's.
pub fn merged_findings(points: &[Point]) -> Vec<Finding> {
    let mut checks: Vec<&str> = Vec::new();
    for finding in points.iter().flat_map(|point| &point.findings) {
        if !checks.contains(&finding.check.as_str()) {
            checks.push(&finding.check);
        }
    }
    checks.into_iter().filter_map(|check| of_check(points, check)).collect()
}

fn of_check(points: &[Point], check: &str) -> Option<Finding> {
    let of = points.len();
    let seen: Vec<(u32, &Finding)> = points
        .iter()
        .filter_map(|point| Some((point.point, point.findings.iter().find(|finding| finding.check == check)?)))
        .collect();
    let (reported, worst) = seen.iter().max_by_key(|(point, finding)| (finding.severity, *point))?;
    let others: Vec<u32> = seen.iter().map(|(point, _)| *point).filter(|point| point != reported).collect();
    let message = match others.len() {
        _ if of == 1 => worst.message.clone(),
        0 => format!("point {reported} of {of}: {}", worst.message),
        n if n + 1 == of => format!("{} (point {reported}; something of the kind in all {of} points)", worst.message),
        n => {
            let points = if n == 1 { "point" } else { "points" };
            let others = list(&others.iter().map(u32::to_string).collect::<Vec<_>>());
            format!("point {reported} of {of}: {} (something of the kind in {points} {others} too)", worst.message)
        }
    };
    Some(Finding { message, ..(*worst).clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{load_result, load_share};
    use weir_model::record::Severity;
    use weir_model::suite::RateBase;

    fn load(series: Series) -> Load {
        Load { series, ..load_share("half", RateBase::Own, 0.5, "capacity") }
    }

    /// Rate and connections of every point.
    fn seen(series: Series, rate: Option<f64>) -> Vec<(u32, Option<f64>, u32)> {
        points(&load(series), rate).iter().map(|p| (p.point, p.rate, p.connections)).collect()
    }

    #[test]
    fn each_series_varies_one_thing() {
        assert_eq!(seen(Series::Once, Some(8.0)), [(1, Some(8.0), 64)]);
        assert_eq!(seen(Series::Rounds(2), None), [(1, None, 64), (2, None, 64)]);
        let shares = Series::Shares(vec![0.5, 1.25]);
        assert_eq!(seen(shares, Some(8.0)), [(1, Some(4.0), 64), (2, Some(10.0), 64)]);
        let counts = Series::Connections(vec![1, 64]);
        assert_eq!(seen(counts, Some(8.0)), [(1, Some(8.0), 1), (2, Some(8.0), 64)]);
    }

    #[test]
    fn the_last_points_files_are_the_trials_own() {
        let all = points(&load(Series::Rounds(3)), None);
        let folders: Vec<PathBuf> = all.iter().map(|point| point.folder(Path::new("/t"))).collect();
        assert_eq!(folders, [Path::new("/t/point-1"), Path::new("/t/point-2"), Path::new("/t")]);
        assert_eq!(points(&load(Series::Once), None)[0].folder(Path::new("/t")), Path::new("/t"));
    }

    #[test]
    fn points_are_named_by_what_varies() {
        let name = |series: Series| {
            let load = load(series);
            part(&load, points(&load, Some(8.0)).last().expect("a point"))
        };
        assert_eq!(name(Series::Once), None);
        assert_eq!(name(Series::Rounds(3)), Some(Part::Round { round: 3, of: 3 }));
        assert_eq!(name(Series::Shares(vec![0.5, 1.2])), Some(Part::Share { share: 1.2, point: 2, of: 2 }));
        assert_eq!(name(Series::Connections(vec![8])), Some(Part::Connections { connections: 8, point: 1, of: 1 }));
    }

    #[test]
    fn only_open_loads_can_be_too_much() {
        assert_eq!(rate_intent(&load(Series::Once)), RateIntent::Carried);
        assert_eq!(rate_intent(&Load { saturating: true, ..load(Series::Rounds(2)) }), RateIntent::TooMuch);
        assert_eq!(rate_intent(&load(Series::Shares(vec![0.5, 1.2]))), RateIntent::Either);
        assert_eq!(
            rate_intent(&Load { kind: LoadKind::Closed, saturating: true, ..load(Series::Once) }),
            RateIntent::Carried
        );
    }

    fn point(point: u32, findings: &[(&str, Severity)]) -> Point {
        let findings = findings
            .iter()
            .map(|(check, severity)| Finding {
                check: (*check).to_owned(),
                severity: *severity,
                message: format!("{check} at {point}"),
                remedy: "mend".into(),
            })
            .collect();
        let load = load_result(1.0);
        Point { point, connections: 1, load, findings, ..Point::default() }
    }

    fn reported(points: &[Point]) -> Vec<(Severity, String)> {
        merged_findings(points).into_iter().map(|finding| (finding.severity, finding.message)).collect()
    }

    #[test]
    fn a_trial_of_one_point_has_the_findings_of_the_point() {
        assert_eq!(reported(&[point(1, &[("steal", Severity::Warning)])]), [(Severity::Warning, "steal at 1".into())]);
        assert_eq!(reported(&[point(1, &[])]), []);
        assert_eq!(reported(&[]), []);
    }

    #[test]
    fn every_check_is_reported_once_with_its_most_severe_finding() {
        use Severity::{Fatal, Note, Warning};
        let points = [
            point(1, &[("errors", Fatal), ("tls", Note)]),
            point(2, &[("tls", Note), ("steal", Warning)]),
            point(3, &[("errors", Note), ("tls", Note)]),
            point(4, &[("errors", Note), ("tls", Note)]),
        ];
        let expected = [
            (Fatal, "point 1 of 4: errors at 1 (something of the kind in points 3 and 4 too)".to_owned()),
            (Note, "tls at 4 (point 4; something of the kind in all 4 points)".to_owned()),
            (Warning, "point 2 of 4: steal at 2".to_owned()),
        ];
        assert_eq!(reported(&points), expected);
        assert_eq!(reported(&points[..3])[0].1, "point 1 of 3: errors at 1 (something of the kind in point 3 too)");
    }
}
