//! What watching costs: ten processes with ten threads each, watched for ten seconds. First with all threads asleep but
//! the first of each process, then with all awake every 10 ms; each without and with a look at all
//! other processes. `cargo run --release -p weir-vitals --example cost`

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_model::record::Role;
use weir_vitals::clock::now;
use weir_vitals::{Watch, Watched};

fn main() -> std::io::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("asleep") => sleep_in_threads(1),
        Some("awake") => sleep_in_threads(9),
        _ => {
            for threads in ["asleep", "awake"] {
                measure(threads, false)?;
                measure(threads, true)?;
            }
            Ok(())
        }
    }
}

fn measure(threads: &str, others: bool) -> std::io::Result<()> {
    let program = std::env::current_exe()?;
    let spawn = |_| Command::new(&program).arg(threads).stdin(Stdio::piped()).spawn();
    let mut children: Vec<Child> = (0..10).map(spawn).collect::<Result<_, _>>()?;
    std::thread::sleep(Duration::from_millis(500));
    // Where the role has CPUs of its own, all other processes are looked at, too.
    let cpus = if others { (0..std::thread::available_parallelism()?.get() as u32).collect() } else { Vec::new() };
    let root = Watched::below(Role::Proxy, std::process::id()).on(cpus);
    let watch = Watch::start(vec![root])?;
    watch.begin_window(now(), None)?;
    std::thread::sleep(Duration::from_millis(10_050));
    let window = watch.end_window()?;
    let cost = watch.stop();
    for child in &mut children {
        drop(child.stdin.take());
        child.wait()?;
    }
    let rows = window.series.iter().filter(|row| row.who == "host").count();
    let usage = &window.usage[0];
    let beside = if others { ", and all others" } else { "" };
    println!("{threads}{beside}: {:?} processes, {:?} threads, {rows} rows", usage.processes_max, usage.threads_max);
    println!("  CPU in the window: {} us, {} us a row", window.own_cpu_us, window.own_cpu_us / rows.max(1) as u64);
    println!("  in all: {} µs, {} reads, {} samples", cost.cpu_us, cost.reads, cost.samples);
    Ok(())
}

/// Ends when standard input does, so that no process remains however the parent ends.
fn sleep_in_threads(awake: usize) -> std::io::Result<()> {
    for thread in 0..9 {
        let pause = Duration::from_millis(if thread < awake { 10 } else { 3_600_000 });
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(pause);
            }
        });
    }
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map(drop)
}
