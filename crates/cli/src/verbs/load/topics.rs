//! The texts of `weir help load TOPIC`: each explains a group of flags, with examples. The flags themselves come from
//! the parser. Used by `verbs::help` and `verbs::man`.

/// A page of help.
#[derive(Debug)]
pub struct Topic {
    /// Its name on the command line.
    pub name: &'static str,
    /// The group of flags that it explains; for one that is part of a group, its flags.
    pub flags: Flags,
    /// What there is to know.
    pub text: &'static str,
    /// Examples, as in every help: a line that says what, and an indented command.
    pub examples: &'static str,
}

/// Which flags a topic shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    /// All under a heading.
    Heading(&'static str),
    /// These, by their long names.
    Named(&'static [&'static str]),
}

/// All, in the order of `--help`.
pub const TOPICS: [Topic; 7] = [LOAD, FIND_MAX, REQUEST, ANSWERS, CONNECTIONS, TLS, OUTPUT];

const LOAD: Topic = Topic {
    name: "load",
    flags: Flags::Heading("Load"),
    text: "\
A closed load (the default) has -c connections, each of which sends its next
request as soon as the last was answered. It measures how much the target
carries; its latency is that of a saturated target.

An open load sends requests at times fixed beforehand, however fast the target
answers: --rate, --ramp, --steps and --replay. It measures what users would see.
Latency counts from when a request was due, so a stall of the target cannot hide.
A request that is due while all connections are busy waits for the next free one;
with --max-connections the load may open more. Requests that could not be sent at
all are counted as never sent.

A counted load (-n) ends with its last answer.

All connections are open before the load begins. --warmup is not measured.",
    examples: "  How much does the target carry?
    weir load http://127.0.0.1:8080/ -c 64 -d 30s
  What do users see at 5,000 requests a second?
    weir load http://127.0.0.1:8080/ --rate 5000 --arrivals poisson
  Where does it break?
    weir load http://127.0.0.1:8080/ --ramp 100..20k -d 60s --csv ramp.csv
  A burst between two calm times:
    weir load http://127.0.0.1:8080/ --steps 500x10s,5000x5s,500x10s
  Recorded traffic: one time a line, in seconds since the start
    weir load http://127.0.0.1:8080/ --replay times.txt
  A hundred users who pause between their requests:
    weir load http://127.0.0.1:8080/ -c 100 --think exp:200ms",
};

const FIND_MAX: Topic = Topic {
    name: "find-max",
    flags: Flags::Named(&["find-max", "budget", "connections", "max-connections", "duration", "warmup", "arrivals"]),
    text: "\
Finds the highest open rate at which all conditions hold. A closed load gives a
first guess, short trials narrow it down, and a longer one (-d) confirms it. The
result includes an interval: the highest rate that met the conditions, and the
lowest that did not. A rate at which answers did not keep up with requests has
failed, whatever the conditions say.

A condition is a metric, one of < <= > >=, and a bound:
  p50 p75 p90 p95 p99 p99.9 p99.99 min mean stdev max    of the latency
  service.p99, lag.max, first-byte.p50, connect.p99,
  handshake.mean                                         of other times
  rate                                                   right answers a second
  errors, unsent                  a number, or a share of the requests (0.1%)

Exit status 0 when the rate was confirmed, 1 when it was not.",
    examples: "  What can be promised?
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms, errors<0.1%'
  In less time, and less exactly:
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms' --budget 30s -d 5s
  Fail when the rate is too low:
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms' --fail-if 'rate<20k'
  For a script:
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms' --json -q | jq .rate",
};

const REQUEST: Topic = Topic {
    name: "request",
    flags: Flags::Heading("Request"),
    text: "\
Host and Content-Length are added unless -H gives them. With a body the method is
POST, unless -m says otherwise.

With several URLs, connections are distributed among the servers (host and port),
and the URLs of a server are requested by weight. --urls reads one from each line:

  [METHOD] URL [WEIGHT]

A # begins a comment. -m, -H and -b apply to all lines, except that GET and HEAD
have no body.

With --template, these fields are replaced in the path, header values and body:
  {{seq}}             number of the request: 0, 1, 2, ... over the whole load
  {{seq:1000}}        the same, from 1000
  {{seq:1:8}}         the same, from 1, with at least 8 digits: 00000001
  {{random:1..6}}     a whole number, both ends included
  {{random:1..99:2}}  the same, with at least 2 digits
  {{hex:16}}          16 hexadecimal digits
  {{alnum:12}}        12 letters and digits
  {{uuid}}            a random UUID (version 4)
  {{pick:a|b|c}}      one of the texts
  {{{{                two braces",
    examples: "  A body from a file:
    weir load http://127.0.0.1:8080/echo --body-file order.json \\
      -H 'content-type: application/json'
  A generated body of 16 KiB:
    weir load http://127.0.0.1:8080/echo --body-size 16KiB
  Nine reads to one write:
    weir load http://127.0.0.1:8080/a http://127.0.0.1:8080/b --weight 9,1
  A different user in each request:
    weir load 'http://127.0.0.1:8080/user/{{random:1..10000}}' --template
  A mix from a file:
    weir load --urls mix.txt -b '{}' -R 1000",
};

const ANSWERS: Topic = Topic {
    name: "answers",
    flags: Flags::Heading("Answers"),
    text: "\
A right answer is complete and has a status of 200 to 399. --expect-… adds
conditions, all of which must hold for every answer. The rate counts only right
answers: a fast 502 is not throughput. Errors are counted by kind:
connect_refused, connect_failed, connect_timeout, reset, closed_early, timeout,
bad_status, wrong_body, wrong_header, stream_reset, tls, protocol.

With --fail-if the exit status is 1 when a condition holds, or when its metric was
not measured. Without it the status is 1 when any request got no right answer.
`weir help load find-max` explains conditions.",
    examples: "  Accept only this body:
    weir load http://127.0.0.1:8080/logo.png --expect-hash-of logo.png
  Only JSON, and only from the cache:
    weir load http://127.0.0.1:8080/api --expect-header 'x-cache: HIT' \\
      --expect-header 'content-type: application/json'
  Give up after half a second:
    weir load http://127.0.0.1:8080/ --timeout 500ms
  In CI:
    weir load http://127.0.0.1:8080/ -R 2000 -q --fail-if 'p99>10ms' \\
      --fail-if 'errors>0.1%'",
};

const CONNECTIONS: Topic = Topic {
    name: "connections",
    flags: Flags::Heading("Connections"),
    text: "\
Connections are kept alive. --close opens a new one for every request, and
--requests-per-connection after that many.

--http 2 uses HTTP/2: negotiated by ALPN with https, by prior knowledge with http.
Each connection has up to --streams requests in flight, or fewer if the target
allows fewer.

--pipeline sends HTTP/1.1 requests without waiting for answers. Few clients do
this and few targets handle it well, so every result says that it was pipelined.

Names are resolved once, before the load begins; of several addresses the first
one that accepts a connection is used. One source address can have as many
connections to a target as net.ipv4.ip_local_port_range has ports. --source adds
addresses; on loopback weir uses more by itself.

One thread is enough for most targets. The summary says when weir was the limit;
-t and --cpus give it more CPUs.",
    examples: "  HTTP/2 without TLS, 100 requests in flight on each of 4 connections:
    weir load http://127.0.0.1:8080/ --http 2 --streams 100 -c 4
  A Unix socket:
    weir load /status --unix /run/app.sock
  A new connection for every request, as without keep-alive:
    weir load http://127.0.0.1:8080/ --close -R 500
  50,000 idle connections, 1,000 opened a second, with a little traffic:
    weir load http://127.0.0.1:8080/ -c 50000 --connect-rate 1000 -R 500
  From two addresses, with two threads on two CPUs:
    weir load http://192.0.2.1/ --source 192.0.2.8,192.0.2.9 -t 2 --cpus 0,1",
};

const TLS: Topic = Topic {
    name: "tls",
    flags: Flags::Heading("TLS"),
    text: "\
https:// URLs use TLS 1.2 or 1.3, whichever the target prefers. The summary shows
what was negotiated and how long handshakes took; the JSON counts versions, cipher
suites and groups.

Certificates are checked only with --cacert: the target of a test rarely has a
public certificate, and checking would be measured too.

Every handshake is a full one, unless --resume allows resumption. Resumed
handshakes are counted.

Cipher suites have IANA names: TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384,
TLS_CHACHA20_POLY1305_SHA256, and for TLS 1.2 names such as
TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. An unknown name prints the list.",
    examples: "  HTTP/2 over TLS 1.3:
    weir load https://127.0.0.1:8443/ --http 2 --tls-version 1.3
  What does a handshake cost?
    weir load https://127.0.0.1:8443/ --close -c 16
  And a resumed one?
    weir load https://127.0.0.1:8443/ --close -c 16 --resume
  The same suite and group for everything that is compared:
    weir load https://127.0.0.1:8443/ --tls-suite TLS_AES_128_GCM_SHA256 \\
      --tls-group X25519
  With a checked certificate and a client certificate:
    weir load https://127.0.0.1:8443/ --tls-name api.example \\
      --cacert ca.pem --cert me.pem --key me.key",
};

const OUTPUT: Topic = Topic {
    name: "output",
    flags: Flags::Heading("Output"),
    text: "\
The result goes to standard output, progress to standard error: redrawn in place on
a terminal, otherwise one line a second. The first Ctrl-C ends the load and keeps
what was measured, the second ends weir.

docs/records.md (\"The client's account\") and the JSON schema
docs/schema/load-result.schema.json describe --json.

--format prints the lines, units and number formats of wrk or wrk2 (both with
--latency), hey or ab. The latencies are weir's, from due to answered (hey: from
sent to answered). Values that weir does not measure are 0 or empty.

--hgrm writes HdrHistogram's percentile text for its plotter, --hlog its interval
log.",
    examples: "  In place of hey, in a script that reads its output:
    weir load http://127.0.0.1:8080/ -n 10000 -c 50 -q --format hey
  Everything in files:
    weir load http://127.0.0.1:8080/ -R 5000 --json -q --csv seconds.csv \\
      --hlog latency.hlog --hgrm latency.hgrm > result.json
  Only the 99th percentile:
    weir load http://127.0.0.1:8080/ -q --json | jq .latency.p99_us",
};
