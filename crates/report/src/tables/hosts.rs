//! Builds the tables that only runs on several hosts have: the hosts beside each other, and whether each client had room.
//! Called by `page`, `markdown` and `terminal`.

use weir_model::record::HostRecord;
use weir_model::text::{Unit, percent, unique};

use super::cells::{marked, row_kind};
use super::details::{cpu_list, host_facts};
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::summary::{ClientSummary, Row, Section};

/// A row for each fact, a column for each host.
pub(super) fn hosts(hosts: &[HostRecord]) -> Table {
    let of_host = |host: &HostRecord| {
        let mut facts = vec![
            ("Roles".to_string(), host.role_names().join(", ")),
            ("Address".to_string(), host.address.map_or("loopback".to_string(), |address| address.to_string())),
            ("CPUs of its roles".to_string(), cpu_list(&host.cpus)),
        ];
        facts.extend(host_facts(&host.facts));
        facts.extend(host.facts.sysctls.clone());
        facts
    };
    let of_hosts: Vec<Vec<(String, String)>> = hosts.iter().map(of_host).collect();
    let names: Vec<String> = unique(of_hosts.iter().flatten().map(|(name, _)| name.clone()));
    let mut table = TableOf::<String>::new();
    table.add(Column::text("Fact"), |name| name.clone());
    for (host, facts) in hosts.iter().zip(&of_hosts) {
        table.add(Column::text(&host.name), move |name| {
            Cell::from(facts.iter().find(|(known, _)| known == name).map(|(_, value)| Cell::from(value.clone())))
        });
    }
    table.table("machine", "Hosts", &names, |_| RowKind::Plain)
}

/// A row for each client of each product; `None` where one client made the load.
pub fn clients(section: &Section) -> Option<Table> {
    if section.clients.is_empty() {
        return None;
    }
    let of_row =
        |row: &'_ Row| section.clients.iter().filter(|client| client.entry == row.entry).cloned().collect::<Vec<_>>();
    let rows: Vec<(&Row, ClientSummary)> =
        section.all_rows().flat_map(|row| of_row(row).into_iter().map(move |client| (row, client))).collect();
    let mut table = TableOf::<(&Row, ClientSummary)>::new();
    table.add(Column::text("Product"), |(row, _)| marked(&row.label, row));
    table.add(Column::text("Client"), |(_, client)| client.host.clone());
    if section.open {
        let unit = Unit::for_least(rows.iter().filter_map(|(_, client)| client.lag_p99_us));
        let column = Column::number("Lag p99", unit.name).help("Due to sent, in the trial where it was longest.");
        table.add(column, move |(_, client)| client.lag_p99_us.map(|lag| Cell::short(lag / unit.size)));
    }
    let column = Column::number("Busiest thread", "").help("Share of the window, in the trial where it was most.");
    table.add(column, |(_, client)| client.busiest_thread.map(|busy| Cell::number(percent(busy), busy)));
    let title = format!("Clients by host, worst of all trials: {}", section.heading());
    Some(table.table(format!("clients-{}", section.slug()), title, &rows, |(row, _)| row_kind(row)))
}
