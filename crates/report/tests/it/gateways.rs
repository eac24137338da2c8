//! What a report says of pools, access logs and members that fail, and that it says nothing of them where there are none.

use std::fs;
use std::path::Path;

use crate::common::{self, golden};
use weir_model::counters::{AddressCounters, OriginCounters, RequestIdCounters};
use weir_model::fault::{Fault, FaultKind, FaultRecord};
use weir_model::gateway::{AccessLog, RouteKey};
use weir_model::load::SlowClients;
use weir_model::record::Measurement;
use weir_report::{ChartFiles, Extra, Run, load_run, make, make_of, summary, tables};

/// The made-up run as if each product had had a pool of three, of which one was killed, and a log with a gap.
fn write_run_before_a_pool(run: &Path) {
    common::write_blocks(run, 1, 24);
    for folder in fs::read_dir(run.join("trials")).unwrap() {
        let file = folder.unwrap().path().join("measurement.json");
        let mut measurement: Measurement = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let address = |requests| AddressCounters { requests, ..AddressCounters::default() };
        if measurement.case.product != "direct" && measurement.load.is_some() {
            measurement.origin = Some(OriginCounters {
                addresses: [5_000, 2_500, 2_500].map(address).to_vec(),
                own_requests: 40,
                request_ids: RequestIdCounters { repeated: 7, ..RequestIdCounters::default() },
                ..OriginCounters::default()
            });
            let sent = measurement.load.as_ref().map_or(0, |load| load.total.sent);
            measurement.access_log = Some(AccessLog { lines: sent.saturating_sub(3), bytes: 100 * sent });
            let part = "origin 2".to_owned();
            let killed = FaultRecord { what: FaultKind::Kill, part, began_s: 2.0, ended_s: 4.0, memory_bytes: None };
            let what = FaultKind::SlowReaders;
            let memory_bytes = Some((20 << 20, 40 << 20));
            let slow = FaultRecord { what, part: "2,000 clients".to_owned(), memory_bytes, ..killed.clone() };
            measurement.faults = vec![killed];
            if let Some(load) = measurement.load.as_mut().filter(|_| measurement.case.product == "alder") {
                measurement.faults.push(slow);
                let (statuses, cut) = ([(408, 12)].into(), 3);
                let seen = SlowClients { held: 2_000, completed: 9, statuses, cut, ..SlowClients::default() };
                load.slow_clients = vec![seen];
            }
        }
        common::write_json(&file, &measurement);
    }
}

#[test]
fn a_pool_a_log_and_a_fault_have_tables_and_the_fault_its_charts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("2026-01-02T03-04-05-pool");
    write_run_before_a_pool(&folder);
    let run = load_run(&folder).unwrap();
    let summary = summary(&run);
    let section = &summary.sections[0];
    let mut text = String::new();
    for table in tables::occasional(&run, section) {
        text.push_str(&format!("{}\n\n{}\n", table.title, tables::markdown::draw(&table)));
    }
    golden("gateways.md", &text);
    make(&folder, ChartFiles::Pictures).unwrap();
    let chart = |stem: &str| {
        fs::read_to_string(folder.join(format!("report/charts/{}-{stem}-time.svg", section.slug()))).unwrap()
    };
    for picture in [chart("errors"), chart("rate"), chart("latency")] {
        assert!(picture.contains("kill origin 2") && picture.contains("over"), "where the fault begins and ends");
    }
}

#[test]
fn the_first_sentence_of_a_run_of_faults_says_what_clients_lost() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("2026-01-02T03-04-05-faults");
    write_run_before_a_pool(&folder);
    let mut run = load_run(&folder).unwrap();
    assert!(!summary(&run).answer.contains("worst second"), "loads without a fault: {}", summary(&run).answer);
    let fault = Fault { what: FaultKind::Kill, ..Fault::default() };
    run.suite.loads.iter_mut().for_each(|load| load.faults = vec![fault.clone()]);
    golden("answer-faults.txt", &format!("{}\n", summary(&run).answer));
}

#[test]
fn a_rate_that_is_offered_is_no_price() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("2026-01-02T03-04-05-prices");
    common::write_blocks(&folder, 3, 24);
    let mut run = load_run(&folder).unwrap();
    run.suite.workloads[1].baseline = Some(run.suite.workloads[0].name.clone());
    let summary = summary(&run);
    let of = |load: &str| {
        let row = summary.prices.iter().find(|row| row.load == load).expect("a row for each load");
        let price = row.prices.iter().find(|price| price.product == "Alder").expect("one for each product");
        (price.rate.is_some(), price.cpu.is_some())
    };
    assert_eq!((of("max"), of("steady")), ((true, true), (false, true)));
    let tables: Vec<_> = tables::particular(&summary).into_iter().map(|table| (table.id, table.rows.len())).collect();
    assert_eq!(tables, [("price-rate".to_owned(), 1), ("price-cpu".to_owned(), 2)]);
}

#[test]
fn workloads_that_differ_in_their_routes_are_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("2026-01-02T03-04-05-routes");
    common::write_blocks(&folder, 1, 24);
    let mut run = load_run(&folder).unwrap();
    let charts = |run: &Run| {
        make_of(run, summary(run), Extra::default(), ChartFiles::Pictures).unwrap();
        let stems = ["rate", "cost", "memory"].map(|stem| format!("report/charts/routes-path-max-{stem}.svg"));
        stems.map(|stem| fs::read_to_string(folder.join(stem)).unwrap_or_default())
    };
    assert_eq!(charts(&run), ["", "", ""].map(str::to_owned));
    for (workload, routes) in run.suite.workloads.iter_mut().zip([1_000, 10]) {
        workload.gateway.routes = Some(routes);
    }
    for picture in charts(&run) {
        assert!(picture.contains("over routes by path") && picture.contains(">1,000<"), "{picture}");
    }
    run.suite.workloads[0].gateway.route_by = Some(RouteKey::Host);
    assert_eq!(charts(&run), ["", "", ""].map(str::to_owned), "a point is no curve");
}

#[test]
fn a_run_without_a_pool_says_nothing_of_one() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 24);
    let run = load_run(folder.path()).unwrap();
    let summary = summary(&run);
    assert!(summary.sections.iter().all(|section| tables::occasional(&run, section).next().is_none()));
}
