//! Charts that compare products: the first screen, bars of rates, CPU time and memory, and the curves of a series. The direct path is left
//! out of a chart in which it would press the other curves flat.

use weir_model::suite::{LoadKind, Series};
use weir_model::text::{Unit, grouped, short};
use weir_stats::Estimate;

use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Chart, ChartKind, CurvePoint, Line, Lines};
use crate::palette::{Style, lighter};
use crate::run::Run;
use crate::summary::{Metric, Overall, PointRow, Row, Section, Standing, Summary};
use crate::tables::knee_words;

/// With more bars than this a chart is no longer readable.
const MOST_BARS: usize = 24;

/// The picture of the first screen; `None` when nothing may be ranked.
pub fn overview(run: &Run, summary: &Summary) -> Option<Chart> {
    let overall = summary.overall.as_ref()?;
    let sections: Vec<&Section> =
        summary.sections.iter().filter(|section| overall.leading().contains(&section.slug())).collect();
    let bars: usize = sections.iter().map(|section| section.all_rows().count()).sum();
    Some(if sections.len() > 1 && bars <= MOST_BARS {
        each_workload(run, overall, &sections)
    } else {
        over_all(run, overall, &sections)
    })
}

/// Which direction of a metric is better, as a sentence.
pub fn better(metric: Metric) -> &'static str {
    if metric.higher_is_better() { "More is better." } else { "Less is better." }
}

fn unit(metric: Metric) -> Unit {
    if metric == Metric::Rate { Unit::PER_SECOND } else { Unit::MILLIS }
}

/// One bar a product; under one label those of a product's profiles.
fn over_all(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let (metric, unit) = (overall.ranked_by, unit(overall.ranked_by));
    let measured = || overall.all_rows().filter_map(|row| Some((row, row.of(metric)?)));
    let value = |estimate: &Estimate| short(estimate.value / unit.size);
    let words: Vec<String> =
        measured().map(|(row, estimate)| format!("{} {} {}", row.label, value(&estimate), unit.name)).collect();
    let bars = measured().map(|(row, estimate)| {
        let mut bar = bar(run, row, &estimate, unit);
        bar.text = value(&estimate);
        if row.label != row.title && !row.is_baseline() {
            bar.text.push_str(&format!("  {}", row.entry.profile));
        }
        (row.entry.product.as_str(), (row, bar))
    });
    let groups = grouped(bars).into_iter().map(|(_, bars)| {
        let row = bars[0].0;
        let label = if row.suspect() { format!("{} *", row.title) } else { row.title.clone() };
        BarGroup { label, baseline: row.is_baseline(), bars: bars.into_iter().map(|(_, bar)| bar).collect() }
    });
    let groups = groups.collect();
    let several = overall.workloads.len() > 1;
    let over = match overall.workloads.as_slice() {
        [only] => format!("on {only}"),
        all => format!("geometric means over {} workloads", all.len()),
    };
    let means = several.then(|| {
        format!(
            "Geometric means over {}, taken within each block; then medians over {} blocks.",
            overall.workloads.join(", "),
            overall.blocks
        )
    });
    let how_drawn = sections.first().into_iter().flat_map(|section| &section.how_drawn).skip(usize::from(several));
    let suspect = sections.iter().flat_map(|section| section.all_rows()).any(|row| row.suspect());
    let whiskers = (overall.blocks > 1).then_some("Whiskers are the interval of the median.");
    let parts = [Some(better(metric)), whiskers, suspect.then_some("* suspect, see its remark.")];
    Chart {
        name: "overview".to_string(),
        title: format!("{}: {over}", metric.entry().name),
        subtitle: parts.into_iter().flatten().collect::<Vec<_>>().join(" "),
        alt: format!("Bars. {}.", words.join(", ")),
        notes: means.into_iter().chain(how_drawn.cloned()).collect(),
        kind: one_series(Axis::of_metric(metric, unit), groups),
    }
}

/// A group of bars for each workload.
fn each_workload(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let (metric, unit) = (overall.ranked_by, unit(overall.ranked_by));
    let entries: Vec<_> = overall.all_rows().map(|row| &row.entry).collect();
    let series = entries.iter().map(|entry| BarSeries { name: run.label_of(entry), colour: style(run, entry).colour });
    let groups = sections.iter().map(|section| {
        let bars = entries.iter().enumerate().filter_map(|(series, entry)| {
            let row = section.all_rows().find(|row| row.entry == **entry)?;
            let mut bar = bar(run, row, &row.of(metric)?, unit);
            bar.series = series;
            Some(bar)
        });
        BarGroup { label: format!("{} {}", section.workload, section.load), baseline: false, bars: bars.collect() }
    });
    let words = sections
        .iter()
        .map(|section| format!("{}: {}", section.slug_words(), alt_text(section, |row| row.of(metric), unit)));
    let at_most = if metric == Metric::Rate { " at its most" } else { "" };
    Chart {
        name: "overview".to_string(),
        title: format!("{}: every workload{at_most}", metric.entry().name),
        subtitle: sections.first().map(|section| subtitle(section)).unwrap_or_default(),
        alt: format!("Bars. {}.", words.collect::<Vec<_>>().join(". ")),
        notes: sections.first().into_iter().flat_map(|section| &section.how_drawn).skip(1).cloned().collect(),
        kind: ChartKind::bars(Axis::of_metric(metric, unit), series.collect(), groups.collect(), Arrangement::Below),
    }
}

/// How much paler the kernel's part of the CPU time is.
const SYSTEM: f64 = 0.5;

/// Successful responses/s of each entry; of streams the delay of their messages.
pub(super) fn ranked(run: &Run, section: &Section) -> Chart {
    let metric = if section.of_streams() { Metric::MessageDelay } else { Metric::Rate };
    let unit = unit(metric);
    let group = |row: &Row| {
        let bars = row.of(metric).iter().map(|value| bar(run, row, value, unit)).collect();
        BarGroup { label: label(row), baseline: row.is_baseline(), bars }
    };
    let what = match (&section.series, &section.kind) {
        _ if section.of_streams() => "Delay of messages, p99",
        (Series::Rounds(_), _) => "Rate of the middle round",
        (Series::Shares(_) | Series::Connections(_), _) => "Most carried at any point",
        (Series::Once, LoadKind::Search { .. }) => "Capacity under the objective",
        (Series::Once, LoadKind::Count { .. }) => "Rate",
        (Series::Once, _) if section.open => "Rate achieved",
        (Series::Once, _) => "Capacity",
    };
    let (stem, of) = match metric {
        Metric::Rate => ("rate", "successful responses/s"),
        _ => ("delay", "the 99th percentile of the delay of messages"),
    };
    Chart {
        name: format!("{}-{stem}", section.slug()),
        title: format!("{what}: {}", section.heading()),
        subtitle: subtitle(section),
        alt: format!("Bars of {of}: {}.", alt_text(section, |row| row.of(metric), unit)),
        notes: section.how_drawn.clone(),
        kind: one_series(Axis::of_metric(metric, unit), section.all_rows().map(group).collect()),
    }
}

/// CPU time of the proxy a response, user and system.
pub(super) fn proxy_cpu(run: &Run, section: &Section) -> Chart {
    let group = |row: &Row| {
        let total = bar_text(row, &row.of(Metric::Cpu)?, Unit::MICROS_PER_REQUEST);
        let colour = style(run, &row.entry).colour;
        let paler = lighter(&colour, SYSTEM);
        let parts = [(row.of(Metric::CpuUser)?.value, colour), (row.of(Metric::CpuSystem)?.value, paler)];
        let parts = parts.into_iter().enumerate();
        let bars = parts.map(|(series, (value, colour))| stacked_bar(series, value, colour, &total)).collect();
        Some(BarGroup { label: label(row), baseline: false, bars })
    };
    let alt = alt_text(section, |row| row.of(Metric::Cpu), Unit::MICROS_PER_REQUEST);
    Chart {
        name: format!("{}-cost", section.slug()),
        title: format!("CPU time of the proxy for one response: {}", section.heading()),
        subtitle: "Less is better. Dark is user mode, pale is the kernel.".to_string(),
        alt: format!("Stacked bars of CPU microseconds a response: {alt}."),
        notes: notes(
            section,
            "CPU time of the proxy's process tree in the window, over the responses it gave in the window. Medians over blocks; the \
             numbers at the ends are medians of the sums.",
        ),
        kind: ChartKind::bars(
            Axis::of_metric(Metric::Cpu, Unit::MICROS_PER_REQUEST),
            [("user", "#57606a"), ("system", "#abb0b4")].map(BarSeries::from).into(),
            section.rows.iter().filter_map(group).collect(),
            Arrangement::Stacked,
        ),
    }
}

/// CPU time of all three roles a response.
pub(super) fn roles_cpu(section: &Section) -> Chart {
    let roles = [("proxy", "#0072b2"), ("client", "#8c959f"), ("origin", "#cdd3d9")];
    let of = |row: &Row| [Metric::Cpu, Metric::ClientCpu, Metric::OriginCpu].map(|metric| row.of(metric));
    let group = |row: &Row| {
        let total = short(of(row).iter().flatten().map(|estimate| estimate.value).sum());
        let parts = of(row).into_iter().zip(roles).enumerate();
        let bars = parts.filter_map(|(series, (estimate, (_, colour)))| {
            Some(stacked_bar(series, estimate?.value, colour.to_string(), &total))
        });
        BarGroup { label: label(row), baseline: false, bars: bars.collect() }
    };
    let rows = section.all_rows().filter(|row| of(row).iter().any(Option::is_some));
    let either = |row: &Row| row.of(Metric::Cpu).or(row.of(Metric::ClientCpu));
    let alt = alt_text(section, either, Unit::MICROS_PER_REQUEST);
    Chart {
        name: format!("{}-roles", section.slug()),
        title: format!("CPU time of all roles for one response: {}", section.heading()),
        subtitle: "Less is better. Client and origin are weir's own, and do the same for every product.".to_string(),
        alt: format!("Stacked bars of CPU microseconds a response of proxy, client and origin: {alt}."),
        notes: notes(
            section,
            "CPU time of a role's processes in the window, user and system, by the responses that the client got in the window. \
             Medians over blocks; the numbers at the ends are sums of medians.",
        ),
        kind: ChartKind::bars(
            Axis::linear("CPU time", Unit::MICROS_PER_REQUEST.name),
            roles.map(BarSeries::from).into(),
            rows.map(group).collect(),
            Arrangement::Stacked,
        ),
    }
}

/// Memory of the proxy by connection.
pub(super) fn memory(run: &Run, section: &Section) -> Chart {
    let unit = Unit { name: "KiB/connection", ..Unit::KIBIBYTES };
    let by_connection = |row: &Row| row.memory.and_then(|memory| memory.by_connection);
    let group = |row: &Row| {
        let bars = vec![bar(run, row, &by_connection(row)?, unit)];
        Some(BarGroup { label: label(row), baseline: false, bars })
    };
    let proportional = section.rows.iter().filter_map(|row| row.memory).all(|memory| memory.proportional);
    let measure = if proportional {
        "Proportional sets: a page that several processes share is counted once."
    } else {
        "Resident sets: a page that several processes share is counted in each of them."
    };
    let what =
        format!("{measure} The largest in the window by the client's connections, the product's own needs included.");
    Chart {
        name: format!("{}-memory-connection", section.slug()),
        title: format!("Memory of the proxy by connection: {}", section.heading()),
        subtitle: "Less is better.".to_string(),
        alt: format!("Bars of memory by connection: {}.", alt_text(section, by_connection, Unit::KIBIBYTES)),
        notes: notes(section, &what),
        kind: one_series(Axis::linear("Memory", unit.name), section.rows.iter().filter_map(group).collect()),
    }
}

/// Names the measured quantity and the load.
fn notes(section: &Section, what: &str) -> Vec<String> {
    std::iter::once(what.to_string()).chain(section.how.first().cloned()).collect()
}

/// Bars of one series, which needs no legend.
pub(super) fn one_series(value: Axis, groups: Vec<BarGroup>) -> ChartKind {
    ChartKind::bars(value, vec![BarSeries::from(("", ""))], groups, Arrangement::Below)
}

/// A product's estimate as a bar of the first series.
pub(super) fn bar(run: &Run, row: &Standing, estimate: &Estimate, unit: Unit) -> Bar {
    let bar = Bar::of(estimate, unit.size, style(run, &row.entry).colour);
    Bar { hollow: !row.is_baseline() && row.rank.is_none(), text: bar_text(row, estimate, unit), ..bar }
}

/// The number at the end of a bar; the whisker shows the interval.
fn bar_text(row: &Standing, estimate: &Estimate, unit: Unit) -> String {
    let value = short(estimate.value / unit.size);
    let not_ranked = row.rank.is_none() && row.verdicts.invalid > 0 && row.verdicts.valid + row.verdicts.suspect == 0;
    if not_ranked { format!("{value} invalid, not ranked") } else { value }
}

fn stacked_bar(series: usize, value: f64, colour: String, text: &str) -> Bar {
    Bar { series, value, interval: None, colour, hollow: false, text: text.to_string() }
}

fn label(row: &Row) -> String {
    match row.rank {
        None if row.of(Metric::Rate).is_none() => format!("{} (failed)", row.label),
        _ if row.suspect() => format!("{} *", row.label),
        _ => row.label.clone(),
    }
}

/// Explains the marks in this chart.
pub(super) fn subtitle(section: &Section) -> String {
    let outlined = section.rows.iter().any(|row| row.rank.is_none() && row.of(Metric::Rate).is_some());
    let parts = [
        (!section.open, better(section.ranked_by)),
        (section.blocks > 1, "Whiskers are the interval of the median."),
        (section.all_rows().any(|row| row.suspect()), "* suspect, see its remark."),
        (outlined, "Outlined: invalid, not ranked."),
    ];
    parts.iter().filter(|(true_here, _)| *true_here).map(|(_, words)| *words).collect::<Vec<_>>().join(" ")
}

/// "haproxy 45,100 requests/s, nginx 40,000 requests/s".
pub(super) fn alt_text(section: &Section, of: impl Fn(&Row) -> Option<Estimate>, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let estimate = of(row)?;
        Some(format!("{} {} {}", row.label, short(estimate.value / unit.size), unit.name))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The charts of a series: the main ones, and other percentiles. Both are empty if the load is not a series. They are
/// those that the table of metrics names.
pub(super) fn series_charts(run: &Run, section: &Section) -> (Vec<Chart>, Vec<Chart>) {
    let mut metrics: Vec<(Metric, &str)> =
        Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry().columns.curve?))).collect();
    let main = |(metric, _): &(Metric, &str)| [Metric::Rate, Metric::P99].contains(metric);
    match section.series {
        Series::Once => return (Vec::new(), Vec::new()),
        // Against the offered rate, latency tells more than what was carried.
        Series::Shares(_) => metrics.sort_by_key(|(metric, _)| *metric == Metric::Rate),
        Series::Connections(_) | Series::Rounds(_) => {}
    }
    let (main, more): (Vec<_>, Vec<_>) = metrics.into_iter().partition(main);
    let draw = |(metric, stem): (Metric, &str)| chart(run, section, metric, stem);
    (main.into_iter().map(draw).collect(), more.into_iter().map(draw).collect())
}

fn chart(run: &Run, section: &Section, metric: Metric, stem: &str) -> Chart {
    let (name, rate) = (metric.entry().name, metric == Metric::Rate);
    let estimates = section.all_rows().flat_map(|row| row.points.iter().filter_map(|point| point.of(metric)));
    let unit = if rate { Unit::PER_SECOND } else { Unit::for_times(estimates.map(|estimate| estimate.value)) };
    let scale = if rate { Scale::Linear } else { Scale::Log };
    let curves = section.all_rows().map(|row| (row.is_baseline(), curve(run, section, row, metric, unit)));
    let separated = separate(curves.filter(|(_, curve)| !curve.points.is_empty()).collect(), scale, unit.name);
    let (against, x) = against(section);
    let mut notes = vec![
        section.how.first().cloned().unwrap_or_default(),
        "Points are medians over blocks, whiskers their intervals; an empty point is invalid.".to_string(),
    ];
    notes.extend(separated.notes);
    notes.extend(knee_words(section, "A diamond"));
    let subtitle = match &section.series {
        _ if !rate => "Less is better. Latency is due to answered.",
        Series::Shares(_) => {
            "More is better. Where a curve leaves the dotted line, the product no longer carries what is offered."
        }
        Series::Rounds(_) => "More is better. A curve that still climbs had not warmed up when measuring began.",
        Series::Once | Series::Connections(_) => "More is better.",
    };
    let offered = matches!(section.series, Series::Shares(_));
    Chart {
        name: format!("{}-{stem}", section.slug()),
        title: format!("{name} {against}: {}", section.heading()),
        subtitle: subtitle.to_string(),
        alt: format!("{name} {against}: {}.", curve_words(section, metric, unit)),
        notes,
        kind: ChartKind::Lines(Lines {
            x,
            y: Axis { scale, ..Axis::of_metric(metric, unit) },
            series: separated.drawn,
            rules: Vec::new(),
            csv_only: separated.csv_only,
            ideal: (offered && rate).then(|| "offered".to_string()),
        }),
    }
}

fn curve(run: &Run, section: &Section, row: &Row, metric: Metric, unit: Unit) -> Line {
    let Style { colour, dash } = style(run, &row.entry);
    let mut knee = None;
    let mut points = Vec::new();
    for (place, point) in row.points.iter().enumerate() {
        let (Some(estimate), Some(x)) = (point.of(metric), across(section, point)) else { continue };
        if row.knee == Some(place) {
            knee = Some(points.len());
        }
        points.push(CurvePoint { hollow: point.invalid > 0, ..CurvePoint::of(x, &estimate, unit.size) });
    }
    Line { name: row.label.clone(), colour, dash, points, knee, ..Line::default() }
}

/// Returns a point's place on the horizontal axis.
fn across(section: &Section, point: &PointRow) -> Option<f64> {
    match section.series {
        Series::Shares(_) => point.offered,
        Series::Connections(_) => Some(f64::from(point.connections)),
        Series::Rounds(_) | Series::Once => Some(f64::from(point.point)),
    }
}

/// The rest of a title, and the horizontal axis.
fn against(section: &Section) -> (&'static str, Axis) {
    match section.series {
        Series::Shares(_) => ("against the offered rate", Axis::linear("Offered", Unit::PER_SECOND.name)),
        Series::Connections(_) => {
            ("against connections", Axis { scale: Scale::Log, ..Axis::linear("Connections", "") })
        }
        Series::Rounds(_) | Series::Once => ("round by round", Axis::linear("Round", "")),
    }
}

/// "haproxy 0.61 ms at first, 12 ms at last, knee at point 4".
fn curve_words(section: &Section, metric: Metric, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let shown = |point: Option<&PointRow>| Some(short(point?.of(metric)?.value / unit.size));
        let (first, last) = (shown(row.points.first())?, shown(row.points.last())?);
        let knee = row.knee.map(|knee| format!(", knee at point {}", knee + 1)).unwrap_or_default();
        Some(format!("{} {first} {} at first, {last} at last{knee}", row.label, unit.name))
    });
    words.collect::<Vec<_>>().join("; ")
}

/// The direct path is too far above when it reaches more than this many times the highest product: less than a third of
/// the chart's height would be left to the products.
const TOO_FAR: f64 = 3.0;

/// Curves of a picture, and those that it leaves out.
#[derive(Debug, Default)]
pub struct Separated {
    /// To be drawn.
    pub drawn: Vec<Line>,
    /// Not to be drawn, only among the numbers.
    pub csv_only: Vec<Line>,
    /// A sentence for each that is left out.
    pub notes: Vec<String>,
}

/// Removes the curves of the direct path (those with the flag) from a chart in which they would be too far above all others.
/// On a logarithmic axis no curve is too far above the others.
pub fn separate(curves: Vec<(bool, Line)>, scale: Scale, unit: &str) -> Separated {
    let highest = curves.iter().filter(|(direct, _)| !direct).map(|(_, curve)| most(curve)).fold(0.0, f64::max);
    let mut separated = Separated::default();
    for (direct, curve) in curves {
        if direct && scale == Scale::Linear && highest > 0.0 && most(&curve) > highest * TOO_FAR {
            separated.notes.push(format!(
                "Not drawn: {}, up to {} {unit}, {} times the highest of the others, which it would press flat. Its numbers are in the \
                 CSV.",
                curve.name,
                short(most(&curve)),
                short(most(&curve) / highest)
            ));
            separated.csv_only.push(curve);
        } else {
            separated.drawn.push(curve);
        }
    }
    separated
}

fn most(curve: &Line) -> f64 {
    curve.points.iter().map(|point| point.interval.map_or(point.y, |(_, high)| high.max(point.y))).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charts::CurvePoint;

    fn curve(name: &str, rates: &[f64]) -> Line {
        let point = |(x, y): (usize, &f64)| CurvePoint { x: x as f64, y: *y, interval: None, hollow: false };
        Line {
            name: name.to_string(),
            colour: "#000000".to_string(),
            points: rates.iter().enumerate().map(point).collect(),
            ..Line::default()
        }
    }

    fn counts(direct: f64, product: f64, scale: Scale) -> (usize, usize, usize) {
        let curves = vec![(true, curve("direct", &[direct])), (false, curve("Alder", &[1.0, product]))];
        let separated = separate(curves, scale, "requests/s");
        (separated.drawn.len(), separated.csv_only.len(), separated.notes.len())
    }

    #[test]
    fn a_curve_far_above_the_others_is_noted_and_not_drawn() {
        assert_eq!(counts(31_000.0, 10_000.0, Scale::Linear), (1, 1, 1));
        assert_eq!(counts(29_000.0, 10_000.0, Scale::Linear), (2, 0, 0));
        assert_eq!(counts(31_000.0, 10_000.0, Scale::Log), (2, 0, 0));
        let separated = separate(
            vec![(true, curve("direct", &[107_000.0, 108_000.0])), (false, curve("Alder", &[20_000.0]))],
            Scale::Linear,
            "requests/s",
        );
        assert_eq!(separated.drawn[0].name, "Alder");
        assert!(separated.notes[0].starts_with("Not drawn: direct, up to 108,000 requests/s, 5.40 times the highest"));
    }

    #[test]
    fn a_fast_product_or_one_alone_is_drawn() {
        let fast = vec![(false, curve("Birch", &[90_000.0])), (false, curve("Alder", &[1_000.0]))];
        assert_eq!(separate(fast, Scale::Linear, "").drawn.len(), 2);
        assert_eq!(
            separate(vec![(true, curve("direct", &[5.0]))], Scale::Linear, "").drawn.len(),
            1,
            "there is nothing to press"
        );
    }
}
