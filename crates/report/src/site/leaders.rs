//! The picture of a site's overview: who comes first in each question, and how close the next ones are.
//!
//! It judges nothing: ranks and intervals are those of the runs.

use weir_model::text::unique;
use weir_stats::Estimate;

use super::recorded::{Answer, Question};
use crate::charts::axis::Axis;
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Chart, ChartKind};
use crate::palette::style;
use crate::summary::Row;

/// Questions in the picture, the newest: more cannot be read.
const MOST_QUESTIONS: usize = 12;

/// Products of a question in the picture, the best.
const MOST_PRODUCTS: usize = 4;

/// The best products of a question by its newest result, each with its share of the best number, percent; `None` where fewer than two are
/// ranked.
fn leaders<'a>(question: &'a Question<'a>) -> Option<(Answer<'a>, Vec<(&'a Row, Estimate)>)> {
    let (answer, _) = *question.by_machine().first()?;
    let metric = answer.section.ranked_by;
    let ranked = answer.section.rows.iter().filter(|row| row.rank.is_some());
    let mut products: Vec<_> = ranked.filter_map(|row| Some((row, row.of(metric)?))).collect();
    let values = products.iter().map(|(_, estimate)| estimate.value);
    let best = if metric.higher_is_better() { values.reduce(f64::max)? } else { values.reduce(f64::min)? };
    let share = |value: f64| 100.0 * if metric.higher_is_better() { value / best } else { best / value };
    for (_, estimate) in &mut products {
        let (low, high) = (share(estimate.low), share(estimate.high));
        (estimate.value, estimate.low, estimate.high) = (share(estimate.value), low.min(high), low.max(high));
    }
    products.retain(|(_, share)| [share.value, share.low, share.high].iter().all(|share| share.is_finite()));
    products.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    products.truncate(MOST_PRODUCTS);
    (products.len() > 1).then_some((answer, products))
}

/// Draws how close the best products of each question are, by the newest run.
pub(super) fn chart(questions: &[Question<'_>]) -> Chart {
    let leaders: Vec<_> = questions.iter().filter_map(leaders).take(MOST_QUESTIONS).collect();
    let entries = unique(leaders.iter().flat_map(|(_, products)| products.iter().map(|(row, _)| row.entry.clone())));
    let mut series: Vec<BarSeries> = Vec::new();
    let mut bar = |answer: &Answer<'_>, row: &Row, share: &Estimate| {
        let name = answer.run.run.label_of(&row.entry);
        let bar = Bar::of(share, 1.0, style(&row.entry, &entries).colour);
        let text = format!("{name} {} %", bar.text);
        let place = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
            series.push(BarSeries { name, colour: bar.colour.clone() });
            series.len() - 1
        });
        Bar { series: place, text, ..bar }
    };
    // A question's name is that of the run: in plain words they often begin alike.
    let group = |(answer, products): &(Answer<'_>, Vec<(&Row, Estimate)>)| BarGroup {
        label: answer.section.heading(),
        baseline: false,
        bars: products.iter().map(|(row, share)| bar(answer, row, share)).collect(),
    };
    let groups: Vec<BarGroup> = leaders.iter().map(group).collect();
    let words = |group: &BarGroup| {
        let texts: Vec<&str> = group.bars.iter().map(|bar| bar.text.as_str()).collect();
        format!("{}: {}", group.label, texts.join(", "))
    };
    Chart {
        name: "leaders".to_owned(),
        title: "Who comes first, by question".to_owned(),
        subtitle: format!("100 % is the best product of a question. Its {MOST_PRODUCTS} best are shown."),
        alt: format!("Bars by question. {}.", groups.iter().map(words).collect::<Vec<_>>().join("; ")),
        notes: vec![
            "Shares are of the number that ranks: the rate, or the inverse of a latency.".to_owned(),
            "Each is the median over the blocks of the newest run; whiskers are the interval of the median.".to_owned(),
            format!("The newest {MOST_QUESTIONS} questions with several products are shown; the table below has all."),
        ],
        kind: ChartKind::bars(Axis::linear("share of the best", "%"), series, groups, Arrangement::Below),
    }
}
