//! Members of a pool that fail for a while, before a product that sends requests to each in turn and tries nothing twice: what the client
//! sees of each fault, and when.

use std::collections::BTreeMap;

use weir_model::load::ErrorKind;
use weir_model::record::Measurement;
use weir_world::scenario::{Disk, Scenario, product, suite};

/// A thousand requests a second for four seconds to a pool of four, of which the second has this fault from the second second to the
/// fourth.
fn measured(fault: &str) -> Measurement {
    measured_on(&[], 2, fault)
}

/// The same on hosts with these names, where this member has the fault.
fn measured_on(hosts: &[&str], member: u32, fault: &str) -> Measurement {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Scenario::on(1, hosts, folder.path(), &[("simulated", product("honest", 50, 2))], Disk::sound());
    let head = "title = \"Members\"\nblocks = 1\nseed = 1\nproducts = [\"simulated\"]\nprofile = \"tuned\"";
    let load = format!(
        "kind = \"open\"\nrate = 1000\nconnections = 600\nwarmup = \"500ms\"\nduration = \"4s\"\n\
         [[load.fault]]\nmember = {member}\nat = \"1s\"\nfor = \"2s\"\n{fault}"
    );
    scenario.run(&suite(head, "origins = 4", &load)).unwrap();
    let measured = scenario.measured().remove(0);
    assert_eq!(measured.error, None);
    measured
}

/// Errors of each second of the window, all of one kind.
fn errors(measured: &Measurement, kind: ErrorKind) -> Vec<u64> {
    let load = measured.load.as_ref().unwrap();
    let by_second = &load.errors_by_second;
    let others = |second: &BTreeMap<ErrorKind, u64>| second.keys().any(|other| *other != kind);
    assert!(!by_second.values().any(others), "{by_second:?}");
    (0..4).map(|second| by_second.get(&second).and_then(|of| of.get(&kind)).copied().unwrap_or(0)).collect()
}

/// Whole milliseconds of the slowest response of each second.
fn slowest_ms(measured: &Measurement) -> Vec<u64> {
    measured.load.as_ref().unwrap().series.iter().map(|row| (row.max_us / 1_000.0) as u64).collect()
}

#[test]
fn a_slow_member_makes_a_quarter_of_the_responses_late() {
    let slow = measured("what = \"slow\"\ndelay = \"200ms\"");
    assert_eq!(errors(&slow, ErrorKind::Timeout), [0; 4]);
    let slowest = slowest_ms(&slow);
    assert!(slowest[0] < 10 && (200..210).contains(&slowest[1]) && (200..210).contains(&slowest[2]), "{slowest:?}");
    let record = &slow.faults[0];
    assert_eq!((record.part.as_str(), record.began_s, record.ended_s), ("origin 2", 1.0, 3.0));
    // All got their share.
    let requests: Vec<u64> = slow.origin.unwrap().addresses.iter().map(|one| one.requests).collect();
    assert!(requests.iter().max().unwrap() - requests.iter().min().unwrap() < 10, "{requests:?}");
}

#[test]
fn a_killed_member_refuses_its_quarter_and_comes_back() {
    let killed = measured("what = \"kill\"");
    let errors = errors(&killed, ErrorKind::BadStatus);
    assert!(errors[0] == 0 && errors[3] == 0, "{errors:?}");
    assert!(errors[1..3].iter().all(|errors| (245..255).contains(errors)), "{errors:?}");
    let requests: Vec<u64> = killed.origin.unwrap().addresses.iter().map(|one| one.requests).collect();
    assert!((600..640).contains(&requests[1]) && requests[0] > 1_100, "two of four and a half seconds: {requests:?}");
}

#[test]
fn members_are_dealt_to_the_origins_hosts() {
    let killed = measured_on(&["client", "proxy", "origin-1", "origin-2"], 3, "what = \"kill\"");
    let errors = errors(&killed, ErrorKind::BadStatus);
    assert!(errors[1..3].iter().all(|errors| (245..255).contains(errors)), "{errors:?}");
    let mut requests: Vec<u64> = killed.origin.unwrap().addresses.iter().map(|one| one.requests).collect();
    requests.sort_unstable();
    assert!((600..640).contains(&requests[0]) && requests[1] > 1_100, "one of four: {requests:?}");
}

#[test]
fn a_flapping_member_fails_in_the_first_half_of_each_period() {
    let errors = errors(&measured("what = \"kill\"\nevery = \"1s\""), ErrorKind::BadStatus);
    assert!(errors[0] == 0 && errors[3] == 0, "{errors:?}");
    assert!(errors[1..3].iter().all(|errors| (120..130).contains(errors)), "{errors:?}");
}

#[test]
fn a_frozen_member_responds_at_the_end() {
    let frozen = measured("what = \"freeze\"");
    assert_eq!(errors(&frozen, ErrorKind::Timeout), [0; 4]);
    let slowest = slowest_ms(&frozen);
    assert!(slowest[0] < 10 && slowest[1..].iter().any(|ms| (1_990..2_010).contains(ms)), "{slowest:?}");
}

#[test]
fn a_member_resets_or_is_unavailable() {
    for (fault, answered) in [("reset", false), ("unavailable", true)] {
        let failing = measured(&format!("what = \"{fault}\""));
        let errors = errors(&failing, ErrorKind::BadStatus);
        assert!(errors[0] == 0 && errors[3] == 0, "{fault}: {errors:?}");
        assert!(errors[1..3].iter().all(|errors| (245..255).contains(errors)), "{fault}: {errors:?}");
        let statuses = &failing.load.unwrap().window.statuses;
        assert_eq!(statuses.contains_key(&503), answered, "{fault}: {statuses:?}");
    }
}

#[test]
fn each_request_takes_a_route_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Scenario::new(1, 1, folder.path(), &[("simulated", product("honest", 50, 2))], Disk::sound());
    let head = "title = \"Routes\"\nblocks = 1\nseed = 1\nproducts = [\"simulated\"]\nprofile = \"tuned\"";
    let load = "kind = \"closed\"\nconnections = 8\nwarmup = \"0s\"\nduration = \"1s\"";
    let text = suite(head, "gateway = { routes = 100, route_choice = \"zipf:1\" }", load);
    scenario.run(&text.replace("\"/bytes/128\"", "\"/r/0/bytes/128\"")).unwrap();
    let measured = scenario.measured().remove(0);
    assert_eq!((measured.error.as_ref(), measured.findings.as_slice()), (None, &[][..]));
    let load = measured.load.unwrap();
    // The origin has no page at the template itself, and every request came as the client sent it.
    assert_eq!((load.window.error_count(), load.window.successful > 100), (0, true));
    let contents = measured.origin.unwrap().contents;
    assert_eq!((contents.target, contents.unchecked), (0, 0));
}
