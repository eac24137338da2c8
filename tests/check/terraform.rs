//! The outputs of `deploy/terraform/aws`, made by terraform itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use weir_model::record::Role;
use weir_model::topology::{Reach, Topology};

use crate::common::{not_shown, run_within, scratch, words};

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/terraform/aws").join(file))
        .expect("read")
}

/// Machines by document: their types, in the order of their hosts' names.
fn documents() -> BTreeMap<String, BTreeMap<String, Value>> {
    let variables: Value = hcl::from_str(&read("variables.tf")).expect("parsed");
    serde_json::from_value(variables["variable"]["documents"]["default"].clone()).expect("documents, hosts, machines")
}

/// The outputs, by terraform itself, with addresses where the cloud's would be: a topology that weir reads.
#[test]
fn its_output_is_a_topology() {
    let Ok(version) = Command::new("terraform").arg("version").output() else {
        not_shown("no terraform in PATH, which makes its output");
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
        let line = format!("plan -input=false -no-color -var document=easegress -var ssh_from={from}");
        let ended = terraform(&words(&line));
        assert_eq!(ended.status.success(), right, "{from}: {ended:?}");
    }
}
