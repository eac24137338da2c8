//! The hidden verbs: weir's own processes, which the lab starts. `weir client` is the client of a trial: it runs the load or
//! search that a file in the trial's folder describes, and reports progress as JSON lines. `weir requester` sends weir's own
//! requests. `weir supervise` is the supervisor of a product.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use weir_host::role::{ClientCommand, ClientReport, ClientSpec, SPEC_FILE, SearchSpec};
use weir_lab::trial::report;
use weir_load::{Gate, LoadError, Outputs, StopFlag};
use weir_model::load::SearchResult;
use weir_search::SearchProgress;

use crate::exit::{Exit, Failure, VerbResult};

/// Flags of `weir client`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The trial's folder, with load-order.json in it.
    folder: PathBuf,
}

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let order = std::fs::read(args.folder.join(SPEC_FILE)).map_err(Failure::missing)?;
    let order: ClientSpec = serde_json::from_slice(&order).map_err(Failure::input)?;
    let stop = StopFlag::new();
    let commands = read_commands(stop.clone()).map_err(Failure::missing)?;
    let gate = order.waits.then_some(&commands.starts);
    let outputs = outputs(&args.folder);
    let done = match &order.search {
        None => weir_load::run_gated(&order.spec, &outputs, gate, &stop, &mut |progress| send(&report(progress)))
            .map(|result| ClientReport::Done(Box::new(result))),
        Some(search) => {
            run_search(&order, search, &outputs, &stop, &commands).map(|result| ClientReport::Found(Box::new(result)))
        }
    };
    match done {
        Ok(word) => {
            send(&Some(word));
            Ok(Exit::Ok)
        }
        Err(error) => {
            send(&Some(ClientReport::Failed(error.to_string())));
            Ok(Exit::Failed)
        }
    }
}

/// Searches. Waits before each trial until the lab says that it is ready.
fn run_search(
    order: &ClientSpec,
    search: &SearchSpec,
    outputs: &Outputs,
    stop: &StopFlag,
    commands: &Commands,
) -> Result<SearchResult, LoadError> {
    let mut progress = |news| match news {
        SearchProgress::Begins { number, kind, rate, .. } => {
            send(&Some(ClientReport::Trial { number, kind, rate }));
            // Fails when the lab is gone; then this process exits, too.
            let _ = commands.goes_on.recv();
        }
        SearchProgress::Load(progress) => send(&report(progress)),
        SearchProgress::Ends(probe) => send(&Some(ClientReport::Tried(probe))),
        _ => {}
    };
    let gate = order.waits.then_some(&commands.starts);
    weir_search::find_max_to(&order.spec, &search.objective, &search.options, outputs, gate, stop, &mut progress)
}

fn outputs(folder: &Path) -> Outputs {
    Outputs { hlog: Some(folder.join("latency.hlog")), series: Some(folder.join("load.csv")) }
}

/// Where the work receives the lab's commands.
struct Commands {
    /// A waiting search may go on.
    goes_on: Receiver<()>,
    /// A waiting load starts.
    starts: Gate,
}

/// Reads commands of the lab from standard input. At the end of input the lab is gone, and this process exits.
fn read_commands(stop: StopFlag) -> std::io::Result<Commands> {
    let (sender, goes_on) = channel();
    let (starter, starts) = channel();
    std::thread::Builder::new().name("weir-commands".into()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            match ClientCommand::parse(&line) {
                ClientCommand::Continue => {}
                ClientCommand::Start(start) => {
                    // Fails when the work is over.
                    let _ = starter.send(start);
                    continue;
                }
                ClientCommand::End => stop.set(),
            }
            // Ignored unless a search is waiting; wakes it, also so that it can stop.
            let _ = sender.send(());
        }
        std::process::exit(1);
    })?;
    Ok(Commands { goes_on, starts })
}

/// Runs `weir requester`; see `weir_product::requester`.
pub fn requester() -> VerbResult {
    weir_product::requester::serve(std::io::stdin().lock(), std::io::stdout()).map_err(Failure::missing)?;
    Ok(Exit::Ok)
}

/// Runs `weir supervise`; see `weir_host::supervisor`.
pub fn supervise() -> VerbResult {
    match weir_host::supervisor::supervise().map_err(Failure::missing)? {
        0 => Ok(Exit::Ok),
        _ => Ok(Exit::Failed),
    }
}

fn send(word: &Option<ClientReport>) {
    let Some(word) = word else { return };
    if let Ok(line) = serde_json::to_string(word) {
        // Fails when the lab is gone, which the end of standard input reports too.
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
    }
}
