//! A route that changes under load: what the client sees of products that take the changes later, or badly.

use weir_model::change::ChangeOutcome;
use weir_model::load::ErrorKind;
use weir_model::record::{Measurement, Severity, Verdict};
use weir_world::scenario::{Disk, Scenario, product, suite};

/// A thousand requests a second for five seconds, with a change each 500 ms: eight of them, the first after 750 ms. On so many hosts,
/// each with a clock of its own. Returns also the report.
fn run_on(hosts: usize, fault: &str) -> (Measurement, String) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Scenario::new(1, hosts, folder.path(), &[("simulated", product(fault, 50, 2))], Disk::sound());
    let head = "title = \"Changes\"\nblocks = 1\nseed = 1\nproducts = [\"simulated\"]\nprofile = \"tuned\"";
    let load = "kind = \"open\"\nrate = 1000\nconnections = 64\nwarmup = \"500ms\"\nduration = \"5s\"\nchange_every = \"500ms\"";
    scenario.run(&suite(head, "origins = 2", load)).unwrap();
    let report = std::fs::read_to_string(scenario.draw().unwrap().join("report.md")).unwrap();
    (scenario.measured().remove(0), report)
}

fn measured(fault: &str) -> Measurement {
    run_on(1, fault).0
}

/// What is more than a note: the unequal times of the two origins are one.
fn warnings(measured: &Measurement) -> Vec<&str> {
    let warnings = measured.findings.iter().filter(|finding| finding.severity > Severity::Note);
    warnings.map(|finding| finding.message.as_str()).collect()
}

/// Milliseconds, rounded up, until older responses had ended, of each change that was taken.
fn taken_ms(measured: &Measurement) -> Vec<u64> {
    let outcomes = measured.changes.as_ref().unwrap().outcomes(measured.load.as_ref().unwrap());
    let taken = outcomes.iter().filter_map(|outcome| match outcome {
        ChangeOutcome::Taken(seconds) => Some((seconds * 1e3).ceil() as u64),
        ChangeOutcome::Skipped(_) | ChangeOutcome::Lost => None,
    });
    taken.collect()
}

#[test]
fn changes_are_made_at_their_times_and_taken_at_once() {
    let measured = measured("honest");
    assert_eq!((measured.error.as_ref(), warnings(&measured)), (None, Vec::new()));
    let changes = measured.changes.as_ref().unwrap();
    let due: Vec<f64> = (0..8).map(|nth| 0.75 + 0.5 * f64::from(nth)).collect();
    assert_eq!(changes.began_s, due);
    // A request is due each millisecond: after the change comes at most one that was on its way.
    assert!(taken_ms(&measured).iter().all(|ms| *ms <= 1), "{:?}", taken_ms(&measured));
    let numbers: Vec<u32> = measured.load.as_ref().unwrap().changes.iter().map(|seen| seen.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9], "the first is that of the verification");
    assert_eq!((changes.memory_bytes, changes.processes), (Some((20_000_000, 20_000_000)), Some((1, 1))));
    // The warm-up and 0.75 s had the second origin, as have each other half second and the last 0.75 s.
    let requests: Vec<u64> = measured.origin.as_ref().unwrap().addresses.iter().map(|one| one.requests).collect();
    assert!(requests[0].abs_diff(2_000) < 10 && requests[1].abs_diff(3_500) < 10, "{requests:?}");
}

#[test]
fn a_change_that_is_taken_later_is_seen_later() {
    for hosts in [1, 3] {
        let measured = run_on(hosts, "reload=20").0;
        assert_eq!((measured.error.as_ref(), warnings(&measured)), (None, Vec::new()));
        let taken = taken_ms(&measured);
        assert!(taken.len() == 8 && taken.iter().all(|ms| (20..=21).contains(ms)), "{taken:?}");
    }
}

#[test]
fn requests_that_are_dropped_at_a_change_are_counted() {
    let (measured, report) = run_on(1, "reload-drop=3");
    assert_eq!(measured.error, None);
    let load = measured.load.as_ref().unwrap();
    assert_eq!(load.window.errors, [(ErrorKind::Reset, 24)].into());
    assert_eq!(warnings(&measured), ["while the route changed, 24 requests of 5000 failed (reset 24)"]);
    assert_eq!(measured.verdict, Verdict::Suspect);
    assert!(
        report.contains("Simulated failed 24 of 5,000 requests. Until every response showed a change it took"),
        "{report}"
    );
    let table = report.split("A route that changes under load").nth(1).expect("its table");
    assert!(table.contains("| Simulated | 24 | 24 |"), "{table}");
}

#[test]
fn changes_that_are_not_taken_are_told() {
    let measured = measured("reload-ignore=7");
    let outcomes = measured.changes.as_ref().unwrap().outcomes(measured.load.as_ref().unwrap());
    assert_eq!(outcomes[5..], [ChangeOutcome::Lost; 3]);
    assert_eq!(taken_ms(&measured).len(), 5);
    let message = "while the route changed, no response showed 3 of 8 changes";
    assert_eq!(warnings(&measured), [message]);
    // When the first is taken, the file has the second already.
    let late = self::measured("reload=600");
    let skipped = "while the route changed, 1 of 8 changes gave way to a later one";
    assert_eq!(warnings(&late), [skipped]);
}

#[test]
fn a_product_that_dies_of_a_change_has_no_measurement() {
    for (number, stage) in [(4, "load"), (1, "verify")] {
        let error = measured(&format!("reload-die={number}")).error.unwrap();
        assert_eq!(error.stage, stage);
        assert!(error.message.contains("Simulated was ended"), "{}", error.message);
    }
    let error = measured("reload-ignore=1").error.unwrap();
    assert_eq!(error.message, "Simulated did not take the change 1 of its route: its response shows 0");
}
