//! Details of the published benchmarks that no figure shows: heads of requests and responses, the web server's settings, heaps, sizes of
//! stores. `published_suites` checks all that has a number in `suites/published`.

use std::path::Path;

use crate::common::catalogue;
use weir_model::product::{Product, ProductKind};
use weir_model::suite::{Load, LoadKind, Scale, Series, Suite, Workload};

/// Bytes of the request's ID in `x-weir-origin`, with the origin's time and its tag.
const ID_LENGTH: usize = 47;

fn suite(name: &str) -> Suite {
    catalogue().suite(name).expect("valid").at_scale(Scale::Full).0
}

/// A published figure: the sum over its rows for a case and a product.
fn figure(suite: &str, case: &str, product: &str, metric: &str) -> f64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../suites/published/{suite}.csv"));
    let mut reader = csv::Reader::from_path(&path).expect("there");
    let rows = reader.records().map(|row| row.expect("a row"));
    let mut own = rows.filter(|row| (&row[1], &row[2], &row[5]) == (case, product, metric));
    own.next().and_then(|row| row[6].parse().ok()).unwrap_or_else(|| panic!("{suite} has no {metric} of {product}"))
}

/// Bytes of a response of weir's origin: status line, its own and the given headers, the request's ID, and the body.
fn response_length(workload: &Workload) -> usize {
    let told = |name: &str| workload.origin_headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let mut headers = workload.origin_headers.clone();
    for (name, value) in [("Server", "weir-origin"), ("Content-Type", "application/octet-stream")] {
        if !told(name) {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    let size = workload.expect.size.expect("a size");
    headers.push(("Content-Length".to_owned(), size.to_string()));
    headers.push(("x-weir-origin".to_owned(), "x".repeat(ID_LENGTH)));
    let length = |(name, value): &(String, String)| match (name.as_str(), value.as_str()) {
        ("Content-Type", "") => 0,
        ("Date", "now") => "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n".len(),
        _ => name.len() + value.len() + ": \r\n".len(),
    };
    "HTTP/1.1 200 OK\r\n\r\n".len() + headers.iter().map(length).sum::<usize>() + size as usize
}

#[test]
fn responses_are_as_long_as_published_where_their_bytes_are_compared() {
    let direct = figure("spring-cloud-gateway", "hello", "direct", "read") * 1_048_576.0
        / figure("spring-cloud-gateway", "hello", "direct", "requests");
    let monolake =
        figure("monolake", "http-tiny", "monolake", "transfer") / figure("monolake", "http-tiny", "monolake", "rate");
    for (name, case, published) in [("spring-cloud-gateway", "hello", direct), ("monolake", "http-tiny", monolake)] {
        let suite = suite(name);
        let own = response_length(suite.workload(case).expect("a case")) as f64;
        assert!((own - published).abs() < 0.5, "{name}: {own} bytes here, {published} there");
    }
    let other = Workload { origin_headers: Vec::new(), ..suite("spring-cloud-gateway").workloads[0].clone() };
    assert_eq!(response_length(&other), 195, "without headers of the suite's");
}

/// hey 0.1.4 sends these whatever it asks, and ApacheBench those.
#[test]
fn requests_have_the_headers_of_the_documents_tools() {
    let hey = [("Content-Type", "text/html"), ("User-Agent", "hey/0.0.1")];
    let ab = [("User-Agent", "ApacheBench/2.3"), ("Accept", "*/*")];
    for name in ["easegress", "loggly"] {
        for workload in &suite(name).workloads {
            let wanted = if workload.name.ends_with("-ab") { ab } else { hey };
            for (header, value) in wanted {
                assert_eq!(workload.request.header(header), Some(value), "{name} {}", workload.name);
            }
            let gzip = workload.accept_encoding.is_some() || workload.request.header("Accept-Encoding") == Some("gzip");
            assert_eq!(gzip, wanted == hey, "{name} {}", workload.name);
        }
    }
    let wrk = ["monolake", "spring-cloud-gateway"].map(suite);
    assert!(wrk.iter().flat_map(|suite| &suite.workloads).all(|workload| workload.request.headers.is_empty()));
}

#[test]
fn apache_bench_has_a_connection_for_each_request_and_hey_keeps_them() {
    let suite = suite("loggly");
    let load = |name: &str| suite.load(name).unwrap_or_else(|| panic!("no load {name}")).clone();
    let (hey, ab) = (load("published"), load("published-ab"));
    assert_eq!((hey.close, ab.close), (false, true));
    assert_eq!((&hey.kind, hey.connections), (&ab.kind, ab.connections));
    assert_eq!(suite.workload("root-ab").and_then(|workload| workload.loads.clone()), Some(vec![ab.name]));
}

/// The rule, the expected size and the page in the template agree.
#[test]
fn easegress_page_has_636_bytes() {
    let suite = suite("easegress");
    let workload = suite.workload("baseline-easegress-index").expect("a baseline");
    assert_eq!((workload.request.path.as_str(), workload.expect.size), ("/bytes/636", Some(636)));
    let catalogue = catalogue();
    let page = &catalogue.products()["easegress"].templates["as-published-easegress-index.yml.j2"];
    let (_, body) = page.split_once("body: \"").expect("a body");
    assert_eq!(body.split('"').next().map(str::len), Some(636));
}

/// The document's web server: `benchmark/server/nginx-web.conf`.
#[test]
fn the_origin_of_monolake_can_be_the_documents_web_server() {
    let catalogue = catalogue();
    let nginx = &catalogue.products()["nginx"];
    assert_eq!(nginx.origin_profile("monolake"), "origin-monolake");
    assert_eq!(nginx.origin_profile("quick"), "origin", "other suites have weir's own settings");
    assert!(nginx.proxy_profiles().all(|profile| !profile.starts_with("origin")));
    let text = &nginx.templates["origin-monolake.conf.j2"];
    for setting in [
        "worker_processes 4;",
        "worker_connections 4000;",
        "multi_accept on;",
        "keepalive_timeout 75;",
        "keepalive_requests 1000000000;",
        "open_file_cache max=1000;",
        "default_type text/html;",
        "access_log off;",
    ] {
        assert!(text.contains(setting), "{setting}");
    }
}

/// Bytes a second of each point, if every request wrote a value.
fn written(load: &Load) -> Vec<f64> {
    let LoadKind::Open { rate: weir_model::suite::RateSpec::Fixed(rate), .. } = load.kind else {
        panic!("an open load")
    };
    let Series::Shares(shares) = &load.series else { panic!("a series of rates") };
    shares.iter().zip(&load.values).map(|(share, value)| rate * share * *value as f64).collect()
}

#[test]
fn stores_are_empty_at_each_point_and_written_alike_at_the_lowest_rates() {
    let suite = suite("juno");
    let published: Vec<&Load> = suite.loads.iter().filter(|load| load.name.ends_with("-published")).collect();
    assert_eq!(published.len(), 3);
    assert!(published.iter().all(|load| load.restart && load.timeout.as_secs() == 1));
    assert!(published.iter().all(|load| load.connect_timeout.is_some_and(|limit| limit.as_secs() == 2)));
    let two = published.iter().find(|load| !load.values.is_empty()).expect("test 4");
    let bytes = written(two);
    assert!(bytes.len() == 6 && (bytes[1] / bytes[0] - 1.0).abs() < 0.15, "{bytes:?}");
}

#[test]
fn stores_say_how_large_they_are() {
    let catalogue = catalogue();
    for name in ["junodb", "quorum"] {
        let ProductKind::Proxy(program) = &catalogue.products()[name].kind else { panic!("a program") };
        let stores = program.parts.iter().filter(|part| part.name.starts_with("stor"));
        assert_eq!(stores.filter(|part| part.monitor.is_some()).count(), 3, "{name}");
    }
}

/// The heaps of the gateways fit the document's machine of 1 GiB, with as much again as half of it for the rest.
#[test]
fn heaps_fit_a_machine_of_one_gib() {
    let (catalogue, suite) = (catalogue(), suite("spring-cloud-gateway"));
    let connections = suite.loads.iter().map(|load| load.connections).max().expect("loads");
    let heap = |product: &Product| {
        let text = &product.templates["tuned.jvm.j2"];
        let (_, rest) = text.split_once("-Xmx{{ ").expect("a heap");
        let (base, step) =
            rest.split_once(" }}m").expect("its size").0.split_once(" + connections // ").expect("a sum");
        base.parse::<u32>().expect("MiB") + connections / step.parse::<u32>().expect("connections for a MiB")
    };
    for entry in suite.entries.iter().filter(|entry| entry.profile == "tuned" && entry.product != "direct") {
        assert_eq!(heap(&catalogue.products()[&entry.product]), 524, "{}", entry.product);
    }
}
