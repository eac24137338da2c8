//! What weir has beside each published metric, from `suites/published/measures.csv`: how the two compare, and what a reader must know.
//! `beside` lays figures side by side by it, and `document_tables` says from it what is not measured. It knows this file and no run.

use serde::Deserialize;

use super::figures::Source;

/// A row: the metrics that its pattern matches.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Measure {
    /// The name of the metric; a star matches anything.
    metric: String,
    /// The metrics that stand together in lists and in the picture.
    pub group: String,
    /// How the published number and ours compare.
    pub compare: Compare,
    /// The metric that ours is taken of; empty: the same.
    #[serde(rename = "as")]
    stands_for: String,
    /// What ours means where that differs, or why there is none.
    pub note: String,
}

/// How a published number and ours compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compare {
    /// By their ratio.
    Value,
    /// By the ratio of their shares of the requests, of which there may be another number here.
    Share,
    /// Not at all: they stand side by side.
    Beside,
    /// weir does not take it.
    None,
}

impl Measure {
    /// The metric that ours is taken of.
    pub fn ours<'a>(&'a self, metric: &'a str) -> &'a str {
        if self.stands_for.is_empty() { metric } else { &self.stands_for }
    }

    fn fits(&self, metric: &str) -> bool {
        match self.metric.split_once('*') {
            Some((begin, end)) => metric.starts_with(begin) && metric.ends_with(end),
            None => self.metric == metric,
        }
    }
}

impl Source {
    /// What weir has beside a metric: the first row that matches it. `None` for a metric of no figure.
    pub fn measure(&self, metric: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.fits(metric))
    }

    /// Why weir does not take a metric; `None` where it does.
    pub fn not_taken(&self, metric: &str) -> Option<&str> {
        let measure = self.measure(metric).filter(|measure| measure.compare == Compare::None)?;
        Some(&measure.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{FigureKind, source};

    const SUITES: [&str; 5] = ["monolake", "easegress", "juno", "spring-cloud-gateway", "loggly"];

    #[test]
    fn every_result_has_a_measure_and_every_measure_a_result() {
        let sources = SUITES.map(|suite| source(suite).unwrap());
        let mut used: Vec<&Measure> = Vec::new();
        for source in &sources {
            for figure in source.figures.iter().filter(|figure| figure.kind == FigureKind::Result) {
                let measure = source.measure(&figure.metric).unwrap_or_else(|| panic!("{}", figure.metric));
                assert_eq!(measure.compare == Compare::None, source.not_taken(&figure.metric).is_some());
                assert!(measure.compare != Compare::None || !measure.note.is_empty(), "{measure:?}");
                used.push(measure);
            }
        }
        for measure in sources.iter().flat_map(|source| &source.measures) {
            assert!(used.contains(&measure), "no result is of {measure:?}");
        }
    }

    /// The numbers in `suites/published/README.md`.
    #[test]
    fn most_published_results_are_of_measures_that_weir_takes() {
        let counts = SUITES.map(|suite| {
            let source = source(suite).unwrap();
            let results = || source.figures.iter().filter(|figure| figure.kind == FigureKind::Result);
            let others = results().filter(|figure| figure.variant.contains("another program")).count();
            let none = results().filter(|figure| source.not_taken(&figure.metric).is_some()).count();
            (suite, results().count(), results().count() - others - none)
        });
        let expected = [
            ("monolake", 128, 128),
            ("easegress", 453, 436),
            ("juno", 82, 82),
            ("spring-cloud-gateway", 77, 76),
            ("loggly", 206, 166),
        ];
        assert_eq!(counts, expected);
        let text = include_str!("../../../suites/published/README.md");
        for (suite, all, taken) in counts {
            assert!(text.contains(&format!("| {suite} | {all} | {taken} |")), "README.md: {suite} {all} {taken}");
        }
    }
}
