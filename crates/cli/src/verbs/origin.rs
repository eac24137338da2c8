//! `weir origin`: the server behind the proxy, alone.

use std::net::SocketAddr;

use weir_lab::role::OriginWord;
use weir_origin::{Options, Origin};

use crate::args::{DriverArg, parse_cpus};
use crate::exit::{Done, Exit, Failure};

/// Flags of `weir origin`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir origin --listen 127.0.0.1:9000
  curl -s http://127.0.0.1:9000/bytes/11268 | wc -c
  curl -s 'http://127.0.0.1:9000/bytes/128?delay=10ms'
  curl -s --data hello http://127.0.0.1:9000/echo
  curl -s http://127.0.0.1:9000/_weir/books

Paths: /bytes/<n>, /delay/<time>, /echo, /status/<code>, /headers; any with ?bytes=, ?delay=, ?status=,
?chunked=1, ?close=1. GET / explains them.")]
pub struct Args {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// Worker threads.
    #[arg(long, short = 't', value_name = "N", default_value_t = 1)]
    threads: u32,
    /// CPUs to pin the workers to, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<CpuList>,
    /// I/O driver.
    #[arg(long, value_enum, default_value_t = DriverArg::Auto)]
    driver: DriverArg,
    /// Print where it listens as JSON, and the books at the end.
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
        threads: args.threads.max(1),
        cpus: args.cpus.clone().map(|c| c.0).unwrap_or_default(),
        driver: args.driver.into(),
    };
    weir_net::raise_descriptor_limit();
    let origin = Origin::start(options).map_err(Failure::missing)?;
    if args.with_parent {
        let word = OriginWord { listening: origin.addr(), driver: origin.driver().to_owned() };
        println!("{}", serde_json::to_string(&word).map_err(Failure::missing)?);
        wait_for_parent();
        origin.stop();
        return Ok(Exit::Ok);
    }
    if args.json {
        println!(r#"{{"listening":"{}","driver":"{}"}}"#, origin.addr(), origin.driver());
    } else {
        println!(
            "listening on http://{} ({}, {} thread(s)); Ctrl-C ends it",
            origin.addr(),
            origin.driver(),
            args.threads
        );
    }
    crate::args::wait_for_ctrl_c().map_err(Failure::missing)?;
    let books = origin.stop();
    if args.json {
        super::print_json(&books)?;
    } else {
        println!(
            "\n{} requests over {} connections, {} answered, {} malformed",
            books.requests, books.connections_accepted, books.answered, books.malformed
        );
    }
    Ok(Exit::Ok)
}

/// Standard input ends when the lab ends, however it ended.
fn wait_for_parent() {
    let mut nothing = [0u8; 64];
    while matches!(std::io::Read::read(&mut std::io::stdin(), &mut nothing), Ok(n) if n > 0) {}
}
