//! Roles on hosts of their own, each with a clock of its own: one time axis, one load of two clients, a pool over two hosts, the connections
//! of each role second by second, and a host that is lost.

use std::collections::BTreeMap;
use std::path::Path;

use weir_model::record::{Environment, Role, Severity, Verdict};
use weir_world::scenario::{Disk, Scenario, product, suite};

const SECOND: u64 = 1_000_000_000;

const ALL: &[&str] = &["client-1", "client-2", "proxy", "origin-1", "origin-2"];

/// A load of 1,000 requests a second, for four seconds.
const OPEN: &str =
    "kind = \"open\"\nrate = 1000\narrivals = \"constant\"\nconnections = 8\nwarmup = \"300ms\"\nduration = \"4s\"";

fn scenario(folder: &Path, hosts: &[&str], product: String) -> Scenario {
    Scenario::on(1, hosts, folder, &[("simulated", product)], Disk::sound()).with_latency(100_000)
}

fn text(products: &str, workload: &str) -> String {
    let head = format!("title = \"Hosts\"\nblocks = 1\nseed = 2\nproducts = [{products}]\nprofile = \"tuned\"");
    suite(&head, workload, OPEN)
}

/// A file's column, row by row, of the rows that have this in another.
fn column(file: &Path, name: &str, of: Option<(&str, &str)>) -> Vec<String> {
    let rows = csv::Reader::from_path(file).unwrap().into_deserialize::<BTreeMap<String, String>>();
    let rows = rows.map(Result::unwrap).filter(|row| of.is_none_or(|(key, value)| row[key] == value));
    rows.map(|row| row[name].clone()).collect()
}

#[test]
fn two_clients_with_other_clocks_are_one_load_on_one_time_axis() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), ALL, product("honest", 50, 4));
    scenario.run(&text("\"simulated\"", "origins = 4\nrequest_ids = \"X-Request-ID\"")).unwrap();
    let m = scenario.measured().remove(0);
    let (load, origin) = (m.load.as_ref().unwrap(), m.origin.as_ref().unwrap());
    assert_eq!((m.error.as_ref(), m.verdict), (None, Verdict::Valid), "{:?}", m.findings);
    assert_eq!((load.window.successful, load.total.sent, origin.requests), (4_000, 4_300, 4_300));
    assert_eq!(origin.request_ids.identified, 4_300, "the origin was told of the workload's header");
    let named: Vec<_> = load.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!((named, load.offered_rate), (vec!["client-1", "client-2"], Some(1_000.0)));
    assert!(
        m.clocks.len() == 5 && m.clocks.iter().all(|clock| clock.error_us + clock.drift_us == 0.0),
        "{:?}",
        m.clocks
    );
    assert_eq!(m.usage.len(), 3);
    // Two addresses on each of two hosts, in turn.
    assert_eq!(origin.addresses.iter().map(|one| one.requests).collect::<Vec<_>>(), [1_075; 4]);

    let trial = scenario.trial_folder(&m);
    let files = ["", "clients/client-1", "clients/client-2"].map(|of| trial.join(of).join("load.csv"));
    for (name, expected) in [("due", "1000 500 500"), ("successful", "1000 500 500"), ("length_s", "1.0 1.0 1.0")] {
        let [all, one, two] = files.each_ref().map(|file| column(file, name, None));
        let rows: Vec<_> =
            all.iter().zip(&one).zip(&two).map(|((all, one), two)| format!("{all} {one} {two}")).collect();
        assert_eq!(rows, [expected; 4], "{name}");
    }
    // The seconds of the other hosts' rows end with those of the clients', by the clock of the machine where weir runs.
    for who in ["proxy", "origin", "client"] {
        let ends = column(&trial.join("resources.csv"), "time_ms", Some(("who", who)));
        let expected: Vec<_> = (1..=4).map(|second| (load.window_start_ms + second * 1_000).to_string()).collect();
        assert_eq!(ends, expected, "{who}");
    }
}

#[test]
fn client_origin_and_proxy_have_the_connections_that_they_have_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &["client", "proxy", "origin"], product("honest", 50, 4));
    scenario.run(&text("\"direct\", \"simulated\"", "")).unwrap();
    for m in scenario.measured() {
        let file = scenario.trial_folder(&m).join("resources.csv");
        let open = |who: &str| -> Vec<Option<u64>> {
            column(&file, "connections_open", Some(("who", who))).iter().map(|open| open.parse().ok()).collect()
        };
        let (client, origin) = (open("client"), open("origin"));
        assert_eq!((client.as_slice(), open("host").as_slice()), (&[Some(8); 4][..], &[None; 4][..]));
        if m.case.product == "direct" {
            assert_eq!((origin, open("proxy")), (client, Vec::new()), "nobody else is there");
            continue;
        }
        // It needs one connection for each request that is under way at a time.
        let of_product = m.origin.as_ref().unwrap().connections_open;
        assert_eq!(origin, vec![Some(of_product); 4]);
        assert_eq!(open("proxy"), vec![Some(8 + of_product); 4]);
    }
}

#[test]
fn a_product_that_leaves_origins_out_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for (hosts, all) in [(&ALL[..0], true), (&ALL[..0], false), (ALL, false)] {
        let spreads = product("honest", 50, 2);
        let first = spreads.replace(
            "{% for one in origins %}{{ one.host }}:{{ one.port }},{% endfor %}",
            "{{ origin_host }}:{{ origin_port }}",
        );
        let folder = folder.path().join(format!("{} {all}", hosts.len()));
        let scenario = scenario(&folder, hosts, if all { spreads } else { first });
        scenario.run(&text("\"direct\", \"simulated\"", "origins = 3")).unwrap();
        for m in scenario.measured() {
            let origin = m.origin.as_ref().unwrap();
            let spread = m.findings.iter().find(|finding| finding.check == "spread");
            if m.case.product == "direct" {
                assert_eq!((origin.addresses.len(), spread), (0, None), "the client has one origin");
                continue;
            }
            let requests: Vec<u64> = origin.addresses.iter().map(|one| one.requests).collect();
            assert_eq!(
                requests.iter().max().zip(requests.iter().min()),
                Some(if all { (&1_434, &1_433) } else { (&4_300, &0) })
            );
            let found = spread.map(|found| (found.severity, found.message.as_str()));
            let expected = (!all).then_some((Severity::Warning, "2 of 3 origins got no request (4300, 0, 0)"));
            assert_eq!(found, expected, "{requests:?}");
        }
    }
}

#[test]
fn a_host_that_is_lost_fails_one_trial_and_comes_back_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), &["client", "proxy", "origin"], product("honest", 50, 2));
    scenario.hosts[1].lose_at(3 * SECOND);
    let outcome = scenario.run(&text("\"simulated\"", "").replace("blocks = 1", "blocks = 2")).unwrap();
    let errors: Vec<_> =
        scenario.measured().into_iter().map(|m| m.error.map(|error| (error.stage, error.message))).collect();
    let lost = ("host".to_owned(), "the host proxy was lost in mid-trial".to_owned());
    assert_eq!((outcome.errors, errors), (1, vec![Some(lost), None]));
}

/// A product of two parts: what clients ask the front, it asks the relay.
fn chain() -> String {
    let part = |name: &str, keys: &str, listen: &str, to: &str| {
        format!(
            "[[part]]\nname = \"{name}\"\n{keys}[part.process]\ncommand = [\"{{{{ binary }}}}\", \"{listen}\", \"{to}\", \"honest\", \
             \"50\", \"4\"]\nready_within = \"5s\"\nstop_within = \"1s\"\n"
        )
    };
    let relay = "{{ hosts.relay }}:{{ ports.relay }}";
    let (keys, origin) = ("ports = [\"relay\"]\ncpus = 0.25\n", "{{ origin_host }}:{{ origin_port }}");
    let parts = part("relay", keys, relay, origin) + &part("front", "", "{{ listen_host }}:{{ listen_port }}", relay);
    let whole = product("honest", 50, 4);
    let (head, rest) = whole.split_once("[process]").unwrap();
    let (_, profile) = rest.split_once("[profile").unwrap();
    format!("{head}{parts}[profile{profile}")
}

const WITH_PART: &[&str] = &["client", "proxy", "part-relay", "origin"];

#[test]
fn a_part_on_a_host_of_its_own_is_counted_stopped_and_recorded_there() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, hosts: &[&str]| {
        let scenario = scenario(&folder.path().join(name), hosts, chain());
        let fault = "\nfault = [{ what = \"freeze\", part = \"relay\", at = \"2s\", for = \"1s\" }]";
        scenario.run(&(text("\"simulated\"", "") + fault)).unwrap();
        scenario
    };
    let (spread, whole) = (run("spread", WITH_PART), run("whole", &["client", "proxy", "origin"]));
    for (scenario, cores, at) in [(&spread, 8, "product-part-relay"), (&whole, 4, "product")] {
        let m = scenario.measured().remove(0);
        let load = m.load.as_ref().unwrap();
        assert_eq!((m.error.as_ref(), load.window.successful, m.cores), (None, 4_000, cores), "{:?}", m.findings);
        // By the clock of the part's host.
        assert_eq!((m.faults[0].began_s, m.faults[0].ended_s), (2.0, 3.0));
        assert!((0.99e6..1.1e6).contains(&load.latency.max_us), "{:?}", load.latency);
        let trial = scenario.trial_folder(&m);
        assert!(trial.join(at).join("exit-relay.json").is_file() && trial.join("product/exit-front.json").is_file());
    }
    let m = spread.measured().remove(0);
    let proxy = m.usage.iter().find(|usage| usage.role == Role::Proxy).unwrap();
    assert_eq!(proxy.parts.keys().collect::<Vec<_>>(), ["front", "relay"]);
    let busy: f64 = proxy.parts.values().map(|part| part.cores_busy).sum();
    assert!((busy - proxy.cores_busy).abs() < 1e-9 && proxy.parts["relay"].cores_busy > 0.04, "{proxy:?}");
    let file = spread.trial_folder(&m).join("resources.csv");
    let rows = |who: &str| column(&file, "cpu_user", Some(("who", who))).len();
    assert_eq!((rows("proxy"), rows("proxy/front"), rows("proxy/relay"), rows("proxy/proxy")), (4, 4, 4, 0));
    let environment = std::fs::read_to_string(spread.run_folder().join("environment.json")).unwrap();
    let environment: Environment = serde_json::from_str(&environment).unwrap();
    let roles: Vec<_> =
        environment.hosts.iter().map(|host| (host.name.as_str(), host.role_names().join(", "))).collect();
    let expected = [("proxy", "proxy"), ("part-relay", "proxy:relay"), ("origin", "origin"), ("client", "client")];
    assert_eq!(roles, expected.map(|(host, roles)| (host, roles.to_owned())));
}

#[test]
fn the_host_of_a_part_that_is_lost_fails_one_trial_and_comes_back_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario(folder.path(), WITH_PART, chain());
    scenario.hosts[2].lose_at(3 * SECOND);
    let outcome = scenario.run(&text("\"simulated\"", "").replace("blocks = 1", "blocks = 2")).unwrap();
    let errors: Vec<_> = scenario.measured().into_iter().map(|m| m.error.map(|error| error.message)).collect();
    let lost = "the host part-relay was lost in mid-trial".to_owned();
    assert_eq!((outcome.errors, errors), (1, vec![Some(lost), None]));
}

#[test]
fn a_load_has_its_group_of_clients_which_begin_apart_and_measure_one_window() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, keys: &str| {
        let scenario = scenario(&folder.path().join(name), ALL, product("honest", 50, 4));
        scenario.run(&(text("\"simulated\"", "") + "\ncontrol = false\n" + keys)).unwrap();
        let m = scenario.measured().remove(0);
        let load = m.load.clone().unwrap();
        assert_eq!(
            (m.error.as_ref(), m.verdict, load.window.successful),
            (None, Verdict::Valid, 4_000),
            "{:?}",
            m.findings
        );
        assert!(m.findings.iter().any(|finding| finding.check == "no-control"), "{:?}", m.findings);
        (load.total.sent, load.hosts.len(), scenario.realm.load_starts())
    };
    let (sent, clients, starts) = run("together", "");
    assert_eq!((sent, clients, starts[1] - starts[0]), (4_300, 2, 0));
    let (sent, clients, starts) = run("apart", "stagger = \"100ms\"");
    // Half of the rate for 100 ms less; two of its threads round up.
    assert_eq!((sent, clients, starts[1] - starts[0]), (4_252, 2, 100_000_000));
    let (_, _, starts) = run("too far apart", "stagger = \"3s\"");
    assert_eq!(starts[1] - starts[0], 150_000_000, "evenly over the warm-up");
    let (sent, clients, _) = run("one", "clients = 1\nstagger = \"100ms\"");
    assert_eq!((sent, clients), (4_300, 0), "one client alone has no hosts to tell apart");
}
