//! The machines of several runs, and what else differs between the runs. `page` shows both tables.

use weir_model::record::Environment;
use weir_model::text::{Unit, short, unique};

use super::{Machine, Machines};
use crate::summary::host_words;
use crate::tables::{Cell, Column, RowKind, Table, TableOf, TableRow, machine_facts};

/// Digits shown of a program's SHA-256.
const HASH_SHOWN: usize = 12;

/// What each machine is.
pub(super) fn machines(all: &Machines<'_>) -> Table {
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

/// What differs between the runs, besides the machines' names: a column for each machine. No rows where nothing does.
pub(super) fn differences(all: &Machines<'_>) -> Table {
    let facts: Vec<Vec<(String, String)>> = all.machines.iter().map(facts).collect();
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
        notes: Vec::new(),
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

fn facts(machine: &Machine<'_>) -> Vec<(String, String)> {
    let Some(environment) = &machine.run.environment else {
        return vec![("environment.json".to_owned(), "cannot be read".to_owned())];
    };
    let mut facts = machine_facts(environment);
    facts.retain(|(name, _)| name != "Host");
    let program = |hash: &str| format!("SHA-256 {}", hash.chars().take(HASH_SHOWN).collect::<String>());
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
