//! Writes the numbers of a chart as CSV, for users who want to draw it with another tool. Called by `make`.

use super::{Chart, ChartKind};
use crate::error::ReportError;

/// One row a bar or a point; the header names the units.
///
/// # Errors
///
/// Only when memory for the text cannot be had.
pub fn draw(chart: &Chart) -> Result<Vec<u8>, ReportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let written = match &chart.kind {
        ChartKind::Bars(bars) => {
            let value = bars.value.title();
            let header = ["group", "series", &value, "low", "high"].map(str::to_string);
            let rows = bars.groups.iter().flat_map(|group| {
                group.bars.iter().map(|bar| {
                    let series = bars.series.get(bar.series).map(|series| series.name.clone()).unwrap_or_default();
                    let end = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
                    let (low, high) = (bar.interval.map(|i| i.0), bar.interval.map(|i| i.1));
                    [group.label.clone(), series, bar.value.to_string(), end(low), end(high)]
                })
            });
            write(&mut writer, header, rows)
        }
        ChartKind::Lines(lines) => {
            let header = ["series".to_string(), "part".to_string(), lines.x.title(), lines.y.title()];
            let rows = lines.series.iter().flat_map(|line| {
                let points = line.pieces.iter().flatten();
                points.map(|(x, y)| [line.name.clone(), line.part.clone(), x.to_string(), y.to_string()])
            });
            write(&mut writer, header, rows)
        }
        ChartKind::Curves(curves) => {
            let (x, y) = (curves.x.title(), curves.y.title());
            let header = ["series".to_string(), x, y, "low".to_string(), "high".to_string(), "knee".to_string()];
            let rows = curves.series.iter().chain(&curves.csv_only).flat_map(|curve| {
                curve.points.iter().enumerate().map(|(place, point)| {
                    let end =
                        |pick: fn((f64, f64)) -> f64| point.interval.map(|i| pick(i).to_string()).unwrap_or_default();
                    let knee = if curve.knee == Some(place) { "knee" } else { "" };
                    let (low, high) = (end(|(low, _)| low), end(|(_, high)| high));
                    [curve.name.clone(), point.x.to_string(), point.y.to_string(), low, high, knee.to_string()]
                })
            });
            write(&mut writer, header, rows)
        }
    };
    written.map_err(|error| ReportError::draw(&chart.name, error))?;
    writer.into_inner().map_err(|error| ReportError::draw(&chart.name, error))
}

fn write<const N: usize>(
    writer: &mut ::csv::Writer<Vec<u8>>,
    header: [String; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<(), ::csv::Error> {
    writer.write_record(&header)?;
    for row in rows {
        writer.write_record(&row)?;
    }
    Ok(())
}
