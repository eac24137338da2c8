//! A product that is kept over the workloads of a load: one start for all that its origins can serve, and what is said when it dies or
//! when the run is interrupted in their midst.

use std::path::Path;

use weir_host::stop::Stop;
use weir_lab::run::Outcome;
use weir_world::scenario::{Disk, Scenario, product, suite};

const SECOND: u64 = 1_000_000_000;

/// The workloads in their order: two have one origin, and two have three.
const WORKLOADS: [&str; 4] = ["tiny", "small", "tiny-pool", "small-pool"];

fn kept(folder: &Path, products: &str, workloads: usize, window: &str) -> (Scenario, String) {
    let workload = |name: &str| {
        let (size, origins) =
            (if name.contains("tiny") { 128 } else { 3_269 }, if name.contains("pool") { 3 } else { 1 });
        format!(
            "[[workload]]\nname = \"{name}\"\npath = \"/bytes/{size}\"\norigins = {origins}\nexpect = {{ status = 200, size = {size} }}\n"
        )
    };
    let load = format!(
        "kind = \"open\"\nrate = 200\nkeep = true\nconnections = 4\nwarmup = \"100ms\"\nduration = \"{window}\""
    );
    let head = format!("title = \"Kept\"\nblocks = 1\nseed = 3\nproducts = [{products}]\nprofile = \"tuned\"");
    let further: String = WORKLOADS[1..workloads].iter().map(|name| workload(name)).collect();
    let scenario = Scenario::new(1, 1, folder, &[("simulated", product("honest", 50, 2))], Disk::sound());
    (scenario, suite(&head, &format!("origins = 1\n{further}"), &load))
}

/// Of each trial of the product: its workload, the trial that started the product, and its place of how many.
fn starts(scenario: &Scenario) -> Vec<(String, u32, u32, u32)> {
    let own = scenario.measured().into_iter().filter(|m| m.case.product == "simulated");
    own.map(|m| (m.case.workload, m.kept.unwrap()))
        .map(|(name, kept)| (name, kept.since, kept.place, kept.of))
        .collect()
}

fn report(scenario: &Scenario) -> String {
    std::fs::read_to_string(scenario.draw().unwrap().join("report.html")).unwrap()
}

#[test]
fn one_start_is_for_all_workloads_that_its_origins_can_serve() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, suite) = kept(folder.path(), "\"direct\", \"simulated\"", 4, "1s");
    scenario.run(&suite).unwrap();
    let measured = scenario.measured();
    let first = measured.iter().find(|m| m.case.product == "simulated").unwrap().trial;
    let places = [(first, 1), (first, 2), (first + 2, 1), (first + 2, 2)];
    let expected = WORKLOADS.iter().zip(places).map(|(name, (since, place))| ((*name).to_owned(), since, place, 2));
    assert_eq!(starts(&scenario), expected.collect::<Vec<_>>());
    for m in &measured {
        let (load, origin) = (m.load.as_ref().unwrap(), m.origin.as_ref().unwrap());
        assert_eq!((m.error.as_ref(), load.window.successful, origin.requests), (None, 200, 220), "{:?}", m.case);
        let exit = scenario.trial_folder(m).join("product/exit.json");
        let started = m.case.product != "direct" && m.kept.is_none_or(|kept| kept.since == m.trial);
        assert_eq!(exit.is_file(), started, "{}: it was ended", exit.display());
    }
    let report = report(&scenario);
    assert!(report.contains("this was number 2 of 2"));
    assert!(!report.contains("left behind was gone"));
}

/// Runs three workloads of one start, and something happens in the second's window.
fn disturbed(folder: &Path, happens: fn(&Scenario, &Stop)) -> (Scenario, Outcome) {
    let (scenario, suite) = kept(folder, "\"simulated\"", 2, "5s");
    let third =
        "[[workload]]\nname = \"third\"\npath = \"/bytes/64\"\nexpect = { status = 200, size = 64 }\n\n[[load]]";
    let (stop, suite) = (Stop::new(), suite.replace("[[load]]", third));
    happens(&scenario, &stop);
    let outcome = scenario.create(&suite).unwrap().execute(&stop, &mut ()).unwrap();
    (scenario, outcome)
}

#[test]
fn what_was_interrupted_goes_on_with_another_start_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, outcome) = disturbed(folder.path(), |scenario, stop| {
        let stop = stop.clone();
        scenario.realm.world.at(10 * SECOND, move |_| stop.set());
    });
    assert_eq!((outcome.stopped, outcome.finished), (true, 1));
    scenario.resume().unwrap();
    let starts: Vec<_> = starts(&scenario).into_iter().map(|(_, since, place, of)| (since, place, of)).collect();
    assert_eq!(starts, [(1, 1, 3), (2, 2, 3), (2, 3, 3)]);
    assert!(report(&scenario).contains("left behind was gone in trial 3 (started for trial 2)"));
}

#[test]
fn what_dies_fails_the_rest_of_those_it_was_started_for() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, outcome) = disturbed(folder.path(), |scenario, _| scenario.kill_at("product", 10 * SECOND));
    let errors: Vec<_> =
        scenario.measured().into_iter().map(|m| m.error.map(|error| (error.stage, error.message))).collect();
    let stages: Vec<_> = errors.iter().map(|error| error.as_ref().map(|(stage, _)| stage.as_str())).collect();
    assert_eq!((outcome.errors, stages), (2, vec![None, Some("load"), Some("not-tried")]));
    let said = &errors[2].as_ref().unwrap().1;
    assert!(
        said.starts_with("simulated was started once for 3 workloads, and trial 2 (small) failed at \"load\""),
        "{said}"
    );
}
