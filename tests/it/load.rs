//! `weir load` against `weir origin`: one count for each protocol, each wrong response by its kind, and requests from a file. The
//! program `check` has every other kind of load.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use crate::common::{OriginUnderTest, all_right, load_result, number, run, scratch, weir, words};
use serde_json::Value;

#[test]
fn https_agrees_on_what_was_asked_for() {
    let origin = OriginUnderTest::start(&["--tls"]);
    let url = origin.https("/bytes/128");
    for (version, name) in [("1.2", "TLS 1.2"), ("1.3", "TLS 1.3")] {
        let result = all_right(&[&url, "-n", "200", "-c", "4", "--tls-version", version]);
        assert_eq!(number(&result, "/tls/handshakes"), 4.0);
        assert_eq!(result["tls"]["versions"][name], 4, "{result:#}");
        assert_eq!(number(&result, "/handshake/count"), 4.0);
    }
    let suite = "TLS_AES_256_GCM_SHA384";
    let line = format!("{url} -n 20 -c 2 --tls-suite {suite} --tls-version 1.3 --tls-group X25519");
    let result = all_right(&words(&line));
    assert_eq!((&result["tls"]["suites"][suite], &result["tls"]["groups"]["X25519"]), (&2.into(), &2.into()));
}

#[test]
fn plain_http_counts_what_was_asked() {
    let origin = OriginUnderTest::start(&[]);
    let result = all_right(&[&origin.url("/bytes/128"), "-n", "500", "-c", "4"]);
    assert_eq!(number(&result, "/window/successful"), 500.0);
    assert_eq!(number(&result, "/window/body_bytes"), 500.0 * 128.0);
    assert_eq!(
        (&result["protocol"], &result["streams"], &result["tls"]),
        (&"http/1.1".into(), &1.into(), &Value::Null)
    );
    assert_eq!(result["schema"], 1);
}

#[test]
fn http2_has_streams_with_and_without_tls() {
    let plain = OriginUnderTest::start(&[]);
    let result = all_right(&[&plain.url("/bytes/128"), "--http", "2", "--streams", "16", "-n", "1000", "-c", "2"]);
    assert_eq!((&result["protocol"], &result["streams"]), (&"h2".into(), &16.into()));
    assert_eq!(number(&result, "/total/connections"), 2.0);
    let secure = OriginUnderTest::start(&["--tls"]);
    let result = all_right(&[&secure.https("/bytes/128"), "--http", "2", "--streams", "4", "-n", "400", "-c", "2"]);
    assert_eq!((&result["protocol"], number(&result, "/tls/handshakes")), (&"h2".into(), 2.0));
}

#[test]
fn http3_has_streams_over_datagrams() {
    let origin = OriginUnderTest::start(&["--http3"]);
    let result = all_right(&[&origin.https("/bytes/128"), "--http", "3", "--streams", "4", "-n", "400", "-c", "2"]);
    assert_eq!((&result["protocol"], number(&result, "/total/connections")), (&"h3".into(), 2.0));
    assert!(number(&result, "/quic/datagrams_in") > 0.0, "{result:#}");
}

#[test]
fn calls_and_messages_have_urls_of_their_own() {
    let origin = OriginUnderTest::start(&[]);
    let with = |scheme: &str, path: &str| origin.url(path).replacen("http", scheme, 1);
    let calls = all_right(&[&with("grpc", "/weir.Echo/Unary"), "-n", "100", "-c", "2"]);
    assert_eq!((&calls["protocol"], number(&calls, "/messages/window/whole")), (&"h2".into(), 100.0), "{calls:#}");
    let both = with("grpc", "/weir.Echo/Bidi?requests=5&every=1ms&size=100");
    let both = all_right(&[&both, "-n", "20", "-c", "2"]);
    assert_eq!((number(&both, "/messages/window/received"), number(&both, "/messages/delay/count")), (100.0, 100.0));
    let echoes = all_right(&[&with("ws", "/ws"), "-n", "100", "-c", "2"]);
    assert_eq!((&echoes["protocol"], number(&echoes, "/window/successful")), (&"http/1.1".into(), 100.0), "{echoes:#}");
}

#[test]
fn what_is_expected_is_checked_on_every_response() {
    let origin = OriginUnderTest::start(&[]);
    let url = origin.url("/bytes/100");
    let kinds = |flags: &[&str]| {
        let result = load_result(1, &[&[url.as_str(), "-n", "20", "-c", "2"], flags].concat());
        assert_eq!(number(&result, "/window/successful"), 0.0, "{result:#}");
        result["window"]["errors"].clone()
    };
    assert_eq!(kinds(&["--expect-status", "201"])["bad_status"], 20);
    assert_eq!(kinds(&["--expect-size", "99"])["wrong_body"], 20);
    assert_eq!(kinds(&["--expect-hash", "0123456789abcdef"])["wrong_body"], 20);
    assert_eq!(kinds(&["--expect-header", "x-cache: HIT"])["wrong_header"], 20);
    let header = ["--expect-header", "content-length: 100", "--expect-header", "Content-Length"];
    all_right(&[&[&url, "-n", "20", "-c", "2"], &header[..]].concat());
}

#[test]
fn a_body_may_come_from_a_file_and_a_count_has_a_unit() {
    let origin = OriginUnderTest::start(&[]);
    let scratch = scratch();
    let file = scratch.path().join("order.json");
    std::fs::write(&file, "{\"id\": 1}").expect("written");
    let body = format!("@{}", file.display());
    let result = all_right(&[&origin.url("/echo"), "-b", &body, "-n", "0.1k", "-c", "2", "--expect-size", "9"]);
    assert_eq!(number(&result, "/window/body_bytes"), 900.0);
}

#[test]
fn urls_come_from_a_file() {
    let origin = OriginUnderTest::start(&[]);
    let scratch = scratch();
    let file = scratch.path().join("mix.txt");
    let text = format!("# a mix\nGET {} 3\npost {} # with the body\n", origin.url("/bytes/10"), origin.url("/echo"));
    std::fs::write(&file, text).expect("written");
    let file = file.to_str().expect("UTF-8");
    let result = all_right(&["--urls", file, "-b", "hello", "-n", "400", "-c", "2"]);
    let names: Vec<&str> =
        result["by_request"].as_array().expect("kinds").iter().filter_map(|kind| kind["name"].as_str()).collect();
    assert_eq!(names, ["GET /bytes/10", "POST /echo"]);
    std::fs::write(file, format!("{}\nGET\n", origin.url("/"))).expect("written");
    let ended = run(&["load", "--urls", file, "-n", "1"]);
    assert!(ended.expect(2).contains(&format!("{file}:2: \"GET\" is not a URL")), "{}", ended.stderr);
}

#[test]
fn a_unix_socket_is_as_good() {
    let scratch = scratch();
    let path = scratch.path().join("origin.sock");
    let path = path.to_str().expect("UTF-8");
    let name = format!("@weir-it-{}", std::process::id());
    for socket in [path, &name] {
        let _origin = OriginUnderTest::start(&["--unix", socket]);
        let result = all_right(&["/bytes/128", "--unix", socket, "-n", "200", "-c", "4"]);
        assert_eq!(number(&result, "/window/successful"), 200.0);
    }
}

/// A server of one connection, which returns the hosts of its requests.
fn virtual_hosts() -> (std::net::SocketAddr, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("bound");
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let lines = BufReader::new(stream.try_clone().expect("a descriptor")).lines().map_while(Result::ok);
        let hosts = lines.filter_map(|line| Some(line.strip_prefix("Host: ")?.to_owned()));
        hosts
            .inspect(|_| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("it still listens"))
            .collect()
    };
    (addr, std::thread::spawn(serve))
}

#[test]
fn connections_go_where_they_are_sent_and_the_url_keeps_its_name() {
    for (url, host, rule) in [
        ("http://shop.invalid/x", "shop.invalid", ""),
        ("http://shop.invalid:81/x", "shop.invalid:81", "shop.invalid:81:"),
    ] {
        let (addr, hosts) = virtual_hosts();
        all_right(&[url, "--connect-to", &format!("{rule}{addr}"), "-n", "3", "-c", "1"]);
        assert_eq!(hosts.join().expect("served"), [host; 3]);
    }
    // Many names at one address: of URLs, and of a template.
    let (addr, hosts) = virtual_hosts();
    let urls = ["http://a.invalid/", "http://b.invalid/", "--connect-to", &addr.to_string(), "-n", "50", "-c", "1"];
    all_right(&urls);
    let hosts = hosts.join().expect("served");
    assert!(hosts.len() == 50 && ["a.invalid", "b.invalid"].iter().all(|host| hosts.iter().any(|one| one == host)));
    let (addr, hosts) = virtual_hosts();
    let template = ["--template", "-H", "Host: shop-{{seq:1}}.invalid"];
    all_right(&[&[&format!("http://{addr}/"), "-n", "3", "-c", "1"][..], &template].concat());
    assert_eq!(hosts.join().expect("served"), ["shop-1.invalid", "shop-2.invalid", "shop-3.invalid"]);
}

/// Each operation of keys, checked by what was written last.
#[test]
fn key_value_protocols_count_what_was_asked() {
    for scheme in ["redis", "memcached", "juno"] {
        let listen = format!("{scheme}://127.0.0.1:0");
        let origin = OriginUnderTest::started(weir(&["origin", "--listen", &listen, "--json"]));
        let result = all_right(&[&format!("{scheme}://{}", origin.addr), "-n", "500", "-c", "4"]);
        assert_eq!(number(&result, "/window/successful"), 500.0, "{scheme}");
    }
}
