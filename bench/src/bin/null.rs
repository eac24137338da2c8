//! The program `null`: `null client` and `null origin` are the floor that weir's client and origin are compared with.
//! `peers` starts it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use weir_bench::null::{client, origin};

#[derive(Parser)]
#[command(about = "A client and an origin that do almost nothing, as the floor of what they can cost")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Closed loop; counts bytes. Prints requests and its own CPU
    Client {
        /// http://host:port/path
        url: String,
        /// Connections
        #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=16_000))]
        connections: u32,
        /// Seconds
        #[arg(short, long, default_value_t = 10.0)]
        seconds: f64,
    },
    /// Responds to every request with the same bytes
    Origin {
        /// Address and port; port 0 takes a free one
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Bytes of the response's body
        #[arg(long, default_value_t = 128)]
        size: usize,
    },
}

fn main() -> anyhow::Result<()> {
    weir_bench::raise_descriptor_limit();
    match Args::parse().verb {
        Verb::Client { url, connections, seconds } => {
            let (to, path) = target(&url)?;
            let duration = Duration::try_from_secs_f64(seconds).context("--seconds")?;
            let done = client::run(&client::Load { to, path, connections, duration })?;
            println!("requests {}", done.requests);
            println!("response_bytes {}", done.response_bytes);
            println!("cpu_us_per_request {:.3}", done.cpu_us / done.requests as f64);
        }
        Verb::Origin { listen, size } => {
            let origin = origin::Origin::new(listen, size)?;
            println!("listening {}", origin.address());
            origin.serve()?;
        }
    }
    Ok(())
}

fn target(url: &str) -> anyhow::Result<(SocketAddr, String)> {
    let Some(rest) = url.strip_prefix("http://") else { bail!("{url}: must begin with http://") };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let to = host.to_socket_addrs().with_context(|| format!("{url}: needs host:port"))?.next();
    let path = if path.is_empty() { "/" } else { path };
    Ok((to.with_context(|| format!("{url}: no address"))?, path.to_owned()))
}
