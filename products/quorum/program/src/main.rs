//! weir's own replicated key-value store, so that the suite `juno` has a product where JunoDB's binaries are not.
//!
//! `weir-quorum proxy FILE` accepts clients that speak juno's protocol, and carries each request out on a quorum of
//! three stores. `weir-quorum store FILE` is one store, on RocksDB. `weir-quorum check FILE` reads a configuration.

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
        [verb @ ("proxy" | "store" | "check"), file] => (verb, file),
        _ => bail!("usage: weir-quorum proxy|store|check FILE, or weir-quorum --version"),
    };
    let config = Config::read(file)?;
    config.tls.as_ref().map(tls::acceptor).transpose()?;
    anyhow::ensure!(verb != "proxy" || !config.stores.is_empty(), "in {file}: a proxy needs `stores`");
    if verb == "check" {
        return Ok(());
    }
    let rocks = if verb == "store" { Some(&*Box::leak(Box::new(Rocks::open(&config)?))) } else { None };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all();
    if let Some(threads) = config.threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.build().context("starting threads")?;
    let serve = async {
        match rocks {
            Some(rocks) => store::serve(config, rocks).await,
            None => proxy::serve(config).await,
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
