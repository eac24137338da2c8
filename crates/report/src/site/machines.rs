//! Lays the newest runs of one suite beside each other, machine by machine: what the machines are, and every case with its charts.
//!
//! A product's numbers on two machines compare the machines, with all else that differs between the runs; products are compared within
//! one run. Two runs on one machine are `weir-compare`'s.

use weir_model::suite::{Entry, Suite};
use weir_model::text::{Unit, short, unique};

use super::SHOWN_METRICS;
use super::recorded::Recorded;
use crate::charts::axis::Axis;
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Chart, ChartKind, better};
use crate::extra::{ExtraSection, Item};
use crate::palette::style;
use crate::run;
use crate::summary::{Metric, Row, Section, host_words, range_words, slug};
use crate::tables::{Column, RowKind, Table, TableOf, machine_facts, metric_cell, row_kind, short_hash};

/// Facts that are shown also where they are the same everywhere.
const ALWAYS: [&str; 4] = ["CPU", "CPUs online", "Memory", "Kernel"];

/// Whether two runs asked the same: cases of one name mean the same in both.
pub(super) fn are_comparable(a: &Suite, b: &Suite) -> bool {
    let workload = |name: &_| {
        let both = a.workload(name).zip(b.workload(name));
        both.is_none_or(|(own, other)| own.differs_in(other).is_empty() && a.tls_of(own) == b.tls_of(other))
    };
    let load =
        |own: &_| b.load(own).is_none_or(|other| a.load(own).is_some_and(|own| own.differs_in(other).is_empty()));
    a.name == b.name && a.workloads.iter().all(|own| workload(&own.name)) && a.loads.iter().all(|own| load(&own.name))
}

/// Runs of one suite, one on each machine.
pub(super) struct Machines<'a> {
    pub runs: &'a [&'a Recorded],
    /// The entries that ran on any of them: the direct path first.
    pub entries: Vec<Entry>,
}

impl<'a> Machines<'a> {
    pub fn new(runs: &'a [&'a Recorded]) -> Machines<'a> {
        let entries = unique(runs.iter().flat_map(|run| run.run.suite.entries.iter().cloned()));
        Machines { runs, entries }
    }

    /// A section about the machines, and one for each case on all of them.
    pub fn sections(&self) -> Vec<ExtraSection> {
        let about = ExtraSection::new("machines", "Machines", vec![Item::Table(self.facts())]);
        let sections = self.runs.iter().flat_map(|run| &run.summary.sections);
        let cases = unique(sections.map(|section| (section.workload.as_str(), section.load.as_str())));
        let cases = cases.into_iter().filter_map(|(workload, load)| Some(self.case(workload, load)?.section()));
        [about].into_iter().chain(cases).collect()
    }

    /// What each machine is, and what differs between the runs.
    fn facts(&self) -> Table {
        let of_runs: Vec<Vec<(String, String)>> = self.runs.iter().map(|run| facts(run)).collect();
        let value = |facts: &[(String, String)], name: &str| {
            facts
                .iter()
                .find(|(known, _)| known == name)
                .map_or_else(|| "not there".to_owned(), |(_, value)| value.clone())
        };
        let differs = |name: &String| of_runs.iter().any(|facts| value(facts, name) != value(&of_runs[0], name));
        let mut names = unique(of_runs.iter().flatten().map(|(name, _)| name.clone()));
        names.retain(|name| ALWAYS.contains(&name.as_str()) || differs(name));
        let mut table = TableOf::<String>::new();
        table.add(Column::text("Fact"), |name| name.clone());
        for (run, facts) in self.runs.iter().zip(&of_runs) {
            table.add(Column::text(&run.machine), move |name| value(facts, name));
        }
        table.table("machines-table", "The machines, and what differs between the runs", &names, |_| RowKind::Plain)
    }

    fn case(&self, workload: &str, load: &str) -> Option<Case<'_>> {
        let of_run = |run: &'a Recorded| {
            let mut sections = run.summary.sections.iter();
            sections.find(|section| section.workload == workload && section.load == load)
        };
        let sections: Vec<(&Recorded, Option<&Section>)> = self.runs.iter().map(|run| (*run, of_run(run))).collect();
        let first = sections.iter().find_map(|(_, section)| *section)?;
        Some(Case { all: self, first, sections })
    }

    /// How a reader knows an entry: with its profile where products have several.
    fn label(&self, entry: &Entry) -> String {
        let mut titles = self.runs.iter().map(|run| run.run.title_of(&entry.product));
        let title = titles.find(|title| *title != entry.product).unwrap_or(&entry.product);
        run::label(title, entry, &self.entries)
    }
}

fn facts(run: &Recorded) -> Vec<(String, String)> {
    let Some(environment) = &run.run.environment else {
        return vec![("environment.json".to_owned(), "cannot be read".to_owned())];
    };
    let mut facts = machine_facts(environment);
    facts.retain(|(name, _)| name != "Host");
    let mut add = |name: String, value: String| facts.push((name, value));
    add("Hosts".to_owned(), host_words(&environment.hosts));
    add("weir's program".to_owned(), format!("SHA-256 {}", short_hash(&environment.weir_sha256)));
    for product in &environment.products {
        add(format!("{}'s version", product.title), format!("{} {}", product.version, short_hash(&product.sha256)));
    }
    let suite = &run.run.suite;
    let entries: Vec<String> = suite.entries.iter().map(|e| format!("{}:{}", e.product, e.profile)).collect();
    add("Products and profiles".to_owned(), entries.join(", "));
    add("Blocks".to_owned(), suite.blocks.to_string());
    for load in &suite.loads {
        let s = |time: std::time::Duration| short(time.as_secs_f64());
        add(format!("Window of {}", load.name), format!("{} s after {} s", s(load.duration), s(load.warmup)));
    }
    facts
}

/// A workload under a load, on all machines.
struct Case<'a> {
    all: &'a Machines<'a>,
    first: &'a Section,
    /// `None`: it was not run there.
    sections: Vec<(&'a Recorded, Option<&'a Section>)>,
}

impl<'a> Case<'a> {
    fn section(&self) -> ExtraSection {
        let charts = SHOWN_METRICS.map(|(metric, unit)| self.chart(metric, unit)).into_iter();
        let charts = charts.filter(|chart| !chart.is_empty()).map(Item::from);
        let items = charts.chain([Item::Table(self.table())]).collect();
        ExtraSection::new(self.first.slug(), self.first.heading(), items)
    }

    /// Every row of an entry, with its machine.
    fn rows(&self, entry: &'a Entry) -> impl Iterator<Item = (&'a Recorded, &'a Row)> {
        let sections = self.sections.iter().filter_map(|(run, section)| Some((*run, (*section)?)));
        sections.filter_map(|(run, section)| Some((run, section.all_rows().find(|row| row.entry == *entry)?)))
    }

    fn chart(&self, metric: Metric, unit: Unit) -> Chart {
        let all = self.all;
        let has = |entry: &&Entry| self.rows(entry).any(|(_, row)| row.of(metric).is_some());
        let entries: Vec<&Entry> = all.entries.iter().filter(has).collect();
        let bar = |run: &Recorded, (series, entry): (usize, &&'a Entry)| {
            let (_, row) = self.rows(entry).find(|(other, _)| other.id == run.id)?;
            let bar = Bar::of(&row.of(metric)?, unit.size, style(entry, &all.entries).colour);
            let hollow = row.rank.is_none() && !row.is_baseline();
            let text = if hollow { format!("{} not ranked", bar.text) } else { bar.text.clone() };
            Some(Bar { series, hollow, text, ..bar })
        };
        let group = |run: &&Recorded| BarGroup {
            label: run.machine.clone(),
            baseline: false,
            bars: entries.iter().enumerate().filter_map(|entry| bar(run, entry)).collect(),
        };
        let groups: Vec<BarGroup> = all.runs.iter().map(group).filter(|group| !group.bars.is_empty()).collect();
        let words = |group: &BarGroup| {
            let bars = group.bars.iter().map(|bar| format!("{} {}", all.label(entries[bar.series]), bar.text));
            format!("{}: {}", group.label, bars.collect::<Vec<_>>().join(", "))
        };
        let series = |entry: &&Entry| BarSeries { name: all.label(entry), colour: style(entry, &all.entries).colour };
        Chart {
            name: format!("{}-{}", slug(&self.first.workload, &self.first.load), metric.entry().key),
            title: format!("{}: {}", metric.entry().title, self.first.heading()),
            subtitle: format!("{} By machine, a bar for each product.", better(metric)),
            alt: format!("Bars by machine. {}.", groups.iter().map(words).collect::<Vec<_>>().join("; ")),
            notes: self.notes(),
            kind: ChartKind::bars(
                Axis::of_metric(metric, unit),
                entries.iter().map(series).collect(),
                groups,
                Arrangement::Below,
            ),
        }
    }

    /// How the numbers came about: what was offered on each machine, and where the case was not run.
    fn notes(&self) -> Vec<String> {
        let (mut offered, mut without) = (Vec::new(), Vec::new());
        for (run, section) in &self.sections {
            match section.map(|section| section.offered_rate) {
                Some(Some(range)) => offered.push(format!("{} on {}", range_words(range), run.machine)),
                Some(None) => {}
                None => without.push(run.machine.as_str()),
            }
        }
        let offered = (!offered.is_empty()).then(|| format!("Requests due a second: {}.", offered.join("; ")));
        let without = (!without.is_empty()).then(|| format!("Not measured on {}.", without.join("; ")));
        let medians = "Medians over the blocks of each run; whiskers are the interval of the median.".to_owned();
        std::iter::once(medians).chain(offered).chain(without).collect()
    }

    /// The numbers: a row for each product on each machine.
    fn table(&self) -> Table {
        let rows: Vec<(&Recorded, &Row)> = self.all.entries.iter().flat_map(|entry| self.rows(entry)).collect();
        let mut table = TableOf::<(&Recorded, &Row)>::new();
        table.add(Column::text("Product"), |(_, row)| self.all.label(&row.entry));
        table.add(Column::text("Machine"), |(run, _)| run.machine.clone());
        for (metric, unit) in SHOWN_METRICS {
            let column = Column::number(metric.entry().name, unit.name).with_details();
            table.add(column, move |(_, row)| metric_cell(row, metric, unit));
        }
        let id = format!("{}-table", self.first.slug());
        table.table(id, "Every product on every machine", &rows, |(_, row)| row_kind(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::suite::{Protocol, Tls, Workload};

    #[test]
    fn runs_that_speak_tls_in_another_way_are_not_laid_side_by_side() {
        let over_tls = |workload: Option<Tls>, suite: Tls| {
            let workload =
                Workload { name: "w".to_owned(), protocol: Protocol::H2, tls: workload, ..Workload::default() };
            Suite { workloads: vec![workload], tls: suite, ..Suite::default() }
        };
        let resumed = Tls { resumption: true, ..Tls::default() };
        let usual = over_tls(None, Tls::default());
        assert!(are_comparable(&usual, &over_tls(Some(Tls::default()), resumed)), "the workload's own settings count");
        assert!(!are_comparable(&usual, &over_tls(None, resumed)));
        assert!(!are_comparable(&usual, &over_tls(Some(resumed), Tls::default())));
    }
}
