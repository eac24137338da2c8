//! The load generators: how each is started so that all do nearly the same work, how they differ, and how to read the
//! number of requests from their output.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use regex::Regex;
use weir_model::load::{Counts, LoadResult};
use weir_model::protocol::{Application, Protocol};

use super::cases::{Group, MAIN, MESSAGE_RATE, OPEN_RATE};
use super::process::find;
use super::server::Programs;

/// The only cipher suite, so that nobody compares two: the one that OpenSSL and rustls put first.
pub const SUITE: &str = "TLS_AES_256_GCM_SHA384";

/// How long weir's loads last before their window, s: `--warmup 500ms`.
pub const WARMUP_S: f64 = 0.5;

/// Keys of Redis's clients: as many sets as gets of them, at random.
const KEYS: &str = "100000";

/// What JunoDB's clients ask for: junoload gets only what it created.
const CREATED: &str = "C:1,G:1";

/// About what one core does a second with redis-benchmark, without pipelining and with it: it is told a number of requests.
const REQUESTS_A_SECOND: [u64; 2] = [100_000, 600_000];

/// A load generator, in the order of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Client {
    /// `weir load`
    Weir,
    /// `null client`, the floor
    Null,
    /// wrk
    Wrk,
    /// h1load
    H1load,
    /// gcannon
    Gcannon,
    /// haload, of HAProxy
    Haload,
    /// h2load; with HTTP/1.1 `h2load --h1`
    H2load,
    /// ApacheBench
    Ab,
    /// hey
    Hey,
    /// oha
    Oha,
    /// fortio
    Fortio,
    /// shb as it is, which gathers completions for half a millisecond
    Shb,
    /// shb that gathers them for 100 µs
    #[value(name = "shb-100")]
    Shb100,
    /// wrk2, for the open load only
    Wrk2,
    /// redis-benchmark
    RedisBenchmark,
    /// valkey-benchmark
    ValkeyBenchmark,
    /// memtier_benchmark
    #[value(name = "memtier_benchmark")]
    Memtier,
    /// junoload
    Junoload,
}

/// The body of a unary call: a message of 128 bytes with its length before it.
const CALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/peers/call.bin");

/// A closed load.
#[derive(Debug, Clone)]
pub struct Load {
    /// What it is for.
    pub group: Group,
    /// Where to.
    pub url: String,
    /// What is spoken.
    pub protocol: Protocol,
    /// Connections.
    pub connections: u32,
    /// Requests in flight on each; 1 with HTTP/1.1.
    pub streams: u32,
    /// Bytes of a value, for key-value servers.
    pub size: u64,
    /// Whole seconds: wrk, ab and h1load know no others.
    pub seconds: u32,
}

impl Client {
    /// Whether it takes part in closed loads with that protocol.
    pub fn speaks(self, protocol: Protocol) -> bool {
        match (protocol.application(), protocol.is_tls()) {
            (Application::Redis, _) => {
                matches!(self, Client::Weir | Client::RedisBenchmark | Client::ValkeyBenchmark | Client::Memtier)
            }
            (Application::Juno, _) => matches!(self, Client::Weir | Client::Junoload),
            (Application::Http1, false) => self != Client::Wrk2 && !self.is_keyvalue(),
            (Application::Http1, true) => matches!(self, Client::Wrk | Client::H1load) || self.speaks(Protocol::H2),
            _ => matches!(
                self,
                Client::Weir | Client::Haload | Client::H2load | Client::Oha | Client::Shb | Client::Shb100
            ),
        }
    }

    /// Whether it knows key-value servers alone.
    fn is_keyvalue(self) -> bool {
        matches!(self, Client::RedisBenchmark | Client::ValkeyBenchmark | Client::Memtier | Client::Junoload)
    }

    /// Whether it is told a number of requests instead of a time.
    pub fn is_counted(self) -> bool {
        matches!(self, Client::RedisBenchmark | Client::ValkeyBenchmark)
    }

    /// How it differs from weir where that affects its cost.
    pub fn differs(self) -> &'static str {
        match self {
            Client::Weir => "",
            Client::Null => "checks only how many bytes came; blocking connects, one after another",
            Client::Wrk => "parses the whole response, keeps a histogram; checks no status",
            Client::H1load => "parses status and length; keeps sums, no histogram unless asked",
            Client::Gcannon => "io_uring; parses head and length; keeps a histogram of all responses",
            Client::Haload => "HAProxy's engine as a client; keeps sums, no histogram",
            Client::H2load => "keeps times of requests; sends a User-Agent; with HTTP/2 windows of 1 GiB",
            Client::Ab => "speaks HTTP/1.0 with keep-alive; keeps and sorts every sample at the end",
            Client::Hey => "asks for gzip, sends User-Agent and Content-Type; keeps samples of every request",
            Client::Oha => "sends Accept, Accept-Encoding and User-Agent; keeps samples of every request",
            Client::Fortio => "sends a User-Agent; one goroutine a connection",
            Client::Shb => {
                "io_uring; parses status and length; keeps a histogram; gathers completions for up to 500 µs"
            }
            Client::Shb100 => "the same with `--batch-linger 100`",
            Client::Wrk2 => "a timer of 1 ms",
            Client::RedisBenchmark | Client::ValkeyBenchmark => {
                "does first its sets, then its gets, a number of them and so for a time that differs; checks no value"
            }
            Client::Memtier => "one thread drives libevent; checks no value",
            Client::Junoload => "one goroutine a connection; creates what it gets; checks no value",
        }
    }

    /// The apt package that has it.
    pub fn package(self) -> Option<&'static str> {
        match self {
            Client::Wrk => Some("wrk"),
            Client::Hey => Some("hey"),
            Client::Ab => Some("apache2-utils"),
            Client::H2load => Some("nghttp2-client"),
            Client::RedisBenchmark => Some("redis-tools"),
            _ => None,
        }
    }

    /// Its program; `None` when it is not installed.
    pub fn program(self, programs: &Programs) -> Option<PathBuf> {
        match self {
            Client::Weir => Some(programs.weir.clone()),
            Client::Null => Some(programs.null.clone()),
            Client::Shb100 => Client::Shb.program(programs),
            _ => find(&super::cases::name(self)),
        }
    }

    /// Arguments for a load.
    pub fn arguments(self, load: &Load) -> Vec<String> {
        let (c, s, m) = (load.connections.to_string(), load.seconds.to_string(), load.streams.to_string());
        let time = format!("{s}s");
        // ab sets memory aside for so many samples; nothing does more a second on one core.
        let most = (u64::from(load.seconds) * 500_000).to_string();
        let (rate, value) = (OPEN_RATE.to_string(), load.size.to_string());
        let address = load.url.rsplit('/').next().unwrap_or_default();
        let port = address.rsplit(':').next().unwrap_or_default();
        // They know no time, only how many of each kind.
        let each = (u64::from(load.seconds) * REQUESTS_A_SECOND[usize::from(load.streams > 1)] / 2).to_string();
        let arguments = match self {
            Client::Weir => "load --quiet --json --warmup 500ms -t 1 -c {c} -d {time}",
            Client::Null => "client -c {c} -s {s}",
            Client::Wrk => "-t 1 -c {c} -d {time} --timeout 10s",
            Client::H1load => "-t 1 -c {c} -d {s}",
            Client::Gcannon => "-t 1 -c {c} -d {time}",
            Client::Haload => "-t 1 -u {c} -d {s}",
            Client::H2load => "-t 1 -c {c} -D {s}",
            Client::Ab => "-k -q -c {c} -t {s} -n {most}",
            Client::Hey => "-c {c} -z {time} -cpus 1",
            Client::Oha => "--no-tui --worker-threads 1 -c {c} -z {time}",
            Client::Fortio => "load -quiet -qps 0 -c {c} -t {time}",
            Client::Shb => "-t 1 -j -c {c} -z {time}",
            Client::Shb100 => "-t 1 -j -c {c} -z {time} --batch-linger 100",
            Client::Wrk2 => "-t 1 -c {c} -d {time} -R {rate} --latency",
            Client::RedisBenchmark | Client::ValkeyBenchmark => {
                "-p {port} -c {c} -n {each} -P {m} -d {value} -r {keys} -t set,get"
            }
            Client::Memtier => {
                "-s 127.0.0.1 -p {port} -t 1 -c {c} --test-time {s} --pipeline {m} -d {value} --ratio 1:1 \
                 --key-maximum {keys} --hide-histogram"
            }
            Client::Junoload => "-s {address} -p {created} -n {c} -f 10000000 -t {s} -l {value} -o 3600",
        };
        let fields = [
            ("{c}", &*c),
            ("{s}", &s),
            ("{time}", &time),
            ("{m}", &m),
            ("{most}", &most),
            ("{rate}", &rate),
            ("{value}", &value),
            ("{address}", address),
            ("{port}", port),
            ("{each}", &each),
            ("{keys}", KEYS),
            ("{created}", CREATED),
        ];
        let fill = |word| fields.iter().find(|(field, _)| *field == word).map_or(word, |(_, text)| *text);
        let mut words: Vec<&str> = arguments.split_whitespace().map(fill).collect();
        if self.is_keyvalue() {
            // They know no URLs.
            return words.into_iter().map(str::to_owned).collect();
        }
        match load.protocol.application() {
            Application::Redis => words.extend(["--ops", "S:1,G:1", "--keys", "uniform", "--key-count", KEYS]),
            Application::Juno => words.extend(["--ops", CREATED]),
            _ => {}
        }
        if load.protocol.is_keyvalue() {
            words.extend(["--value", &value, "--in-flight", &m]);
        }
        let message = "x".repeat(load.size as usize);
        let mut url = load.url.clone();
        match (self, load.group) {
            (Client::Weir, Group::Sockets) => {
                words.extend(["--pipeline", &m, "-b", &message]);
                url = with_path(&url, "ws", "/ws");
            }
            (_, Group::Sockets) => {
                words.extend(["-p", &m, "--ws", "--ws-msg", &message]);
                url = with_path(&url, "http", "/ws");
            }
            (Client::Weir, Group::Calls) => {
                words.extend(["-b", &message]);
                url = with_path(&url, "grpc", &format!("/weir.Echo/Unary?size={value}"));
            }
            (_, Group::Calls) => {
                words.extend(["-d", CALL, "-H", "content-type: application/grpc", "-H", "te: trailers"]);
                url = with_path(&url, "http", &format!("/weir.Echo/Unary?size={value}"));
            }
            _ => {}
        }
        match (self, load.protocol.is_multiplexed() && !load.protocol.is_keyvalue()) {
            (Client::Weir, true) if load.group == Group::Calls => words.extend(["--streams", &m]),
            (Client::Weir, true) => words.extend(["--http", "2", "--streams", &m]),
            (Client::Haload, true) => words.extend([if load.protocol.is_tls() { "-h2" } else { "-h2c" }, "-m", &m]),
            (Client::Haload, false) => words.push("-h1"),
            (Client::H2load, true) => words.extend(["-m", &m]),
            (Client::H2load, false) => words.push("--h1"),
            (Client::Oha | Client::Shb | Client::Shb100, true) => words.extend(["--http2", "-p", &m]),
            _ => {}
        }
        match self {
            _ if !load.protocol.is_tls() => {}
            Client::Weir => words.extend(["--tls-version", "1.3", "--tls-suite", SUITE]),
            Client::Haload => words.extend(["--tls-ciphersuites", SUITE]),
            Client::H2load => words.extend(["--tls13-ciphers", SUITE]),
            Client::H1load => words.extend(["--tls-ver", "TLS1.3"]),
            Client::Oha => words.push("--insecure"),
            // wrk checks no certificate and offers the suite first.
            _ => {}
        }
        words.into_iter().map(str::to_owned).chain([url]).collect()
    }

    /// The number of requests done, parsed from its standard output and standard error.
    ///
    /// # Errors
    /// When the output does not say, or reports errors.
    pub fn requests(self, stdout: &str, stderr: &str) -> anyhow::Result<u64> {
        if self == Client::Weir {
            return weir(stdout).map(|result| result.total.successful);
        }
        let (output, name) = (format!("{stdout}\n{stderr}"), super::cases::name(self));
        let (done, wrong) = self.patterns();
        let (done, wrong) = (Regex::new(done)?, Regex::new(wrong)?);
        if let Some(error) = wrong.find_iter(&output).find(|found| !found.as_str().contains("deadline")) {
            bail!("{name}: {}", error.as_str().trim());
        }
        let number =
            |found: regex::Captures<'_>| found[1].parse::<u64>().with_context(|| format!("{name}: {}", &found[0]));
        let found = done.captures_iter(&output).map(number).collect::<anyhow::Result<Vec<u64>>>()?;
        let last = *found.last().with_context(|| format!("{name} printed no sum of requests"))?;
        // One sum for sets and one for gets.
        Ok(if self.is_counted() { found.iter().sum() } else { last })
    }

    /// What it prints for the number of requests, and what for errors and responses other than 200; `tests/captured` has what
    /// the tools print. Requests that oha gave up because time was up ("deadline") are no errors.
    fn patterns(self) -> (&'static str, &'static str) {
        match self {
            Client::Weir => unreachable!("its JSON is read"),
            Client::Null => (r"(?m)^requests (\d+)", "error"),
            Client::Wrk | Client::Wrk2 => (r"(\d+) requests in ", r"Socket errors:.*|Non-2xx.*"),
            Client::H1load | Client::Haload => {
                (r"(?m)^ *\d+ +\d+ +\d+ +(\d+) ", r"(?m)^ *\d+ +\d+ +\d+ +\d+ +\d+ +[1-9]\d* .*")
            }
            Client::Gcannon => (r"requests in .*, (\d+) responses", r"Errors:.*|[345]xx=[1-9].*"),
            Client::H2load => (r"requests:.* (\d+) succeeded", r"requests:.* [1-9]\d* (?:failed|errored|timeout).*"),
            Client::Ab => (r"Complete requests: +(\d+)", r"Failed requests: +[1-9]\d*|Non-2xx responses:.*"),
            Client::Hey | Client::Oha => (
                r"\[200\]\s+(\d+) responses",
                r"(?m)^\s*\[(?:[^2]..|2[^0].|20[^0])\]\s+\d+ responses.*|^\s*\[\d+\]\s+[A-Za-z].*",
            ),
            Client::RedisBenchmark | Client::ValkeyBenchmark => (r"(\d+) requests completed in", r"(?i)error.*"),
            Client::Memtier => (r"threads +\d+ conns: +(\d+) ops", r"(?i)connection error.*|handle error.*"),
            Client::Junoload => (r"(?m) (\d+) +100\.00 +All ", r"(?m) All +[1-9]\d*$"),
            Client::Shb | Client::Shb100 => {
                (r#""ok": (\d+)"#, r#""(?:errors|connectErrors|[1345]\d\d|2[1-9]\d|20[1-9])": [1-9].*"#)
            }
            Client::Fortio => (r"(?m)^Code 200 : (\d+)", r"(?m)^Code +(?:-|[013-9]|2[1-9]|20[1-9]).*"),
        }
    }
}

/// The address of a server with another scheme and path.
fn with_path(url: &str, scheme: &str, path: &str) -> String {
    let server = url.split('/').nth(2).unwrap_or_default();
    format!("{scheme}://{server}{path}")
}

/// Arguments of `weir load` of streams that are held, or of as many plain responses of the same size.
pub fn stream_arguments(streams: bool, connections: u32, seconds: u32, url: &str) -> Vec<String> {
    let load = if streams {
        let stream = with_path(url, "http", "/stream?messages=50&every=20ms&first=1ms..20ms&size=200");
        format!("--stream sse {stream}")
    } else {
        format!("--rate {MESSAGE_RATE} {url}")
    };
    let text = format!("load --quiet --json --warmup 500ms -t 1 -c {connections} -d {seconds}s {load}");
    text.split(' ').map(str::to_owned).collect()
}

/// Arguments of `weir load` with the open rate.
pub fn open_arguments(seconds: u32, url: &str) -> Vec<String> {
    let flags = "load --quiet --json --warmup 500ms -t 1";
    let text = format!("{flags} -c {} -d {seconds}s --rate {OPEN_RATE} {url}", MAIN.0);
    text.split(' ').map(str::to_owned).collect()
}

/// The median latency, µs, in the JSON of `shb -j`.
///
/// # Errors
/// When it has none.
pub fn shb_median_us(text: &str) -> anyhow::Result<f64> {
    let report: serde_json::Value = serde_json::from_str(text).context("shb printed no JSON")?;
    let median = report["latencySeconds"]["percentiles"]["p50"].as_f64();
    Ok(median.context("shb printed no median")? * 1e6)
}

/// The median latency, µs, that `wrk2 --latency` prints first, corrected for waiting.
///
/// # Errors
/// When it does not.
pub fn wrk2_median_us(text: &str) -> anyhow::Result<f64> {
    let median = Regex::new(r"Latency Distribution[^%]*\s50\.000%\s+([\d.]+)(us|ms|s)\b")?;
    let found = median.captures(text).context("wrk2 printed no median")?;
    let unit = match &found[2] {
        "us" => 1.0,
        "ms" => 1e3,
        _ => 1e6,
    };
    Ok(found[1].parse::<f64>()? * unit)
}

/// Reads the JSON of `weir load`.
///
/// # Errors
/// When it is not such JSON, or there were errors or requests that could not be sent.
pub fn weir(text: &str) -> anyhow::Result<LoadResult> {
    let result: LoadResult = serde_json::from_str(text).context("weir load printed no JSON")?;
    let Counts { errors, unsent, .. } = &result.total;
    if !errors.is_empty() || *unsent > 0 {
        bail!("weir load: errors {errors:?}, unsent {unsent}");
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::super::cases::name;
    use super::*;

    const WRK: &str = include_str!("../../tests/captured/wrk.txt");
    const HEY: &str = include_str!("../../tests/captured/hey.txt");
    const AB: &str = include_str!("../../tests/captured/ab.txt");
    const SHB: &str = include_str!("../../tests/captured/shb.json");
    const H2LOAD: &str = include_str!("../../tests/captured/h2load.txt");
    const H1LOAD: &str = include_str!("../../tests/captured/h1load.txt");
    const HALOAD: &str = include_str!("../../tests/captured/haload.txt");
    const GCANNON: &str = include_str!("../../tests/captured/gcannon.txt");
    const OHA: &str = include_str!("../../tests/captured/oha.txt");
    const FORTIO: &str = include_str!("../../tests/captured/fortio.txt");
    const WRK2: &str = include_str!("../../tests/captured/wrk2.txt");
    const REDIS: &str = include_str!("../../tests/captured/redis-benchmark.txt");
    const MEMTIER: &str = include_str!("../../tests/captured/memtier.txt");
    const JUNOLOAD: &str = include_str!("../../tests/captured/junoload.txt");
    const WEIR: &str = include_str!("../../tests/captured/weir.json");
    const WEIR_OPEN: &str = include_str!("../../tests/captured/weir-open.json");

    fn load(protocol: Protocol) -> Load {
        let (group, url) = (Group::Clients, "http://127.0.0.1:1/x".to_owned());
        Load { group, url, protocol, connections: 77, streams: 9, size: 128, seconds: 3 }
    }

    #[test]
    fn every_client_gets_connections_time_and_url() {
        for client in Client::value_variants().iter().filter(|client| !client.is_keyvalue()) {
            let words = client.arguments(&load(Protocol::Http11));
            assert_eq!(words.last().unwrap(), "http://127.0.0.1:1/x");
            assert!(words.contains(&"77".to_owned()), "{words:?}");
            assert!(words.contains(&"3".to_owned()) || words.contains(&"3s".to_owned()), "{words:?}");
        }
        assert_eq!(Client::value_variants().iter().map(|c| name(*c)).nth(6).unwrap(), "h2load");
    }

    #[test]
    fn every_key_value_client_gets_connections_port_and_size() {
        for client in Client::value_variants() {
            for protocol in [Protocol::Redis, Protocol::Juno].into_iter().filter(|protocol| client.speaks(*protocol)) {
                let url = super::super::cases::url(protocol, 1234, 128);
                let words = client.arguments(&Load { url, ..load(protocol) });
                assert!(words.iter().any(|word| word.contains("1234")), "{words:?}");
                assert!(words.contains(&"77".to_owned()) && words.contains(&"128".to_owned()), "{words:?}");
                assert_eq!(words.contains(&"9".to_owned()), *client != Client::Junoload, "{words:?}");
            }
        }
        assert_eq!(name(Client::Memtier), "memtier_benchmark");
        assert_eq!(name(Client::ValkeyBenchmark), "valkey-benchmark");
    }

    #[test]
    fn only_http2_has_streams_and_only_tls_a_suite() {
        for client in Client::value_variants() {
            for protocol in Protocol::all().filter(|protocol| !protocol.is_keyvalue()) {
                let words = client.arguments(&load(protocol));
                if client.speaks(protocol) {
                    assert_eq!(words.contains(&"9".to_owned()), protocol.is_multiplexed(), "{words:?}");
                }
                assert!(!words.contains(&SUITE.to_owned()) || protocol.is_tls(), "{words:?}");
            }
        }
    }

    #[test]
    fn what_the_tools_really_printed() {
        let printed = [
            (Client::Wrk, WRK, 96_237),
            (Client::Hey, HEY, 37_617),
            (Client::Ab, AB, 98_778),
            (Client::H2load, H2LOAD, 143_916),
            (Client::H1load, H1LOAD, 111_691),
            (Client::Gcannon, GCANNON, 173_087),
            (Client::Haload, HALOAD, 66_214),
            (Client::Oha, OHA, 47_497),
            (Client::Fortio, FORTIO, 82_312),
            (Client::Shb, SHB, 70_796),
            (Client::Wrk2, WRK2, 3_965),
            (Client::RedisBenchmark, REDIS, 40_000),
            (Client::ValkeyBenchmark, REDIS, 40_000),
            (Client::Memtier, MEMTIER, 34_621),
            (Client::Junoload, JUNOLOAD, 28_346),
            (Client::Null, "requests 12\nresponse_bytes 3\n", 12),
            (Client::Weir, WEIR_OPEN, 20_000),
        ];
        for (client, text, requests) in printed {
            assert_eq!(client.requests(text, "").unwrap(), requests, "{client:?}");
        }
        assert_eq!(wrk2_median_us(WRK2).unwrap(), 860.0);
        assert_eq!(shb_median_us(SHB).unwrap().round(), 2_651.0);
        let closed = weir(WEIR).unwrap();
        assert_eq!((closed.total.successful, closed.latency.p50_us), (198_136, 304.127));
        assert!(closed.tls.is_none());
    }

    #[test]
    fn a_run_with_errors_is_no_measurement() {
        let wrong = [
            (Client::Wrk, format!("{WRK}  Socket errors: connect 0, read 3, write 0, timeout 0\n")),
            (Client::Wrk, format!("{WRK}  Non-2xx or 3xx responses: 7\n")),
            (Client::Hey, format!("{HEY}\nError distribution:\n  [3]\tGet: EOF\n")),
            (Client::Hey, HEY.replace("  [200]", "  [404]\t1 responses\n  [200]")),
            (Client::Oha, format!("{OHA}  [3] connection error\n")),
            (Client::Shb, SHB.replace("\"errors\": 0", "\"errors\": 7")),
            (Client::Shb100, SHB.replace("\"200\": 70796", "\"200\": 70795,\n    \"404\": 1")),
            (Client::Ab, AB.replace("Failed requests:        0", "Failed requests:        2")),
            (Client::H2load, H2LOAD.replace("0 failed", "4 failed")),
            (Client::H1load, H1LOAD.replace("25577239      0", "25577239      5")),
            (Client::Haload, HALOAD.replace("15361648      0", "15361648      4")),
            (Client::Gcannon, GCANNON.replace("4xx=0", "4xx=3")),
            (Client::Gcannon, format!("{GCANNON}  Errors: connect 0, read 2, timeout 0\n")),
            (Client::RedisBenchmark, format!("{REDIS}Error from server: OOM command not allowed\n")),
            (Client::Memtier, format!("{MEMTIER}connection error: Connection refused\n")),
            (Client::Junoload, JUNOLOAD.replace("All            0", "All           12")),
            (Client::Fortio, "Code 200 : 80 (99.0 %)\nCode 503 : 1 (1.0 %)\n".to_owned()),
            (Client::Weir, WEIR.replace("\"errors\": {}", "\"errors\": {\"reset\": 1}")),
        ];
        for (client, text) in wrong {
            assert!(client.requests(&text, "").is_err(), "{client:?}");
        }
    }

    #[test]
    fn nothing_printed_is_an_error_and_not_zero() {
        for client in Client::value_variants() {
            assert!(client.requests("", "").is_err(), "{client:?}");
        }
        assert!(wrk2_median_us("").is_err() && shb_median_us("{}").is_err());
    }
}
