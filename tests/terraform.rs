//! `deploy/terraform/aws`: the machines are the documents', nobody else is let in, and its output is a topology. The provider is
//! not asked: what would reach the cloud is read as text.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hcl::{Body, Expression};
use serde_json::Value;
use weir_model::record::Role;
use weir_model::topology::{Reach, Topology};

use common::{run_within, scratch};

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

/// The outputs, by terraform itself, with addresses where the cloud's would be: a topology that weir reads.
#[test]
fn its_output_is_a_topology() {
    let Ok(version) = Command::new("terraform").arg("version").output() else {
        eprintln!("SKIPPED: its output cannot be made: no terraform in PATH");
        return;
    };
    assert!(version.status.success());
    let dir = scratch();
    let outputs =
        read("outputs.tf").replace("aws_instance.host", "local.host").replace("tls_private_key.host", "local.key");
    let stand_ins = r#"
locals {
  machines = var.documents[var.document]
  names    = keys(local.machines)
  host = { for place, name in local.names : name => {
    public_ip  = "203.0.113.${place + 1}"
    private_ip = "10.42.0.${place + 10}"
  } }
  key = { for name in local.names : name => { public_key_openssh = "ssh-ed25519 KEY-OF-${name}\n" } }
}
"#;
    for (name, text) in [("variables.tf", read("variables.tf")), ("outputs.tf", outputs), ("main.tf", stand_ins.into())]
    {
        std::fs::write(dir.path().join(name), text).expect("written");
    }
    let terraform = |arguments: &[&str]| {
        let mut command = Command::new("terraform");
        command.args(arguments).current_dir(dir.path()).env("CHECKPOINT_DISABLE", "1");
        run_within(&mut command, Duration::from_secs(60))
    };
    terraform(&["init", "-input=false", "-no-color"]).expect(0);
    for (document, hosts) in documents() {
        let (chosen, from) = (format!("document={document}"), "ssh_from=203.0.113.99/32");
        terraform(&["apply", "-auto-approve", "-input=false", "-no-color", "-var", &chosen, "-var", from]).expect(0);
        let topology = terraform(&["output", "-raw", "-no-color", "hosts_toml"]).stdout;
        let topology = Topology::parse("hosts.toml", &topology)
            .unwrap_or_else(|error| panic!("{document}:\n{topology}\n{error:?}"));
        let names: Vec<&str> = topology.hosts().iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, hosts.keys().collect::<Vec<_>>(), "{document}");
        assert_eq!(topology.proxy().roles, [Role::Proxy]);
        assert_eq!(topology.clients().count(), if document == "juno" { 10 } else { 1 });
        let keys = terraform(&["output", "-raw", "-no-color", "known_hosts"]).stdout;
        for host in topology.hosts() {
            let Reach::Ssh { destination, .. } = &host.reach else { panic!("{host:?}") };
            let public = destination.strip_prefix("admin@").expect("Debian's user");
            assert!(keys.contains(&format!("{public} ssh-ed25519 KEY-OF-{}\n", host.name)), "{keys}");
            assert_ne!(host.address.expect("an address").to_string(), public);
        }
    }
    for (from, right) in [("0.0.0.0/0", false), ("here", false), ("203.0.113.7/32", true)] {
        let ended = terraform(&[
            "plan",
            "-input=false",
            "-no-color",
            "-var",
            "document=easegress",
            "-var",
            &format!("ssh_from={from}"),
        ]);
        assert_eq!(ended.status.success(), right, "{from}: {ended:?}");
    }
}
