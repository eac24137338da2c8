//! Builds the bars that show the cost of a response: CPU time of the proxy and of all roles, and memory per connection.
//! Called by `of_section` in `section`.

use weir_stats::Estimate;

use super::capacity::{alt_text, bar, label, with_interval};
use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::palette::lighter;
use crate::run::Run;
use crate::summary::{Metric, Row, Section};
use weir_model::text::{Unit, short};

/// How much paler the kernel's part of the CPU time is.
const SYSTEM: f64 = 0.5;

/// CPU time of the proxy an answer, user and system.
pub(super) fn proxy(run: &Run, section: &Section) -> Chart {
    let with_cost = section
        .rows
        .iter()
        .filter_map(|row| Some((row, row.of(Metric::Cpu)?, row.of(Metric::CpuUser)?, row.of(Metric::CpuSystem)?)));
    let groups: Vec<BarGroup> = with_cost
        .map(|(row, total, user, system)| {
            let colour = style(run, &row.entry).0.colour;
            let paler = lighter(&colour, SYSTEM);
            let text = with_interval(&total, 1.0, row);
            let bars = [(0, user.value, colour), (1, system.value, paler)].map(|(series, value, colour)| Bar {
                series,
                value,
                interval: None,
                colour,
                hollow: false,
                text: text.clone(),
            });
            BarGroup { label: label(row), baseline: false, bars: bars.into() }
        })
        .collect();
    let unit = Unit::MICROS_PER_REQUEST;
    let series = [("user", "#57606a"), ("system", "#abb0b4")]
        .map(|(name, colour)| BarSeries { name: name.to_string(), colour: colour.to_string() });
    let bars = Bars {
        value: Axis { label: "CPU time of the proxy".to_string(), unit: unit.name.to_string(), scale: Scale::Linear },
        series: series.into(),
        groups,
        stacked: true,
    };
    let what = "CPU time of the proxy's process tree in the window, over the answers it gave in the window. Medians over \
                blocks; the numbers at the ends are medians of the sums.";
    let notes = vec![what.to_string(), section.how.first().cloned().unwrap_or_default()];
    Chart {
        name: format!("{}-cost", section.slug()),
        title: format!("CPU time of the proxy for one answer: {}", section.heading()),
        subtitle: "Less is better. Dark is user mode, pale is the kernel.".to_string(),
        alt: format!(
            "Stacked bars of CPU microseconds an answer: {}.",
            alt_text(section, |row| row.of(Metric::Cpu), unit)
        ),
        notes,
        kind: ChartKind::Bars(bars),
    }
}

/// CPU time of all three roles an answer.
pub(super) fn roles(section: &Section) -> Chart {
    let roles = [("proxy", "#0072b2"), ("client", "#8c959f"), ("origin", "#cdd3d9")];
    let of = |row: &Row| [row.of(Metric::Cpu), row.of(Metric::ClientCpu), row.of(Metric::OriginCpu)];
    let rows = section.all_rows().filter(|row| of(row).iter().any(Option::is_some));
    let groups = rows.map(|row| {
        let sum: f64 = of(row).iter().flatten().map(|estimate| estimate.value).sum();
        let bars = of(row).into_iter().enumerate().filter_map(|(series, estimate)| {
            Some(Bar {
                series,
                value: estimate?.value,
                interval: None,
                colour: roles[series].1.to_string(),
                hollow: false,
                text: short(sum),
            })
        });
        BarGroup { label: label(row), baseline: false, bars: bars.collect() }
    });
    let unit = Unit::MICROS_PER_REQUEST;
    let sums = |row: &Row| -> Option<Estimate> { row.of(Metric::Cpu).or(row.of(Metric::ClientCpu)) };
    Chart {
        name: format!("{}-roles", section.slug()),
        title: format!("CPU time of all roles for one answer: {}", section.heading()),
        subtitle: "Less is better. Client and origin are weir's own, and do the same for every product.".to_string(),
        alt: format!("Stacked bars of CPU microseconds an answer of proxy, client and origin: {}.", alt_text(section, sums, unit)),
        notes: vec![
            "CPU time of a role's processes in the window, user and system, by the answers that the client got in the window. \
             Medians over blocks; the numbers at the ends are sums of medians."
                .to_string(),
            section.how.first().cloned().unwrap_or_default(),
        ],
        kind: ChartKind::Bars(Bars {
            value: Axis { label: "CPU time".to_string(), unit: unit.name.to_string(), scale: Scale::Linear },
            series: roles
                .map(|(name, colour)| BarSeries { name: name.to_string(), colour: colour.to_string() })
                .into(),
            groups: groups.collect(),
            stacked: true,
        }),
    }
}

/// Memory of the proxy by connection.
pub(super) fn memory(run: &Run, section: &Section) -> Chart {
    let unit = Unit::KIBIBYTES;
    let by_connection = |row: &Row| row.memory.and_then(|memory| memory.by_connection);
    let groups = section.rows.iter().filter_map(|row| {
        let estimate = by_connection(row)?;
        let scaled = Estimate {
            value: estimate.value / unit.size,
            low: estimate.low / unit.size,
            high: estimate.high / unit.size,
            ..estimate
        };
        Some(BarGroup { label: label(row), baseline: false, bars: vec![bar(run, row, &scaled, 0, false)] })
    });
    let proportional = section.rows.iter().filter_map(|row| row.memory).all(|memory| memory.proportional);
    let measure = if proportional {
        "Proportional sets: a page that several processes share is counted once."
    } else {
        "Resident sets: a page that several processes share is counted in each of them."
    };
    Chart {
        name: format!("{}-memory-connection", section.slug()),
        title: format!("Memory of the proxy by connection: {}", section.heading()),
        subtitle: "Less is better.".to_string(),
        alt: format!("Bars of memory by connection: {}.", alt_text(section, by_connection, unit)),
        notes: vec![
            format!(
                "{measure} The largest in the window by the client's connections, the product's own needs included."
            ),
            section.how.first().cloned().unwrap_or_default(),
        ],
        kind: ChartKind::Bars(Bars {
            value: Axis { label: "Memory".to_string(), unit: "KiB/connection".to_string(), scale: Scale::Linear },
            series: vec![BarSeries { name: "memory".to_string(), colour: String::new() }],
            groups: groups.collect(),
            stacked: false,
        }),
    }
}
