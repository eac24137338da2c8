//! `deploy/terraform/aws`: the machines are the documents', nobody else is let in, and what would reach the cloud is read as text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

/// Machines by document: their types, in the order of their hosts' names.
fn documents() -> BTreeMap<String, BTreeMap<String, Value>> {
    let variables: Value = hcl::from_str(&read("variables.tf")).expect("parsed");
    serde_json::from_value(variables["variable"]["documents"]["default"].clone()).expect("documents, hosts, machines")
}

#[test]
fn machines_are_those_of_the_documents() {
    let types: BTreeMap<String, Vec<String>> = documents()
        .into_iter()
        .map(|(document, hosts)| {
            let types = hosts.values().map(|machine| machine["type"].as_str().expect("a type").to_owned());
            (document, types.collect())
        })
        .collect();
    // client-1, origin-1, proxy
    assert_eq!(types["monolake-4"], ["c6a.8xlarge", "c6a.2xlarge", "c5a.xlarge"]);
    assert_eq!(types["monolake-16"], ["c6a.8xlarge", "c6a.2xlarge", "c6a.4xlarge"]);
    assert_eq!(types["easegress"], ["r5.xlarge"; 3]);
    assert_eq!(types["spring-cloud-gateway"], ["t2.micro"; 3]);
    assert_eq!(types["juno"].len(), 12, "ten clients, a proxy, an origin");
    // What may be asked for is what there is, and the page says what it costs.
    let page = std::fs::read_to_string(folder().join("../../../docs/cloud.md")).expect("read");
    let variables = parsed("variables.tf");
    let asked = written(block(block(&variables, "variable", &["document"]), "validation", &[]), "condition");
    for document in types.keys() {
        assert!(asked.contains(&format!("\"{document}\"")), "{document} is not in {asked}");
        assert!(page.contains(&format!("| `{document}`")), "docs/cloud.md says nothing of {document}");
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
    assert!(written(host, "placement_group").contains("aws_placement_group.weir.name"));
    assert!(written(host, "vpc_security_group_ids").contains("aws_security_group.weir.id"));
}
