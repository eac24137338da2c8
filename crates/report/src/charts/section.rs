//! Decides which charts a report has, and builds them from a run and its summary. The module does not know how a chart is drawn.

mod faults;
mod products;
mod routes;
mod seconds;

pub use products::{Separated, better, overview, separate};
pub use routes::over_routes;
pub use seconds::{PERCENTILES_NOTE, percentile_curve, placed};

use weir_model::record::Role;
use weir_model::suite::{Entry, Series};

use crate::charts::Chart;
use crate::palette::{self, Style};
use crate::run::{Broken, Run};
use crate::summary::Section;

/// The charts of one section, in reading order.
#[derive(Debug, Clone, Default)]
pub struct SectionCharts {
    /// Responses of the section: rate, percentiles, latency over time, cost, and the proxy over time.
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
    charts.main.extend(faults::over_time(run, section));
    let (curves, other_percentiles) = products::series_charts(run, section);
    charts.main.extend(curves);
    charts.main.push(products::ranked(run, section));
    if section.series == Series::Once && !section.of_streams() {
        // The histograms of a series are of its last window only.
        charts.main.push(seconds::by_percentile(run, section, broken));
    }
    if !section.of_streams() {
        charts.main.push(seconds::latency_over_time(run, section));
    }
    charts.main.push(products::proxy_cpu(run, section));
    charts.main.push(products::memory(run, section));
    charts.more.extend(other_percentiles);
    charts.more.push(products::roles_cpu(section));
    for (role, chart) in seconds::resources_over_time(run, section, broken) {
        if role == Role::Proxy { charts.main.push(chart) } else { charts.room.push(chart) }
    }
    charts.monitors = seconds::monitors_over_time(run, section, broken);
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
