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
        "clients" => same("clients", f64::from(load_of(suite, row)?.clients.unwrap_or_default())),
        "proxy-workers" => in_file(
            catalogue,
            "proxy.toml.j2",
            &format!("NumChildren = {{{{ part_cores.proxy if tuned else {number} }}}}"),
        ),
        "proxy-idle-time" => in_file(catalogue, "proxy.toml.j2", &format!("else \"{}m\"", number / 60.0)),
        "storage-servers" => {
            same("parts that store", stores_of(catalogue, "junodb").min(stores_of(catalogue, "quorum")))
        }
        // More than half of the stores have each write.
        "write-quorum" => same("a majority of the stores", (stores_of(catalogue, "junodb") / 2.0).ceil()),
        // It does not happen within the hour of a load.
        "recycle-time" => {
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
        "payload" if suite.name == "juno" => {
            let first = load_of(suite, row)?.values.first().copied();
            same("the value's size", first.unwrap_or(key_value(suite, row)?.value.range().1) as f64)
        }
        "time-to-live" => same("the time to live", key_value(suite, row)?.ttl.unwrap_or_default().as_secs_f64()),
        metric if metric.ends_with("-share") => {
            let mix = &key_value(suite, row)?.operations.0;
            let own = mix.iter().find(|(operation, _)| metric.strip_suffix("-share") == Some(operation.as_str()));
            same("the share", f64::from(own.map_or(0, |(_, weight)| *weight)))
        }
        "cores" if row.variant == "16c" => {
            same("least_cores", f64::from(load_of(suite, row)?.least_cores.unwrap_or_default()))
        }
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
        "payload" => same("the response's size", workload_of(suite, row)?.expect.size.unwrap_or_default() as f64),
        "request-body" => same("the body's size", workload_of(suite, row)?.request.body.len() as f64),
        "nginx-worker-connections" => in_template(suite, catalogue, row, &format!("worker_connections {};", row.value)),
        "max-connections" => in_template(suite, catalogue, row, &format!("maxConnections: {}", row.value)),
        metric => match excused(&suite.name).iter().any(|own| own == metric) {
            true => Ok(()),
            false => Err("nobody looks at this condition, and no difference says why".to_owned()),
        },
    }
}

/// Metrics of the conditions that a suite does not ask for, for a reason in `differences.toml`.
fn excused(suite: &str) -> Vec<String> {
    weir_published::differences(suite).into_iter().flat_map(|one| one.conditions).collect()
}

/// A setting of the store that the document measured.
fn in_file(catalogue: &Catalogue, template: &str, setting: &str) -> Result<(), String> {
    let text = catalogue.products()["junodb"].templates.get(template).ok_or("no such template")?;
    if text.contains(setting) { Ok(()) } else { Err(format!("{template} has no {setting:?}")) }
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
            let named = several.iter().find(|name| *name == "published" || name.ends_with("-published"));
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
    // A difference of one suite excuses no other.
    let (juno, _) = catalogue.suite("juno").expect("valid").at_scale(Scale::Full);
    let workers = published("juno").into_iter().find(|row| row.metric == "storage-workers").expect("there");
    assert_eq!(is_asked(&juno, &catalogue, &workers), Ok(()));
    assert!(is_asked(&suite, &catalogue, &workers).is_err());
}

/// A difference excuses only what is a condition of one of its suites.
#[test]
fn differences_excuse_only_what_was_published() {
    let all = || SUITES.into_iter().chain(["juno"]);
    for metric in all().flat_map(excused) {
        let mut excusing = all().filter(|name| excused(name).contains(&metric));
        assert!(excusing.any(|name| published(name).iter().any(|row| row.metric == metric)), "{metric}");
    }
}

/// `--as-published` runs every product and case of which there is a published result, as published, once, and no other. For
/// 16 cores the document has scripts and no results.
#[test]
fn as_published_is_what_the_documents_ran() {
    let catalogue = catalogue();
    for name in SUITES.into_iter().chain(["juno"]) {
        let suite = catalogue.suite(name).expect("valid");
        let suite =
            suite.as_published().unwrap_or_else(|| panic!("{name} has no [as_published]")).at_scale(Scale::Full).0;
        assert_eq!(suite.blocks, 1, "{name}");
        let mut cases: Vec<(String, String)> = Vec::new();
        for load in suite.loads.iter().filter(|load| load.least_cores.is_none()) {
            for (workload, entry) in suite.cases(load, &[]) {
                let direct = entry.product == "direct";
                assert!(direct || entry.profile.starts_with("as-published"), "{name}: {entry:?}");
                cases.push((workload.name.clone(), entry.product.clone()));
            }
        }
        let results = published(name).into_iter().filter(|row| row.kind == "result" && !row.product.is_empty());
        let mut wanted: Vec<(String, String)> = results.map(|row| (row.case, row.product)).collect();
        for all in [&mut cases, &mut wanted] {
            all.sort();
            all.dedup();
        }
        // A command without figures is no case of the document.
        cases.retain(|(case, _)| wanted.iter().any(|(other, _)| other == case));
        assert_eq!(cases, wanted, "{name}");
    }
}

/// The trials that a dry run lists: product, profile, workload and load.
fn trials(args: &[&str]) -> Vec<[String; 4]> {
    let ended = run(&[&["run"], args, &["--dry-run", "--json", "--seed", "1"]].concat());
    ended.expect(0);
    let json = ended.json();
    let trials = json["trials"].as_array().expect("trials").iter();
    let mut trials: Vec<[String; 4]> = trials
        .map(|trial| {
            ["product", "profile", "workload", "load"]
                .map(|key| trial["case"][key].as_str().unwrap_or_else(|| panic!("no {key}: {trial}")).to_owned())
        })
        .collect();
    trials.sort();
    trials
}

#[test]
fn one_flag_stands_for_all_that_say_as_published() {
    let short = ["monolake", "--as-published", "--cpus", "proxy=0"];
    let long = "monolake --scale full --blocks 1 --profile as-published-monolake --only load=published --only profile=as-published-monolake \
                --strict --cpus proxy=0";
    assert_eq!(trials(&short), trials(&common::words(long)));
    // Once each at smoke, too, and shorter.
    let smoke = trials(&["monolake", "--as-published", "--scale", "smoke", "--cpus", "proxy=0"]);
    assert_eq!(smoke.len(), 8, "{smoke:?}");
    assert!(smoke.iter().all(|[_, profile, _, load]| profile == "as-published-monolake" && load == "published"));
    // Another product in its place runs under its own such profile.
    let others = trials(&["juno", "--as-published", "--products", "quorum", "--scale", "smoke"]);
    assert!(
        !others.is_empty()
            && others.iter().all(|[product, profile, ..]| product == "quorum" && profile == "as-published")
    );
}

#[test]
fn what_contradicts_as_published_is_refused() {
    let refused = |args: &str, words: &[&str]| {
        let ended = run(&[common::words(args), vec!["--dry-run"]].concat());
        let said = ended.expect(2);
        assert!(words.iter().all(|word| said.contains(word)), "{args}: {said}");
    };
    refused(
        "run quick --as-published",
        &["--as-published", "quick", "easegress, juno, loggly, monolake, spring-cloud-gateway"],
    );
    refused("run juno --as-published --scale fit", &["--scale", "smoke"]);
    for other in ["--blocks 2", "--budget 5m", "--profile tuned", "--objective p99<5ms"] {
        let flag = other.split(' ').next().expect("a flag");
        refused(&format!("run loggly --as-published {other}"), &["--as-published", flag]);
    }
    // Nothing is left of a load that needs more CPUs than there are.
    let ended = run(&common::words("run monolake --as-published --only load=published-16c --cpus proxy=0 --dry-run"));
    assert!(ended.expect(3).contains("it asks for 16 CPUs for products"), "{}", ended.stderr);
}

/// A proxy on another machine has its CPUs and not this one's, so that nothing is left out for them before it is reached.
#[test]
fn the_cpus_of_other_machines_are_not_guessed() {
    let scratch = common::scratch();
    let hosts = scratch.path().join("hosts.toml");
    std::fs::write(&hosts, three_hosts()).expect("written");
    let args = ["monolake", "--as-published", "--only", "load=published-16c", "--topology", common::text(&hosts)];
    assert_eq!(trials(&args).len(), 24);
}

fn three_hosts() -> String {
    let host = |(number, role): (usize, &str)| {
        let at = format!("ssh = \"admin@203.0.113.{number}\"\naddress = \"10.42.0.{number}\"\n");
        format!("[[host]]\nname = \"{role}-1\"\nroles = [\"{role}\"]\n{at}\n")
    };
    ["client", "proxy", "origin"].into_iter().enumerate().map(|(place, role)| host((place + 1, role))).collect()
}

/// Before a run it says which machines and versions the document had, and what differs.
#[test]
fn a_dry_run_says_what_the_document_ran_and_what_differs() {
    let scratch = common::scratch();
    let hosts = scratch.path().join("hosts.toml");
    std::fs::write(&hosts, three_hosts()).expect("written");
    let args = ["run", "loggly", "--as-published", "--dry-run", "--seed", "7", "--topology", common::text(&hosts)];
    let ended = run(&args);
    ended.expect(0);
    for words in ["m5.xlarge", "Envoy 1.14.1", "client-1, proxy-1 and origin-1", "Differences from it:", "127 bytes"] {
        assert!(ended.stdout.contains(words), "no {words:?}: {}", ended.stdout);
    }
    let (_, facts) = ended.stdout.split_once("The document:").expect("its title and address");
    assert!(facts.lines().skip(1).all(|line| line.chars().count() <= 80), "{facts}");
    let json = run(&[&args[..], &["--json"]].concat()).json();
    assert!(json["document"]["differences"].as_array().is_some_and(|all| all.len() > 2), "{json}");
    // Without the flag, nothing of it.
    let plain = run(&["run", "loggly", "--dry-run", "--json"]);
    assert!(plain.json().get("document").is_none());
    // On this machine it also says how many CPUs there are.
    let here = run(&["run", "loggly", "--as-published", "--dry-run", "--cpus", "proxy=0"]);
    assert!(here.stdout.contains("on which the proxy has 1 CPU"), "{}", here.stdout);
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
