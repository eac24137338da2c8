//! The published figures in `suites/published/`: they parse, units are known, lines are in their documents, no figure is
//! there twice, and what can be checked against each other agrees.

use std::collections::{BTreeMap, BTreeSet};

use crate::rows::{Document, Figure, Machine, Measured, Picture, SUITES, documents, figures, parse, read};

/// Every unit that a figure may have; `README.md` beside the files says what the unusual ones mean.
const UNITS: &str = "% B B/s G GB KiB KiB/s MiB MiB/s bit clients connections cores cpus errors load ms nice parts priority \
    requests requests/s responses s servers tasks threads workers";

fn is_name(text: &str, more: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || more.contains(c))
}

/// What is wrong with the figures of one suite.
fn faults(
    suite: &str,
    figures: &[Figure],
    documents: &BTreeMap<String, Document>,
    products: &BTreeSet<String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for (row, f) in figures.iter().enumerate() {
        let mut wrong = |what: String| faults.push(format!("{suite}.csv, row {}: {what}", row + 2));
        if f.suite != suite {
            wrong(format!("suite {:?}", f.suite));
        }
        if !["result", "condition"].contains(&f.kind.as_str()) {
            wrong(format!("kind {:?}", f.kind));
        }
        // A condition may hold for all products, and for all cases; a result belongs to one of each.
        if !(is_name(&f.case, "") || f.case.is_empty() && f.kind == "condition") {
            wrong(format!("case {:?}", f.case));
        }
        if !(products.contains(&f.product) || f.product.is_empty() && f.kind == "condition") {
            wrong(format!("product {:?}", f.product));
        }
        if !is_name(&f.metric, ".") {
            wrong(format!("metric {:?}", f.metric));
        }
        if !f.value.is_finite() || f.value < 0.0 {
            wrong(format!("value {}", f.value));
        }
        if !UNITS.split(' ').any(|unit| unit == f.unit) {
            wrong(format!("unit {:?}", f.unit));
        }
        if f.quote.is_empty() {
            wrong("no quote".to_owned());
        }
        match documents.get(&f.document) {
            Some(document) if document.suite == suite => {
                let lines = std::iter::once(Ok(f.line)).chain(f.also.split_whitespace().map(str::parse));
                for line in lines {
                    if !line.as_ref().is_ok_and(|line| (1..=document.lines).contains(line)) {
                        wrong(format!("line {line:?} of {}", document.lines));
                    }
                }
            }
            _ => wrong(format!("document {:?}", f.document)),
        }
        if !seen.insert((&f.case, &f.product, &f.variant, &f.metric, &f.kind)) {
            wrong(format!("{} of {} in {} is there twice", f.metric, f.product, f.case));
        }
    }
    faults
}

fn measured() -> Vec<Measured> {
    parse("products.csv", &read("products.csv"))
}

fn products_of(suite: &str) -> BTreeSet<String> {
    measured().into_iter().filter(|m| m.suite == suite).map(|m| m.product).collect()
}

#[test]
fn every_figure_is_sound() {
    let documents = documents();
    for suite in SUITES {
        let all = figures(suite);
        assert!(all.iter().any(|f| f.kind == "result"), "{suite}");
        assert_eq!(faults(suite, &all, &documents, &products_of(suite)), Vec::<String>::new());
    }
    for document in documents.values() {
        assert!(SUITES.contains(&document.suite.as_str()), "{document:?}");
        assert!(!document.title.is_empty() && document.address.starts_with("https://"), "{document:?}");
    }
}

#[test]
fn every_fault_is_found() {
    let (documents, products) = (documents(), products_of("loggly"));
    let good = figures("loggly")[0].clone();
    type Spoil = fn(&mut Figure);
    let spoiled = |spoil: Spoil| {
        let mut one = good.clone();
        spoil(&mut one);
        faults("loggly", &[one], &documents, &products)
    };
    assert_eq!(spoiled(|_| {}), Vec::<String>::new());
    let cases: [(&str, Spoil); 11] = [
        ("suite", |f| f.suite = "juno".into()),
        ("case", |f| f.case = String::new()),
        ("product", |f| f.product = "nobody".into()),
        ("kind", |f| f.kind = "guess".into()),
        ("metric", |f| f.metric = "Requests/sec".into()),
        ("value", |f| f.value = f64::INFINITY),
        ("unit", |f| f.unit = "rps".into()),
        ("document", |f| f.document = "juno".into()),
        ("line", |f| f.line = 297),
        ("line", |f| f.also = "0".into()),
        ("quote", |f| f.quote = String::new()),
    ];
    for (word, spoil) in cases {
        let found = spoiled(spoil);
        assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
    }
    let twice = faults("loggly", &[good.clone(), good], &documents, &products);
    assert!(twice.len() == 1 && twice[0].contains("twice"), "{twice:?}");
}

#[test]
fn products_and_pictures_are_of_a_known_document() {
    let documents = documents();
    let inside = |document: &str, suite: &str, line: u32| {
        documents.get(document).is_some_and(|d| d.suite == suite && (1..=d.lines).contains(&line))
    };
    let mut seen = BTreeSet::new();
    for m in measured() {
        assert!(inside(&m.document, &m.suite, m.line), "{m:?}");
        assert!(is_name(&m.product, "") && !m.called.is_empty(), "{m:?}");
        assert!(m.version.is_empty() || m.version.starts_with(|c: char| c.is_ascii_digit()), "{m:?}");
        assert!(seen.insert((m.suite.clone(), m.product.clone())), "twice: {m:?}");
    }
    let mut seen = BTreeSet::new();
    let pictures: Vec<Picture> = parse("pictures.csv", &read("pictures.csv"));
    for p in &pictures {
        assert!(inside(&p.document, &p.suite, p.line), "{p:?}");
        let named = [&p.title, &p.x_axis, &p.x_unit, &p.y_axis, &p.y_unit, &p.series];
        assert!(named.iter().all(|cell| !cell.is_empty()), "{p:?}");
        for scale in [&p.x_scale, &p.y_scale] {
            assert!(["linear", "log", "log of 1/(1-p)", "names"].contains(&scale.as_str()), "{p:?}");
        }
        for range in [&p.x_range, &p.y_range] {
            let whole = range
                .split_once(" to ")
                .is_some_and(|(from, to)| from.parse::<f64>().is_ok() && to.parse::<f64>().is_ok());
            assert!(whole || range.is_empty(), "{p:?}");
        }
        assert!(["picture", "text"].contains(&p.known_from.as_str()), "{p:?}");
        assert!(seen.insert((p.suite.clone(), p.picture.clone())), "twice: {p:?}");
    }
    let with_pictures: BTreeSet<&str> = pictures.iter().map(|p| p.suite.as_str()).collect();
    assert_eq!(with_pictures.into_iter().collect::<Vec<_>>(), ["easegress", "juno", "loggly", "monolake"]);
}

/// Each role of each benchmark ran on one kind of machine for each variant, and where that is said is in its document.
#[test]
fn every_role_has_a_machine() {
    let documents = documents();
    let machines: Vec<Machine> = parse("machines.csv", &read("machines.csv"));
    let mut seen = BTreeSet::new();
    for m in &machines {
        let document = documents.get(&m.document).filter(|document| document.suite == m.suite);
        let lines = std::iter::once(Ok(m.line)).chain(m.also.split_whitespace().map(str::parse));
        for line in lines {
            assert!(line.is_ok_and(|line| document.is_some_and(|d| (1..=d.lines).contains(&line))), "{m:?}");
        }
        assert!(!m.machine.is_empty() && m.vendor.contains("CPU"), "{m:?}");
        for role in m.roles.split(' ') {
            assert!(seen.insert((m.suite.as_str(), role, m.variant.as_str())), "twice: {m:?}");
        }
        let sized =
            [&m.cores, &m.memory].iter().all(|cell| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit()));
        assert!(sized && !m.network.contains("vendor") && !m.system.is_empty(), "{m:?}");
    }
    for suite in SUITES {
        let roles: BTreeSet<&str> = seen.iter().filter(|(of, ..)| *of == suite).map(|(_, role, _)| *role).collect();
        assert_eq!(roles.into_iter().collect::<Vec<_>>(), ["client", "origin", "proxy"], "{suite}");
    }
}

/// A figure by what it is; the value and its row.
fn value(all: &[Figure], case: &str, product: &str, metric: &str) -> f64 {
    let found: Vec<&Figure> =
        all.iter().filter(|f| f.case == case && f.product == product && f.metric == metric).collect();
    assert_eq!(found.len(), 1, "{metric} of {product} in {case}");
    found[0].value
}

#[test]
fn monolake_gives_each_rate_twice_with_the_same_value() {
    let all = figures("monolake");
    let rates: Vec<&Figure> = all.iter().filter(|f| ["rate", "transfer"].contains(&f.metric.as_str())).collect();
    assert_eq!(rates.len(), 64);
    // The second table repeats the first; a number that differed would have a row of its own.
    assert!(rates.iter().all(|f| f.also.split_whitespace().count() == 1), "{rates:?}");
    // Bytes a request: the payload and 200 to 350 bytes of head, both as far as three digits tell.
    for (payload, size) in [("tiny", 128.0), ("small", 3269.0), ("medium", 11_268.0), ("large", 165_854.0)] {
        for product in ["monolake", "nginx", "traefik", "envoy"] {
            for protocol in ["http", "https"] {
                let case = format!("{protocol}-{payload}");
                let each = value(&all, &case, product, "transfer") / value(&all, &case, product, "rate");
                assert!((size * 0.995..size * 1.01 + 350.0).contains(&each), "{case} {product}: {each}");
            }
        }
    }
}

#[test]
fn counts_of_loggly_add_up() {
    let all = figures("loggly");
    let requests = value(&all, "root", "", "requests");
    for product in products_of("loggly") {
        let sum = |metric: &str| -> f64 {
            all.iter().filter(|f| f.product == product && f.metric.starts_with(metric)).map(|f| f.value).sum()
        };
        assert_eq!(sum("histogram-"), requests, "{product}");
        assert_eq!(sum("status-"), requests, "{product}");
        let rate = value(&all, "root", &product, "rate") * value(&all, "root", &product, "total-time");
        assert!((rate / requests - 1.0).abs() < 1e-3, "{product}: {rate}");
        let bytes = value(&all, "root", &product, "body-bytes") / requests;
        assert!((bytes - value(&all, "root", &product, "body-size")).abs() < 1.0, "{product}: {bytes}");
    }
}

#[test]
fn easegress_requests_are_rate_by_time() {
    let all = figures("easegress");
    for product in ["easegress", "nginx", "traefik"] {
        for scenario in 2..=6 {
            let case = format!("scenario-{scenario}");
            let made = value(&all, &case, product, "rate") * value(&all, &case, product, "total-time");
            let asked = value(&all, &case, "", "requests");
            // Times are rounded to whole seconds: 8 s may be 8.5.
            assert!((0.9..1.1).contains(&(made / asked)), "{product} {case}: {made} of {asked}");
        }
    }
}

#[test]
fn each_gateway_but_one_has_nine_rounds() {
    let all = figures("spring-cloud-gateway");
    let rounds = |product: &str| all.iter().filter(|f| f.product == product && f.metric == "rate").count();
    assert_eq!(["direct", "linkerd", "zuul1", "spring-cloud-gateway"].map(rounds), [1, 9, 4, 9]);
}

/// Each picture of a suite that can be run has a counterpart, and each counterpart is of a picture or has a title.
#[test]
fn every_picture_has_a_counterpart() {
    let pictures: Vec<Picture> = parse("pictures.csv", &read("pictures.csv"));
    let layout: toml::Table = read("layout.toml").parse().unwrap();
    let mut drawn = BTreeSet::new();
    for picture in layout["picture"].as_array().unwrap() {
        let text = |key: &str| picture.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_string();
        assert!(!text("title").is_empty() || drawn.insert((text("suite"), text("picture"))), "twice: {picture}");
    }
    let published: BTreeSet<_> = pictures.into_iter().map(|p| (p.suite, p.picture)).collect();
    assert_eq!(drawn, published);
}

/// A layout asks for metrics that are published, in suites that are.
#[test]
fn layouts_ask_for_what_is_published() {
    let layout: toml::Table = read("layout.toml").parse().unwrap();
    let known: BTreeMap<&str, BTreeSet<String>> =
        SUITES.map(|suite| (suite, figures(suite).into_iter().map(|f| f.metric).collect())).into();
    let own = |entry: &toml::Value| entry["suite"].as_str().unwrap().to_string();
    let shared = &layout["columns"];
    for table in layout["table"].as_array().unwrap() {
        let columns = match &table["columns"] {
            toml::Value::String(name) => &shared[name.as_str()],
            columns => columns,
        };
        for column in columns.as_array().unwrap() {
            assert!(known[own(table).as_str()].contains(column["metric"].as_str().unwrap()), "{column}");
        }
    }
    for picture in layout["picture"].as_array().unwrap() {
        let metrics = picture.get("metrics").and_then(|metrics| metrics.as_array()).cloned().unwrap_or_default();
        for metric in metrics {
            assert!(known[own(picture).as_str()].contains(metric.as_str().unwrap()), "{picture}");
        }
    }
    // A load that repeats the document is one of the suite's.
    for own in layout["suite"].as_array().unwrap() {
        let path = format!("{}/../../suites/{}.toml", env!("CARGO_MANIFEST_DIR"), own["name"].as_str().unwrap());
        let suite: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let names: Vec<&str> = suite["load"].as_array().unwrap().iter().filter_map(|l| l["name"].as_str()).collect();
        for name in own.get("loads").and_then(|loads| loads.as_array()).into_iter().flatten() {
            assert!(names.contains(&name.as_str().unwrap()), "{own}");
        }
    }
}

/// A report finds a figure's counterpart by the product's name.
#[test]
fn products_are_called_as_their_folders_are() {
    let folders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../products");
    for m in measured() {
        assert!(folders.join(&m.product).join("product.toml").is_file(), "{m:?}");
    }
}
