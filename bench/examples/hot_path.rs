//! The pure parts of a request's path, each by itself, for counting instructions: `hot_path PART COUNT` does one of
//! them COUNT times. `bench/instructions` runs it under a counter with two counts, so that what is done once cancels.
//!
//! Schedule and recorder are private to weir-load; their source is compiled in from there, so that what is counted is the
//! engine's own code. (An example and not a binary, because those are also compiled as tests, and theirs belong there.)

#[path = "../../crates/load/src/recorder.rs"]
#[allow(dead_code, reason = "only the recording of a sample is counted")]
mod recorder;
#[path = "../../crates/load/src/schedule.rs"]
mod schedule;

use std::hint::black_box;

use anyhow::{Context, bail};
use weir_model::suite::Arrivals;
use weir_wire::h1::{AnswerEvent, Answers, Limits, RequestEvent, Requests, encode};

use self::recorder::Slab;
use self::schedule::Schedule;

const ANSWER_HEAD: &str =
    "HTTP/1.1 200 OK\r\nServer: weir-origin\r\nContent-Type: application/octet-stream\r\nContent-Length: 128\r\n\r\n";
const REQUEST: &[u8] = b"GET /bytes/128 HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n";

/// A part: it is done so many times.
type Part = fn(u64) -> anyhow::Result<()>;

const PARTS: [(&str, Part); 7] = [
    ("parse-answer", parse_answer),
    ("parse-request", parse_request),
    ("encode-request", encode_request),
    ("record-prompt", record_prompt),
    ("record-late", record_late),
    ("next-due-constant", |count| next_due(Arrivals::Constant, count)),
    ("next-due-poisson", |count| next_due(Arrivals::Poisson, count)),
];

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [list] if list == "list" => {
            for (name, _) in PARTS {
                println!("{name}");
            }
            Ok(())
        }
        [name, count] => {
            let count = count.parse().context("COUNT")?;
            let part = PARTS.iter().find(|(part, _)| part == name);
            part.with_context(|| format!("{name} is no part; see hot_path list"))?.1(count)
        }
        _ => bail!("usage: hot_path list | hot_path PART COUNT"),
    }
}

/// An answer of 128 bytes that comes in one piece, from the connection's point of view.
fn parse_answer(count: u64) -> anyhow::Result<()> {
    let mut bytes = ANSWER_HEAD.as_bytes().to_vec();
    bytes.resize(bytes.len() + 128, b'x');
    let mut answers = Answers::new(Limits::default());
    for _ in 0..count {
        answers.request_sent(false);
        let mut input = black_box(&bytes[..]);
        let mut ended = false;
        while let Some(event) = answers.next(&mut input)? {
            ended = matches!(event, AnswerEvent::End { .. });
            black_box(&event);
        }
        if !ended {
            bail!("the answer did not end");
        }
    }
    Ok(())
}

/// The request that weir sends, as the origin reads it.
fn parse_request(count: u64) -> anyhow::Result<()> {
    let mut requests = Requests::new(Limits::default());
    for _ in 0..count {
        let mut input = black_box(REQUEST);
        let mut ended = false;
        while let Some(event) = requests.next(&mut input)? {
            ended = matches!(event, RequestEvent::End { .. });
            black_box(&event);
        }
        if !ended {
            bail!("the request did not end");
        }
    }
    Ok(())
}

/// A GET with one header. The engine does this once a load and then copies the bytes.
fn encode_request(count: u64) -> anyhow::Result<()> {
    let mut out = Vec::with_capacity(256);
    for _ in 0..count {
        out.clear();
        encode::request(&mut out, black_box("GET"), black_box("/bytes/128"), &[("Host", "127.0.0.1:9000")], b"")?;
        black_box(&out);
    }
    Ok(())
}

/// One sample between 20 us and 1 ms, of a request sent when it was due: all those of closed loads.
fn record_prompt(count: u64) -> anyhow::Result<()> {
    let mut slab = Slab::new();
    for at in 0..count {
        let latency = 20_000 + at * 7_919 % 980_000;
        slab.sample(black_box(at), Some(black_box(at)), black_box(at + latency));
    }
    black_box(&slab);
    Ok(())
}

/// The same of a request sent later than it was due.
fn record_late(count: u64) -> anyhow::Result<()> {
    let mut slab = Slab::new();
    for at in 0..count {
        let latency = 20_000 + at * 7_919 % 980_000;
        slab.sample(black_box(at), Some(black_box(at + 3_000)), black_box(at + latency));
    }
    black_box(&slab);
    Ok(())
}

fn next_due(arrivals: Arrivals, count: u64) -> anyhow::Result<()> {
    let mut schedule = Schedule::new(20_000.0, arrivals, 1, 0, 1);
    for _ in 0..count {
        black_box(schedule.next_due());
    }
    Ok(())
}
