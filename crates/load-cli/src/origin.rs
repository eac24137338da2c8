//! `weir origin`: runs the origin by itself. Users call it, and the lab starts it as a process of each trial.

use std::io::BufRead;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_host::role::{CountersReport, OriginCommand, OriginReport};
use weir_model::load::{DriverChoice, MOST_ORIGIN_HEADERS, REQUEST_ID_HEADER, RandomDuration, origin_header};
use weir_model::protocol::Protocol;
use weir_origin::{Faults, Options, Origin, ResponseOptions, tls};

use crate::exit::{Exit, Failure, VerbResult, wrong_value};
use crate::process::{parse_cpus, stop_on_signal};
use crate::values::{choice, driver_values, parse_count, parse_header, parse_header_name, parse_time};
use weir_model::text::{count, counted};

/// Flags of `weir origin`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/origin.txt"))]
pub struct Args {
    /// Address and port to listen on, with a scheme for other protocols than HTTP (redis://, memcached://, juno-store://); port 0
    /// means a free one. Several make a pool. [default: 127.0.0.1:9000, with --unix a free port]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    listen: Vec<Listen>,
    /// Listen on a Unix socket as well; @NAME is an abstract one.
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Worker threads. [default: 1, or as many as --connections needs]
    #[arg(long, short = 't', value_name = "N", value_parser = parse_count(1..=u32::MAX))]
    threads: Option<u32>,
    /// Number of connections to prepare for.
    #[arg(long, short = 'c', value_name = "N", value_parser = parse_count(1..=u32::MAX))]
    connections: Option<u32>,
    /// CPUs to pin the workers to, such as 0-3,8.
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<std::vec::Vec<u32>>,
    /// I/O driver.
    #[arg(long, default_value = "auto", value_parser = driver_values())]
    driver: DriverChoice,
    /// Delay of responses, unless the request says: 10ms, 5ms..15ms, exp:10ms.
    #[arg(long, value_name = "TIME")]
    delay: Option<RandomDuration>,
    /// Faults of responses, unless the request says, such as reset=1%,status=503:2% (key-value: lose=0.01%,stale=0.1%,expire=300ms).
    #[arg(long, value_name = "FAULTS")]
    fault: Option<Faults>,
    /// A header of responses, in place of the origin's own of that name; 'Date: now' is the time of each. May be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_response_header)]
    header: Vec<(String, String)>,
    /// Header with the IDs of requests, which responses repeat in x-weir-origin. [default: x-weir-id]
    #[arg(long, value_name = "HEADER", value_parser = parse_header_name)]
    request_ids: Option<String>,
    /// Require a header of the PROXY protocol, v1 or v2, at the beginning of each connection; others are reset.
    #[arg(long)]
    proxy_protocol: bool,
    /// Serve HTTP/3, too, on the same ports of UDP, with as many further threads; it implies --tls.
    #[arg(long)]
    http3: bool,
    /// Close connections on which nothing happens for so long, such as 60s. [default: never: proxies keep idle connections]
    #[arg(long, value_name = "TIME", value_parser = parse_idle)]
    idle_timeout: Option<Duration>,
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
    /// What a run asks, as JSON, instead of all other flags.
    #[arg(long, hide = true)]
    spec: Option<String>,
}

/// Flags of TLS.
#[derive(Debug, clap::Args)]
struct TlsFlags {
    /// Accept only TLS, as https:// and rediss:// do; HTTP/2 and HTTP/1.1 are negotiated by ALPN.
    #[arg(long)]
    tls: bool,
    /// Certificate chain (PEM), instead of a generated one for localhost.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Key type of the generated certificate. [default: p256]
    #[arg(long, value_parser = choice(&KEYS), value_name = "KIND", conflicts_with = "cert")]
    key_type: Option<tls::KeyKind>,
    /// TLS version, or oldest and newest: 1.2, 1.3 or 1.2..1.3.
    #[arg(long, value_parser = choice(&VERSIONS), value_name = "VERSION", hide_possible_values = true)]
    tls_version: Option<(tls::Version, tls::Version)>,
    /// Whether sessions can be resumed. [default: on]
    #[arg(long, value_parser = choice(&[("on", "They can", true), ("off", "They cannot", false)]), value_name = "ON|OFF")]
    resume: Option<bool>,
    /// Require client certificates from these authorities (PEM).
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
}

impl TlsFlags {
    /// A flag that means something only with TLS.
    fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--cert", self.cert.is_some()),
            ("--key-type", self.key_type.is_some()),
            ("--tls-version", self.tls_version.is_some()),
            ("--resume", self.resume.is_some()),
            ("--client-ca", self.client_ca.is_some()),
        ];
        flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag)
    }
}

/// Where to listen, and for which protocol.
#[derive(Debug, Clone, Copy)]
struct Listen {
    protocol: Protocol,
    addr: SocketAddr,
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
    if let Some(spec) = &args.spec {
        let spec = serde_json::from_str(spec).map_err(Failure::input)?;
        let options = Options::from_spec(&spec, &|path| std::fs::read(path)).map_err(Failure::missing)?;
        return serve_parent(Origin::start(options).map_err(Failure::missing)?);
    }
    let port = if args.unix.is_some() { 0 } else { 9000 };
    let default = Listen { protocol: Protocol::default(), addr: SocketAddr::from(([127, 0, 0, 1], port)) };
    let first = args.listen.first().copied().unwrap_or(default);
    if let Some(other) = args.listen.iter().find(|other| other.protocol != first.protocol) {
        let found = format!("{} beside {}", other.protocol.scheme(), first.protocol.scheme());
        return Err(Failure::wrong("--listen", found, "one scheme for all addresses of an origin"));
    }
    if args.http3 && first.protocol.is_keyvalue() {
        return Err(Failure::wrong("--http3", format!("--listen {}://", first.protocol.scheme()), "an origin of HTTP"));
    }
    let faults = args.fault.clone().unwrap_or_default();
    faults.check(first.protocol.application()).map_err(|why| Failure::input(format!("--fault: {why}")))?;
    if args.header.len() > MOST_ORIGIN_HEADERS {
        let found = format!("{} headers", args.header.len());
        return Err(Failure::wrong("--header", found, format!("at most {MOST_ORIGIN_HEADERS}")));
    }
    let options = Options {
        listen: first.addr,
        also: args.listen.iter().skip(1).map(|other| other.addr).collect(),
        protocol: first.protocol,
        unix: args.unix.clone(),
        tls: tls_options(&args.tls, args.tls.tls || args.http3 || first.protocol.is_tls())?,
        http3: args.http3,
        proxy_protocol: args.proxy_protocol,
        idle: args.idle_timeout,
        connections: args.connections,
        // With 0 the number follows from --cpus and --connections.
        threads: args.threads.unwrap_or(u32::from(args.cpus.is_none() && args.connections.is_none())),
        cpus: args.cpus.clone().unwrap_or_default(),
        driver: args.driver,
        responses: ResponseOptions { delay: args.delay, faults, seed: args.seed, headers: args.header.clone() },
        request_id_header: args.request_ids.clone().unwrap_or_else(|| REQUEST_ID_HEADER.to_owned()),
        ..Options::default()
    };
    let origin = Origin::start(options).map_err(Failure::missing)?;
    if args.with_parent {
        return serve_parent(origin);
    }
    if args.json {
        output!(r#"{{"listening":"{}","driver":"{}"}}"#, origin.addr(), origin.driver());
    } else {
        output!(
            "listening on {} ({}, {}); Ctrl-C stops it",
            addresses(&origin, first.protocol, args.tls.tls || args.http3),
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
        let headers = counters.proxy_protocol;
        if args.proxy_protocol {
            output!(
                "PROXY protocol: {} of v1, {} of v2, {} without addresses; {} without a header refused",
                counted(headers.v1, "header"),
                count(headers.v2),
                count(headers.without_addresses),
                counted(headers.refused, "connection")
            );
        }
    }
    Ok(Exit::Ok)
}

/// Where it can be reached.
fn addresses(origin: &Origin, protocol: Protocol, tls: bool) -> String {
    let secure = protocol.over_tls().filter(|_| tls).unwrap_or(protocol);
    let tcp = origin.addrs().iter().map(|addr| format!("{}://{addr}", secure.scheme()));
    let unix = origin.unix().map(|path| format!("unix:{}", path.display()));
    tcp.chain(unix).collect::<Vec<_>>().join(" and ")
}

/// TLS options; files are read here, where the flags' names are known.
fn tls_options(flags: &TlsFlags, wanted: bool) -> Result<Option<tls::ServerOptions>, Failure> {
    if !wanted {
        return match flags.given() {
            Some(flag) => Err(Failure::wrong(flag, "no TLS", "--tls, or an address with a scheme of TLS (https://)")),
            None => Ok(None),
        };
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

/// At least as long as a look at all connections may cost.
fn parse_idle(text: &str) -> Result<Duration, String> {
    parse_time(Duration::from_millis(10).., "a time of at least 10ms, such as 60s")(text)
}

/// An address, or a name that has one, and a port, with or without a scheme. A store and a server of a key-value protocol
/// are one.
fn parse_listen(text: &str) -> Result<Listen, String> {
    let wanted = "an address and a port, such as 127.0.0.1:9000, [::1]:9000 or 0.0.0.0:9000";
    let (scheme, address) = text.split_once("://").unwrap_or((Protocol::default().scheme(), text));
    let store = scheme.strip_suffix("-store").and_then(Protocol::of_scheme).filter(|p| p.is_keyvalue());
    let protocol = Protocol::of_scheme(scheme)
        .or(store)
        .ok_or_else(|| wrong_value(format!("the origin does not speak {scheme}://"), &Protocol::schemes(|_| true)))?;
    let mut found = address.trim_end_matches('/').to_socket_addrs().map_err(|e| wrong_value(e, wanted))?;
    let addr = found.next().ok_or_else(|| wrong_value("this name has no address", wanted))?;
    Ok(Listen { protocol, addr })
}

/// A header that the origin can be told to send.
fn parse_response_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = parse_header(text)?;
    origin_header(&name, &value).map_err(|(found, wanted)| wrong_value(found, wanted))?;
    Ok((name, value))
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
fn serve_parent(origin: Origin) -> VerbResult {
    let also = origin.addrs()[1..].to_vec();
    send_to_parent(&OriginReport::Listens { listening: origin.addr(), also, driver: origin.driver().to_owned() })?;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match OriginCommand::parse(&line) {
            Some(OriginCommand::Count) => {
                send_to_parent(&OriginReport::Open { connections_open: origin.connections_open() })?;
            }
            Some(OriginCommand::Counters) => send_to_parent(&CountersReport { counters: origin.counters() })?,
            Some(OriginCommand::Freeze(length)) => origin.freeze(length),
            Some(OriginCommand::Faults(at)) => origin.begin_faults(at),
            None => remark!("weir origin: it does not know {line:?}"),
        }
    }
    origin.stop();
    Ok(Exit::Ok)
}

fn send_to_parent(word: &impl serde::Serialize) -> Result<(), Failure> {
    output!("{}", serde_json::to_string(word).map_err(Failure::missing)?);
    Ok(())
}
