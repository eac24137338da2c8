//! Lays each published result beside what this run measured: one line for each profile under which its product ran, or one that says
//! why there is no number. `sections` counts the lines, `figure_tables` lists them, and a chart shows how far both are apart.

use weir_model::suite::Entry;
use weir_model::text::{grouped, short};
use weir_stats::{Estimate, median_interval};

use super::context::Context;
use super::facts;
use super::figures::{Figure, FigureKind, Source};
use super::measures::{Compare, Measure};
use super::metrics::unit_size;
use super::numbers::Numbers;
use super::run_cases::RunCase;
use super::variant::Variant;
use weir_report::summary::{LEVEL, SEED};

/// A published result and what stands beside it.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    pub figure: &'a Figure,
    pub measure: &'a Measure,
    pub ours: Ours<'a>,
}

/// What stands beside a published result.
#[derive(Debug, Clone)]
pub(super) enum Ours<'a> {
    /// A number.
    Measured(Measured<'a>),
    /// The product or the case was not run; the sentence says which.
    NotRun(String),
    /// It was run, and there is no such thing here; the sentence says why.
    NoCounterpart(String),
    /// weir does not take this measure.
    NotTaken,
}

/// A measured number.
#[derive(Debug, Clone)]
pub(super) struct Measured<'a> {
    pub entry: &'a Entry,
    /// No other profile of the product repeats the document more closely.
    pub closest: bool,
    /// In the figure's unit.
    pub value: Estimate,
    /// Ours divided by theirs, of metrics that compare; `None` where theirs is 0.
    pub ratio: Option<Estimate>,
    /// What a reader must know of this number.
    pub remark: String,
    /// Shown and not ranked.
    pub invalid: bool,
}

/// A transfer that was more by this share on the wire than after decryption is shown as both.
const ENCRYPTED: f64 = 0.001;

impl Line<'_> {
    /// The measured number.
    pub fn measured(&self) -> Option<&Measured<'_>> {
        match &self.ours {
            Ours::Measured(measured) => Some(measured),
            _ => None,
        }
    }

    /// What a reader must know of ours, or why there is no number.
    pub fn note(&self) -> String {
        match &self.ours {
            Ours::NotRun(why) | Ours::NoCounterpart(why) => why.clone(),
            Ours::NotTaken => self.measure.note.clone(),
            Ours::Measured(own) => {
                let parts = [self.measure.note.as_str(), &own.remark].into_iter().filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// A line or more for each published result, in the document's order.
pub(super) fn lines<'a>(context: &Context<'a>) -> Vec<Line<'a>> {
    let source = context.source;
    let results = source.figures.iter().filter(|figure| figure.kind == FigureKind::Result);
    let of_figure = |figure: &'a Figure| {
        let measure = source.measure(&figure.metric)?;
        let ours = if measure.compare == Compare::None { vec![Ours::NotTaken] } else { all(context, figure, measure) };
        Some(ours.into_iter().map(move |ours| Line { figure, measure, ours }).collect::<Vec<_>>())
    };
    results.filter_map(of_figure).flatten().collect()
}

fn all<'a>(context: &Context<'a>, figure: &'a Figure, measure: &'a Measure) -> Vec<Ours<'a>> {
    if Variant::parse(&figure.variant) == Variant::Other {
        return vec![Ours::NoCounterpart("it is of another program than the product".to_string())];
    }
    let Some(case) = context.cases.case(&figure.case) else {
        return vec![Ours::NotRun(format!("{} was not run", figure.case))];
    };
    let entries = context.cases.entries(&figure.product).into_iter();
    let entries: Vec<&Entry> = entries.filter(|entry| !case.usable_trials(entry).is_empty()).collect();
    if entries.is_empty() {
        let skipped = context.cases.run.environment.iter().flat_map(|environment| &environment.skipped);
        let why = skipped.filter(|skipped| skipped.product == figure.product).map(|skipped| &skipped.why).next();
        let because = why.map(|why| format!(": it {why}")).unwrap_or_default();
        return vec![Ours::NotRun(format!("{} was not run{because}", context.source.called(&figure.product)))];
    }
    let numbers = Numbers { context, case, figure, metric: measure.ours(&figure.metric) };
    let measured = entries.iter().enumerate().filter_map(|(place, entry)| {
        let (value, ratio) = estimates(context, case, &numbers, measure, entry)?;
        let remark = on_the_wire(context, case, figure, entry, value.value).unwrap_or_default();
        Some(Measured { entry, closest: place == 0, value, ratio, remark, invalid: case.invalid(entry) })
    });
    let measured: Vec<Ours<'_>> = measured.map(Ours::Measured).collect();
    if measured.is_empty() { vec![Ours::NoCounterpart(numbers.why_none())] } else { measured }
}

/// Of a transfer over TLS what was on the wire; `None` for all else.
fn on_the_wire(
    context: &Context<'_>,
    case: &RunCase<'_>,
    figure: &Figure,
    entry: &Entry,
    plaintext: f64,
) -> Option<String> {
    let wire = figure.metric == "transfer";
    let wire =
        wire.then(|| context.cases.estimate(case, Variant::parse(&figure.variant), entry, "transfer-wire"))??;
    let wire = wire.value / unit_size(&figure.unit)?;
    (wire > plaintext * (1.0 + ENCRYPTED)).then(|| format!("on the wire {} {}", short(wire), figure.unit))
}

/// The number of an entry in the figure's unit, and its ratio to the published one.
fn estimates(
    context: &Context<'_>,
    case: &RunCase<'_>,
    numbers: &Numbers<'_, '_>,
    measure: &Measure,
    entry: &Entry,
) -> Option<(Estimate, Option<Estimate>)> {
    let figure = numbers.figure;
    let size = unit_size(&figure.unit)?;
    let by_block = context.cases.each_block(case, entry, &|trial| numbers.of_trial(trial));
    let scaled = |values: &[f64], by: f64| values.iter().map(|value| value / by).collect::<Vec<f64>>();
    let value = median_interval(&scaled(&by_block, size), LEVEL, SEED)?;
    let published = figure.value * size;
    let ratios = match measure.compare {
        Compare::Value => Some(scaled(&by_block, published)),
        Compare::Share => {
            let requests = facts::requests(context.source, &figure.case, &figure.product, &figure.variant)?;
            let own = context.cases.each_block(case, entry, &|trial| numbers.requests(trial));
            let shares: Vec<f64> = by_block.iter().zip(own).map(|(value, requests)| value / requests).collect();
            Some(scaled(&shares, published / requests))
        }
        Compare::Beside | Compare::None => None,
    };
    let ratio = ratios.filter(|_| published > 0.0).and_then(|ratios| median_interval(&ratios, LEVEL, SEED));
    Some((value, ratio))
}

/// Things by the group of the line that each belongs to, in the order of the table of measures.
pub(super) fn by_group<'l, T>(
    source: &'l Source,
    things: impl Iterator<Item = (&'l Line<'l>, T)>,
) -> Vec<(&'l str, Vec<T>)> {
    let mut groups = grouped(things.map(|(line, thing)| (line.measure.group.as_str(), thing)));
    groups.sort_by_key(|(group, _)| source.measures.iter().position(|measure| measure.group == *group));
    groups
}
