//! Slow clients beside a normal load: what that loses before products that can hold them and products that cannot, and what the record says
//! of them.

use weir_model::load::{ErrorKind, SlowClients};
use weir_model::record::{Measurement, Verdict};
use weir_world::scenario::{Disk, Scenario, product, suite};

/// How many are slow, and how long each takes what comes in a turn, in turns: they come in their first, and go in their fourth.
const SLOW: u64 = 300;
const TURNS: u64 = 3;

/// The head of a writer's request, to some port.
const HEAD: &str = "POST /_weir/ready HTTP/1.1\r\nHost: 127.0.0.1:20000\r\nContent-Length: 262144\r\n\r\n";

/// A thousand requests a second for seven seconds, beside which so many clients are slow from the second second to the fifth. Returns also the
/// report.
fn run_on(hosts: usize, fault: &str, what: &str, load: &str) -> (Measurement, String) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Scenario::new(1, hosts, folder.path(), &[("simulated", product(fault, 50, 2))], Disk::sound());
    let head = "title = \"Slow clients\"\nblocks = 1\nseed = 1\nproducts = [\"simulated\"]\nprofile = \"tuned\"";
    let load = format!(
        "kind = \"open\"\nrate = 1000\nconnections = 64\nwarmup = \"500ms\"\nduration = \"7s\"\ntimeout = \"1s\"\n{load}\n\
         [[load.fault]]\nwhat = \"{what}\"\nclients = {SLOW}\nat = \"1s\"\nfor = \"4s\"\n"
    );
    scenario.run(&suite(head, "", &load)).unwrap();
    let report = std::fs::read_to_string(scenario.draw().unwrap().join("report.md")).unwrap();
    let measured = scenario.measured().remove(0);
    assert_eq!(measured.error, None);
    (measured, report)
}

fn measured(fault: &str, what: &str, load: &str) -> Measurement {
    run_on(1, fault, what, load).0
}

/// The account of the slow clients.
fn slow(measured: &Measurement) -> &SlowClients {
    &measured.load.as_ref().unwrap().slow_clients[0]
}

/// Responses of each second that were as expected.
fn successful(measured: &Measurement) -> Vec<u64> {
    measured.load.as_ref().unwrap().series.iter().map(|row| row.successful).collect()
}

/// Requests of each second that failed.
fn errors(measured: &Measurement) -> Vec<u64> {
    measured.load.as_ref().unwrap().series.iter().map(|row| row.errors).collect()
}

#[test]
fn a_product_with_room_for_all_loses_nothing() {
    for (hosts, what) in [(1, "slow-readers"), (3, "slow-readers"), (1, "slow-writers"), (3, "slow-writers")] {
        let (measured, report) = run_on(hosts, "honest", what, "");
        assert_eq!((measured.verdict, measured.findings.as_slice()), (Verdict::Valid, &[][..]), "{what}");
        let load = measured.load.as_ref().unwrap();
        assert_eq!((load.window.successful, load.window.due), (7_000, 7_000), "{what}");
        assert!(load.series.iter().all(|row| row.max_us < 5_000.0), "{:?}", load.series);
        // None of their requests is one of the load's, or counted with them at the origin.
        let origin = measured.origin.as_ref().unwrap();
        assert_eq!((origin.requests, origin.body_bytes_in), (load.total.sent, 0));
        let slow = slow(&measured);
        assert_eq!((slow.opened, u64::from(slow.held), slow.completed, slow.refused, slow.cut), (SLOW, SLOW, 0, 0, 0));
        assert!(slow.statuses.is_empty());
        let bytes = if what == "slow-readers" { slow.bytes_in } else { slow.bytes_out - SLOW * HEAD.len() as u64 };
        assert_eq!(bytes, SLOW * TURNS * 1_024, "{what}: a little in each turn");
        let fault = &measured.faults[0];
        assert_eq!((fault.part.as_str(), fault.began_s, fault.ended_s), ("300 clients", 1.0, 5.0));
        assert!(report.contains(&format!("{what} 300 clients")), "{report}");
    }
}

#[test]
fn clients_at_a_higher_pace_complete_and_come_again() {
    for what in ["slow-readers", "slow-writers"] {
        let measured = measured("honest", &format!("{what}\"\nbytes_per_second = \"256KiB"), "");
        assert_eq!((measured.verdict, errors(&measured)), (Verdict::Valid, vec![0; 7]));
        let slow = slow(&measured);
        assert!(slow.completed > 0 && slow.statuses.is_empty(), "{what}: {slow:?}");
        assert!(slow.opened > SLOW && slow.opened <= SLOW * TURNS, "{what}: {slow:?}");
    }
}

#[test]
fn a_product_with_too_few_connections_refuses_others_meanwhile() {
    let measured = measured("connections=200", "slow-readers", "close = true");
    let (errors, responses) = (errors(&measured), successful(&measured));
    assert!(
        (errors[0], responses[0]) == (0, 1_000) && (errors[6], responses[6]) == (0, 1_000),
        "{errors:?} {responses:?}"
    );
    assert!(errors[1..4].iter().all(|errors| *errors > 100), "{errors:?}");
    assert!(responses[2..4].iter().all(|responses| *responses < 100), "{responses:?}");
    let slow = slow(&measured);
    assert!((200..=202).contains(&slow.held) && slow.cut > 200, "{slow:?}");
}

#[test]
fn a_product_that_waits_for_a_slow_reader_stands_still() {
    let measured = measured("block", "slow-readers", "");
    let responses = successful(&measured);
    assert!(responses[0] == 1_000 && responses[2..4].iter().all(|responses| *responses == 0), "{responses:?}");
    assert_eq!(responses[6], 1_000, "they are gone");
    let errors = &measured.load.as_ref().unwrap().window.errors;
    assert!(errors[&ErrorKind::Timeout] > 100, "{errors:?}");
}

#[test]
fn the_memory_of_a_slow_client_is_told() {
    let (measured, report) = run_on(1, "hold=10240", "slow-writers", "");
    let fault = &measured.faults[0];
    assert_eq!(fault.memory_each(slow(&measured)), Some(10_240.0), "{fault:?}");
    let table = report.split("Faults and recovery").nth(1).expect("its table");
    assert!(table.contains("| 300 | 10 KiB | 0 | none |"), "{table}");
}
