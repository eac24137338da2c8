//! `deploy/terraform/aws`: the machines are the documents', nobody else is let in, and what would reach the cloud is read as text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common;
use hcl::{Body, Expression};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/terraform/aws")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).expect("read")
}

fn parsed(file: &str) -> Body {
    hcl::parse(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The block with these labels.
fn block<'a>(body: &'a Body, kind: &str, labels: &[&str]) -> &'a Body {
    let mut blocks = body.blocks().filter(|block| block.identifier() == kind);
    let found = blocks.find(|block| block.labels().iter().map(hcl::BlockLabel::as_str).eq(labels.iter().copied()));
    found.unwrap_or_else(|| panic!("no {kind} {labels:?}")).body()
}

fn attribute<'a>(body: &'a Body, key: &str) -> &'a Expression {
    body.attributes().find(|attribute| attribute.key() == key).unwrap_or_else(|| panic!("no {key}")).expr()
}

/// An expression as it is written, without blanks.
fn written(body: &Body, key: &str) -> String {
    hcl::format::to_string(attribute(body, key)).expect("formatted").split_whitespace().collect()
}

/// The documents of `variables.tf`, by name.
fn documents() -> BTreeMap<String, Value> {
    let variables: Value = hcl::from_str(&read("variables.tf")).expect("parsed");
    serde_json::from_value(variables["variable"]["documents"]["default"].clone()).expect("documents")
}

/// A key of each of a document's machines, in the order of their names.
fn of_machines(document: &Value, key: &str) -> Vec<Value> {
    let machines: BTreeMap<String, Value> = serde_json::from_value(document["machines"].clone()).expect("machines");
    machines.values().map(|machine| machine[key].clone()).collect()
}

#[test]
fn machines_are_those_of_the_documents() {
    let documents = documents();
    let types = |document: &str| of_machines(&documents[document], "type");
    // client-1, origin-1, proxy
    assert_eq!(types("monolake-4"), ["c6a.8xlarge", "c6a.2xlarge", "c5a.xlarge"]);
    assert_eq!(types("monolake-16"), ["c6a.8xlarge", "c6a.2xlarge", "c6a.4xlarge"]);
    assert_eq!(types("easegress"), ["r5.xlarge"; 3]);
    assert_eq!(types("spring-cloud-gateway"), ["t2.micro"; 3]);
    assert_eq!(types("loggly"), ["m5.xlarge"; 3]);
    assert_eq!(documents["loggly"]["region"], "us-east-2");
    assert_eq!(of_machines(&documents["easegress"], "disk"), [100; 3]);
    let juno = &documents["juno"];
    let disks = of_machines(juno, "disk").into_iter().filter(|disk| *disk == 450).count();
    assert_eq!((types("juno").len(), disks), (14, 3), "ten clients, a proxy, three stores");
    // Each store is where the document had a machine for it, and no origin is rented that nobody asks.
    let roles = of_machines(juno, "roles");
    let of_stores = (1..=3).map(|number| serde_json::json!([format!("proxy:store-{number}")]));
    assert!(of_stores.into_iter().all(|role| roles.contains(&role)), "{roles:?}");
    assert!(!roles.contains(&serde_json::json!(["origin"])));
    // The variable accepts these documents and no others.
    let variables = parsed("variables.tf");
    let asked = written(block(block(&variables, "variable", &["document"]), "validation", &[]), "condition");
    for document in documents.keys() {
        assert!(asked.contains(&format!("\"{document}\"")), "{document} is not in {asked}");
    }
}

fn page() -> PathBuf {
    folder().join("../../../docs/cloud.md")
}

/// The row of a document in the table of `docs/cloud.md` whose second heading is this, and its cells.
fn row(second: &str, document: &str) -> (String, Vec<String>) {
    let page = std::fs::read_to_string(page()).expect("read");
    let (_, table) = page.split_once(&format!("| `document` | {second} |")).expect("a table");
    let row = table.lines().find(|line| line.starts_with(&format!("| `{document}` |")));
    let row = row.unwrap_or_else(|| panic!("docs/cloud.md says nothing of {document}"));
    (row.to_owned(), row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
}

fn dry_run(command: &str) -> common::Ended {
    // Hosts of a file, so that this machine's CPUs play no part.
    let scratch = common::scratch();
    let hosts = scratch.path().join("hosts.toml");
    let host = |(number, role)| {
        let at = format!("ssh = \"m{number}\"\naddress = \"203.0.113.{number}\"\n");
        format!("[[host]]\nname = \"{role}\"\nroles = [\"{role}\"]\n{at}")
    };
    std::fs::write(&hosts, [(1, "client"), (2, "proxy"), (3, "origin")].map(host).concat()).expect("written");
    let args = ["--dry-run", "--strict", "--topology", common::text(&hosts)];
    let ended = common::run(&[common::words(command.strip_prefix("weir ").expect("weir")), args.to_vec()].concat());
    ended.expect(0);
    ended
}

/// "34m03s" of "32 trials, about 34m03s; nothing was started".
fn duration(command: &str) -> (String, f64) {
    let said = dry_run(command).stdout;
    let (_, rest) = said.split_once(" trials, about ").unwrap_or_else(|| panic!("{said}"));
    let words = rest.split(';').next().expect("a time").to_owned();
    (words, dry_run(&format!("{command} --json")).json()["seconds"].as_f64().expect("seconds"))
}

/// The page's commands are weir's, take as long as it says, and cost that; and the machines live long enough for them. `WEIR_BLESS=1`
/// writes times and costs.
#[test]
fn commands_and_what_they_cost_are_true_and_machines_live_that_long() {
    for (document, about) in documents() {
        let ((_, machines), (row, cells)) = (row("machines", &document), row("command", &document));
        let (words, seconds) = duration(cells[1].trim_matches('`'));
        let an_hour: f64 = machines[3].parse().unwrap_or_else(|_| panic!("{document}: {}", machines[3]));
        // An hour for the rest.
        let cost = an_hour * (seconds / 3600.0 + 1.0);
        let digits = if cost < 1.0 { 2 } else { usize::from(cost < 100.0) };
        let wanted = format!("| {} | {} | {words} | {cost:.digits$} |", cells[0], cells[1]);
        if std::env::var_os("WEIR_BLESS").is_some() {
            let text = std::fs::read_to_string(page()).expect("read");
            std::fs::write(page(), text.replace(&row, &wanted)).expect("written");
        } else {
            assert_eq!(row, wanted, "docs/cloud.md; WEIR_BLESS=1 writes it");
        }
        // The suite juno has many more products than its document.
        let whole = if document == "juno" {
            seconds
        } else {
            let suite = cells[1].split(' ').nth(2).expect("a suite");
            let of_4_cores = if document == "monolake-4" { " --only load=capacity,latency,published" } else { "" };
            duration(&format!("weir run {suite} --scale full{of_4_cores}")).1
        };
        let hours = about["hours"].as_f64().expect("hours");
        let least = whole / 3600.0 * 1.25 + 1.0;
        assert!(hours >= least && hours <= least + 4.0, "{document} lives {hours} h, and needs {least:.1}");
        assert_eq!(machines[4], about["hours"].to_string(), "{document}");
    }
}

#[test]
fn only_roles_and_the_user_are_let_in() {
    let main = parsed("main.tf");
    let group = block(&main, "resource", &["aws_security_group", "weir"]);
    let let_in: Vec<&Body> =
        group.blocks().filter(|block| block.identifier() == "ingress").map(hcl::Block::body).collect();
    let [roles, user] = let_in.as_slice() else { panic!("two ways in: {let_in:?}") };
    assert_eq!(attribute(roles, "self"), &Expression::Bool(true));
    assert!(roles.attributes().all(|attribute| attribute.key() != "cidr_blocks"));
    assert_eq!(written(user, "cidr_blocks"), "[var.ssh_from]");
    assert_eq!(
        (attribute(user, "from_port"), attribute(user, "to_port")),
        (&Expression::from(22), &Expression::from(22))
    );

    let placement = block(&main, "resource", &["aws_placement_group", "weir"]);
    assert_eq!(attribute(placement, "strategy"), &Expression::from("cluster"));
    let host = block(&main, "resource", &["aws_instance", "host"]);
    assert!(written(host, "user_data").contains("shutdown-h+${local.hours*60}"), "{}", written(host, "user_data"));
    assert_eq!(written(block(host, "root_block_device", &[]), "volume_size"), "each.value.disk");
    assert!(written(host, "placement_group").contains("aws_placement_group.weir.name"));
    assert!(written(host, "vpc_security_group_ids").contains("aws_security_group.weir.id"));
}
