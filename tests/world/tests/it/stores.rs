//! Products that hold keys and values: every operation is answered rightly by every protocol, and what a store forgets is found.

use std::path::Path;

use weir_model::fault::FaultKind;
use weir_model::load::ErrorKind;
use weir_model::record::{Measurement, Severity, Verdict};
use weir_world::scenario::{Disk, Scenario, store};

fn run(folder: &Path, products: &str, workloads: &str, load: &str) -> Vec<Measurement> {
    let stores = ["redis", "memcached", "juno"].map(|protocol| (protocol, store(protocol, "none")));
    let scenario = Scenario::new(1, 1, folder, &stores, Disk::sound()).with_latency(1_000_000);
    let head = format!(
        "title = \"Stores\"\nquestion = \"?\"\nblocks = 1\nseed = 1\nproducts = [{products}]\nprofile = \"tuned\""
    );
    let text = format!("[suite]\n{head}\n{workloads}\n[[load]]\nname = \"load\"\nconnections = 2\n{load}");
    scenario.run(&text).unwrap();
    scenario.measured()
}

#[test]
fn every_operation_is_answered_rightly_by_every_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let workload = |protocol: &str, name: &str, keys: &str| {
        let products = if protocol.ends_with("s") && protocol != "redis" { "" } else { protocol };
        format!(
            "[[workload]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\nkeyvalue = {{ {keys} }}\nproducts = [\"direct\", \"{products}\"]\n"
        )
        .replace(", \"\"", "")
    };
    let protocols = ["redis", "rediss", "memcached", "memcacheds", "juno", "junos"];
    let fresh =
        protocols.map(|one| workload(one, one, "operations = \"C:1,S:1,G:1,U:1,D:1\", value = 2000, ttl = \"30m\""));
    let known = protocols.map(|one| {
        workload(
            one,
            &format!("{one}-zipf"),
            "operations = \"set:1,get:3\", value = \"100..4000\", keys = \"zipf:0.99\", preload = 100",
        )
    });
    let load = "kind = \"closed\"\nwarmup = \"0s\"\nduration = \"1s\"\n";
    let measured =
        run(folder.path(), "\"direct\", \"redis\", \"memcached\", \"juno\"", &(fresh.concat() + &known.concat()), load);
    assert_eq!(measured.len(), 2 * (6 + 3));
    for m in measured {
        let (load, of) = (m.load.as_ref().unwrap(), &m.case);
        assert_eq!((m.error.as_ref(), m.verdict), (None, Verdict::Valid), "{of:?}: {:?}", m.findings);
        // Two connections, and 2 ms a round trip.
        let fresh = !of.workload.ends_with("zipf");
        assert_eq!(
            (load.window.successful, load.window.error_count(), load.latency.p99_us),
            (1_000, 0, 2_000.895),
            "{of:?}"
        );
        let sent: Vec<u64> = load.by_request.iter().map(|operation| operation.successful).collect();
        assert_eq!(sent, if fresh { vec![200; 5] } else { vec![250, 750] }, "{of:?}");
        assert_eq!(load.preload.as_ref().map(|keys| keys.successful), (!fresh).then_some(100), "{of:?}");
        // Nothing is behind a store.
        let reached = m.origin.as_ref().map(|origin| origin.requests);
        assert_eq!(reached, (of.product == "direct").then_some(load.total.sent), "{of:?}");
    }
}

/// Messages are padded to eight bytes, and so are the lengths.
#[test]
fn points_write_values_of_their_own_length_where_the_load_says_so() {
    let workload =
        "[[workload]]\nname = \"mix\"\nprotocol = \"juno\"\nkeyvalue = { operations = \"C:1\", value = 104 }\n";
    let sent = |more: &str| {
        let folder = tempfile::tempdir().unwrap();
        let load =
            format!("kind = \"open\"\nrate = 1000\nshares = [0.5, 1.0]\nwarmup = \"0s\"\nduration = \"1s\"\n{more}\n");
        let m = run(folder.path(), "\"juno\"", workload, &load).remove(0);
        let windows = m.windows();
        let successful: Vec<u64> = windows.iter().map(|load| load.window.successful).collect();
        assert_eq!((successful, m.error.as_ref()), (vec![500, 1_000], None), "{:?}", m.findings);
        windows.iter().map(|load| load.window.bytes_out / load.window.successful).collect::<Vec<_>>()
    };
    let (alike, own) = (sent(""), sent("restart = true\nvalues = [2000, 200]"));
    assert_eq!((own[0] - alike[0], own[1] - alike[1]), (1_896, 96), "{alike:?}, {own:?}");
}

/// A load of 200 a second, and what happens to the store at two seconds for one.
fn disturbed(what: &str) -> Measurement {
    let folder = tempfile::tempdir().unwrap();
    let workload = "[[workload]]\nname = \"mix\"\nprotocol = \"redis\"\nkeyvalue = { operations = \"C:2,G:6,D:1\", value = 200 }\n";
    let fault = format!("{{ what = \"{what}\", part = \"all\", at = \"2s\", for = \"1s\" }}");
    let load = format!(
        "kind = \"open\"\nrate = 200\nwarmup = \"500ms\"\nduration = \"8s\"\ntimeout = \"5s\"\nfault = [{fault}]\n"
    );
    run(folder.path(), "\"redis\"", workload, &load).remove(0)
}

#[test]
fn a_memory_store_that_is_killed_forgets_and_one_that_stands_still_does_not() {
    let killed = disturbed("kill");
    let errors = &killed.load.as_ref().unwrap().window.errors;
    assert_eq!((killed.verdict, killed.faults[0].what), (Verdict::Invalid, FaultKind::Kill));
    assert_eq!((killed.faults[0].began_s, killed.faults[0].ended_s), (2.0, 3.0));
    assert!(errors[&ErrorKind::Lost] > 0 && errors[&ErrorKind::ConnectRefused] > 0, "{errors:?}");
    let found = killed.findings.iter().find(|finding| finding.check == "wrong-data").unwrap();
    assert_eq!(found.severity, Severity::Fatal);

    let frozen = disturbed("freeze");
    let load = frozen.load.as_ref().unwrap();
    assert_eq!((frozen.faults[0].began_s, frozen.faults[0].ended_s), (2.0, 3.0));
    assert_eq!((load.window.successful, load.window.error_count()), (1_600, 0));
    assert!((1e6..1.1e6).contains(&load.latency.max_us) && frozen.verdict != Verdict::Invalid, "{:?}", load.latency);
}
