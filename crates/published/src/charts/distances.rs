//! Draws how far this run's numbers are from the published ones: a dot for each result, by measure and product. `sections` calls it.

use weir_model::text::{short, unique};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{Arrangement, Bar, BarGroup, BarSeries, Bars, Chart, ChartKind, style};

use crate::beside::{self, Line, Measured};
use crate::context::Context;

/// One chart of all results that compare. `None` where there are none.
pub(crate) fn chart(context: &Context<'_>, lines: &[Line<'_>]) -> Option<Chart> {
    let run = context.cases.run;
    let compared = lines.iter().filter_map(|line| {
        let measured = line.measured().filter(|measured| measured.closest)?;
        Some((line, measured, measured.ratio?.value)).filter(|(.., ratio)| *ratio > 0.0)
    });
    let compared: Vec<(&Line<'_>, &Measured<'_>, f64)> = compared.collect();
    let order = |product: &str| context.source.products.iter().position(|known| known.product == product);
    let mut products = unique(compared.iter().map(|(line, ..)| line.figure.product.as_str()));
    products.sort_by_key(|product| order(product));
    let series = products.iter().map(|product| {
        let entry = compared.iter().find(|(line, ..)| line.figure.product == *product).map(|(_, own, _)| own.entry);
        let colour = entry.map(|entry| style(run, entry).colour).unwrap_or_default();
        BarSeries { name: run.title_of(product).to_string(), colour }
    });
    let series: Vec<BarSeries> = series.collect();
    let dot = |(line, measured, ratio): &(&Line<'_>, &Measured<'_>, f64)| {
        let place = products.iter().position(|product| *product == line.figure.product).unwrap_or(0);
        let figure = line.figure;
        let of = [figure.metric.as_str(), &figure.case, &figure.variant].join(" ");
        let text = format!(
            "{} times: {}, {} {} there, {} here{}",
            short(*ratio),
            of.trim_end(),
            short(figure.value),
            figure.unit,
            short(measured.value.value),
            if measured.invalid { ", invalid" } else { "" }
        );
        Bar {
            series: place,
            value: *ratio,
            interval: None,
            colour: series[place].colour.clone(),
            hollow: measured.invalid,
            text,
        }
    };
    let groups = beside::by_group(context.source, compared.iter().map(|one| (one.0, one)));
    let groups = groups.into_iter().map(|(group, all)| BarGroup {
        label: group.to_string(),
        // A rule below each.
        baseline: true,
        bars: all.into_iter().map(dot).collect(),
    });
    let groups: Vec<BarGroup> = groups.collect();
    let within = |factor: f64| compared.iter().filter(|(.., r)| (1.0 / factor..=factor).contains(r)).count();
    let (near, far) = (within(2.0), compared.len() - within(10.0));
    let title = format!("How far this run is from {}", context.source.documents.first()?.title);
    let subtitle = format!(
        "Each dot is one published result: ours divided by theirs. Of {}, {near} are within a factor of 2 and {far} beyond one of 10.",
        compared.len()
    );
    let mut notes = vec![
        "At 1 both are the same; right of it ours is more, left of it less. Machines differ, so look at whether the dots of one \
         product stand elsewhere than those of the others, more than at where all of them stand. Counts that grow with the number \
         of requests are compared as shares of it. Results that are 0 on either side have no place on this axis."
            .to_string(),
    ];
    if context.cases.profiles.len() > 1 {
        notes.push("Of each product the profile that repeats the document most closely.".to_string());
    }
    notes.push(context.scaled.to_string());
    (!compared.is_empty()).then(|| Chart {
        name: "published-distances".to_string(),
        alt: format!("{title}. {subtitle}"),
        title,
        subtitle,
        notes,
        kind: ChartKind::Bars(Bars {
            value: Axis { scale: Scale::Log, ..Axis::linear("This run / published", "") },
            series,
            groups,
            arrangement: Arrangement::Dots { rule: 1.0 },
        }),
    })
}
