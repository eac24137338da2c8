//! Duets: two products in turns of 25 ms, until a difference is sure, none is left, the time is over or somebody stops it.

use std::path::Path;

use weir_host::stop::Stop;
use weir_lab::duet::judged::Verdict;
use weir_lab::duet::{Asked, DUET_SCHEMA, Duet, Ended, Outcome};
use weir_model::metric::Metric;
use weir_world::scenario::{Disk, Scenario, product, suite};

/// Compares a product that takes 100 us for a request with one that takes so many. It is stopped at a time, s.
fn duet(folder: &Path, other_us: u64, budget_s: f64, stop_at: Option<u64>) -> (Scenario, Outcome) {
    let products = [("first", product("honest", 100, 1)), ("second", product("honest", other_us, 1))];
    let scenario = Scenario::new(1, 1, folder, &products, Disk::sound()).with_latency(1_000_000);
    let stop = Stop::new();
    if let Some((second, stop)) = stop_at.zip(Some(stop.clone())) {
        scenario.realm.world.at(second * 1_000_000_000, move |_| stop.set());
    }
    let head = "title = \"In turn\"\nblocks = 1\nseed = 1\nproducts = [\"first\", \"second\"]\nprofile = \"tuned\"";
    let file = folder.join("duet.toml");
    let load = "kind = \"closed\"\nconnections = 1\nwarmup = \"100ms\"\nduration = \"1s\"";
    std::fs::write(&file, suite(head, "", load)).unwrap();
    let labels = ["first", "second"].map(str::to_owned);
    let asked = Asked { schema: DUET_SCHEMA, labels, find: 0.03, budget_s, turn_s: 0.025, warmup_s: 0.0, busy: false };
    let duet = Duet::create(&scenario.run_folder(), scenario.setup(&file), asked).unwrap();
    let outcome = duet.execute(&stop, &mut |_| ()).unwrap();
    let written = std::fs::read_to_string(scenario.run_folder().join("result.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap()["pairs"], outcome.pairs);
    (scenario, outcome)
}

/// What is measured of a pair: a slice of each, of half of the time, whose rate is that of this half.
fn check_slices(scenario: &Scenario, outcome: &Outcome) {
    let slices = scenario.measured();
    assert_eq!(slices.len(), 2 * outcome.pairs);
    for (pair, both) in (1..).zip(slices.chunks(2)) {
        let [(one, first), (two, second)] = [0, 1].map(|nth| (both[nth].block, &both[nth].case.product));
        assert!(one == pair && two == pair && first != second, "{one} {first}, {two} {second}");
    }
    for slice in &slices {
        let load = slice.load.as_ref().unwrap();
        assert_eq!((load.bursts.unwrap().on_s, load.window_s), (0.025, 1.0));
        assert_eq!(load.rate, 2.0 * load.window.successful_in_window as f64);
        assert_eq!(load.total.sent, slice.origin.as_ref().unwrap().requests);
    }
}

#[test]
fn a_short_duet_ends_by_its_budget_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, outcome) = duet(folder.path(), 100, 6.0, None);
    assert_eq!((outcome.ended, outcome.error.as_ref(), outcome.took_s <= 6.0), (Some(Ended::Budget), None, true));
    let change = &outcome.changes[0];
    assert_eq!((change.metric, change.verdict, change.ratio.value), (Metric::Cpu, Verdict::Open, 1.0));
    assert_eq!(change.ratio.high, f64::INFINITY, "too few starts for a claim");
    check_slices(&scenario, &outcome);
    // It is a run like any other.
    scenario.draw().unwrap();
}

#[test]
fn what_is_the_same_and_what_costs_more_is_known_before_the_budget_ends() {
    for (other_us, ended, ratio) in [(100, Ended::Same, 1.0), (110, Ended::Sure, 1.05)] {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, outcome) = duet(folder.path(), other_us, 300.0, None);
        assert_eq!((outcome.ended, outcome.error.as_ref()), (Some(ended), None), "{:?}", outcome.changes);
        assert!(outcome.changes[0].ratio.value >= ratio && outcome.took_s < 299.0, "{:?}", outcome.changes);
        check_slices(&scenario, &outcome);
    }
}

#[test]
fn a_duet_that_is_stopped_keeps_what_it_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, outcome) = duet(folder.path(), 100, 300.0, Some(3));
    assert_eq!(outcome.ended, Some(Ended::Stopped));
    assert!(outcome.pairs > 0);
    check_slices(&scenario, &outcome);
}
