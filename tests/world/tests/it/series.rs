//! Kinds of load beyond one closed or open window, in whole runs: fixed numbers of requests, series against one running product, warming
//! up until steady. Every count follows from the load: eight connections and 2 ms a round trip are 4,000 requests a second.

use std::path::Path;

use weir_host::stop::Stop;
use weir_model::record::{Finding, Measurement, Point, Severity, Verdict};
use weir_world::scenario::{Disk, Scenario, product, suite};

const SECOND: u64 = 1_000_000_000;

/// A world in which each way takes a millisecond, with a product that takes 50 us for a request.
fn scenario(folder: &Path) -> Scenario {
    Scenario::new(1, 1, folder, &[("simulated", product("honest", 50, 2))], Disk::sound()).with_latency(1_000_000)
}

fn head(products: &str) -> String {
    format!("title = \"Kinds of load\"\nblocks = 1\nseed = 5\nproducts = [{products}]\nprofile = \"tuned\"")
}

/// Runs loads, `NAME` and their keys, with and without a product. Measurements by load: direct, and through the product.
fn measure<const N: usize>(loads: [&str; N]) -> (tempfile::TempDir, Scenario, [[Measurement; 2]; N]) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path());
    let keys = |load: &str| {
        let (name, keys) = load.split_once(' ').unwrap();
        format!("name = \"{name}\"\nconnections = 8\nduration = \"1s\"\n{}", keys.replace("; ", "\n"))
    };
    let text = suite(&head("\"direct\", \"simulated\""), "", &loads.map(keys).join("\n[[load]]\n"));
    scenario.run(&text.replace("[[load]]\nname = \"load\"\n", "[[load]]\n")).unwrap();
    let mut all = scenario.measured();
    let by_load = loads.map(|load| {
        ["direct", "simulated"].map(|product| {
            let is = |m: &Measurement| m.case.load == load.split(' ').next().unwrap() && m.case.product == product;
            let at = all.iter().position(is).unwrap();
            all.remove(at)
        })
    });
    by_load.iter().flatten().for_each(balanced);
    (folder, scenario, by_load)
}

/// What the client sent reached the origin, all of it and nothing else, and every byte came back. The last point is the trial's own.
fn balanced(m: &Measurement) {
    assert_eq!(m.error, None);
    let own = (m.load.as_ref().unwrap(), m.origin.as_ref().unwrap());
    let points = m.points.iter().map(|point| (&point.load, point.origin.as_ref().unwrap()));
    let is_own = |last: &Point| (&last.load, last.origin.as_ref().unwrap(), &last.usage) == (own.0, own.1, &m.usage);
    assert!(m.points.last().is_none_or(is_own));
    for (load, origin) in points.chain([own]) {
        assert_eq!((load.total.sent, load.total.body_bytes), (origin.requests, origin.body_bytes_out), "{:?}", m.case);
        assert_eq!((load.total.successful, load.window.connections), (load.total.sent, 0), "{:?}", m.case);
    }
}

fn finding<'m>(findings: &'m [Finding], check: &str) -> Option<&'m Finding> {
    findings.iter().find(|finding| finding.check == check)
}

/// Requests that were right in each window.
fn successful(m: &Measurement) -> Vec<u64> {
    m.windows().iter().map(|load| load.window.successful).collect()
}

#[test]
fn a_counted_load_ends_with_its_last_request_or_its_time() {
    let (_folder, _, [counted, limited]) = measure([
        "counted kind = \"count\"; requests = 500; warmup = \"0s\"",
        "limited kind = \"count\"; requests = 900000000; warmup = \"0s\"",
    ]);
    for m in counted {
        assert_eq!((successful(&m), m.load.unwrap().total.sent), (vec![500], 500), "none of them is warm-up");
        assert_eq!(finding(&m.findings, "count"), None);
    }
    for m in &limited {
        let found = finding(&m.findings, "count").expect("the time was over first");
        assert!(found.severity == Severity::Note && found.message.contains("of 900000000 requests"), "{found:?}");
    }
    assert_eq!(successful(&limited[0]), [4_000]);
}

#[test]
fn every_point_of_a_series_is_whole_and_by_itself() {
    let (_folder, scenario, [rounds, wide, curve]) = measure([
        "rounds kind = \"closed\"; rounds = 3; warmup = \"200ms\"",
        "wide kind = \"closed\"; connection_counts = [1, 8]; warmup = \"200ms\"",
        "curve kind = \"open\"; rate = { share = 1.0, of = \"own\", load = \"rounds\" }; shares = [0.1, 2.0]; warmup = \"0s\"; timeout = \"9s\"",
    ]);
    assert_eq!((successful(&rounds[0]), successful(&wide[0])), (vec![4_000; 3], vec![500, 4_000]));
    for m in rounds.iter().chain(&wide).chain(&curve) {
        let of = m.points.len() as u32;
        assert_eq!(m.points.iter().map(|point| point.point).collect::<Vec<_>>(), (1..=of).collect::<Vec<_>>());
        for point in &m.points {
            assert_eq!(point.load.most_open, point.connections);
            let trial = scenario.trial_folder(m);
            let of_point = if point.point == of { trial } else { trial.join(format!("point-{}", point.point)) };
            for file in ["latency.hlog", "load.csv", "resources.csv", "load-order.json", "observer.json"] {
                assert!(of_point.join(file).metadata().is_ok_and(|f| f.len() > 0), "{}: {file}", of_point.display());
            }
        }
    }
    let offered: Vec<_> = curve[0].points.iter().map(|point| point.offered_rate.unwrap()).collect();
    assert_eq!((offered, curve[0].points[0].load.window.successful), (vec![400.0, 8_000.0], 400));
    for m in &curve {
        let found = finding(&m.points[1].findings, "offered-load").expect("twice what it carries is not carried");
        assert_eq!(found.severity, Severity::Note, "it is what was to be seen");
        assert_eq!(finding(&m.findings, "offered-load").unwrap().severity, Severity::Note, "told of the trial, too");
    }
}

/// How often the product of a trial was started, by what each start left behind.
fn starts(scenario: &Scenario, m: &Measurement) -> usize {
    let trial = scenario.trial_folder(m);
    ["", "start-2", "start-3"].iter().filter(|start| trial.join(start).join("product/exit.json").is_file()).count()
}

#[test]
fn each_point_has_a_start_of_its_own_where_the_load_says_so() {
    let (_folder, scenario, [one, each]) = measure([
        "one kind = \"open\"; rate = 1000; shares = [0.5, 0.75, 1.0]; warmup = \"0s\"",
        "each kind = \"open\"; rate = 1000; shares = [0.5, 0.75, 1.0]; restart = true; warmup = \"0s\"",
    ]);
    for (measured, wanted) in [(one, 1), (each, 3)] {
        for m in &measured {
            let wanted = if m.case.product == "direct" { 0 } else { wanted };
            assert_eq!((successful(m), starts(&scenario, m)), (vec![500, 750, 1_000], wanted), "{:?}", m.case);
        }
    }
}

/// A way takes 20 ms, so that connecting takes 40.
#[test]
fn connecting_may_take_another_time_than_a_response() {
    let failed = |limit: &str| {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(folder.path()).with_latency(20_000_000);
        let times = format!("timeout = \"5s\"\nconnect_timeout = \"{limit}\"\nwarmup = \"0s\"\nduration = \"1s\"");
        let load = format!("kind = \"open\"\nrate = 100\nconnections = 4\n{times}");
        scenario.run(&suite(&head("\"direct\""), "", &load)).unwrap();
        scenario.measured().remove(0).error.map(|error| error.message)
    };
    assert!(failed("10ms").is_some_and(|why| why.contains("connect")));
    assert_eq!(failed("200ms"), None);
}

/// Six seconds cannot show a level; twenty of a rate that does not change do.
#[test]
fn a_product_is_warmed_up_until_it_is_steady() {
    let (_folder, _, [short, long]) = measure([
        "short kind = \"closed\"; steady = \"6s\"; warmup = \"200ms\"",
        "long kind = \"open\"; rate = 100; steady = \"60s\"; warmup = \"200ms\"",
    ]);
    for m in short {
        let warmup = m.warmup.as_ref().unwrap();
        assert_eq!((warmup.seconds, warmup.steady, m.verdict), (6.0, false, Verdict::Suspect));
        assert_eq!(finding(&m.findings, "never-steady").unwrap().severity, Severity::Warning);
    }
    for m in long {
        assert_eq!((m.warmup.unwrap().steady, m.verdict), (true, Verdict::Valid), "{:?}", m.findings);
    }
}

const ROUNDS: &str = "kind = \"closed\"\nrounds = 3\nconnections = 4\nwarmup = \"100ms\"\nduration = \"1500ms\"";

#[test]
fn a_product_that_dies_in_the_second_round_leaves_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path());
    scenario.kill_at("product", 3 * SECOND);
    let outcome = scenario.run(&suite(&head("\"simulated\""), "", ROUNDS)).unwrap();
    let m = scenario.measured().remove(0);
    assert_eq!((outcome.errors, m.verdict, m.error.unwrap().stage.as_str()), (1, Verdict::Error, "load"));
    assert_eq!((m.points.len(), m.load), (1, None), "what was measured before stands");
}

#[test]
fn a_stop_in_a_series_forgets_its_trial_and_resume_makes_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, stop) = (scenario(folder.path()), Stop::new());
    let stops = stop.clone();
    scenario.realm.world.at(3 * SECOND, move |_| stops.set());
    let run = scenario.create(&suite(&head("\"simulated\""), "", ROUNDS)).unwrap();
    let outcome = run.execute(&stop, &mut ()).unwrap();
    assert_eq!((outcome.stopped, outcome.finished, scenario.measured()), (true, 0, Vec::new()));
    scenario.resume().unwrap();
    let m = scenario.measured().remove(0);
    balanced(&m);
    assert_eq!(m.points.len(), 3);
}
