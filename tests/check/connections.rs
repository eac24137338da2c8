//! The connections of each role, second by second: what the records of real trials say of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::common::{run_suite, scratch};

const LOAD: &str = r#"
[[load]]
name = "capacity"
kind = "closed"
connections = 8
warmup = "300ms"
duration = "3s"
"#;

const OWN: &str = r#"
[suite]
title = "Connections"
question = "Who has how many?"
products = ["direct", "nginx"]
profile = "tuned"
blocks = 1

[[workload]]
name = "plain"
path = "/bytes/128"
expect = { status = 200, size = 128 }

[[workload]]
name = "secure"
path = "/bytes/128"
protocol = "https/1.1"
expect = { status = 200, size = 128 }
"#;

const OTHER: &str = r#"
[suite]
title = "Connections"
question = "Who has how many?"
products = ["haproxy"]
profile = "tuned"
origin = "nginx"
blocks = 1

[[workload]]
name = "plain"
path = "/bytes/128"
expect = { status = 200, size = 128 }
"#;

/// Runs a suite, and hands over the folder of each trial with its product.
fn trials(head: &str, mut look: impl FnMut(&Path, &str)) {
    let scratch = scratch();
    let measured = run_suite(scratch.path(), &format!("{head}{LOAD}"), 0, Duration::from_secs(180));
    assert!(!measured.is_empty());
    for (folder, m) in &measured {
        assert!(m["error"].is_null(), "{}: {}", folder.display(), m["error"]);
        look(folder, m["case"]["product"].as_str().expect("a name"));
    }
}

/// What a column of a file has, row by row.
fn column(file: &Path, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_path(file).expect("a CSV file");
    let headers = reader.headers().expect("a header").clone();
    let at = headers.iter().position(|header| header == name).unwrap_or_else(|| panic!("no column {name}"));
    reader.records().map(|row| row.expect("a row")[at].to_owned()).collect()
}

/// Connections of each role and of the host, second by second; `None` where the cell is empty.
fn by_role(folder: &Path) -> BTreeMap<String, Vec<Option<u64>>> {
    let file = folder.join("resources.csv");
    let open = column(&file, "connections_open");
    let mut all: BTreeMap<String, Vec<Option<u64>>> = BTreeMap::new();
    for (who, open) in column(&file, "who").into_iter().zip(open) {
        let open = (!open.is_empty()).then(|| open.parse().expect("a number"));
        all.entry(who).or_default().push(open);
    }
    all
}

/// What the origin had open by the kernel's account beside the connections that it said it had, second by second. Where connections
/// end between the two readings there is less than it said, and nothing to be known.
fn beside_connections(folder: &Path) -> BTreeSet<u64> {
    let file = folder.join("resources.csv");
    let rows = column(&file, "who").into_iter().zip(column(&file, "fds")).zip(column(&file, "connections_open"));
    let of_origin = rows.filter(|((who, _), _)| who == "origin");
    of_origin.filter_map(|((_, fds), open)| fds.parse::<u64>().ok()?.checked_sub(open.parse().ok()?)).collect()
}

#[test]
fn client_origin_and_proxy_have_those_that_they_have_with_each_other() {
    let mut beside = Vec::new();
    trials(OWN, |folder, product| {
        let at = folder.display();
        beside.push((at.to_string(), beside_connections(folder)));
        assert!(column(&folder.join("load.csv"), "connections_open").iter().all(|open| open == "8"), "{at}");
        let seen = by_role(folder);
        let (client, origin) = (&seen["client"], &seen["origin"]);
        assert_eq!(client.first(), Some(&Some(8)), "{at}: {client:?}");
        assert!(client.iter().flatten().all(|open| *open == 8), "{at}: {client:?}");
        assert!(seen["host"].iter().all(Option::is_none), "{at}: {:?}", seen["host"]);
        // At the last row's end the client may have closed its own already; on a busy machine the origin may be silent.
        let known: Vec<u64> = origin[..origin.len() - 1].iter().flatten().copied().collect();
        assert!(!known.is_empty(), "{at}: {origin:?}");
        if product == "direct" {
            assert!(known.iter().all(|open| *open == 8), "{at}: nobody else is there: {origin:?}");
            assert!(!seen.contains_key("proxy"), "{at}");
            return;
        }
        assert!(known.iter().all(|open| *open > 0), "{at}: {origin:?}");
        let sums: Vec<_> = client.iter().zip(origin).map(|(client, origin)| Some((*client)? + (*origin)?)).collect();
        assert_eq!(seen["proxy"], sums, "{at}");
    });
    // What it has besides (listeners, the driver's, one connection of the lab) does not depend on who is before it.
    let everywhere = |n: &&u64| beside.iter().all(|(_, all)| all.contains(*n));
    assert!(beside[0].1.iter().any(|n| everywhere(&n)), "{beside:?}");
}

#[test]
fn of_an_origin_that_is_a_product_nobody_says_how_many_it_has() {
    trials(OTHER, |folder, _| {
        let seen = by_role(folder);
        assert_eq!(seen["client"].first(), Some(&Some(8)), "{seen:?}");
        for role in ["origin", "proxy"] {
            assert!(seen[role].iter().all(Option::is_none), "{role}: {seen:?}");
        }
    });
}
