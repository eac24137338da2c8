//! Runs load generators and origins in turn and compares their cost.
//!
//! The client is pinned to one CPU and the server to another. Each round runs every case once, in random order. CPU
//! time is what the kernel charged to exactly that process; the client reports the number of requests. This module does
//! not know how to install anything.

pub mod cases;
pub mod client;
pub mod compare;
pub mod machine;
pub mod many;
pub mod process;
pub mod profile;
pub mod record;
pub mod requests;
pub mod results;
pub mod server;
pub mod trial;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use server::Programs;

/// Flags of all comparisons.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// CPU of clients and CPU of servers
    #[arg(long, default_value = "0,1", value_parser = two_cpus)]
    pub cpus: [u32; 2],
    /// weir's binary; by default the one beside this program
    #[arg(long)]
    weir: Option<PathBuf>,
    /// Measure on a busy machine too, and say so in the results
    #[arg(long)]
    pub anyway: bool,
    /// Seconds to wait for the machine to become quiet
    #[arg(long, default_value_t = 300)]
    wait: u64,
}

impl Common {
    /// The programs to start. A certificate is made in `folder`.
    ///
    /// # Errors
    /// When weir or null is not built, or no certificate can be made.
    pub fn programs(&self, folder: &Path) -> anyhow::Result<Programs> {
        let here = std::env::current_exe()?;
        let weir = self.weir.clone().unwrap_or_else(|| here.with_file_name("weir"));
        let null = here.with_file_name("null");
        for program in [&weir, &null] {
            if !program.is_file() {
                bail!("there is no {}: cargo build --release -p weir -p weir-bench", program.display());
            }
        }
        let [nginx, nghttpd, haterm, redis] = ["nginx", "nghttpd", "haterm", "redis-server"].map(process::find);
        let certificate = server::Certificate::make(folder)?;
        Ok(Programs { weir, null, nginx, nghttpd, haterm, redis, certificate })
    }
}

fn two_cpus(text: &str) -> Result<[u32; 2], String> {
    let cpus = text.split_once(',').and_then(|(client, server)| Some([client.parse().ok()?, server.parse().ok()?]));
    cpus.ok_or_else(|| "two CPUs, such as 0,1".to_owned())
}

/// Name and value of something that describes a run.
pub type Fact = (String, String);

/// A folder that is removed when it is dropped.
///
/// # Errors
/// What the system says.
pub fn scratch() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix("weir-bench-").tempdir()
}

/// The part of a page that says on what machine it was measured, and whether that was busy.
fn described(out: &mut String, facts: &[Fact], busy: &[String]) {
    if !busy.is_empty() {
        let why = busy.join("; ");
        let _ = write!(out, "\n**The machine was busy when this was measured: {why}.** Take the numbers as a hint.\n");
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (name, value) in facts {
        let _ = writeln!(out, "| {name} | {} |", value.replace('|', "\\|"));
    }
}

fn write(page: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(page, text).with_context(|| page.display().to_string())
}
