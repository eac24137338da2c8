//! Every fault of the audit's matrix (`make faults` injects them into real runs): the finding that has to name it does, by a word that
//! says what it is, with the verdict that it deserves, and an honest twin under the same load is not blamed for anything.

use std::time::Duration;

use weir_model::record::{Measurement, Severity, Verdict};
use weir_world::host::{Neighbour, Realm};
use weir_world::scenario::{Disk, Scenario, product, suite};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

/// By then the load has begun: what is disturbed is disturbed in its window.
const IN_WINDOW: u64 = 1_500 * MILLI;

/// Who is disturbed beside the product.
#[derive(Clone, Copy)]
enum Disturbed {
    Nobody,
    /// A process uses a part of this CPU, for so long.
    Cpu(u32, f64, u64),
    /// The processes of this role stand still for 200 ms of each second.
    Role(&'static str),
    /// Samplers stand still for a second in which the window begins.
    Samplers,
}

/// What has to come of it.
enum Expected {
    /// One of these findings, which has one of these words, with this verdict.
    Finding(&'static [&'static str], &'static [&'static str], Verdict),
    /// A note with this word, and no verdict against the product.
    Note(&'static str, &'static str),
    /// The record has so many bytes of memory at least.
    Memory(u64),
}

use Expected::Finding;
use Verdict::{Invalid, Suspect};

struct Case {
    fault: &'static str,
    load: Load,
    disturbed: Disturbed,
    expected: Expected,
}

#[derive(Clone, Copy)]
enum Load {
    /// Seconds of the window.
    Closed(u32),
    /// Requests a second, seconds of the window.
    Open(u32, u32),
}

const COUNTED: Load = Load::Open(2_000, 3);
const CONSERVATION: &[&str] = &["conservation-requests"];

const fn fault(fault: &'static str, load: Load, expected: Expected) -> Case {
    Case { fault, load, disturbed: Disturbed::Nobody, expected }
}

const fn beside(disturbed: Disturbed, load: Load, expected: Expected) -> Case {
    Case { fault: "honest", load, disturbed, expected }
}

const CASES: &[Case] = &[
    fault("cache", COUNTED, Finding(CONSERVATION, &["cach"], Invalid)),
    fault("revalidate", COUNTED, Finding(CONSERVATION, &["cach"], Invalid)),
    fault("cache-and-twice", COUNTED, Finding(CONSERVATION, &["cach"], Invalid)),
    fault("coalesce", Load::Closed(3), Finding(CONSERVATION, &["shared", "coalesc"], Invalid)),
    fault("forge", COUNTED, Finding(CONSERVATION, &["forg"], Invalid)),
    fault("forge-all", COUNTED, Finding(CONSERVATION, &["forg"], Invalid)),
    fault("strip", COUNTED, Finding(CONSERVATION, &["strip", "took", "without"], Suspect)),
    fault("mirror", COUNTED, Finding(CONSERVATION, &["mirror", "twice", "more than once"], Invalid)),
    fault("retry=20", COUNTED, Finding(CONSERVATION, &["retri", "twice", "more than once"], Invalid)),
    fault("corrupt=2000", COUNTED, Finding(&["wrong-answers"], &["body"], Invalid)),
    fault("corrupt=20000", Load::Open(4_000, 4), Finding(&["wrong-answers"], &["body"], Suspect)),
    fault("refuse=500", COUNTED, Finding(&["refusals"], &["503"], Suspect)),
    fault("reset=500", COUNTED, Finding(&["refusals"], &["reset"], Suspect)),
    fault("step=4", Load::Closed(12), Finding(&["drift"], &[""], Suspect)),
    fault("step=6", Load::Closed(12), Finding(&["drift"], &[""], Suspect)),
    fault("step=8", Load::Closed(12), Finding(&["drift"], &[""], Suspect)),
    fault("step=11", Load::Closed(12), Finding(&["drift"], &[""], Suspect)),
    fault("step-up=6", Load::Closed(12), Finding(&["drift"], &[""], Suspect)),
    fault("step=1", Load::Closed(2), Finding(&["drift"], &[""], Suspect)),
    fault("ramp", Load::Closed(12), Finding(&["drift"], &[""], Suspect)),
    fault("stall", Load::Closed(5), Finding(&["pauses", "stalls"], &["product"], Suspect)),
    fault("stall", Load::Open(1_000, 5), Finding(&["pauses", "stalls"], &["product"], Suspect)),
    fault("pause=2", Load::Closed(12), Finding(&["pauses"], &["product"], Invalid)),
    fault("freeze=1", Load::Closed(2), Finding(&["errors"], &["waited in vain"], Invalid)),
    fault("hand-over=there", COUNTED, Finding(&["unexplained-work"], &["take-over", "faults"], Invalid)),
    fault("elsewhere=0", COUNTED, Finding(&["affinity"], &["cpu"], Invalid)),
    fault("anywhere", COUNTED, Finding(&["affinity"], &["cpu"], Suspect)),
    fault("spike", COUNTED, Expected::Memory(600_000_000)),
    fault("log", COUNTED, Finding(&["disk-writes"], &[""], Suspect)),
    fault("header=1", COUNTED, Finding(&["headers"], &["x-added"], Suspect)),
    fault("gzip", COUNTED, Expected::Note("compresses", "gzip")),
    beside(Disturbed::Cpu(1, 0.3, 60 * SECOND), Load::Closed(3), Finding(&["other-processes"], &["burner"], Suspect)),
    beside(Disturbed::Cpu(1, 0.6, SECOND), Load::Closed(12), Finding(&["other-processes"], &["burner"], Suspect)),
    beside(Disturbed::Cpu(0, 0.3, 60 * SECOND), Load::Closed(3), Finding(&["other-processes"], &["burner"], Suspect)),
    beside(Disturbed::Role("client"), Load::Closed(5), Finding(&["stalls"], &["the client stood"], Invalid)),
    beside(Disturbed::Role("client"), Load::Open(1_000, 5), Finding(&["stalls"], &["the client stood"], Invalid)),
    beside(Disturbed::Role("origin"), Load::Closed(5), Finding(&["stalls"], &["the origin stood"], Invalid)),
    beside(Disturbed::Role("origin"), Load::Open(1_000, 5), Finding(&["stalls"], &["the origin stood"], Invalid)),
    beside(Disturbed::Samplers, Load::Open(1_000, 3), Finding(&["vitals-late"], &["late"], Invalid)),
];

/// A product without the fault, under the same load.
fn twins() -> Vec<Load> {
    vec![COUNTED, Load::Closed(2), Load::Closed(3), Load::Closed(5), Load::Closed(12), Load::Open(1_000, 5)]
}

fn measure(fault: &str, load: Load, disturbed: Disturbed) -> Measurement {
    let folder = tempfile::tempdir().unwrap();
    let (kind, seconds) = match load {
        Load::Closed(seconds) => ("kind = \"closed\"".to_owned(), seconds),
        Load::Open(rate, seconds) => (format!("kind = \"open\"\nrate = {rate}"), seconds),
    };
    // A closed load over few connections: what is counted is the same, and the world has less to do.
    let connections = if matches!(load, Load::Closed(_)) { 4 } else { 16 };
    let load = format!("{kind}\nconnections = {connections}\nwarmup = \"500ms\"\nduration = \"{seconds}s\"");
    let head = "title = \"A fault\"\nblocks = 1\nseed = 1\nproducts = [\"faulty\"]\nprofile = \"tuned\"";
    let workload = if fault == "gzip" { "accept_encoding = \"gzip\"" } else { "" };
    // A closed load gets a product that is as fast as a test can afford.
    let service = if connections == 4 { 2_000 } else { 50 };
    let products = [("faulty", product(fault, service, 2))];
    let scenario = Scenario::new(1, 1, folder.path(), &products, Disk::sound());
    disturb(&scenario.realm, disturbed);
    scenario.run(&suite(head, workload, &load)).unwrap();
    scenario.measured().remove(0)
}

fn disturb(realm: &std::sync::Arc<Realm>, disturbed: Disturbed) {
    let weak = std::sync::Arc::downgrade(realm);
    match disturbed {
        Disturbed::Nobody => {}
        Disturbed::Cpu(cpu, share, length) => {
            realm.add_neighbour(Neighbour { cpu, share, from: IN_WINDOW, to: IN_WINDOW + length });
        }
        Disturbed::Role(role) => {
            for second in 0..8 {
                let weak = weak.clone();
                realm.world.at(IN_WINDOW + second * SECOND, move |_| {
                    let Some(realm) = weak.upgrade() else { return };
                    for pid in realm.running(role) {
                        realm.freeze(pid, Duration::from_millis(200));
                    }
                });
            }
        }
        Disturbed::Samplers => realm.world.at(500 * MILLI, move |_| {
            if let Some(realm) = weak.upgrade() {
                realm.freeze_samplers(Duration::from_secs(1));
            }
        }),
    }
}

/// What is wrong with what was found; empty: nothing.
fn judge(case: &Case, found: &Measurement) -> String {
    if let Some(error) = &found.error {
        return format!("an error: {}", error.message);
    }
    let blamed: Vec<_> = found.findings.iter().filter(|finding| finding.severity != Severity::Note).collect();
    let named: &[&str] = if let Finding(names, ..) = &case.expected { names } else { &[] };
    let follows = |check: &str| match named {
        // What is cached, shared or sent twice moves other bytes, and its work explains fewer requests.
        ["conservation-requests"] => matches!(check, "conservation-bytes" | "unexplained-work"),
        // While somebody stands still, or nobody responds, no responses come, and what was due waits.
        ["stalls" | "errors"] => matches!(check, "pauses" | "offered-load"),
        _ => false,
    };
    let others: Vec<&str> = blamed
        .iter()
        .map(|finding| finding.check.as_str())
        .filter(|check| !named.contains(check) && !follows(check))
        .collect();
    if !others.is_empty() {
        return format!(
            "called {}: {:?}",
            others.join(", "),
            blamed.iter().map(|one| &one.message).collect::<Vec<_>>()
        );
    }
    match &case.expected {
        Finding(names, words, verdict) => {
            let by_name: Vec<_> = blamed.iter().filter(|finding| names.contains(&finding.check.as_str())).collect();
            let has_word = |text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
            if by_name.is_empty() {
                "missed".to_owned()
            } else if !by_name.iter().any(|one| has_word(&format!("{} {}", one.message, one.remedy))) {
                format!("found, by other words: {}", by_name[0].message)
            } else if found.verdict != *verdict {
                format!("found, and {:?}: {}", found.verdict, by_name[0].message)
            } else {
                String::new()
            }
        }
        Expected::Note(name, word) => {
            let noted = found.findings.iter().any(|finding| finding.check == *name && finding.message.contains(word));
            if noted { String::new() } else { "missed".to_owned() }
        }
        Expected::Memory(least) => {
            let most = found.usage.iter().map(|usage| usage.rss_max_bytes).max().unwrap_or_default();
            if most >= *least { String::new() } else { format!("{most} bytes") }
        }
    }
}

#[test]
fn each_fault_is_called_by_its_name() {
    let judged = |case: &Case| {
        let why = judge(case, &measure(case.fault, case.load, case.disturbed));
        (!why.is_empty()).then(|| format!("{}: {why}", case.fault))
    };
    // Each world is of one thread; there may be several worlds.
    let (first, second) = CASES.split_at(CASES.len() / 2);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let first = scope.spawn(move || first.iter().filter_map(judged).collect::<Vec<_>>());
        let second: Vec<String> = second.iter().filter_map(judged).collect();
        first.join().unwrap().into_iter().chain(second).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

#[test]
fn an_honest_twin_is_not_blamed() {
    for load in twins() {
        let found = measure("honest", load, Disturbed::Nobody);
        assert_eq!((found.verdict, found.error.as_ref()), (Verdict::Valid, None), "{:?}", found.findings);
    }
    // Fewer than one of a thousand is no refusal worth a word.
    let found = measure("refuse=4500", COUNTED, Disturbed::Nobody);
    assert_eq!(found.verdict, Verdict::Valid, "{:?}", found.findings);
}
