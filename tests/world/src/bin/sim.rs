//! `sim SEEDS`: random runs in the simulated world, from seed 0 on. `sim --seed N [--trace]`: one of them. It ends with 1 when something
//! does not hold, and prints the command that shows it again.

use std::process::ExitCode;
use std::time::Instant;

use weir_world::seeds::{again, run_alone, run_many};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["--seed", seed] => one(seed, false),
        ["--seed", seed, "--trace"] => one(seed, true),
        [seeds] => seeds.parse().map_or_else(|_| usage(), all),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: sim SEEDS | sim --seed N [--trace]");
    ExitCode::from(2)
}

fn one(seed: &str, trace: bool) -> ExitCode {
    let Ok(seed) = seed.parse() else { return usage() };
    match run_alone(seed, trace) {
        Ok(hash) => {
            println!("seed {seed}: all holds; trace {hash:016x}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("seed {seed}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn all(seeds: u64) -> ExitCode {
    let begun = Instant::now();
    let failed = run_many(0..seeds, &|seed, why| println!("seed {seed}: {why}\n  again: {}", again(seed)));
    println!("{seeds} seeds in {:.0} s, {} failed", begun.elapsed().as_secs_f64(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
