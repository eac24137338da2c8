//! Merges the findings of all points of a series into those of the trial: for each check the most severe one, with its points.
//! The end of a trial calls it.
//!
//! A pure function. It does not know what the checks look at.

use weir_model::record::{Finding, Point};

/// One finding of every check that found something at a point, in order of appearance. The most severe one is reported. Among
/// equals, it is that of the last point, whose numbers are the trial's.
pub fn fold(points: &[Point]) -> Vec<Finding> {
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
    let (reported, gravest) = seen.iter().max_by_key(|(point, finding)| (finding.severity, *point))?;
    let others: Vec<u32> = seen.iter().map(|(point, _)| *point).filter(|point| point != reported).collect();
    let message = match others.len() {
        _ if of == 1 => gravest.message.clone(),
        0 => format!("point {reported} of {of}: {}", gravest.message),
        n if n + 1 == of => format!("{} (point {reported}; something of the kind in all {of} points)", gravest.message),
        _ => {
            format!("point {reported} of {of}: {} (something of the kind in {} too)", gravest.message, numbers(&others))
        }
    };
    Some(Finding { message, ..(*gravest).clone() })
}

/// `point 3`, `points 1, 2 and 5`.
fn numbers(points: &[u32]) -> String {
    let words: Vec<String> = points.iter().map(u32::to_string).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => format!("point {one}"),
        [most @ .., last] => format!("points {} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load_result;
    use weir_model::record::Severity;

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
        Point { point, offered_rate: None, connections: 1, load, origin: None, usage: Vec::new(), findings }
    }

    fn reported(points: &[Point]) -> Vec<(Severity, String)> {
        fold(points).into_iter().map(|finding| (finding.severity, finding.message)).collect()
    }

    #[test]
    fn a_trial_of_one_point_has_the_findings_of_the_point() {
        assert_eq!(reported(&[point(1, &[("steal", Severity::Warning)])]), [(Severity::Warning, "steal at 1".into())]);
        assert_eq!(reported(&[point(1, &[])]), []);
        assert_eq!(reported(&[]), []);
    }

    #[test]
    fn every_check_speaks_once_and_the_gravest_is_told() {
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
