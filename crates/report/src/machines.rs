//! Compares machines by their runs of one suite: a report of its own shows each product's numbers in each case, machine by machine.
//!
//! A product's numbers on two machines compare machines, with all else that differs between the runs; products are compared within one
//! run. This module knows several runs and no history, and judges nothing: that is `weir-compare`'s.

use std::path::Path;

use askama::Template;
use weir_model::record::Environment;
use weir_model::suite::{Entry, Suite};
use weir_model::text::{Unit, csv_cell, short, unique};

use crate::charts::axis::Axis;
use crate::charts::{Arrangement, Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::error::ReportError;
use crate::extra::{ExtraSection, Item};
use crate::make::{Made, folder_beside, replace, write};
use crate::page::{ChartFiles, Links, SectionsPage};
use crate::palette::style;
use crate::run::{self, Run};
use crate::summary::{Metric, Row, Section, Summary, host_words, range_words, slug};
use crate::tables::markdown::escape;
use crate::tables::{
    Cell, Column, RowKind, Table, TableOf, TableRow, estimate_cell, machine_facts, markdown, one_line, short_hash,
};

/// A run and the machine that it stands for.
pub(crate) struct Machine<'a> {
    /// As a reader knows it: the host's name, with the run's where several have it.
    pub label: String,
    pub run: &'a Run,
    pub summary: &'a Summary,
}

impl Machine<'_> {
    /// A case: a workload under a load.
    pub fn section(&self, workload: &str, load: &str) -> Option<&Section> {
        self.summary.sections.iter().find(|section| section.workload == workload && section.load == load)
    }
}

/// Several machines, and what their runs have in common.
pub(crate) struct Machines<'a> {
    pub machines: Vec<Machine<'a>>,
    /// The entries that ran on any of them: the direct path first.
    pub entries: Vec<Entry>,
}

impl<'a> Machines<'a> {
    fn of(runs: &[(&'a Run, &'a Summary)]) -> Machines<'a> {
        let host = |run: &Run| run.environment.as_ref().map(|it| it.host.clone()).filter(|host| !host.is_empty());
        let names: Vec<Option<String>> = runs.iter().map(|(run, _)| host(run)).collect();
        let label = |run: &Run, own: &Option<String>| match own {
            None => run.name.clone(),
            Some(own) if names.iter().flatten().filter(|other| *other == own).count() > 1 => {
                format!("{own} ({})", run.name)
            }
            Some(own) => own.clone(),
        };
        let machine = |(&(run, summary), name): (&(&'a Run, &'a Summary), &Option<String>)| Machine {
            label: label(run, name),
            run,
            summary,
        };
        let entries = unique(runs.iter().flat_map(|(run, _)| run.suite.entries.iter().cloned()));
        Machines { machines: runs.iter().zip(&names).map(machine).collect(), entries }
    }

    /// The cases of all runs, in the order in which they come first: workload and load.
    pub fn cases(&self) -> Vec<(&str, &str)> {
        let sections = self.machines.iter().flat_map(|machine| &machine.summary.sections);
        unique(sections.map(|section| (section.workload.as_str(), section.load.as_str())))
    }

    /// How a reader knows an entry: with its profile where products have several.
    pub fn label_of(&self, entry: &Entry) -> String {
        let title = self.machines.iter().map(|machine| machine.run.title_of(&entry.product));
        let title = title.clone().find(|title| *title != entry.product).unwrap_or(&entry.product);
        run::label(title, entry, &self.entries)
    }
}

/// Makes a report of several runs of one suite in `folder`, which is made, or replaced where it is such a report.
///
/// # Errors
/// When two runs are the same, are of different suites, or differ in a case of the same name. When the folder is something else or
/// cannot be written. When drawing fails (a defect of weir).
pub fn machines(runs: &[(Run, Summary)], folder: &Path, files: ChartFiles) -> Result<Made, ReportError> {
    for (nth, (run, _)) in runs.iter().enumerate() {
        for (other, _) in &runs[..nth] {
            comparable(other, run)?;
        }
    }
    let runs: Vec<(&Run, &Summary)> = runs.iter().map(|(run, summary)| (run, summary)).collect();
    write_machines(&Machines::of(&runs), folder, files)
}

/// The sections of such a report. The runs must be comparable to the first of them.
pub(crate) fn sections(runs: &[(&Run, &Summary)]) -> Vec<ExtraSection> {
    machine_sections(&Machines::of(runs))
}

/// Fails if the second run cannot be compared with the first.
pub(crate) fn comparable(first: &Run, second: &Run) -> Result<(), ReportError> {
    let refuse = |why: String, wanted: &str| {
        let (path, first) = (second.folder.clone(), first.folder.clone());
        Err(ReportError::NotBeside { path, first, why, wanted: wanted.to_owned() })
    };
    let place = |run: &Run| run.folder.canonicalize().unwrap_or_else(|_| run.folder.clone());
    if place(first) == place(second) {
        return refuse("it is the same run".to_owned(), "each run once");
    }
    let (a, b) = (&first.suite, &second.suite);
    let wanted = "runs of one suite, such as `weir run NAME` on several machines";
    if a.name != b.name {
        return refuse(format!("it is of the suite {}, and the other of {}", b.name, a.name), wanted);
    }
    match asks_otherwise(a, b) {
        Some(what) => refuse(format!("its {what} is not what it is in the other"), wanted),
        None => Ok(()),
    }
}

/// The first workload or load that means something else in the two.
fn asks_otherwise(a: &Suite, b: &Suite) -> Option<String> {
    let workload = a.workloads.iter().find(|own| {
        let other = b.workloads.iter().find(|other| other.name == own.name);
        other.is_some_and(|other| !own.differs_in(other).is_empty())
    });
    let load = a.loads.iter().find(|own| {
        let other = b.loads.iter().find(|other| other.name == own.name);
        other.is_some_and(|other| !own.differs_in(other).is_empty())
    });
    let workload = workload.map(|workload| format!("workload {}", workload.name));
    workload.or_else(|| load.map(|load| format!("load {}", load.name)))
}

#[derive(Template)]
#[template(path = "machines.md", escape = "none")]
struct Markdown<'a> {
    page: &'a SectionsPage<'a>,
}

/// Writes the report.
pub(super) fn write_machines(all: &Machines<'_>, folder: &Path, files: ChartFiles) -> Result<Made, ReportError> {
    let is_report = folder.join("report.html").is_file();
    let empty = std::fs::read_dir(folder).map_or(true, |mut files| files.next().is_none());
    if !is_report && !empty {
        return Err(ReportError::Occupied { path: folder.to_path_buf(), what: "report" });
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|error| ReportError::io(parent, "make", error))?;
    let title = all.machines.first().map(|machine| machine.summary.title.as_str()).unwrap_or_default();
    let new = folder_beside(parent)?;
    let count = all.machines.len();
    let runs: Vec<&str> = all.machines.iter().map(|machine| machine.run.name.as_str()).collect();
    let page = SectionsPage {
        links: Links::of_report(files),
        title: &format!("{title}, {count} machines"),
        brand: &format!("{count} runs"),
        heading: &format!("{title}, on {count} machines"),
        words: introduction(all),
        sections: machine_sections(all),
        repeat: vec![(
            "This report was made from the run folders:".to_owned(),
            format!("weir report {}", runs.join(" ")),
        )],
        ..SectionsPage::default()
    };
    let drawn = page.write(&new.path().join("report.html"))?;
    let text = Markdown { page: &page }.render().map_err(ReportError::draw("report.md"))?;
    write(&new.path().join("report.md"), text.as_bytes())?;
    let csv = csv(all).map_err(ReportError::draw("summary.csv"))?;
    write(&new.path().join("summary.csv"), &csv)?;
    let charts = drawn.iter().filter_map(|file| Some(folder.join(file.strip_prefix(new.path()).ok()?))).collect();
    replace(parent, new, folder)?;
    Ok(Made {
        html: folder.join("report.html"),
        markdown: folder.join("report.md"),
        charts,
        summary_csv: folder.join("summary.csv"),
    })
}

/// The paragraphs above the tables.
fn introduction(all: &Machines<'_>) -> Vec<String> {
    let mut words = vec![
        "A product's numbers on two machines compare the machines, with all that differs between the runs. Products are compared \
         within one machine: each run's own report ranks them."
            .to_owned(),
    ];
    let programs = other_programs(all);
    if !programs.is_empty() {
        let programs = weir_model::text::list(&programs);
        words
            .push(format!("{programs} ran as another version or build on some: of these, machine and program differ."));
    }
    words
}

/// A section about the machines, and one for each case on all of them.
pub(super) fn machine_sections(all: &Machines<'_>) -> Vec<ExtraSection> {
    let mut about = vec![Item::Table(machines_table(all))];
    let differences = differences(all);
    about.push(match differences.rows.is_empty() {
        true => Item::Paragraph("Nothing else that was recorded differs between the runs.".to_owned()),
        false => Item::Table(differences),
    });
    let about = ExtraSection::new("machines", "Machines", about);
    let case = |case: (&str, &str)| {
        let items = charts(all, case).into_iter().map(Item::from).chain([Item::Table(table(all, case))]);
        ExtraSection::new(slug(case.0, case.1), heading(all, case), items.collect())
    };
    [about].into_iter().chain(all.cases().into_iter().map(case)).collect()
}

/// What each machine is.
pub(super) fn machines_table(all: &Machines<'_>) -> Table {
    let mut table: TableOf<'_, Machine<'_>> = TableOf::new();
    let known = |machine: &Machine<'_>, value: &dyn Fn(&Environment) -> String| {
        machine.run.environment.as_ref().map_or_else(Cell::none, |environment| Cell::from(value(environment)))
    };
    table.add(Column::text("Machine"), |machine| machine.label.clone());
    table.add(Column::text("CPU"), move |machine| known(machine, &|it| it.cpu_model.clone()));
    table.add(Column::number("CPUs", ""), move |machine| {
        machine.run.environment.as_ref().map(|environment| Cell::count(environment.cpus))
    });
    table.add(Column::number("of the proxy", ""), move |machine| {
        machine.run.environment.as_ref().map(|environment| Cell::count(environment.placement.proxy.len() as u64))
    });
    table.add(Column::number("Memory", "GiB"), move |machine| {
        machine.run.environment.as_ref().map(|it| Cell::short(it.memory_bytes as f64 / Unit::GIBIBYTES.size))
    });
    table.add(Column::text("Kernel"), move |machine| known(machine, &|it| it.kernel.clone()));
    table.add(Column::text("Hosts"), move |machine| {
        known(machine, &|it| if it.hosts.is_empty() { "one machine".to_owned() } else { host_words(&it.hosts) })
    });
    table.add(Column::text("Run"), |machine| machine.run.name.clone());
    table.table("machines-table", "What each machine is", &all.machines, |_| RowKind::Plain)
}

/// The differences between the runs, besides the machines' names: a column for each machine. No rows if there are none.
pub(super) fn differences(all: &Machines<'_>) -> Table {
    let facts: Vec<Vec<(String, String)>> = all.machines.iter().map(run_details).collect();
    let names = unique(facts.iter().flatten().map(|(name, _)| name.clone()));
    let value = |facts: &[(String, String)], name: &str| {
        facts.iter().find(|(known, _)| known == name).map_or_else(|| "not there".to_owned(), |(_, value)| value.clone())
    };
    let rows = names.into_iter().filter_map(|name| {
        let values: Vec<String> = facts.iter().map(|facts| value(facts, &name)).collect();
        let differ = values.iter().any(|value| *value != values[0]);
        let cells = [name].into_iter().chain(values).map(Cell::from).collect();
        differ.then_some(TableRow { kind: RowKind::Plain, cells })
    });
    let machines = all.machines.iter().map(|machine| Column::text(&machine.label));
    Table {
        id: "differences-table".to_owned(),
        title: "What differs between the runs".to_owned(),
        columns: [Column::text("What")].into_iter().chain(machines).collect(),
        rows: rows.collect(),
        ..Table::default()
    }
}

/// The products whose programs are not the same everywhere.
pub(super) fn other_programs(all: &Machines<'_>) -> Vec<String> {
    let products =
        all.machines.iter().filter_map(|machine| machine.run.environment.as_ref()).flat_map(|it| &it.products);
    let programs = unique(products.map(|facts| (facts.title.as_str(), facts.version.as_str(), facts.sha256.as_str())));
    let several = |title: &str| programs.iter().filter(|(other, ..)| *other == title).count() > 1;
    unique(programs.iter().map(|(title, ..)| *title).filter(|title| several(title)).map(str::to_owned))
}

fn run_details(machine: &Machine<'_>) -> Vec<(String, String)> {
    let Some(environment) = &machine.run.environment else {
        return vec![("environment.json".to_owned(), "cannot be read".to_owned())];
    };
    let mut facts = machine_facts(environment);
    facts.retain(|(name, _)| name != "Host");
    let program = |hash: &str| format!("SHA-256 {}", short_hash(hash));
    facts.push(("weir's program".to_owned(), program(&environment.weir_sha256)));
    for product in &environment.products {
        let hash = if product.sha256.is_empty() { String::new() } else { format!(", {}", program(&product.sha256)) };
        facts.push((format!("{}'s version", product.title), format!("{}{hash}", product.version)));
    }
    let suite = &machine.run.suite;
    let entries: Vec<String> = suite.entries.iter().map(|e| format!("{}:{}", e.product, e.profile)).collect();
    facts.push(("Products and profiles".to_owned(), entries.join(", ")));
    facts.push(("Blocks".to_owned(), suite.blocks.to_string()));
    for load in &suite.loads {
        let s = |time: std::time::Duration| short(time.as_secs_f64());
        let words = format!("{} s after {} s", s(load.duration), s(load.warmup));
        facts.push((format!("Window of {}", load.name), words));
    }
    facts
}

/// The numbers shown of a case: the metric, its unit, and which direction is better.
const SHOWN: [(Metric, Unit, &str); 3] = [
    (Metric::Rate, Unit::PER_SECOND, "More is better."),
    (Metric::P99, Unit::MILLIS, "Less is better."),
    (Metric::Cpu, Unit::MICROS_PER_REQUEST, "Less is better."),
];

/// Returns an entry's row in a case on a machine.
fn row<'a>(machine: &'a Machine<'_>, (workload, load): (&str, &str), entry: &Entry) -> Option<&'a Row> {
    machine.section(workload, load)?.all_rows().find(|row| row.entry == *entry)
}

/// Returns the heading of a case, from the first run that has it.
pub(super) fn heading(all: &Machines<'_>, (workload, load): (&str, &str)) -> String {
    let mut sections = all.machines.iter().filter_map(|machine| machine.section(workload, load));
    sections.next().map(Section::heading).unwrap_or_default()
}

/// A chart for each metric that was measured.
pub(super) fn charts(all: &Machines<'_>, case: (&str, &str)) -> Vec<Chart> {
    let chart = |(metric, unit, better): &(Metric, Unit, &str)| chart(all, case, *metric, *unit, better);
    SHOWN.iter().map(chart).filter(|chart| !chart.is_empty()).collect()
}

fn chart(all: &Machines<'_>, case: (&str, &str), metric: Metric, unit: Unit, better: &str) -> Chart {
    let entries: Vec<&Entry> = all.entries.iter().filter(|entry| has(all, case, entry, metric)).collect();
    let bar = |machine: &Machine<'_>, (series, entry): (usize, &&Entry)| {
        let row = row(machine, case, entry)?;
        let bar = Bar::of(&row.of(metric)?, unit.size, style(entry, &all.entries).colour);
        let hollow = row.rank.is_none() && !row.is_baseline();
        let text = if hollow { format!("{} not ranked", bar.text) } else { bar.text.clone() };
        Some(Bar { series, hollow, text, ..bar })
    };
    let group = |machine: &Machine<'_>| BarGroup {
        label: machine.label.clone(),
        baseline: false,
        bars: entries.iter().enumerate().filter_map(|entry| bar(machine, entry)).collect(),
    };
    let groups: Vec<BarGroup> = all.machines.iter().map(group).filter(|group| !group.bars.is_empty()).collect();
    let words = |group: &BarGroup| {
        let bars = group.bars.iter().map(|bar| format!("{} {}", all.label_of(entries[bar.series]), bar.text));
        format!("{}: {}", group.label, bars.collect::<Vec<_>>().join(", "))
    };
    let alt = format!("Bars by machine. {}.", groups.iter().map(words).collect::<Vec<_>>().join("; "));
    let series = |entry: &&Entry| BarSeries { name: all.label_of(entry), colour: style(entry, &all.entries).colour };
    let bars = Bars {
        value: Axis::of_metric(metric, unit),
        series: entries.iter().map(series).collect(),
        groups,
        arrangement: Arrangement::Below,
    };
    Chart {
        name: format!("{}-{}", slug(case.0, case.1), metric.entry().key),
        title: format!("{}: {}", metric.entry().title, heading(all, case)),
        subtitle: format!("{better} By machine, a bar for each product."),
        alt,
        notes: notes(all, case),
        kind: ChartKind::Bars(bars),
    }
}

fn has(all: &Machines<'_>, case: (&str, &str), entry: &Entry, metric: Metric) -> bool {
    all.machines.iter().any(|machine| row(machine, case, entry).is_some_and(|row| row.of(metric).is_some()))
}

/// How the numbers came about: what was offered on each machine, and where the case was not run.
fn notes(all: &Machines<'_>, (workload, load): (&str, &str)) -> Vec<String> {
    let mut notes = vec!["Medians over the blocks of each run; whiskers are the interval of the median.".to_owned()];
    let offered = all.machines.iter().filter_map(|machine| {
        let rate = range_words(machine.section(workload, load)?.offered_rate?);
        Some(format!("{rate} on {}", machine.label))
    });
    let offered: Vec<String> = offered.collect();
    if !offered.is_empty() {
        notes.push(format!("Requests due a second: {}.", offered.join(", ")));
    }
    let without = all.machines.iter().filter(|machine| machine.section(workload, load).is_none());
    let without: Vec<&str> = without.map(|machine| machine.label.as_str()).collect();
    if !without.is_empty() {
        notes.push(format!("Not measured on {}.", without.join(", ")));
    }
    notes
}

/// The numbers: a row for each product on each machine.
pub(super) fn table(all: &Machines<'_>, case: (&str, &str)) -> Table {
    let mut rows = Vec::new();
    for entry in &all.entries {
        for machine in &all.machines {
            let Some(row) = row(machine, case, entry) else { continue };
            let kind = match row.rank {
                None if !row.is_baseline() => RowKind::Unranked,
                _ if row.suspect() => RowKind::Marked,
                _ => RowKind::Plain,
            };
            let mut cells = vec![Cell::from(all.label_of(entry)), Cell::from(machine.label.as_str())];
            cells.extend(SHOWN.map(|(metric, unit, _)| estimate_cell(row.of(metric), unit)));
            rows.push(TableRow { kind, cells });
        }
    }
    let numbers = SHOWN.map(|(metric, unit, _)| Column::number(metric.entry().name, unit.name).with_details());
    Table {
        id: format!("{}-table", slug(case.0, case.1)),
        title: "Every product on every machine".to_owned(),
        columns: [Column::text("Product"), Column::text("Machine")].into_iter().chain(numbers).collect(),
        rows,
        ..Table::default()
    }
}

/// The numbers of all cases: a row for each product on each machine, empty where there is none.
pub(super) fn csv(all: &Machines<'_>) -> csv::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let units = SHOWN.map(|(metric, unit, _)| format!("{}, {}", metric.entry().name, unit.name));
    let names = ["run", "machine", "workload", "load", "product", "profile"].map(str::to_owned);
    writer.write_record(names.iter().chain(&units))?;
    for case in all.cases() {
        for (entry, machine) in
            all.entries.iter().flat_map(|entry| all.machines.iter().map(move |machine| (entry, machine)))
        {
            let Some(row) = row(machine, case, entry) else { continue };
            let numbers = SHOWN.map(|(metric, unit, _)| {
                row.of(metric).map_or_else(String::new, |estimate| (estimate.value / unit.size).to_string())
            });
            let own = [&machine.run.name, &machine.label, case.0, case.1, &entry.product, &entry.profile];
            writer.write_record(own.map(csv_cell).iter().chain(&numbers))?;
        }
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}
