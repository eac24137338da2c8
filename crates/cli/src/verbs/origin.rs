//! `weir origin`: the server behind the proxy, alone.

use std::net::{SocketAddr, ToSocketAddrs};

use weir_lab::role::OriginWord;
use weir_model::load::Spread;
use weir_origin::{Faults, Manner, Options, Origin};

use crate::args::{DriverArg, parse_cpus};
use crate::exit::{Done, Exit, Failure};
use crate::words::{count, counted};

/// Flags of `weir origin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir origin --listen 127.0.0.1:9000
  curl -s http://127.0.0.1:9000/bytes/11268 | wc -c
  curl -s 'http://127.0.0.1:9000/bytes/128?delay=10ms'
  curl -s --data hello http://127.0.0.1:9000/echo
  curl -s http://127.0.0.1:9000/_weir/books

Paths: /bytes/<n>, /delay/<time>, /echo, /status/<code>, /headers
Any of them with ?bytes=, ?delay=, ?status=, ?fault=, ?chunked=1, ?close=1
GET / explains them. Ctrl-C ends it.

Delays: 10ms, 5ms..15ms (anything between them), exp:10ms (exponential, with this mean)
  weir origin --delay exp:10ms
  curl 'http://127.0.0.1:9000/bytes/128?delay=5ms..15ms'

Faults, by probability; reset, close, stall, length, status=<code>, drip=<bytes>/s:
  weir origin --fault reset=1%,stall=0.1%,status=503:2%,drip=1kB/s:5%
  curl 'http://127.0.0.1:9000/bytes/128?fault=close'
What a request asks for wins over the flags; ?fault=none asks for no fault.")]
pub struct Args {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000", value_parser = parse_listen)]
    listen: SocketAddr,
    /// Worker threads.
    #[arg(long, short = 't', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    /// CPUs to pin the workers to, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<CpuList>,
    /// How to talk to the kernel.
    #[arg(long, value_enum, default_value_t = DriverArg::Auto)]
    driver: DriverArg,
    /// Wait before each answer whose target does not say: 10ms, 5ms..15ms, exp:10ms.
    #[arg(long, value_name = "TIME")]
    delay: Option<Spread>,
    /// Spoil answers whose target does not say, such as reset=1%,status=503:2%.
    #[arg(long, value_name = "FAULTS")]
    fault: Option<Faults>,
    /// Seed of delays and faults.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON: a line with where it listens, and its counts at the end.
    #[arg(long)]
    json: bool,
    /// Say where it listens as JSON, and end with standard input.
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// A list of CPUs as one flag's value.
pub type CpuList = crate::args::CpuList;

/// Runs it.
pub fn main(args: &Args) -> Done {
    let options = Options {
        listen: args.listen,
        threads: args.threads,
        cpus: args.cpus.clone().map(|c| c.0).unwrap_or_default(),
        driver: args.driver.into(),
        manner: Manner { delay: args.delay, faults: args.fault.clone().unwrap_or_default(), seed: args.seed },
    };
    weir_net::raise_descriptor_limit();
    let origin = Origin::start(options).map_err(Failure::missing)?;
    if args.with_parent {
        let word = OriginWord { listening: origin.addr(), driver: origin.driver().to_owned() };
        say!("{}", serde_json::to_string(&word).map_err(Failure::missing)?);
        wait_for_parent();
        origin.stop();
        return Ok(Exit::Ok);
    }
    if args.json {
        say!(r#"{{"listening":"{}","driver":"{}"}}"#, origin.addr(), origin.driver());
    } else {
        say!(
            "listening on http://{} ({}, {}); Ctrl-C ends it",
            origin.addr(),
            origin.driver(),
            counted(args.threads.into(), "thread")
        );
    }
    crate::args::wait_for_ctrl_c().map_err(Failure::missing)?;
    let books = origin.stop();
    if args.json {
        super::print_json(&books)?;
    } else {
        say!(
            "\n{} over {}: {} answered, {} malformed",
            counted(books.requests, "request"),
            counted(books.connections_accepted, "connection"),
            count(books.answered),
            count(books.malformed)
        );
    }
    Ok(Exit::Ok)
}

/// An address, or a name that has one, and a port.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let right = "would be right: an address and a port, such as 127.0.0.1:9000, [::1]:9000 or 0.0.0.0:9000";
    let mut found = text.to_socket_addrs().map_err(|e| format!("{e}; {right}"))?;
    found.next().ok_or_else(|| format!("no address goes with this name; {right}"))
}

/// Standard input ends when the lab ends, however it ended.
fn wait_for_parent() {
    let mut nothing = [0u8; 64];
    while matches!(std::io::Read::read(&mut std::io::stdin(), &mut nothing), Ok(n) if n > 0) {}
}
