//! Finds the number of a trial that stands beside a published figure: one of the window, of the product's processes, of a mark of
//! a histogram, or at a point of a curve. `beside` asks for it.

use weir_model::owners::{Owners, RoleProcess};
use weir_model::record::Role;
use weir_model::text::counted;
use weir_report::run::Trial;

use super::context::Context;
use super::figures::{Figure, FigureKind};
use super::layout::Draw;
use super::machine;
use super::points::Published;
use super::run_cases::RunCase;
use super::variant::Variant;

/// Where the numbers beside a figure are.
pub(super) struct Numbers<'c, 'a> {
    pub context: &'c Context<'a>,
    pub case: &'c RunCase<'a>,
    pub figure: &'a Figure,
    /// The metric that ours is taken of.
    pub metric: &'a str,
}

impl Numbers<'_, '_> {
    /// The number of a trial, in the base unit.
    pub fn of_trial(&self, trial: &Trial) -> Option<f64> {
        let variant = Variant::parse(&self.figure.variant);
        match variant {
            Variant::Process(_) => self.of_process(trial),
            Variant::Connections(_) | Variant::Rate(_) => self.of_point(trial),
            _ if self.metric.starts_with("histogram-") => self.of_mark(trial, variant),
            _ => match self.metric {
                "connections-max" => most(trial.measurement.points.iter().map(|point| f64::from(point.connections))),
                "rate-max" => most(trial.measurement.points.iter().filter_map(|point| point.offered_rate)),
                metric => self.context.cases.value(trial, variant, metric),
            },
        }
    }

    /// The requests of the trial's window that were sent, by which counts are divided.
    pub fn requests(&self, trial: &Trial) -> Option<f64> {
        let window = Variant::parse(&self.figure.variant).window(&trial.measurement)?;
        Some(window.load.window.sent as f64).filter(|sent| *sent > 0.0)
    }

    /// Why no trial has a number.
    pub fn why_none(&self) -> String {
        match Variant::parse(&self.figure.variant) {
            Variant::Process(_) => "fewer processes of the product used the CPU here".to_string(),
            Variant::Connections(_) | Variant::Rate(_) => "this run has no such point".to_string(),
            Variant::Round(_) => format!("this run has {}", counted(u64::from(self.case.rounds()), "round")),
            _ if machine::is_of_cpu(self.metric) => "the proxy was given fewer CPUs here".to_string(),
            _ => "this run did not record it".to_string(),
        }
    }

    /// Requests that took as long as from the document's mark before to this one.
    fn of_mark(&self, trial: &Trial, variant: Variant) -> Option<f64> {
        let mark = |figure: &Figure| figure.metric.strip_prefix("histogram-")?.parse::<f64>().ok();
        let Figure { case, product, .. } = self.figure;
        let own =
            |figure: &&Figure| figure.kind == FigureKind::Result && figure.case == *case && figure.product == *product;
        let marks = self.context.source.figures.iter().filter(own).filter_map(mark);
        let to = mark(self.figure)?;
        let before = marks.filter(|other| *other < to).reduce(f64::max);
        // The first mark is the fastest request, which the document prints with one digit more.
        let first = self.context.source.result(case, product, "", "latency-min").map_or(to, |figure| figure.value);
        let end = |mark: Option<f64>| mark.map(|mark| mark.max(first) * 1e6);
        let histogram = self.context.cases.histogram(trial, variant)?;
        let up_to = |us: f64| histogram.count_between(0.0, us);
        Some((up_to(end(Some(to))?) - end(before).map_or(0, up_to)) as f64)
    }

    /// At a point of the document's curve that is the same share of the most.
    fn of_point(&self, trial: &Trial) -> Option<f64> {
        let layouts = self.context.source.layout.pictures.iter().filter(|layout| layout.draw == Draw::Points);
        let curves = layouts.filter(|layout| layout.holds(&self.figure.case));
        let curves = curves.filter_map(|layout| Published::of(self.context, layout)).next()?;
        let variant = curves.variant_at(trial, &self.figure.variant)?;
        self.context.cases.value(trial, variant, self.metric)
    }

    /// Of the process that stands at the same place among the busiest of the product's.
    fn of_process(&self, trial: &Trial) -> Option<f64> {
        let Figure { case, product, metric, variant, .. } = self.figure;
        let listing = self.context.source.results(metric).filter(|f| f.case == *case && f.product == *product);
        let listed: Vec<&str> = listing.map(|figure| figure.variant.as_str()).collect();
        let place = listed.iter().position(|other| other == variant)?;
        let mut own: Vec<&RoleProcess> = proxies(&trial.measurement.owners).collect();
        own.sort_by(|a, b| b.used.total_cmp(&a.used));
        let process = own.get(place)?;
        Some(match self.metric {
            "cpu" => process.used,
            "cpu-time" => process.cpu_s * 1e6,
            "priority" => process.priority as f64,
            "nice" => process.nice as f64,
            "virtual-memory" => process.virtual_bytes as f64,
            "resident-memory" => process.resident_bytes as f64,
            "shared-memory" => process.shared_bytes as f64,
            "memory-share" => process.resident_bytes as f64 / machine::memory_bytes(self.context.cases.run)?,
            _ => return None,
        })
    }
}

/// A process that used less of a CPU is shown as idle by top.
const IDLE: f64 = 0.001;

/// The product's processes that used the CPU.
fn proxies(owners: &[Owners]) -> impl Iterator<Item = &RoleProcess> {
    let roles = owners.iter().flat_map(|owners| &owners.roles).filter(|role| role.role == Role::Proxy);
    roles.flat_map(|role| &role.processes).filter(|process| process.used >= IDLE)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}
