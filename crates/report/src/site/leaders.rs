//! The picture of a site's overview: who comes first in each question, and how close the next ones are.
//!
//! It judges nothing: ranks and intervals are those of the runs.

use weir_model::text::{short, unique};

use super::recorded::{Answer, Question};
use crate::charts::axis::Axis;
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Chart, ChartKind};
use crate::palette::style;
use crate::summary::Row;

/// Questions in the picture, the newest: more cannot be read.
const MOST_QUESTIONS: usize = 12;

/// Products of a question in the picture, the best.
const MOST_PRODUCTS: usize = 4;

/// A question, its newest result, and the best products by their share of the best number, percent.
struct Group<'a> {
    answer: Answer<'a>,
    products: Vec<(&'a Row, Bar)>,
}

impl<'a> Group<'a> {
    fn new(question: &'a Question<'a>) -> Option<Group<'a>> {
        let (answer, _) = *question.by_machine().first()?;
        let metric = answer.section.ranked_by;
        let ranked = answer.section.rows.iter().filter(|row| row.rank.is_some());
        let measured: Vec<_> = ranked.filter_map(|row| Some((row, row.of(metric)?))).collect();
        let values = measured.iter().map(|(_, estimate)| estimate.value);
        let best = if metric.higher_is_better() { values.reduce(f64::max)? } else { values.reduce(f64::min)? };
        let share = |value: f64| 100.0 * if metric.higher_is_better() { value / best } else { best / value };
        let bar = |(row, estimate): (&'a Row, weir_stats::Estimate)| {
            let (value, low, high) = (share(estimate.value), share(estimate.low), share(estimate.high));
            let interval = (estimate.n > 1).then_some((low.min(high), low.max(high)));
            let interval = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
            let text = format!("{} {} %", answer.run.run.label_of(&row.entry), short(value));
            (row, Bar { series: 0, value, interval, colour: String::new(), hollow: false, text })
        };
        let mut products: Vec<(&Row, Bar)> = measured.into_iter().map(bar).collect();
        products.retain(|(_, bar)| bar.value.is_finite());
        products.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
        products.truncate(MOST_PRODUCTS);
        (products.len() > 1).then_some(Group { answer, products })
    }

    /// Its bars, with the colours and series that the whole picture gives the products.
    fn drawn(self, labels: &[String], colour: impl Fn(&Row) -> String) -> BarGroup {
        let bar = |(row, bar): (&Row, Bar)| {
            let label = self.answer.run.run.label_of(&row.entry);
            let series = labels.iter().position(|known| *known == label).unwrap_or_default();
            Bar { series, colour: colour(row), ..bar }
        };
        let bars = self.products.into_iter().map(bar).collect();
        // Its own name: questions in plain words often begin alike.
        BarGroup { label: self.answer.section.heading(), baseline: false, bars }
    }
}

/// Draws how close the best products of each question are, by the newest run.
pub(super) fn chart(questions: &[Question<'_>]) -> Chart {
    let groups: Vec<Group<'_>> = questions.iter().filter_map(Group::new).take(MOST_QUESTIONS).collect();
    let entries = unique(groups.iter().flat_map(|group| group.products.iter().map(|(row, _)| row.entry.clone())));
    let label = |group: &Group<'_>, row: &Row| group.answer.run.run.label_of(&row.entry);
    let named = groups.iter().flat_map(|group| {
        group.products.iter().map(|(row, _)| (label(group, row), style(&row.entry, &entries).colour))
    });
    let mut series: Vec<BarSeries> = Vec::new();
    for (name, colour) in named {
        if !series.iter().any(|known| known.name == name) {
            series.push(BarSeries { name, colour });
        }
    }
    let labels: Vec<String> = series.iter().map(|series| series.name.clone()).collect();
    let words = |group: &Group<'_>| {
        let texts: Vec<&str> = group.products.iter().map(|(_, bar)| bar.text.as_str()).collect();
        format!("{}: {}", group.answer.section.heading(), texts.join(", "))
    };
    let alt = format!("Bars by question. {}.", groups.iter().map(words).collect::<Vec<_>>().join("; "));
    let colour = |row: &Row| style(&row.entry, &entries).colour;
    let groups = groups.into_iter().map(|group| group.drawn(&labels, colour)).collect();
    Chart {
        name: "leaders".to_owned(),
        title: "Who comes first, by question".to_owned(),
        subtitle: format!("100 % is the best product of a question. Its {MOST_PRODUCTS} best are shown."),
        alt,
        notes: vec![
            "Shares are of the number that ranks: the rate, or the inverse of a latency.".to_owned(),
            "Each is the median over the blocks of the newest run; whiskers are the interval of the median.".to_owned(),
            format!("The newest {MOST_QUESTIONS} questions with several products are shown; the table below has all."),
        ],
        kind: ChartKind::bars(Axis::linear("share of the best", "%"), series, groups, Arrangement::Below),
    }
}
