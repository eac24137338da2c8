//! Lays the points of published curves (percentiles over connections or rates) beside those of this run. A machine that cannot carry the
//! published numbers measures others of the same shape: points belong together that are the same share of the most connections, or of the
//! highest rate, of their curve.

use weir_model::suite::Entry;
use weir_model::text::{Unit, count, short, unique};
use weir_report::run::{BASELINE, Trial};
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};
use weir_stats::Estimate;

use crate::charts::slug;
use crate::figures::{Picture, Variant};
use crate::layout::{Draw, PictureLayout, holds};
use crate::numbers::{percentile, unit_size};
use crate::run_cases::{Context, RunCase};

/// Shares that differ by more than this part are different points.
const SAME_SHARE: f64 = 0.02;

/// A published picture of curves over one axis, and the case of the run that repeats it.
pub(crate) struct Published<'a> {
    pub case: &'a RunCase<'a>,
    /// The metrics drawn.
    pub metrics: &'a [String],
    /// What the points differ in.
    pub across: Across,
    /// Variants of the figures and their numbers, in the document's order.
    pub points: Vec<(&'a str, f64)>,
    /// The product that was measured.
    pub product: &'a str,
    /// The largest number published.
    pub most: f64,
    /// The largest number measured here.
    pub own_most: f64,
}

/// What the points of a curve differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Across {
    /// The number of connections.
    Connections,
    /// The offered rate.
    Rates,
}

impl Across {
    /// A point's number as a reader sees it.
    fn number(self, number: f64) -> String {
        match self {
            Across::Connections => count(number as u64),
            Across::Rates => short(number),
        }
    }

    /// The unit of the points.
    pub fn unit(self) -> &'static str {
        match self {
            Across::Connections => "connections",
            Across::Rates => "requests/s",
        }
    }
}

impl<'a> Published<'a> {
    /// The picture's curves; `None` where the case was not run over the same axis.
    pub fn of(context: &Context<'a>, layout: &'a PictureLayout) -> Option<Published<'a>> {
        let source = context.source;
        let name = source.cases().into_iter().find(|case| holds(&layout.cases, case))?;
        let case = context.cases.case(name)?;
        let own = |metric: &'a String| source.results(metric).filter(|figure| figure.case == name).collect::<Vec<_>>();
        let figures: Vec<_> = layout.metrics.iter().flat_map(own).collect();
        let number = |variant: &str| match Variant::parse(variant) {
            Variant::Connections(connections) => Some((Across::Connections, f64::from(connections))),
            Variant::Rate(rate) => Some((Across::Rates, rate)),
            _ => None,
        };
        let variants = unique(figures.iter().map(|figure| figure.variant.as_str()));
        let across = variants.iter().find_map(|variant| number(variant))?.0;
        let points: Vec<(&str, f64)> =
            variants.into_iter().filter_map(|variant| Some((variant, number(variant)?.1))).collect();
        let most = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
        let (product, metrics) = (figures.first()?.product.as_str(), layout.metrics.as_slice());
        let published_most = most(&mut points.iter().map(|(_, number)| *number))?;
        let curves = Published { case, metrics, across, points, product, most: published_most, own_most: 0.0 };
        let entries = context.cases.run.suite.entries.iter();
        let own_most = most(&mut entries.flat_map(|entry| curves.measured_at(entry)).map(|(_, number)| number))?;
        // Of one point there is no curve, and a load of another kind has none that differ.
        (case.rounds() > 1).then_some(Published { own_most, ..curves })
    }

    /// The products that were run, without the direct path.
    pub fn entries(&self, context: &Context<'a>) -> Vec<&'a Entry> {
        let entries = context.cases.run.suite.entries.iter().filter(|entry| entry.product != BASELINE);
        entries.filter(|entry| !self.measured_at(entry).is_empty()).collect()
    }

    /// The points of an entry in this run: their variants, and their connections or rates.
    pub fn measured_at(&self, entry: &Entry) -> Vec<(Variant, f64)> {
        self.case.usable_trials(entry).first().map(|trial| self.points_of(trial)).unwrap_or_default()
    }

    /// The point of a trial at the same share of the most as that of a published variant.
    pub fn variant_at(&self, trial: &Trial, published: &str) -> Option<Variant> {
        let (_, number) = self.points.iter().find(|(variant, _)| *variant == published)?;
        self.same_share(self.points_of(trial), *number).map(|(variant, _)| variant)
    }

    fn points_of(&self, trial: &Trial) -> Vec<(Variant, f64)> {
        let points = trial.measurement.points.iter();
        let number = |point: &weir_model::record::Point| match self.across {
            Across::Connections => Some(f64::from(point.connections)),
            Across::Rates => point.offered_rate,
        };
        points.filter_map(|point| Some((Variant::Round(point.point), number(point)?))).collect()
    }

    /// The one of a run's points that is the same share of the most as a published number.
    fn same_share(&self, points: Vec<(Variant, f64)>, published_at: f64) -> Option<(Variant, f64)> {
        let wanted = published_at / self.most * self.own_most;
        points.into_iter().find(|(_, number)| (number / wanted - 1.0).abs() <= SAME_SHARE)
    }

    /// True when the run went as far as the document, so that numbers and not shares are compared.
    pub fn is_full(&self) -> bool {
        (self.own_most / self.most - 1.0).abs() <= SAME_SHARE
    }

    /// What a reader must know before comparing: how far both went, and what was held.
    pub fn words(&self, context: &Context<'_>) -> String {
        let unit = self.across.unit();
        let first = self.case.section.rows.iter().find_map(|row| row.points.first());
        let held = match self.across {
            Across::Connections => ("rate", "requests/s", first.and_then(|point| point.offered)),
            Across::Rates => ("connections", "connections", first.map(|point| f64::from(point.connections))),
        };
        let there = context.source.condition(self.case.name, "", "", held.0).map(|figure| figure.value);
        let fixed = match (there, held.2) {
            (Some(there), Some(here)) => format!(" Held: {} {} there, {} here.", short(there), held.1, short(here)),
            _ => String::new(),
        };
        let (most, own) = (self.across.number(self.most), self.across.number(self.own_most));
        let far = match self.is_full() {
            true => format!("Up to {most} {unit}, there and here."),
            false => format!(
                "Up to {most} {unit} there and {own} here: points stand by their share of the most, so compare the shape of \
                 the curves and not their height."
            ),
        };
        format!("{far}{fixed}")
    }

    /// An entry's point at the same share of the most as a published one, and the estimates of its metrics.
    fn measured(
        &self,
        context: &Context<'_>,
        entry: &Entry,
        published_at: f64,
    ) -> Option<(f64, impl Fn(&str) -> Option<Estimate>)> {
        let (variant, number) = self.same_share(self.measured_at(entry), published_at)?;
        let estimate = move |metric: &str| context.cases.estimate(self.case, variant, entry, metric);
        Some((number, estimate))
    }
}

/// One table for each picture of curves whose case was run: each published point beside every product's.
pub(super) fn tables(context: &Context<'_>) -> Vec<Table> {
    let layouts = context.source.layout.pictures.iter().filter(|layout| layout.draw == Draw::Points);
    let picture = |layout: &PictureLayout| context.source.pictures.iter().find(|p| p.picture == layout.picture);
    layouts
        .filter_map(|layout| {
            let curves = Published::of(context, layout)?;
            Some(table(context, &curves, picture(layout)?))
        })
        .collect()
}

fn table(context: &Context<'_>, curves: &Published<'_>, picture: &Picture) -> Table {
    let size = unit_size(&picture.y_unit).unwrap_or(Unit::MILLIS.size);
    let unit = Unit { name: "", size };
    let case = curves.case;
    // A published point beside an entry's point.
    type Place<'a> = (&'a Entry, &'a str, f64);
    let mut rows: Vec<Place<'_>> = Vec::new();
    for entry in curves.entries(context) {
        rows.extend(curves.points.iter().map(|(variant, number)| (entry, *variant, *number)));
    }
    let figure = move |variant: &str, metric: &str| {
        let figure = context.source.result(case.name, curves.product, variant, metric)?;
        Some(figure.value * unit_size(&figure.unit)?)
    };
    let mut table = TableOf::<Place<'_>>::new();
    table.add(Column::text("Product"), |(entry, ..)| context.cases.run.label_of(entry));
    table.add(Column::number("Published at", curves.across.unit()), |(_, _, number)| {
        Cell::number(curves.across.number(*number), *number)
    });
    table.add(Column::number("Measured at", curves.across.unit()), |(entry, _, number)| {
        let (own, _) = curves.measured(context, entry, *number)?;
        Some(Cell::number(curves.across.number(own), own))
    });
    for metric in curves.metrics {
        let name = metric.trim_start_matches("latency-");
        table.add(Column::number(&format!("{name} published"), &picture.y_unit), move |(_, variant, _)| {
            figure(variant, metric).map(|value| Cell::number(short(value / size), value))
        });
        let column = Column::number(&format!("{name} measured"), &picture.y_unit).with_details();
        table.add(column, move |(entry, _, number)| {
            curves.measured(context, entry, *number).map(|(_, estimate)| estimate_cell(estimate(metric), unit))
        });
    }
    // The shape, in one number for each point: how many times the first point's highest percentile it is.
    let highest = curves.metrics.iter().max_by(|a, b| percentile(a).partial_cmp(&percentile(b)).expect("numbers"));
    if let (Some(metric), Some((first, first_at))) = (highest, curves.points.first().copied()) {
        let name = metric.trim_start_matches("latency-");
        table.add(Column::number(&format!("{name} / first published"), ""), move |(_, variant, _)| {
            Some(Cell::short(figure(variant, metric)? / figure(first, metric)?))
        });
        table.add(Column::number(&format!("{name} / first measured"), ""), move |(entry, _, number)| {
            let value = |at: f64| Some(curves.measured(context, entry, at)?.1(metric)?.value);
            Some(Cell::short(value(*number)? / value(first_at)?))
        });
    }
    let stem = picture.picture.rsplit_once('.').map_or(picture.picture.as_str(), |(stem, _)| stem);
    let title = format!("{}: {}", picture.title, case.section.workload_title);
    let called = context.source.called(curves.product);
    let stands = format!(
        "Published is {called}, the product of the document, on another machine; every product of this run is beside it."
    );
    let kind = |(entry, ..): &Place<'_>| if case.invalid(entry) { RowKind::Unranked } else { RowKind::Plain };
    table
        .table(format!("published-points-{}", slug(stem)), title, &rows, kind)
        .with_notes([stands, curves.words(context)])
        .with_notes([context.scaled])
}
