//! What watching costs: ten processes with ten threads each, asleep but for a wake-up every 10 ms, watched for some
//! seconds. `cargo run --release -p weir-vitals --example cost`

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_model::record::Role;
use weir_vitals::{Watch, Watched};

fn main() -> std::io::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("threads") {
        return sleep_in_threads();
    }
    let program = std::env::current_exe()?;
    let spawn = |_| Command::new(&program).arg("threads").stdin(Stdio::piped()).spawn();
    let mut children: Vec<Child> = (0..10).map(spawn).collect::<Result<_, _>>()?;
    std::thread::sleep(Duration::from_millis(500));
    let root = Watched { role: Role::Proxy, root: std::process::id(), include_root: false };
    let watch = Watch::start(vec![root])?;
    watch.begin_window()?;
    std::thread::sleep(Duration::from_millis(10_050));
    let window = watch.end_window()?;
    let cost = watch.stop();
    for child in &mut children {
        drop(child.stdin.take());
        child.wait()?;
    }
    let rows = window.series.iter().filter(|row| row.who == "host").count();
    let usage = &window.usage[0];
    println!("{} processes, {} threads, {rows} rows", usage.processes_max, usage.threads_max);
    println!("CPU in the window: {} us, {} us a row", window.own_cpu_us, window.own_cpu_us / rows.max(1) as u64);
    println!("in all: {} us, {} reads, {} looks", cost.cpu_us, cost.reads, cost.looks);
    std::io::stdout().flush()
}

/// Ends when standard input does, so that nothing is left behind however the parent ends.
fn sleep_in_threads() -> std::io::Result<()> {
    for _ in 0..9 {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
    }
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map(drop)
}
