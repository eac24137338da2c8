//! The faults of the audit's matrix: what is injected, under which load, and what weir has to call it. The world injects them all, and so
//! does `make faults` into real runs. It does not know how anything is injected.

use weir_model::record::{Finding, Measurement, Role, Severity, Verdict};

/// The load of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Seconds of the window.
    Closed(u32),
    /// The same over more connections, to a product that is faster: each connection has many responses.
    Dense(u32),
    /// Requests a second, seconds of the window.
    Open(u32, u32),
}

impl Load {
    /// Its keys in a suite, over so many connections.
    pub fn keys(self, connections: u32) -> String {
        let (kind, seconds) = match self {
            Load::Closed(seconds) | Load::Dense(seconds) => ("kind = \"closed\"".to_owned(), seconds),
            Load::Open(rate, seconds) => (format!("kind = \"open\"\nrate = {rate}"), seconds),
        };
        format!("{kind}\nconnections = {connections}\nwarmup = \"500ms\"\nduration = \"{seconds}s\"")
    }

    /// Seconds of the window.
    pub fn seconds(self) -> u32 {
        match self {
            Load::Closed(seconds) | Load::Dense(seconds) | Load::Open(_, seconds) => seconds,
        }
    }
}

/// Who is disturbed beside the product, or by whom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Beside {
    /// Nobody.
    Nobody,
    /// A process uses so many per cent of this role's CPU, for so many seconds.
    Burner(Role, u64, u64),
    /// The same of the proxy's, by children that live for 20 ms each.
    ShortLived(u64),
    /// The processes of this role stand still for 200 ms of each second.
    Stopped(Role),
    /// They stand still for 5 ms of each 10 ms.
    StoppedOften(Role),
    /// A control group gives this role's processes half of a CPU.
    Quota(Role),
    /// What samples stands still for a second in which the window begins.
    SamplersStopped,
}

/// What has to come of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// No finding.
    Clean,
    /// One of these findings, which has one of these words, with this verdict.
    Found(&'static [&'static str], &'static [&'static str], Verdict),
    /// A note with this word, and no verdict against the product.
    Note(&'static str, &'static str),
    /// The record has so many bytes of memory at least.
    Memory(u64),
    /// No measurement: the trial's error has this word.
    Failed(&'static str),
}

/// A fault.
#[derive(Debug)]
pub struct Case {
    /// How it is called.
    pub name: &'static str,
    /// What the product does ([`crate::misbehaviour::Fault`]); a key-value store's begins with `store` and is one of weir's origin.
    pub fault: &'static str,
    /// The keys of its workload.
    pub workload: &'static str,
    /// Under which load.
    pub load: Load,
    /// Who is disturbed.
    pub beside: Beside,
    /// What has to come of it.
    pub expected: Expected,
}

use Expected::{Clean, Failed, Found, Memory, Note};
use Load::{Closed, Dense, Open};
use Verdict::{Invalid, Suspect};

/// Enough for what is counted, and little enough that nobody is hurried.
const COUNTED: Load = Open(2_000, 3);

/// The keys of a workload: a small response.
pub const GET: &str = r#"path = "/bytes/128""#;

/// The same with what a product may compress.
const GZIP: &str = r#"path = "/bytes/128"
accept_encoding = "gzip""#;

/// Requests that have everything: a query, headers and a body.
const POST: &str = r#"path = "/bytes/128?x=1"
method = "POST"
body_bytes = 2000
headers = { Cookie = "a=1; B=2", Authorization = "Bearer Weir", X-Id = ["1", "2"] }"#;

/// Requests of which some have a key that may not pass.
const KEY_AUTH: &str = r#"path = "/bytes/128"
gateway = { filter = "key-auth" }"#;

/// Responses that the product has to compress.
const COMPRESSION: &str = r#"path = "/text/128"
accept_encoding = "gzip"
gateway = { filter = "compression" }"#;

/// Keys that live for ten seconds.
const KEYS: &str = r#"protocol = "redis"
keyvalue = { operations = "S:1,G:3", value = 200, ttl = "10s" }"#;

const fn case(name: &'static str, fault: &'static str, load: Load, expected: Expected) -> Case {
    Case { name, fault, workload: GET, load, beside: Beside::Nobody, expected }
}

const fn post(name: &'static str, fault: &'static str, expected: Expected) -> Case {
    Case { workload: POST, ..case(name, fault, COUNTED, expected) }
}

/// Short streams.
const STREAM: &str = r#"path = "/stream?messages=16&every=20ms&first=120ms"
stream = "sse""#;

const fn stream(fault: &'static str, expected: Expected) -> Case {
    Case { workload: STREAM, ..case(fault, fault, Closed(3), expected) }
}

/// Every second stream is cancelled in its middle.
const CANCELLED: &str = r#"path = "/stream?messages=16&every=20ms&first=120ms"
stream = "sse"
cancel_each = 2"#;

const fn cancelled(fault: &'static str, expected: Expected) -> Case {
    let name = if matches!(expected, Clean) { "cancelled streams" } else { "cancelled streams, kept" };
    Case { workload: CANCELLED, ..case(name, fault, Closed(3), expected) }
}

const fn authenticated(fault: &'static str, expected: Expected) -> Case {
    Case { workload: KEY_AUTH, ..case(fault, fault, COUNTED, expected) }
}

const fn compressed(fault: &'static str, expected: Expected) -> Case {
    Case { workload: COMPRESSION, ..case(fault, fault, COUNTED, expected) }
}

const fn keys(name: &'static str, fault: &'static str, load: Load, expected: Expected) -> Case {
    Case { workload: KEYS, ..case(name, fault, load, expected) }
}

const fn altered(name: &'static str, fault: &'static str, words: &'static [&'static str]) -> Case {
    post(name, fault, Found(&["altered-requests"], words, Invalid))
}

const fn conserved(name: &'static str, words: &'static [&'static str], verdict: Verdict) -> Case {
    case(name, name, COUNTED, Found(&["conservation-requests"], words, verdict))
}

const fn beside(
    name: &'static str,
    beside: Beside,
    load: Load,
    check: &'static [&'static str],
    word: &'static [&'static str],
    verdict: Verdict,
) -> Case {
    Case { beside, ..case(name, "honest", load, Found(check, word, verdict)) }
}

const BURNER: (&[&str], &[&str]) = (&["other-processes"], &["burner"]);
const FAVOURS: Expected = Found(&["control"], &["the last of 3 rounds, which all agree"], Invalid);
const EXPIRY: Expected = Found(&["expiry", "wrong-data"], &["to live was"], Invalid);
const DRIFT: Expected = Found(&["drift"], &[""], Suspect);
const UNEVEN: Expected = Note("uneven-connections", "unevenly");
const STILL: Expected = Found(&["pauses", "stalls"], &["product"], Suspect);

/// All of them. The honest ones are those under whose load something else is injected.
pub const CASES: &[Case] = &[
    case("honest", "honest", COUNTED, Clean),
    case("honest, open", "honest", Open(1_000, 5), Clean),
    case("honest, 2 s", "honest", Closed(2), Clean),
    case("honest, 3 s", "honest", Closed(3), Clean),
    case("honest, 5 s", "honest", Closed(5), Clean),
    case("honest, 12 s", "honest", Closed(12), Clean),
    case("honest, dense", "honest", Dense(2), Clean),
    authenticated("authenticate", Clean),
    authenticated(
        "authenticate-late",
        Found(&["conservation-requests"], &["were refused by the product's filter, but reached the origin"], Invalid),
    ),
    authenticated("authenticate-laxly", Found(&["wrong-responses"], &["status"], Invalid)),
    // Before the load it lets anybody pass.
    authenticated("honest", Failed("401 would be right")),
    compressed("gzip", Clean),
    compressed("gzip-most=100", Found(&["not-coded"], &["came as they were"], Invalid)),
    compressed("gzip-refuse=500", Found(&["refusals"], &["503"], Suspect)),
    compressed("honest", Failed("the content coding of its response is none")),
    stream("relay", Clean),
    stream("relay-gather=100", Note("held-messages", "coalesces")),
    stream("relay-buffer=1000", Note("held-messages", "buffers")),
    cancelled("relay", Clean),
    cancelled("relay-keep", Note("cancellations", "the origin saw 0 of them")),
    stream("relay-drop=3", Failed("bytes, the origin's has")),
    stream("relay-alter=3", Found(&["messages"], &["altered"], Invalid)),
    conserved("cache", &["cach"], Invalid),
    conserved("revalidate", &["cach"], Invalid),
    conserved("cache-and-twice", &["cach"], Invalid),
    case("coalesce", "coalesce", Closed(3), Found(&["conservation-requests"], &["shared", "coalesc"], Invalid)),
    conserved("forge", &["forg"], Invalid),
    conserved("forge-all", &["forg"], Invalid),
    conserved("strip", &["strip", "took", "without"], Suspect),
    conserved("mirror", &["mirror", "twice", "more than once"], Invalid),
    conserved("retry=20", &["retri", "twice", "more than once"], Invalid),
    case("corrupt", "corrupt=2000", COUNTED, Found(&["wrong-responses"], &["body"], Invalid)),
    case("corrupt once", "corrupt=20000", Open(4_000, 4), Found(&["wrong-responses"], &["body"], Suspect)),
    case("refuse", "refuse=500", COUNTED, Found(&["refusals"], &["503"], Suspect)),
    // Fewer than one of a thousand is no refusal worth a word.
    case("refuse a few", "refuse=4500", COUNTED, Clean),
    case("reset", "reset=500", COUNTED, Found(&["refusals"], &["reset"], Suspect)),
    case("truncate", "truncate=2000", COUNTED, Found(&["wrong-responses"], &["truncated"], Invalid)),
    case("truncate once", "truncate=20000", Open(4_000, 4), Found(&["wrong-responses"], &["truncated"], Suspect)),
    post("honest, POST", "honest", Clean),
    post("headers rewritten as RFC 9110 allows", "rewrite-headers", Clean),
    altered("body dropped", "drop-body", &["a shorter body, or none"]),
    altered("body shortened", "shorten-body", &["a shorter body, or none"]),
    altered("body lengthened", "lengthen-body", &["a longer body"]),
    altered("body corrupted", "corrupt-body=2000", &["another body of the same length"]),
    altered("asked before the body came", "early", &["a shorter body, or none"]),
    altered("Cookie stripped", "drop-header=cookie", &["headers"]),
    altered("Authorization stripped", "drop-header=authorization", &["headers"]),
    altered("method changed", "method=PUT", &["method"]),
    altered("query stripped", "drop-query", &["query"]),
    case("step-4", "step=4", Closed(12), DRIFT),
    case("step-6", "step=6", Closed(12), DRIFT),
    case("step-8", "step=8", Closed(12), DRIFT),
    case("step-11", "step=11", Closed(12), DRIFT),
    case("step-up-6", "step-up=6", Closed(12), DRIFT),
    case("step-of-2", "step=1", Closed(2), DRIFT),
    case("ramp", "ramp", Closed(12), DRIFT),
    case("stall, closed", "stall", Closed(5), STILL),
    case("stall, open", "stall", Open(1_000, 5), STILL),
    case("pause", "pause=2", Closed(12), Found(&["pauses"], &["product"], Invalid)),
    case("freeze", "freeze=1", Closed(2), Found(&["errors"], &["waited in vain"], Invalid)),
    case("hand-over", "hand-over=SOCKET", COUNTED, Found(&["unexplained-work"], &["take-over", "faults"], Invalid)),
    case("elsewhere", "elsewhere=CLIENT_CPU", COUNTED, Found(&["affinity"], &["cpu"], Invalid)),
    case("anywhere", "anywhere", COUNTED, Found(&["affinity"], &["cpu"], Suspect)),
    case("spike", "spike", COUNTED, Memory(600_000_000)),
    case("log", "log", COUNTED, Found(&["disk-writes"], &[""], Suspect)),
    case("header", "header=1", COUNTED, Found(&["headers"], &["x-added"], Suspect)),
    // A change before the window is none of the window.
    case("header in the warm-up", "header=0", COUNTED, Clean),
    Case { workload: GZIP, ..case("gzip", "gzip", COUNTED, Note("compresses", "gzip")) },
    case("exchange", "exchange=100", Dense(2), Found(&["conservation-requests"], &["exchanged"], Invalid)),
    case("one slow connection in eight", "slow-connection=8", Dense(2), UNEVEN),
    case("swallow", "swallow=4", Closed(2), Found(&["in-flight"], &["in no latency"], Suspect)),
    case("80 % of the connections on one worker", "uneven", Dense(2), UNEVEN),
    case("work for all", "slow", Closed(3), Clean),
    case("work for all, open", "slow", COUNTED, Clean),
    case("favour-id", "favour-id", Closed(3), FAVOURS),
    case("favour-id, open", "favour-id", COUNTED, FAVOURS),
    case("favour-no-agent", "favour-no-agent", Closed(3), FAVOURS),
    case("favour-no-agent, open", "favour-no-agent", COUNTED, FAVOURS),
    keys("store", "store none", Closed(3), Clean),
    keys("store, open", "store none", COUNTED, Clean),
    keys("store that forgets", "store expire=0s", COUNTED, Failed("absent")),
    keys("store that expires early", "store expire=300ms", COUNTED, EXPIRY),
    keys("store that expires a little early", "store expire=490ms", COUNTED, EXPIRY),
    keys("store that expires late", "store expire=60s", COUNTED, EXPIRY),
    beside("30 % of the product's CPU", Beside::Burner(Role::Proxy, 30, 60), Closed(3), BURNER.0, BURNER.1, Suspect),
    beside("60 % of it for a second", Beside::Burner(Role::Proxy, 60, 1), Closed(12), BURNER.0, BURNER.1, Suspect),
    beside("30 % of it by short-lived children", Beside::ShortLived(30), Closed(3), BURNER.0, BURNER.1, Suspect),
    beside("30 % of the client's CPU", Beside::Burner(Role::Client, 30, 60), Closed(3), BURNER.0, BURNER.1, Suspect),
    beside("client stopped", Beside::Stopped(Role::Client), Closed(5), &["stalls"], &["the client stood"], Invalid),
    beside(
        "client stopped, open",
        Beside::Stopped(Role::Client),
        Open(1_000, 5),
        &["stalls"],
        &["the client stood"],
        Invalid,
    ),
    beside("origin stopped", Beside::Stopped(Role::Origin), Closed(5), &["stalls"], &["the origin stood"], Invalid),
    beside(
        "origin stopped, open",
        Beside::Stopped(Role::Origin),
        Open(1_000, 5),
        &["stalls"],
        &["the origin stood"],
        Invalid,
    ),
    beside(
        "origin stopped 5 of 10 ms",
        Beside::StoppedOften(Role::Origin),
        Dense(2),
        &["no-bottleneck"],
        &["waited for nothing"],
        Suspect,
    ),
    beside("half a CPU by quota", Beside::Quota(Role::Proxy), Dense(2), &["cpu-quota"], &["0.50 cpus"], Suspect),
    beside("samples late", Beside::SamplersStopped, Open(1_000, 3), &["vitals-late"], &["late"], Invalid),
];

impl Case {
    /// The faults of the store, where the product is one.
    pub fn store(&self) -> Option<&'static str> {
        self.fault.strip_prefix("store ")
    }

    /// The suite of the case, with a product and over so many connections.
    pub fn suite(&self, product: &str, connections: u32) -> String {
        let any = self.store().is_some() || self.workload.contains("stream = ");
        let expect = if any { "" } else { "expect = { status = 200, size = 128 }" };
        format!(
            "[suite]\ntitle = \"A fault\"\nquestion = \"Is it found?\"\nblocks = 1\nseed = 1\nproducts = [{product:?}]\n\
             profile = \"tuned\"\n\n[[workload]]\nname = \"tiny\"\n{}\n{expect}\n\n[[load]]\nname = \"load\"\n{}\n",
            self.workload,
            self.load.keys(connections)
        )
    }

    /// What is wrong with what was found; empty: nothing. Findings with the names in `beside_the_point` are not looked at, and are why a
    /// verdict may be worse than expected.
    pub fn judge(&self, found: &Measurement, beside_the_point: &[&str]) -> String {
        if let (Some(error), Failed(word)) = (&found.error, self.expected)
            && error.message.contains(word)
        {
            return String::new();
        }
        if let Some(error) = &found.error {
            return format!("an error: {}", error.message);
        }
        let blamed: Vec<&Finding> = found.findings.iter().filter(|one| one.severity != Severity::Note).collect();
        let named: &[&str] = match &self.expected {
            Found(names, ..) => names,
            Note(name, _) => std::slice::from_ref(name),
            Clean | Memory(_) | Failed(_) => &[],
        };
        let follows = |check: &str| match named {
            // What is cached, shared or sent twice moves other bytes, and its work explains fewer requests.
            ["conservation-requests"] => matches!(check, "conservation-bytes" | "unexplained-work"),
            ["altered-requests"] => check == "conservation-bytes",
            // No stream is successful then.
            ["messages"] => matches!(check, "wrong-responses" | "conservation-bytes" | "no-responses"),
            // A key that is gone is a failed read.
            ["expiry", ..] => matches!(check, "errors" | "offered-load"),
            // While somebody stands still, or nobody responds, no responses come, and what was due waits.
            ["stalls" | "errors"] => matches!(check, "pauses" | "offered-load" | "no-bottleneck"),
            // A product that waits by itself leaves CPU to spare.
            ["drift" | "pauses" | "cpu-quota" | "uneven-connections", ..] => check == "no-bottleneck",
            _ => false,
        };
        let is_named = |one: &&&Finding| named.contains(&one.check.as_str());
        let is_other = |check: &&str| !named.contains(check) && !follows(check) && !beside_the_point.contains(check);
        let others: Vec<&str> = blamed.iter().map(|one| one.check.as_str()).filter(is_other).collect();
        if !others.is_empty() {
            return format!(
                "called {}: {:?}",
                others.join(", "),
                blamed.iter().map(|one| &one.message).collect::<Vec<_>>()
            );
        }
        match self.expected {
            Clean => String::new(),
            Failed(_) => "missed".to_owned(),
            Found(_, words, verdict) => {
                let has_word = |text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
                let worse = found.verdict == Invalid && !beside_the_point.is_empty();
                match blamed.iter().find(is_named) {
                    None => "missed".to_owned(),
                    Some(first)
                        if !blamed
                            .iter()
                            .filter(is_named)
                            .any(|one| has_word(&format!("{} {}", one.message, one.remedy))) =>
                    {
                        format!("found, by other words: {}", first.message)
                    }
                    Some(first) if found.verdict != verdict && !worse => {
                        format!("found, and {:?}: {}", found.verdict, first.message)
                    }
                    Some(_) => String::new(),
                }
            }
            Note(name, word) => {
                let noted = found.findings.iter().any(|one| one.check == name && one.message.contains(word));
                if noted { String::new() } else { "missed".to_owned() }
            }
            Memory(least) => {
                let most = found.usage.iter().map(|usage| usage.rss_max_bytes).max().unwrap_or_default();
                if most >= least { String::new() } else { format!("missed: {most} bytes") }
            }
        }
    }
}
