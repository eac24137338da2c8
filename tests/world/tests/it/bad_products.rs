//! Products and origins that fail: each is an error row that says at which stage and why, and the run goes on.

use std::path::Path;

use weir_model::record::{Measurement, TrialError};
use weir_world::scenario::{Disk, Scenario, product, suite};

const MILLI: u64 = 1_000_000;

/// Measures a product and the direct path. At a time the origin is killed, ms.
fn measure(folder: &Path, product: String, origin_ends: Option<u64>) -> Vec<Measurement> {
    let head = "title = \"Bad\"\nblocks = 1\nseed = 3\nproducts = [\"bad\", \"direct\"]\nprofile = \"tuned\"";
    let load = "kind = \"open\"\nrate = 100\nconnections = 4\nwarmup = \"100ms\"\nduration = \"2s\"";
    let scenario = Scenario::new(1, 1, folder, &[("bad", product)], Disk::sound());
    if let Some(at) = origin_ends {
        scenario.kill_at("origin", at * MILLI);
    }
    scenario.run(&suite(head, "", load)).unwrap();
    scenario.measured()
}

#[test]
fn what_fails_is_said_at_its_stage_and_the_next_trial_goes_well() {
    let deaf = || product("honest", 600_000_000, 1);
    let elsewhere = product("honest", 50, 1).replace("{{ listen_port }}", "9");
    // By this seed the bad one is first.
    for (name, product, origin_ends, stage, words) in [
        ("takes no connections", elsewhere, None, "ready", "Simulated did not get ready within 5 s"),
        ("never answers", deaf(), None, "ready", "Simulated did not get ready within 5 s"),
        ("answers wrongly", product("own", 50, 1), None, "verify", "its header content-type"),
        ("the origin ends before the product is ready", deaf(), Some(1_000), "load", "the origin went away"),
        ("the origin ends in mid-trial", product("honest", 50, 1), Some(1_500), "load", "the origin"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut errors = measure(folder.path(), product, origin_ends).into_iter().map(|m| (m.took_s, m.error));
        let (took_s, TrialError { stage: at, message, evidence, remedy }) =
            errors.find_map(|(s, e)| Some((s, e?))).unwrap();
        assert!(at == stage && format!("{message} {evidence}").contains(words), "{name}: {at}: {message} {evidence}");
        assert!(!remedy.is_empty() && took_s < 6.0, "{name}: {took_s} s: no try outlasts `ready_within` by much");
        assert!(errors.all(|(_, error)| error.is_none()), "{name}");
    }
}
