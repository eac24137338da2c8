//! `weir origin`: runs the origin by itself. Users call it, and the lab starts it as a process of each trial.

use std::io::BufRead;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_host::role::{COUNT_REQUEST, OriginReport};
use weir_model::load::{DriverChoice, RandomDuration};
use weir_origin::{Faults, Options, Origin, ResponseOptions, tls};

use crate::args::{choice, driver_values, parse_cpus, stop_on_signal};
use crate::exit::{Exit, Failure, VerbResult, wrong_value};
use weir_model::text::{count, counted};

/// Flags of `weir origin`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../help/origin.txt"))]
pub struct Args {
    /// Address and port to listen on; port 0 means a free one. [default: 127.0.0.1:9000, with --unix a free port]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,
    /// Listen on a Unix socket as well.
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Worker threads. [default: 1, or as many as --connections needs]
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Number of connections to prepare for.
    #[arg(long, short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,
    /// CPUs to pin the workers to, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<std::vec::Vec<u32>>,
    /// I/O driver.
    #[arg(long, default_value = "auto", value_parser = driver_values())]
    driver: DriverChoice,
    /// Delay of answers, unless the request says: 10ms, 5ms..15ms, exp:10ms.
    #[arg(long, value_name = "TIME")]
    delay: Option<RandomDuration>,
    /// Faults of answers, unless the request says, such as reset=1%,status=503:2%.
    #[arg(long, value_name = "FAULTS")]
    fault: Option<Faults>,
    /// Seed of delays and faults.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    tls: TlsFlags,
    /// Print JSON: a line with the address, and the counters at the end.
    #[arg(long)]
    json: bool,
    /// Print the address as JSON, and exit at the end of standard input.
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// Flags of TLS.
#[derive(Debug, clap::Args)]
struct TlsFlags {
    /// Accept only TLS; HTTP/2 and HTTP/1.1 are negotiated by ALPN.
    #[arg(long)]
    tls: bool,
    /// Certificate chain (PEM), instead of a generated one for localhost.
    #[arg(long, value_name = "FILE", requires = "tls", requires = "key")]
    cert: Option<PathBuf>,
    /// Key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Key type of the generated certificate. [default: p256]
    #[arg(long, value_parser = choice(&KEYS), value_name = "KIND", requires = "tls", conflicts_with = "cert")]
    key_type: Option<tls::KeyKind>,
    /// TLS version, or oldest and newest: 1.2, 1.3 or 1.2..1.3.
    #[arg(long, value_parser = choice(&VERSIONS), value_name = "VERSION", requires = "tls", hide_possible_values = true)]
    tls_version: Option<(tls::Version, tls::Version)>,
    /// Whether sessions can be resumed. [default: on]
    #[arg(long, value_parser = choice(&[("on", "They can", true), ("off", "They cannot", false)]), value_name = "ON|OFF", requires = "tls")]
    resume: Option<bool>,
    /// Require client certificates from these authorities (PEM).
    #[arg(long, value_name = "FILE", requires = "tls")]
    client_ca: Option<PathBuf>,
}

/// Kinds of key that are made.
const KEYS: [(&str, &str, tls::KeyKind); 2] =
    [("p256", "ECDSA over secp256r1", tls::KeyKind::P256), ("rsa", "RSA with 2048 bits", tls::KeyKind::Rsa)];

/// Versions of TLS: the oldest and the newest.
const VERSIONS: [(&str, &str, (tls::Version, tls::Version)); 3] = [
    ("1.2", "TLS 1.2 alone", (tls::Version::Tls12, tls::Version::Tls12)),
    ("1.3", "TLS 1.3 alone", (tls::Version::Tls13, tls::Version::Tls13)),
    ("1.2..1.3", "Both", (tls::Version::Tls12, tls::Version::Tls13)),
];

/// Runs it.
pub fn main(args: &Args) -> VerbResult {
    let port = if args.unix.is_some() { 0 } else { 9000 };
    let listen = args.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], port)));
    let options = Options {
        listen,
        unix: args.unix.clone(),
        tls: tls_options(&args.tls)?,
        connections: args.connections,
        // With 0 the number follows from --cpus and --connections.
        threads: args.threads.unwrap_or(u32::from(args.cpus.is_none() && args.connections.is_none())),
        cpus: args.cpus.clone().unwrap_or_default(),
        driver: args.driver,
        responses: ResponseOptions {
            delay: args.delay,
            faults: args.fault.clone().unwrap_or_default(),
            seed: args.seed,
        },
    };
    let origin = Origin::start(options).map_err(Failure::missing)?;
    if args.with_parent {
        send_to_parent(&OriginReport::Listens { listening: origin.addr(), driver: origin.driver().to_owned() })?;
        serve_parent(&origin)?;
        origin.stop();
        return Ok(Exit::Ok);
    }
    if args.json {
        output!(r#"{{"listening":"{}","driver":"{}"}}"#, origin.addr(), origin.driver());
    } else {
        output!(
            "listening on {} ({}, {}); Ctrl-C stops it",
            addresses(&origin, args.tls.tls),
            origin.driver(),
            counted(origin.workers() as u64, "thread")
        );
        if let Some(short) = origin.shortage() {
            output!("{short}");
        }
    }
    wait(&origin)?;
    let counters = origin.stop();
    if args.json {
        crate::out::json(&counters)?;
    } else {
        output!(
            "\n{} over {}: {} answered, {} malformed",
            counted(counters.requests, "request"),
            counted(counters.connections_accepted, "connection"),
            count(counters.answered),
            count(counters.malformed)
        );
    }
    Ok(Exit::Ok)
}

/// Where it can be reached.
fn addresses(origin: &Origin, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let unix = origin.unix().map(|path| format!(" and unix:{}", path.display()));
    format!("{scheme}://{}{}", origin.addr(), unix.unwrap_or_default())
}

/// TLS options; files are read here, where the flags' names are known.
fn tls_options(flags: &TlsFlags) -> Result<Option<tls::ServerOptions>, Failure> {
    if !flags.tls {
        return Ok(None);
    }
    let identity = match (&flags.cert, &flags.key) {
        (Some(cert), Some(key)) => tls::Identity { chain: read("--cert", cert)?, key: read("--key", key)? },
        _ => tls::Identity::generated(flags.key_type.unwrap_or(tls::KeyKind::P256)).map_err(Failure::missing)?,
    };
    let clients = match &flags.client_ca {
        Some(path) => tls::ClientAuth::Required(read("--client-ca", path)?),
        None => tls::ClientAuth::None,
    };
    Ok(Some(tls::ServerOptions {
        identities: vec![identity],
        clients,
        versions: flags.tls_version.unwrap_or((tls::Version::Tls12, tls::Version::Tls13)),
        resumption: flags.resume.unwrap_or(true),
        ..tls::ServerOptions::default()
    }))
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|e| Failure::wrong(flag, format!("{} cannot be read: {e}", path.display()), "a PEM file"))
}

/// An address, or a name that has one, and a port.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let wanted = "an address and a port, such as 127.0.0.1:9000, [::1]:9000 or 0.0.0.0:9000";
    let mut found = text.to_socket_addrs().map_err(|e| wrong_value(e, wanted))?;
    found.next().ok_or_else(|| wrong_value("this name has no address", wanted))
}

/// Waits for Ctrl-C, and reports once when no more connections fit.
fn wait(origin: &Origin) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let mut reported = false;
    while !stop.is_requested() {
        std::thread::sleep(Duration::from_millis(50));
        if !reported && let Some(full) = origin.full() {
            remark!("weir origin: {full}");
            reported = true;
        }
    }
    Ok(())
}

/// Answers questions of the lab on standard input until that ends, which it does when the lab exits or is killed.
fn serve_parent(origin: &Origin) -> Result<(), Failure> {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == COUNT_REQUEST {
            send_to_parent(&OriginReport::Open { connections_open: origin.connections_open() })?;
        }
    }
    Ok(())
}

fn send_to_parent(word: &OriginReport) -> Result<(), Failure> {
    output!("{}", serde_json::to_string(word).map_err(Failure::missing)?);
    Ok(())
}
