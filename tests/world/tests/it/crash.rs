//! weir ends before each step that changes the folder of a run: finished trials stay as they are, byte for byte, and the run is finished when
//! it goes on.

use std::path::Path;
use std::sync::Arc;

use weir_world::scenario::{Disk, Scenario, product, suite};
use weir_world::seeds::continue_run;

/// A run of three trials.
fn scenario(folder: &Path, disk: Arc<Disk>) -> (Scenario, String) {
    let head = "title = \"Crashes\"\nblocks = 3\nseed = 3\nproducts = [\"simulated\"]\nprofile = \"tuned\"";
    let load = "kind = \"count\"\nrequests = 20\nconnections = 4\nduration = \"2s\"\nwarmup = \"0s\"";
    let scenario =
        Scenario::new(1, 1, folder, &[("simulated", product("honest", 50, 1))], disk).with_latency(1_000_000);
    (scenario, suite(head, "", load))
}

#[test]
fn a_run_goes_on_after_a_crash_before_any_of_its_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, text) = scenario(folder.path(), Disk::sound());
    whole.run(&text).unwrap();
    let steps = whole.disk.steps();
    assert!(steps > 40, "{steps} steps are not all");
    for step in 1..=steps {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, text) = scenario(folder.path(), Disk::crashing_at(step));
        let failed = scenario.run(&text);
        assert!(failed.is_err(), "step {step}: {failed:?}");
        scenario.disk.mend();
        let outcome = continue_run(&scenario).unwrap_or_else(|why| panic!("step {step}: {why}"));
        // A run that had not begun is made again.
        let outcome = outcome.unwrap_or_else(|| {
            let _ = std::fs::remove_dir_all(scenario.run_folder());
            scenario.run(&text).unwrap()
        });
        assert_eq!((outcome.finished, outcome.planned, outcome.errors), (3, 3, 0), "step {step}");
        for (was, is) in whole.measured().iter().zip(scenario.measured()) {
            let counts = |m: &weir_model::record::Measurement| (m.trial, m.load.clone().unwrap().total, m.verdict);
            assert_eq!((counts(was), &was.case), (counts(&is), &is.case), "step {step}");
        }
        let rows = std::fs::read_to_string(scenario.run_folder().join("measurements.csv")).unwrap();
        assert_eq!(rows.lines().count(), 4, "step {step}");
    }
}

#[test]
fn a_trial_that_somebody_edited_is_measured_again_and_a_run_that_is_removed_takes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, text) = scenario(folder.path(), Disk::sound());
    scenario.run(&text).unwrap();
    let (run, before) = (scenario.run_folder(), scenario.measured());
    let file = scenario.trial_folder(&before[1]).join("measurement.json");
    let written = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, written.replacen("\"rate\": ", "\"rate\": 9", 1)).unwrap();
    let outcome = scenario.resume().unwrap();
    assert_eq!((outcome.finished, outcome.errors), (3, 0));
    let kept = file.display().to_string().replace("/trials/", "/set-aside/");
    assert!(Path::new(&kept).is_file(), "the old one is kept");
    let after = scenario.measured();
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
    assert_ne!(after[1].started, before[1].started, "it was measured anew");

    std::fs::remove_dir_all(&run).unwrap();
    let removed = scenario.create(&text).unwrap();
    std::fs::remove_dir_all(&run).unwrap();
    assert!(removed.execute(&weir_host::stop::Stop::new(), &mut ()).is_err(), "no success without records");
}
