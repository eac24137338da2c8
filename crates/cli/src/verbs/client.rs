//! `weir client` (hidden): carries out the load or the search ordered in a trial's folder, and says as JSON lines how it goes.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use weir_host::role::{ClientOrder, ClientWord, GO_ON, ORDER_FILE, SearchOrder};
use weir_load::{LoadError, Outputs, Progress, SearchProgress, StopFlag};
use weir_model::load::SearchResult;

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
    let order: ClientOrder = serde_json::from_slice(&order).map_err(Failure::input)?;
    let stop = StopFlag::new();
    let goes_on = listen(stop.clone());
    let outputs = outputs(&args.folder);
    let done = match &order.search {
        None => weir_load::run(&order.spec, &outputs, &stop, &mut |progress| say(&word(progress)))
            .map(|result| ClientWord::Done(Box::new(result))),
        Some(search) => {
            seek(&order, search, &outputs, &stop, &goes_on).map(|result| ClientWord::Found(Box::new(result)))
        }
    };
    match done {
        Ok(word) => {
            say(&Some(word));
            Ok(Exit::Ok)
        }
        Err(error) => {
            say(&Some(ClientWord::Failed(error.to_string())));
            Ok(Exit::Failed)
        }
    }
}

/// Searches; before each trial the lab has to say that it is ready.
fn seek(
    order: &ClientOrder,
    search: &SearchOrder,
    outputs: &Outputs,
    stop: &StopFlag,
    goes_on: &Receiver<()>,
) -> Result<SearchResult, LoadError> {
    let mut progress = |news| match news {
        SearchProgress::Begins { number, kind, rate, .. } => {
            say(&Some(ClientWord::Trial { number, kind, rate }));
            // Fails when nobody can say so any more; then this process ends, too.
            let _ = goes_on.recv();
        }
        SearchProgress::Load(progress) => say(&word(progress)),
        SearchProgress::Ends(probe) => say(&Some(ClientWord::Tried(probe))),
        _ => {}
    };
    weir_load::find_max_to(&order.spec, &search.objective, &search.options, outputs, stop, &mut progress)
}

fn outputs(folder: &Path) -> Outputs {
    Outputs { hlog: Some(folder.join("latency.hlog")), series: Some(folder.join("load.csv")) }
}

/// Hears what the lab says on standard input: [`GO_ON`] to a search that waits; any other line asks to end early. The end
/// of standard input means that the lab is gone, however it went.
fn listen(stop: StopFlag) -> Receiver<()> {
    let (sender, goes_on) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line {
                Ok(line) if line == GO_ON => {}
                Ok(_) => stop.set(),
                Err(_) => break,
            }
            // Who does not wait does not listen; one that waits when it is to end is not to wait any longer.
            let _ = sender.send(());
        }
        std::process::exit(1);
    });
    goes_on
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
