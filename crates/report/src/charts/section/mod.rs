//! Decides which charts a report has, and builds them from a run and its summary. Called by `make`.
//! The module does not know how a chart is drawn.

mod bars;
mod baseline;
mod curves;
mod latency;
mod monitors;
mod overview;
mod resources;
mod timeline;

pub use baseline::{Separated, separate};
pub use latency::{PERCENTILES_NOTE, percentile_curve};
pub use overview::overview;
pub use timeline::placed;

use weir_model::record::Role;
use weir_model::suite::{Entry, Series};

use crate::charts::Chart;
use crate::palette::{self, Style};
use crate::run::{Broken, Run};
use crate::summary::Section;

/// The charts of one section, in reading order.
#[derive(Debug, Clone, Default)]
pub struct SectionCharts {
    /// Answers of the section: rate, percentiles, latency over time, cost, and the proxy over time.
    pub main: Vec<Chart>,
    /// Details: other percentiles of a series, cost of all roles.
    pub more: Vec<Chart>,
    /// What the product's parts told about themselves, such as the size of their files.
    pub monitors: Vec<Chart>,
    /// What client and origin used, to see whether they had room.
    pub room: Vec<Chart>,
}

impl SectionCharts {
    /// All of them, in reading order.
    pub fn all(&self) -> impl Iterator<Item = &Chart> {
        self.main.iter().chain(&self.more).chain(&self.monitors).chain(&self.room)
    }
}

/// The charts of a section. Files that could not be read go into `broken`, each once.
pub fn of_section(run: &Run, section: &Section, broken: &mut Vec<Broken>) -> SectionCharts {
    let mut charts = SectionCharts::default();
    let (curves, other_percentiles) = curves::of_section(run, section);
    charts.main.extend(curves);
    charts.main.push(bars::rates(run, section));
    if section.series == Series::Once {
        // The histograms of a series are of its last window only.
        charts.main.push(latency::by_percentile(run, section, broken));
    }
    charts.main.push(latency::over_time(run, section, broken));
    charts.main.push(bars::proxy_cpu(run, section));
    charts.main.push(bars::memory(run, section));
    charts.more.extend(other_percentiles);
    charts.more.push(bars::roles_cpu(section));
    for (role, chart) in resources::over_time(run, section, broken) {
        if role == Role::Proxy { charts.main.push(chart) } else { charts.room.push(chart) }
    }
    charts.monitors = monitors::over_time(run, section, broken);
    for some in [&mut charts.main, &mut charts.more, &mut charts.room] {
        some.retain(|chart| !chart.is_empty());
    }
    charts
}

/// Colour and dash of an entry, the same in every chart.
pub fn style(run: &Run, entry: &Entry) -> Style {
    palette::style(entry, &run.suite.entries)
}

/// Adds a file that could not be read to `broken`, once.
pub fn note_broken(broken: &mut Vec<Broken>, one: Broken) {
    if !broken.contains(&one) {
        broken.push(one);
    }
}
