//! How often a duet is wrong, and what it finds: thousands of duets drawn from the pairs of recorded ones. `bench/duets` calls it.
//!
//! `cargo run --release -p weir-bench --bin duets -- [--difference 3%] [--same] FOLDER... [--dearer FOLDER...]` prints the recorded
//! duets, and then what duets of 2, 5 and 10 minutes would have said, drawn from those of one program with itself: as recorded, and
//! with B made dearer by calculation.
//!
//! Runs of successive starts are drawn with their order, so that a machine whose speed wanders does so in the drawn duets, too
//! (the moving block bootstrap: Kuensch 1989, Annals of Statistics 17). The mean of all is taken out first: whatever it is, the
//! recorded programs are the same.

use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use weir_lab::duet::judged::{Pair, Slice, Verdict, Who, enough, judge};
use weir_lab::duet::pairs;
use weir_model::metric::Metric;

const METRICS: [Metric; 2] = [Metric::Cpu, Metric::Rate];
const DRAWN: usize = 2000;
/// Successive starts drawn together.
const RUN: usize = 6;
const MINUTES: [f64; 3] = [2.0, 5.0, 10.0];

/// The starts of a recorded duet: of each, the logarithm of B over A by metric, and how long it took.
struct Recorded {
    starts: Vec<[f64; 2]>,
    seconds: f64,
    /// Whether it was sure of a difference in each metric.
    sure: [bool; 2],
}

fn main() {
    let mut difference = 0.03;
    let (mut same, mut dearer): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
    let mut into = &mut same;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--difference" => {
                let percent = args.next().and_then(|text| text.trim_end_matches('%').parse::<f64>().ok());
                difference = percent.expect("--difference: per cent, such as 3%") / 100.0;
            }
            "--dearer" => into = &mut dearer,
            "--same" => into = &mut same,
            folder => into.push(PathBuf::from(folder)),
        }
    }
    println!("{HEAD}");
    table("A and B the same", &same);
    table("B dearer", &dearer);
    let recorded: Vec<Recorded> =
        same.iter().filter_map(|folder| read(folder).ok()).map(|(_, recorded)| recorded).collect();
    let same: Vec<Recorded> = recorded.into_iter().filter(|one| one.starts.len() >= RUN).collect();
    let all: usize = same.iter().map(|one| one.starts.len()).sum();
    if all < 4 * RUN {
        println!("\n{all} starts are recorded: too few to draw duets from");
        return;
    }
    let seconds = same.iter().map(|one| one.seconds).sum::<f64>() / all as f64;
    let mean =
        |metric: usize| same.iter().flat_map(|one| &one.starts).map(|start| start[metric]).sum::<f64>() / all as f64;
    let means = [mean(0), mean(1)];
    let noise = |metric: usize| {
        let squares = same.iter().flat_map(|one| &one.starts).map(|start| (start[metric] - means[metric]).powi(2));
        100.0 * (squares.sum::<f64>() / all as f64).sqrt()
    };
    println!(
        "\n{all} starts of {seconds:.1} s; standard deviation of a start: cpu {:.2} %, capacity {:.2} %",
        noise(0),
        noise(1)
    );
    println!("\n{DRAWN} drawn duets a row, --find {:.1}%", 100.0 * difference);
    println!("B costs    minutes   sure   other number sure   no such difference   median s to an end");
    for dearer in [0.0, difference, 2.0 * difference] {
        for minutes in MINUTES {
            let mut random = ChaCha8Rng::seed_from_u64(1);
            let drawn: Vec<Drawn> = (0..DRAWN)
                .map(|_| draw(&same, means, dearer, difference, (minutes * 60.0 / seconds) as usize, &mut random))
                .collect();
            let share =
                |of: &dyn Fn(&Drawn) -> bool| 100.0 * drawn.iter().filter(|one| of(one)).count() as f64 / DRAWN as f64;
            let ends: Vec<f64> = drawn.iter().map(|one| one.starts as f64 * seconds).collect();
            println!(
                "{:+5.1} %    {minutes:>5.0}   {:5.1} %            {:5.1} %              {:5.1} %             {:6.0}",
                100.0 * dearer,
                share(&|one| one.cpu == Verdict::Sure),
                share(&|one| one.capacity == Verdict::Sure && one.cpu != Verdict::Sure),
                share(&|one| one.cpu == Verdict::Same),
                weir_stats::median(&ends).unwrap_or_default()
            );
        }
    }
}

/// A drawn duet when it ended.
struct Drawn {
    cpu: Verdict,
    capacity: Verdict,
    starts: usize,
}

fn draw(from: &[Recorded], means: [f64; 2], dearer: f64, find: f64, most: usize, random: &mut ChaCha8Rng) -> Drawn {
    let mut made = Vec::new();
    let mut run: &[[f64; 2]] = &[];
    while made.len() < most {
        let Some((start, rest)) = run.split_first() else {
            let one = &from[random.random_range(0..from.len())];
            let at = random.random_range(0..=one.starts.len() - RUN);
            run = &one.starts[at..at + RUN];
            continue;
        };
        run = rest;
        let logs = [start[0] - means[0] + (1.0 + dearer).ln(), start[1] - means[1] - (1.0 + dearer).ln()];
        let slice = |who, logs: [f64; 2]| Slice {
            who,
            values: METRICS.iter().zip(logs).map(|(metric, log)| (*metric, log.exp())).collect(),
        };
        let slices = vec![slice(Who::A, [0.0; 2]), slice(Who::B, logs)];
        made.push(Pair { start: made.len() as u32, slices });
        let changes = judge(&made, &METRICS, 1.0 + find);
        if enough(&changes).is_some() || made.len() >= most {
            return Drawn { cpu: changes[0].verdict, capacity: changes[1].verdict, starts: made.len() };
        }
    }
    Drawn { cpu: Verdict::Open, capacity: Verdict::Open, starts: most }
}

const HEAD: &str = "recorded          ended       s  pairs  out  cpu %                       capacity %";

/// A row for each recorded duet, and how many of them were sure.
fn table(what: &str, folders: &[PathBuf]) {
    let mut sure = [0; 3];
    let (mut cpu, mut longest) = (Vec::new(), 0.0f64);
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        match read(folder) {
            Ok((row, recorded)) => {
                println!("{name:<16}  {row}");
                sure[0] += 1;
                sure[1] += usize::from(recorded.sure[0]);
                sure[2] += usize::from(recorded.sure.contains(&true));
                cpu.extend(recorded.starts.iter().map(|start| start[0]));
                longest = longest.max(recorded.seconds);
            }
            Err(why) => println!("{name:<16}  {why}"),
        }
    }
    println!("{what}: of {} duets {} are sure of cpu, {} of cpu or capacity", sure[0], sure[1], sure[2]);
    if cpu.len() < 2 {
        return;
    }
    let n = cpu.len() as f64;
    let mean = cpu.iter().sum::<f64>() / n;
    let error = (cpu.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    println!(
        "all {n} starts together: B costs {:+.2} % (standard error {:.2}) CPU a request; the longest duet took {longest:.0} s",
        100.0 * mean.exp_m1(),
        100.0 * error
    );
}

/// A recorded duet as a row, and its starts.
fn read(folder: &Path) -> Result<(String, Recorded), String> {
    let bytes = std::fs::read(folder.join("result.json")).map_err(|_| "unfinished".to_owned())?;
    let result: Value = serde_json::from_slice(&bytes).map_err(|e| format!("result.json: {e}"))?;
    let pairs = pairs::read(folder, &METRICS)?;
    let change = |nth: usize| {
        let change = &result["changes"][nth];
        let ratio = |key: &str| {
            change["ratio"][key].as_f64().map_or("..".to_owned(), |ratio| format!("{:+.1}", 100.0 * (ratio - 1.0)))
        };
        format!("{} [{}, {}] {}", ratio("value"), ratio("low"), ratio("high"), change["verdict"].as_str().unwrap_or(""))
    };
    let omitted = result["omitted"].as_object().into_iter().flat_map(|all| all.values());
    let omitted: u64 = omitted.filter_map(Value::as_u64).sum();
    let took = result["took_s"].as_f64().unwrap_or_default();
    let ended = result["ended"].as_str().unwrap_or("?");
    let row = format!("{ended:<8} {took:>4.0} {:>6} {omitted:>4}  {:<27} {}", pairs.len(), change(0), change(1));
    let changes = |of_start: &[Pair]| {
        let changes = judge(of_start, &METRICS, 2.0);
        Some([changes.first()?.ratio.value.ln(), changes.get(1)?.ratio.value.ln()])
    };
    let starts: Vec<[f64; 2]> = pairs.chunk_by(|one, next| one.start == next.start).filter_map(changes).collect();
    let sure = [0, 1].map(|nth| result["changes"][nth]["verdict"] == "sure");
    Ok((row, Recorded { seconds: took, starts, sure }))
}
