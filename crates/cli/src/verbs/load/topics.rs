//! `weir help load TOPIC`: what a group of flags is for, with examples. The flags themselves come from the parser.

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
A closed load (no flag) has -c connections, each of which sends as soon as its
last answer came: it finds out how much the target carries, and its latency is
that of a target that is full.

An open load has requests that are due at times fixed beforehand, whatever the
answers do: --rate, --ramp, --steps and --replay. It finds out what users would
see. Latency counts from when a request was due, so that a target that stalls
cannot hide it. What is due while no connection is free waits, and is sent as
soon as one is; --max-connections lets the load make more. What could not be
sent at all is counted (never sent).

A counted load (-n) ends with its last answer.

--warmup is not measured. Everything is up before the clock starts.",
    examples: "  How much does it carry?
    weir load http://127.0.0.1:8080/ -c 64 -d 30s
  What do users see at 5,000 requests a second?
    weir load http://127.0.0.1:8080/ --rate 5000 --arrivals poisson
  Where does it break?
    weir load http://127.0.0.1:8080/ --ramp 100..20k -d 60s --csv ramp.csv
  A burst between two calm times:
    weir load http://127.0.0.1:8080/ --steps 500x10s,5000x5s,500x10s
  As it was recorded: one time a line, in seconds since the start
    weir load http://127.0.0.1:8080/ --replay times.txt
  A hundred users who think between their requests:
    weir load http://127.0.0.1:8080/ -c 100 --think exp:200ms",
};

const FIND_MAX: Topic = Topic {
    name: "find-max",
    flags: Flags::Named(&["find-max", "budget", "connections", "max-connections", "duration", "warmup", "arrivals"]),
    text: "\
Searches the highest open rate at which all conditions hold. A closed load says
where to begin; short trials, first far apart and then near, close in on the
rate; a longer one (-d) confirms it. The rate comes with an interval: the highest
rate that met the conditions, and the lowest that did not. A rate whose answers
did not keep up with the requests is not met, whatever the conditions say.

A condition is a metric, one of < <= > >=, and a bound:
  p50 p75 p90 p95 p99 p99.9 p99.99 min mean stdev max    of the latency
  service.p99, lag.max, first-byte.p50, connect.p99,
  handshake.mean                                         of other times
  rate                                                   right answers a second
  errors, unsent                  a number, or a share of what was due (0.1%)

Exit status 0 when the rate was confirmed, 1 when it was not.",
    examples: "  What can be promised?
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms, errors<0.1%'
  In less time, and less exactly:
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms' --budget 30s -d 5s
  Fail when it became less than it was:
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms' --fail-if 'rate<20k'
  For a script:
    weir load http://127.0.0.1:8080/ --find-max 'p99<5ms' --json -q | jq .rate",
};

const REQUEST: Topic = Topic {
    name: "request",
    flags: Flags::Heading("Request"),
    text: "\
Host and Content-Length are added unless a -H gives them. A body makes the method
POST, unless -m says otherwise.

Several URLs: those of one server (the same host and port) are asked by weight;
servers get connections in turn. A file of URLs has one a line,

  [METHOD] URL [WEIGHT]

and what follows a # is a comment; -m, -H and -b hold for all its lines, but the
body does not go with lines that say GET or HEAD.

Fields in the path, in header values and in the body of a --template:
  {{seq}}             number of the request: 0, 1, 2, ... over the whole load
  {{seq:1000}}        the same, from 1000
  {{seq:1:8}}         the same, from 1, in 8 digits at least: 00000001
  {{random:1..6}}     a whole number, both ends included
  {{random:1..99:2}}  the same, in 2 digits at least
  {{hex:16}}          16 hexadecimal digits
  {{alnum:12}}        12 letters and digits
  {{uuid}}            a random UUID (version 4)
  {{pick:a|b|c}}      one of the texts
  {{{{                two braces",
    examples: "  A body from a file:
    weir load http://127.0.0.1:8080/echo --body-file order.json \\
      -H 'content-type: application/json'
  16 KiB of nothing in particular:
    weir load http://127.0.0.1:8080/echo --body-size 16KiB
  Nine reads to one write:
    weir load http://127.0.0.1:8080/a http://127.0.0.1:8080/b --weight 9,1
  Another user each time:
    weir load 'http://127.0.0.1:8080/user/{{random:1..10000}}' --template
  A mix from a file:
    weir load --urls mix.txt -b '{}' -R 1000",
};

const ANSWERS: Topic = Topic {
    name: "answers",
    flags: Flags::Heading("Answers"),
    text: "\
A right answer has a status of 200 to 399 and is whole. --expect-… says more; all
that is said must hold, of every answer. The rate counts right answers only: a
fast 502 is no throughput. What went wrong is counted by kind: connect_refused,
connect_failed, connect_timeout, reset, closed_early, timeout, bad_status,
wrong_body, wrong_header, stream_reset, tls, protocol.

--fail-if decides the exit status, and says why. Without it the status is 1 when
any request got no right answer. What was not measured cannot be judged, and
fails. `weir help load find-max` says how a condition is written.",
    examples: "  Only this is right:
    weir load http://127.0.0.1:8080/logo.png --expect-hash-of logo.png
  From the cache, and as JSON:
    weir load http://127.0.0.1:8080/api --expect-header 'x-cache: HIT' \\
      --expect-header 'content-type: application/json'
  Give up after half a second:
    weir load http://127.0.0.1:8080/ --timeout 500ms
  In a pipeline of a project:
    weir load http://127.0.0.1:8080/ -R 2000 -q --fail-if 'p99>10ms' \\
      --fail-if 'errors>0.1%'",
};

const CONNECTIONS: Topic = Topic {
    name: "connections",
    flags: Flags::Heading("Connections"),
    text: "\
Connections are kept, as browsers and gateways keep them; --close makes a new one
for every request, --requests-per-connection after so many.

--http 2 speaks HTTP/2: agreed on by ALPN with https, taken as known with http.
Each connection has --streams requests in flight at a time; a target that allows
fewer gets fewer.

--pipeline sends HTTP/1.1 requests ahead of their answers. Few clients do, and few
targets like it: every result says that it was pipelined.

Names are resolved once, before the clock starts; of several addresses the first
that takes a connection counts. To one address and port, one source address has
as many connections as net.ipv4.ip_local_port_range has ports: --source gives
more, and on loopback weir takes more by itself.

One thread is enough for most targets. When it is busy, the summary says that weir
was the limit; -t and --cpus give it more.",
    examples: "  HTTP/2 without TLS, 100 requests in flight on each of 4 connections:
    weir load http://127.0.0.1:8080/ --http 2 --streams 100 -c 4
  A unix socket:
    weir load /status --unix /run/app.sock
  Every request shakes hands anew, as clients without keep-alive do:
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
TLS is spoken with https:// URLs: 1.2 and 1.3, whatever the target prefers. The
summary says what was agreed on, and how long handshakes took; the JSON counts
versions, suites and groups.

Certificates are not checked unless --cacert says against what: a test's target
rarely has one that the world trusts, and the checking would be measured too.

Resumption is off, so that every handshake is a whole one; with --resume it is on,
and counted.

Suites by their IANA names: TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384,
TLS_CHACHA20_POLY1305_SHA256, and those of TLS 1.2, such as
TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256. A wrong name is answered with those that
there are.",
    examples: "  HTTP/2 over TLS 1.3:
    weir load https://127.0.0.1:8443/ --http 2 --tls-version 1.3
  What does a handshake cost?
    weir load https://127.0.0.1:8443/ --close -c 16
  And one that is resumed?
    weir load https://127.0.0.1:8443/ --close -c 16 --resume
  The same for all that are compared:
    weir load https://127.0.0.1:8443/ --tls-suite TLS_AES_128_GCM_SHA256 \\
      --tls-group X25519
  By name, checked, with a certificate of one's own:
    weir load https://127.0.0.1:8443/ --tls-name api.example \\
      --cacert ca.pem --cert me.pem --key me.key",
};

const OUTPUT: Topic = Topic {
    name: "output",
    flags: Flags::Heading("Output"),
    text: "\
The summary, the JSON and the formats go to standard output; what is shown while it
runs goes to standard error: in place on a terminal, a line a second elsewhere.
The first Ctrl-C ends the load and keeps what was measured, the second ends weir.

--json is described in docs/records.md (\"The client's account\"), and as a JSON
schema in docs/schema/load-result.schema.json.

--format prints the lines, units and number formats of wrk, wrk2 (both with
--latency), hey or ab. The latencies are weir's: due to answered (hey: sent to
answered). What a tool prints and weir does not know is 0 or empty.

--hgrm is the text that HdrHistogram's plotter reads, --hlog its log of intervals.",
    examples: "  Instead of hey, in a script that reads hey:
    weir load http://127.0.0.1:8080/ -n 10000 -c 50 -q --format hey
  Everything, in files:
    weir load http://127.0.0.1:8080/ -R 5000 --json -q --csv seconds.csv \\
      --hlog latency.hlog --hgrm latency.hgrm > result.json
  The 99th percentile alone:
    weir load http://127.0.0.1:8080/ -q --json | jq .latency.p99_us",
};
