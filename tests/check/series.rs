//! A search in a trial, with a real product: the confirming trial's counters, files and vitals are the trial's own. Every other kind of load
//! is in `tests/world/tests/it/series.rs`.

use std::time::Duration;

use crate::common::{on_a_shared_machine, run_suite, suite};

#[test]
fn a_search_leaves_the_record_of_its_confirming_trial() {
    on_a_shared_machine(|scratch| {
        let head = "title = \"A search\"\nblocks = 1\nproducts = [\"nginx\"]\nprofile = \"tuned\"";
        // The delay is what bounds the rate, at 8 / 5 ms: CPUs that client and origin share carry more or less with each attempt.
        let at_origin = |suite: String| suite.replace("/bytes/128", "/bytes/128?delay=5ms");
        let load = "name = \"best\"\nkind = \"search\"\nobjective = \"p99<100ms, errors<1%\"\nconnections = 8\nwarmup = \"200ms\"\n\
                    duration = \"1s\"";
        let (folder, m) = run_suite(scratch, &at_origin(suite(head, load)), 0, Duration::from_secs(120)).remove(0);
        let (search, load) = (&m["search"], &m["load"]);
        assert_eq!(
            (search["confirmed"].as_bool(), &search["rate"]),
            (Some(true), &load["offered_rate"]),
            "{}",
            m["error"]
        );
        assert!(search["confirmation"].is_null(), "it is the trial's load");
        let probes = search["probes"].as_array().expect("probes");
        assert_eq!(probes[0]["kind"], "guess");
        let confirming = probes.iter().rfind(|probe| probe["kind"] == "confirm").expect("one of full length");
        assert_eq!(confirming["offered"], search["rate"]);
        assert_eq!(load["total"]["sent"], m["origin"]["requests"], "the counters are of the confirming trial alone");
        let rows = std::fs::read_to_string(folder.join("load.csv")).expect("load.csv").lines().count();
        assert_eq!(rows, 1 + load["series"].as_array().expect("rows").len());
        assert!(m["usage"].as_array().is_some_and(|usage| usage.iter().any(|role| role["role"] == "client")));
        assert!(folder.join("latency.hlog").is_file() && folder.join("resources.csv").is_file());
    });
}
