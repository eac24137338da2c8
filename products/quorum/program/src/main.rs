//! weir's own replicated key-value store, so that the suite `juno` has a product where JunoDB's binaries are not.
//!
//! `weir-quorum proxy FILE` accepts clients that speak juno's protocol, and carries each request out on a quorum of
//! three stores. `weir-quorum store-1 FILE` is the first store, on RocksDB. `weir-quorum check FILE` reads a configuration.

mod config;
mod link;
mod message;
mod proxy;
mod quorum;
mod record;
mod rocks;
mod server;
mod store;
mod tls;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use config::Config;
use rocks::Rocks;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weir-quorum: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (verb, file) = match arguments[..] {
        ["--version"] => {
            println!("weir-quorum {}", env!("CARGO_PKG_VERSION"));
            return Ok(());
        }
        [verb @ ("proxy" | "store-1" | "store-2" | "store-3" | "check"), file] => (verb, file),
        _ => bail!("usage: weir-quorum proxy|store-1|store-2|store-3|check FILE, or weir-quorum --version"),
    };
    let config = Config::read(file)?;
    let acceptor = config.tls.as_ref().map(tls::acceptor).transpose()?;
    if verb == "check" {
        return Ok(());
    }
    let store = ["store-1", "store-2", "store-3"].iter().position(|store| *store == verb);
    let rocks = store.map(|_| Rocks::open(&config.path.join(verb), &config)).transpose()?;
    let rocks = rocks.map(|rocks| &*Box::leak(Box::new(rocks)));
    let threads = if store.is_some() { config.store_threads } else { config.proxy_threads };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(threads).build();
    let runtime = runtime.context("starting threads")?;
    let serve = async {
        match (store, rocks) {
            (Some(store), Some(rocks)) => store::serve(config, store, rocks).await,
            _ => proxy::serve(config, acceptor).await,
        }
    };
    let done = runtime.block_on(async {
        tokio::select! { result = serve => result, result = asked_to_stop() => result }
    });
    // Connections are cut; RocksDB is closed, which writes out what it holds in memory.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Some(rocks) = rocks {
        rocks.close();
    }
    done
}

/// Waits for SIGTERM or SIGINT.
async fn asked_to_stop() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
    Ok(())
}
