//! The suites that repeat published benchmarks: that nothing of the originals is missing in them and every number is the
//! published one, and that each can be carried out with what a machine has.
//!
//! The numbers come from `suites/published/<suite>.csv`: a condition there is what the suite has to ask at full scale. A
//! condition of a kind that this test does not know fails it, so that none goes unchecked.

use crate::common;
use std::path::{Path, PathBuf};

use crate::common::{catalogue, run};
use weir_model::keyvalue::KeyValue;
use weir_model::product::ProductKind;
use weir_model::suite::{KeyType, Load, LoadKind, RateSpec, Scale, Series, Suite, Workload, table_rate};
use weir_product::catalogue::Catalogue;

/// Those of proxies. The one of key-value stores, juno, has no product that every machine has.
const SUITES: [&str; 4] = ["monolake", "easegress", "spring-cloud-gateway", "loggly"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One row of a file of published figures.
#[derive(Debug)]
struct Published {
    case: String,
    product: String,
    variant: String,
    kind: String,
    metric: String,
    value: String,
}

fn published(suite: &str) -> Vec<Published> {
    let path = root().join(format!("suites/published/{suite}.csv"));
    let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let head = reader.headers().expect("a head").clone();
    let rows = reader.records().map(|record| {
        let record = record.expect("a row");
        let cell = |name: &str| {
            let at = head.iter().position(|own| own == name).unwrap_or_else(|| panic!("no column {name}"));
            record[at].to_owned()
        };
        Published {
            case: cell("case"),
            product: cell("product"),
            variant: cell("variant"),
            kind: cell("kind"),
            metric: cell("metric"),
            value: cell("value"),
        }
    });
    rows.collect()
}

#[test]
fn every_published_result_has_its_case() {
    let catalogue = catalogue();
    for name in SUITES {
        let suite = catalogue.suite(name).expect("valid");
        let as_published = format!("as-published-{name}");
        let mut seen = 0;
        for row in published(name).iter().filter(|row| row.kind == "result") {
            let workload = suite.workload(&row.case).unwrap_or_else(|| panic!("{name} lacks the case of {row:?}"));
            let profiles = match row.product.as_str() {
                "direct" => vec!["tuned"],
                // What a product answers itself says nothing of it as a proxy, and is asked as published alone.
                _ if workload.by_product => vec![as_published.as_str()],
                // `top` and the like are of the whole machine.
                "" => continue,
                _ => vec![as_published.as_str(), "tuned"],
            };
            for profile in profiles {
                let listed = suite.entries.iter().any(|e| e.product == row.product && e.profile == profile);
                let asked = workload.asks(&row.product, profile);
                assert!(listed && asked, "{name} does not run {}:{profile} for {row:?}", row.product);
            }
            seen += 1;
        }
        assert!(seen > 50, "{name}: only {seen} results were looked at");
    }
}

#[test]
fn every_published_condition_is_asked_at_full_scale() {
    let catalogue = catalogue();
    for name in SUITES.into_iter().chain(["juno"]) {
        let (suite, _) = catalogue.suite(name).expect("valid").at_scale(Scale::Full);
        for row in published(name).iter().filter(|row| row.kind == "condition") {
            if let Err(why) = is_asked(&suite, &catalogue, row) {
                panic!("{name}: {why}: {row:?}");
            }
        }
    }
}

/// Whether the suite asks for what a condition says.
fn is_asked(suite: &Suite, catalogue: &Catalogue, row: &Published) -> Result<(), String> {
    let number: f64 = row.value.parse().map_err(|e| format!("no number: {e}"))?;
    let same = |what: &str, own: f64| match own == number {
        true => Ok(()),
        false => Err(format!("{what} is {own}, and {number} was published")),
    };
    match row.metric.as_str() {
        // What the machines were, which a suite cannot ask for, and threads, of which weir's client has one a CPU.
        "memory" | "client-threads" | "cpus" | "cores-per-socket" | "disk" => Ok(()),
        "clients" => same("clients", f64::from(load_of(suite, row)?.clients.unwrap_or_default())),
        // Each client was several processes, and weir's is one; the size of a store is what came of it.
        "client-rate" | "client-connections" | "storage-size" => Ok(()),
        // What junodb is as packaged, and as-published leaves it so.
        "proxy-workers" | "storage-workers" | "write-quorum" => Ok(()),
        "storage-servers" => {
            same("parts that store", stores_of(catalogue, "junodb").min(stores_of(catalogue, "quorum")))
        }
        // Neither happens within the hour of a load.
        "proxy-idle-time" | "recycle-time" => {
            let longest = suite.loads.iter().map(|load| load.duration.as_secs_f64()).fold(0.0, f64::max);
            if number >= longest { Ok(()) } else { Err(format!("a load takes {longest} s")) }
        }
        "duration" if row.case.is_empty() => {
            let mut curves = suite.loads.iter().filter(|load| load.series != Series::Once);
            curves.try_for_each(|load| same("duration", load.duration.as_secs_f64()))
        }
        "rate" | "rate-from" => same("the first rate", points(load_of(suite, row)?)?.first().unwrap_or(&(0.0, 0)).0),
        "rate-to" => same("the last rate", points(load_of(suite, row)?)?.last().unwrap_or(&(0.0, 0)).0),
        "connections-from" => {
            same("connections at first", points(load_of(suite, row)?)?.first().unwrap_or(&(0.0, 0)).1.into())
        }
        "connections-to" => {
            same("connections at last", points(load_of(suite, row)?)?.last().unwrap_or(&(0.0, 0)).1.into())
        }
        "payload" if suite.name == "juno" => same("the value's size", key_value(suite, row)?.value.range().1 as f64),
        "time-to-live" => same("the time to live", key_value(suite, row)?.ttl.unwrap_or_default().as_secs_f64()),
        metric if metric.ends_with("-share") => {
            let mix = &key_value(suite, row)?.operations.0;
            let own = mix.iter().find(|(operation, _)| metric.strip_suffix("-share") == Some(operation.as_str()));
            same("the share", f64::from(own.map_or(0, |(_, weight)| *weight)))
        }
        "cores" if row.variant == "16c" => {
            same("least_cores", f64::from(load_of(suite, row)?.least_cores.unwrap_or_default()))
        }
        "cores" => Ok(()),
        "rsa-key" if suite.tls.key == KeyType::Rsa2048 => same("the key", 2048.0),
        "connections" => same("connections", f64::from(load_of(suite, row)?.connections)),
        "duration" | "time-limit" => same("duration", load_of(suite, row)?.duration.as_secs_f64()),
        "requests" => match load_of(suite, row)?.kind {
            LoadKind::Count { requests } => same("requests", requests as f64),
            ref other => Err(format!("the load is {other:?}")),
        },
        "rate-offered" => match &load_of(suite, row)?.kind {
            LoadKind::Open { rate: RateSpec::Table(table), .. } => {
                same("the rate", table_rate(table, &row.case, &row.product).unwrap_or_default())
            }
            other => Err(format!("the load is {other:?}")),
        },
        "payload" => same("the answer's size", workload_of(suite, row)?.expect.size.unwrap_or_default() as f64),
        "request-body" => same("the body's size", workload_of(suite, row)?.request.body.len() as f64),
        "nginx-worker-connections" => in_template(suite, catalogue, row, &format!("worker_connections {};", row.value)),
        "max-connections" => in_template(suite, catalogue, row, &format!("maxConnections: {}", row.value)),
        _ => Err("nobody looks at this condition".to_owned()),
    }
}

fn key_value<'a>(suite: &'a Suite, row: &Published) -> Result<&'a KeyValue, String> {
    workload_of(suite, row)?.keyvalue.as_ref().ok_or_else(|| "no key-value workload".to_owned())
}

fn stores_of(catalogue: &Catalogue, product: &str) -> f64 {
    let ProductKind::Proxy(program) = &catalogue.products()[product].kind else { panic!("a program") };
    program.parts.iter().filter(|part| part.name.starts_with("stor")).count() as f64
}

/// Rate and connections of each point of an open load.
fn points(load: &Load) -> Result<Vec<(f64, u32)>, String> {
    let LoadKind::Open { rate: RateSpec::Fixed(rate), .. } = load.kind else {
        return Err(format!("the load is {:?}", load.kind));
    };
    Ok(match &load.series {
        Series::Shares(shares) => shares.iter().map(|share| (rate * share, load.connections)).collect(),
        Series::Connections(counts) => counts.iter().map(|connections| (rate, *connections)).collect(),
        Series::Once | Series::Rounds(_) => vec![(rate, load.connections)],
    })
}

/// The curves of key-value stores: each published point is one of the load that repeats its case, and the other way round.
#[test]
fn every_point_of_published_curves_is_asked_at_full_scale() {
    let (suite, _) = catalogue().suite("juno").expect("valid").at_scale(Scale::Full);
    let all = published("juno");
    let p99: Vec<&Published> = all.iter().filter(|row| row.metric == "latency-p99").collect();
    let mut cases: Vec<&str> = p99.iter().map(|row| row.case.as_str()).collect();
    cases.dedup();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let rows: Vec<&&Published> = p99.iter().filter(|row| row.case == case).collect();
        let load = load_of(&suite, rows[0]).unwrap_or_else(|why| panic!("{case}: {why}"));
        let asked = points(load).expect("an open load").into_iter().map(|(rate, connections)| match load.series {
            Series::Connections(_) => format!("{connections} connections"),
            _ => format!("{rate} requests/s"),
        });
        assert!(asked.eq(rows.iter().map(|row| row.variant.clone())), "{case}");
    }
}

fn workload_of<'a>(suite: &'a Suite, row: &Published) -> Result<&'a Workload, String> {
    suite.workload(&row.case).ok_or_else(|| "no such workload".to_owned())
}

/// The load that repeats the published one.
fn load_of<'a>(suite: &'a Suite, row: &Published) -> Result<&'a Load, String> {
    let own = suite.workload(&row.case).and_then(|workload| workload.loads.as_ref());
    let name = match (own.map(Vec::as_slice), row.variant.as_str()) {
        (Some([one]), _) => one.as_str(),
        (Some(several), _) => {
            let named = several.iter().find(|name| name.ends_with("-published"));
            named.map(String::as_str).ok_or("a workload of several loads, none of them as published")?
        }
        (None, "16c") => "published-16c",
        (None, variant) if variant.starts_with("round ") => "rounds",
        (None, _) => "published",
    };
    suite.load(name).ok_or_else(|| format!("at full scale there is no load {name}"))
}

fn in_template(suite: &Suite, catalogue: &Catalogue, row: &Published, setting: &str) -> Result<(), String> {
    let product = catalogue.products().get(&row.product).ok_or("no such product")?;
    let prefix = format!("as-published-{}", suite.name);
    let mut templates = product.templates.iter().filter(|(name, _)| name.starts_with(&prefix));
    match templates.any(|(_, text)| text.contains(setting)) {
        true => Ok(()),
        false => Err(format!("no template {prefix}… has {setting:?}")),
    }
}

/// As many rounds as the longest published curve has.
#[test]
fn gateways_are_measured_as_often_as_published() {
    let suite = catalogue().suite("spring-cloud-gateway").expect("valid");
    let round = |row: &Published| row.variant.strip_prefix("round ").and_then(|nth| nth.parse::<u32>().ok());
    let most = published("spring-cloud-gateway").iter().filter_map(round).max().expect("rounds");
    assert_eq!(suite.load("rounds").map(|load| &load.series), Some(&Series::Rounds(most)));
}

/// The check is one: a number that is another one, and a condition that nobody knows, are seen.
#[test]
fn a_wrong_number_would_be_seen() {
    let catalogue = catalogue();
    let (mut suite, _) = catalogue.suite("loggly").expect("valid").at_scale(Scale::Full);
    let rows = published("loggly");
    let row = rows.iter().find(|row| row.metric == "connections").expect("there");
    assert_eq!(is_asked(&suite, &catalogue, row), Ok(()));
    suite.loads[0].connections = 251;
    assert!(is_asked(&suite, &catalogue, row).is_err_and(|why| why.contains("251")));
    let other = Published { metric: "colour".to_owned(), ..published("loggly").remove(0) };
    assert!(is_asked(&suite, &catalogue, &other).is_err());
}

/// A budget shortens a run, says by what, and is refused before anything starts where it cannot be kept.
#[test]
fn a_budget_is_kept_or_refused() {
    let dry = |more: &[&str]| {
        let base = ["run", "loggly", "--products", "direct", "--dry-run", "--seed", "1"];
        run(&[&base, more].concat())
    };
    let whole = dry(&["--scale", "full", "--json"]);
    whole.expect(0);
    let seconds = |ended: &common::Ended| ended.json()["seconds"].as_f64().expect("seconds");
    assert!(seconds(&whole) > 100.0, "{}", seconds(&whole));
    let short = dry(&["--budget", "20s", "--json"]);
    short.expect(0);
    assert!(seconds(&short) <= 20.0, "{}", seconds(&short));
    let told = dry(&["--budget", "20s"]);
    assert!(told.stdout.contains("measured window of capacity: "), "{}", told.stdout);
    assert!(told.stdout.contains("s instead of 15s"), "{}", told.stdout);
    let refused = dry(&["--budget", "1s"]);
    let said = refused.expect(2);
    assert!(said.contains("--budget: loggly cannot run in 1s") && said.contains("--only"), "{said}");
    assert!(dry(&["--budget", "20m", "--scale", "full"]).expect(2).contains("--budget: --scale full"));
}

/// Each proxy of the Monolake benchmark is started once for its eight cases: the loads that repeat it keep products, and each as it was
/// published has a listener for each protocol.
#[test]
fn monolakes_proxies_are_kept_over_all_cases() {
    let catalogue = catalogue();
    let suite = catalogue.suite("monolake").expect("built in");
    for name in ["saturating", "published", "published-16c"] {
        assert!(suite.load(name).is_some_and(|load| load.keep), "{name}");
    }
    let headers = &suite.workloads[0].origin_headers;
    assert!(suite.workloads.iter().all(|workload| workload.origin_headers == *headers), "one origin serves all");
    let own = suite.entries.iter().filter(|entry| entry.profile.starts_with("as-published"));
    let listeners = own.map(|entry| catalogue.products()[&entry.product].profiles[&entry.profile].listeners);
    assert_eq!(listeners.collect::<Vec<_>>(), [true; 4]);
}

/// An objective replaces the suite's loads, unless some of those are asked for by name.
#[test]
fn an_objective_is_asked_of_every_selected_workload() {
    let loads = |more: &[&str]| -> Vec<String> {
        let base = ["run", "monolake", "--products", "direct", "--dry-run", "--json", "--seed", "1", "--only"];
        let ended = run(&[&base, ["payload=tiny", "--objective", "p99<5ms, errors<0.1%"].as_slice(), more].concat());
        ended.expect(0);
        let json = ended.json();
        let trials = json["trials"].as_array().expect("trials").iter();
        trials.map(|trial| trial["case"]["load"].as_str().expect("a name").to_owned()).collect()
    };
    let alone = loads(&["--blocks", "1"]);
    assert_eq!(alone, ["objective", "objective"], "over HTTP and over HTTPS");
    let beside = loads(&["--blocks", "1", "--only", "load=capacity"]);
    assert_eq!(beside.iter().filter(|load| *load == "capacity").count(), 2, "{beside:?}");
    assert_eq!(beside.len(), 4, "{beside:?}");
    let wrong = run(&["run", "quick", "--objective", "p98<5ms", "--dry-run"]);
    assert!(wrong.expect(2).contains("--objective"), "{}", wrong.stderr);
}
