//! `weir client` (hidden): carries out the load ordered in a trial's folder, and says as JSON lines how it goes.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use weir_lab::role::{ClientWord, ORDER_FILE};
use weir_load::{Outputs, Progress, StopFlag};

use crate::exit::{Done, Exit, Failure};

/// Flags of `weir client`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trial's folder, with load-order.json in it.
    folder: PathBuf,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let order = std::fs::read(args.folder.join(ORDER_FILE)).map_err(Failure::missing)?;
    let spec = serde_json::from_slice(&order).map_err(Failure::input)?;
    let stop = StopFlag::new();
    end_with_parent(stop.clone());
    match weir_load::run(&spec, &outputs(&args.folder), &stop, &mut |progress| say(&word(progress))) {
        Ok(result) => {
            say(&Some(ClientWord::Done(Box::new(result))));
            Ok(Exit::Ok)
        }
        Err(error) => {
            say(&Some(ClientWord::Failed(error.to_string())));
            Ok(Exit::Failed)
        }
    }
}

fn outputs(folder: &Path) -> Outputs {
    Outputs { hlog: Some(folder.join("latency.hlog")), series: Some(folder.join("load.csv")) }
}

/// A line on standard input asks to end early; its end means that the lab is gone, however it went.
fn end_with_parent(stop: StopFlag) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line {
                Ok(_) => stop.set(),
                Err(_) => break,
            }
        }
        std::process::exit(1);
    });
}

fn word(progress: Progress) -> Option<ClientWord> {
    Some(match progress {
        Progress::Connecting { open, of } => ClientWord::Connecting { open, of },
        Progress::Warmup { row, .. } => ClientWord::Warmup(row),
        Progress::WindowStart { unix_ms } => ClientWord::WindowStart { unix_ms },
        Progress::Second(row) => ClientWord::Second(row),
        Progress::WindowEnd => ClientWord::WindowEnd,
        _ => return None,
    })
}

fn say(word: &Option<ClientWord>) {
    let Some(word) = word else { return };
    if let Ok(line) = serde_json::to_string(word) {
        // Nobody listening means the lab is gone; the end of standard input says the same.
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
    }
}
