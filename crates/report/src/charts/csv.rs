//! Writes the numbers of a chart as CSV, for users who want to draw it with another tool.

use weir_model::text::csv_cell;

use super::{Chart, ChartKind};
use crate::error::DrawError;

/// One row a bar or a point; the header names the units.
///
/// # Errors
///
/// Only when memory for the text cannot be had.
pub fn draw(chart: &Chart) -> Result<Vec<u8>, DrawError> {
    let (header, rows) = rows(&chart.kind);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row.iter().map(|cell| csv_cell(cell)))?;
    }
    Ok(writer.into_inner()?)
}

fn rows(kind: &ChartKind) -> (Vec<String>, Vec<Vec<String>>) {
    let ends = |interval: Option<(f64, f64)>| match interval {
        Some((low, high)) => [low.to_string(), high.to_string()],
        None => Default::default(),
    };
    match kind {
        ChartKind::Bars(bars) => {
            let header = ["group", "series", &bars.value.title(), "low", "high"].map(str::to_string);
            let rows = bars.groups.iter().flat_map(|group| {
                group.bars.iter().map(|bar| {
                    let series = bars.series.get(bar.series).map(|series| series.name.clone()).unwrap_or_default();
                    let [low, high] = ends(bar.interval);
                    vec![group.label.clone(), series, bar.value.to_string(), low, high]
                })
            });
            (header.into(), rows.collect())
        }
        ChartKind::Lines(lines) if lines.series.iter().all(|line| line.points.is_empty()) => {
            let header = ["series", "part", &lines.x.title(), &lines.y.title()].map(str::to_string);
            let rows = lines.series.iter().flat_map(|line| {
                let points = line.pieces.iter().flatten();
                points.map(|(x, y)| vec![line.name.clone(), line.part.clone(), x.to_string(), y.to_string()])
            });
            (header.into(), rows.collect())
        }
        ChartKind::Lines(curves) => {
            let header = ["series", &curves.x.title(), &curves.y.title(), "low", "high", "knee"].map(str::to_string);
            let rows = curves.series.iter().chain(&curves.csv_only).flat_map(|curve| {
                curve.points.iter().enumerate().map(|(place, point)| {
                    let knee = if curve.knee == Some(place) { "knee" } else { "" };
                    let [low, high] = ends(point.interval);
                    vec![curve.name.clone(), point.x.to_string(), point.y.to_string(), low, high, knee.to_string()]
                })
            });
            (header.into(), rows.collect())
        }
    }
}
