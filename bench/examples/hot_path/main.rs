//! The pure parts of a request's path, each by itself, for counting instructions: `hot_path PART COUNT` does one of
//! them COUNT times. `bench/instructions` runs it under a counter with two counts, so that what is done once cancels.
//!
//! Parts that are private to weir-load are compiled in from there, so that what is counted is the engine's own code. (An
//! example and not a binary, because those are also compiled as tests, and theirs belong there.)

mod engine;
mod http1;
mod http2;
mod tls;

#[path = "../../../crates/load/src"]
#[allow(dead_code, unused_imports, reason = "only a sample's recording and the next due time are counted")]
mod load {
    pub(crate) mod clock;
    pub(crate) mod counts;
    pub(crate) mod interval;
    pub(crate) mod schedule;
}

// Where they look for each other.
use load::{clock, counts};

mod error {
    pub(crate) use weir_load::SpecError;
}

use anyhow::{Context, bail};
use weir_model::suite::Arrivals;

/// A part: it is done so many times.
type Part = fn(u64) -> anyhow::Result<()>;

const PARTS: [(&str, Part); 10] = [
    ("parse-answer", http1::parse_response),
    ("parse-request", http1::parse_request),
    ("encode-request", http1::encode_request),
    ("h2-both-1", |count| http2::exchange(count, 1)),
    ("h2-both-32", |count| http2::exchange(count, 32)),
    ("tls-both", tls::exchange),
    ("record-prompt", engine::record_prompt),
    ("record-late", engine::record_late),
    ("next-due-constant", |count| engine::next_due(Arrivals::Constant, count)),
    ("next-due-poisson", |count| engine::next_due(Arrivals::Poisson, count)),
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
