//! The smallest reverse proxy on the pingora library: one listener, one origin or several in turn, every request passed on as it is.
//!
//! Everything is said in one YAML file (`-c`): the keys of pingora's own `ServerConf`, and beside them those of
//! [`Settings`]. `-t` checks the file and ends; `--version` says which version of pingora was built in. It logs nothing,
//! and it does not know what measures it.

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use openssl::ssl::{SslAcceptorBuilder, SslOptions, SslSessionCacheMode, SslVersion};
use pingora::apps::HttpServerOptions;
use pingora::listeners::tls::TlsSettings;
use pingora::protocols::ALPN;
use pingora::protocols::http::v2::server::H2Options;
use pingora::proxy::{ProxyHttp, Session, http_proxy_service};
use pingora::server::Server;
use pingora::server::configuration::Opt;
use pingora::upstreams::peer::HttpPeer;
use serde::Deserialize;

/// What pingora's own configuration has no keys for.
#[derive(Debug, Deserialize)]
struct Settings {
    /// Address and port to listen on.
    listen: String,
    /// Addresses and ports of the origins.
    origins: Vec<String>,
    /// Whether clients may speak HTTP/2 without TLS.
    #[serde(default)]
    h2c: bool,
    /// HTTP/2 streams that a client may have open on one connection; absent for the library's choice.
    streams: Option<u32>,
    /// Absent for plain TCP.
    tls: Option<Tls>,
}

/// TLS towards clients. What is absent stays as pingora's "intermediate" settings have it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    /// PEM file of the certificate chain.
    cert: String,
    /// PEM file of the private key.
    key: String,
    /// Whether HTTP/2 is offered.
    #[serde(default)]
    h2: bool,
    /// Lowest version, `1.2` or `1.3`.
    min: Option<String>,
    /// Highest version.
    max: Option<String>,
    /// TLS 1.2 suites by OpenSSL's names, separated by colons.
    suites12: Option<String>,
    /// TLS 1.3 suites.
    suites13: Option<String>,
    /// Groups of the key exchange, separated by colons.
    groups: Option<String>,
    /// Whether sessions may be resumed.
    resumption: Option<bool>,
}

/// Passes every request on to the next origin.
struct Forward {
    origins: Vec<HttpPeer>,
    next: AtomicUsize,
}

#[async_trait]
impl ProxyHttp for Forward {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, _: &mut ()) -> pingora::Result<Box<HttpPeer>> {
        let origin = match self.origins.as_slice() {
            [only] => only,
            origins => &origins[self.next.fetch_add(1, Ordering::Relaxed) % origins.len()],
        };
        Ok(Box::new(origin.clone()))
    }
}

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--version" || argument == "-V") {
        println!("pingora {}", library_version());
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weir-pingora: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = Opt::parse_args();
    let path = options.conf.clone().ok_or("no configuration\n  expected: -c <file>")?;
    let settings = read(&path)?;
    if settings.origins.is_empty() {
        return Err(format!("{path}: no origins\n  expected: at least one").into());
    }
    let origins = settings.origins.iter().map(|origin| HttpPeer::new(origin.as_str(), false, String::new())).collect();
    let tls = settings.tls.as_ref().map(tls_settings).transpose()?;

    let mut server = Server::new(Some(options))?;
    server.bootstrap(); // ends here with -t
    let mut service = http_proxy_service(&server.configuration, Forward { origins, next: AtomicUsize::new(0) });
    if let Some(logic) = service.app_logic_mut() {
        let mut http = HttpServerOptions::default();
        http.h2c = settings.h2c;
        logic.server_options = Some(http);
        if let Some(streams) = settings.streams {
            let mut h2 = H2Options::new();
            h2.max_concurrent_streams(streams);
            logic.h2_options = Some(h2);
        }
    }
    match tls {
        None => service.add_tcp(&settings.listen),
        Some(tls) => service.add_tls_with_settings(&settings.listen, None, tls),
    }
    server.add_service(service);
    server.run_forever()
}

fn read(path: &str) -> Result<Settings, Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(serde_yaml::from_str(&text).map_err(|error| format!("{path}: {error}"))?)
}

fn tls_settings(tls: &Tls) -> Result<TlsSettings, Box<dyn Error>> {
    let mut settings = TlsSettings::intermediate(&tls.cert, &tls.key)?;
    settings.set_alpn(if tls.h2 { ALPN::H2H1 } else { ALPN::H1 });
    let builder: &mut SslAcceptorBuilder = &mut settings;
    if let Some(min) = &tls.min {
        builder.set_min_proto_version(Some(version(min)?))?;
    }
    if let Some(max) = &tls.max {
        builder.set_max_proto_version(Some(version(max)?))?;
    }
    if let Some(suites) = &tls.suites12 {
        builder.set_cipher_list(suites)?;
    }
    if let Some(suites) = &tls.suites13 {
        builder.set_ciphersuites(suites)?;
    }
    if let Some(groups) = &tls.groups {
        builder.set_groups_list(groups)?;
    }
    match tls.resumption {
        // Tickets and the cache are two ways to the same: without both nothing is kept, on either side.
        Some(false) => {
            builder.set_options(SslOptions::NO_TICKET);
            builder.set_session_cache_mode(SslSessionCacheMode::OFF);
            builder.set_num_tickets(0)?;
        }
        Some(true) => {
            builder.clear_options(SslOptions::NO_TICKET);
            builder.set_session_id_context(b"weir")?;
        }
        None => {}
    }
    Ok(settings)
}

fn version(text: &str) -> Result<SslVersion, String> {
    match text {
        "1.2" => Ok(SslVersion::TLS1_2),
        "1.3" => Ok(SslVersion::TLS1_3),
        other => {
            Err(format!("tls: {other:?} is no version that this program knows\n  expected: \"1.2\" or \"1.3\""))
        }
    }
}

/// The version of pingora in the lock file that this program was built with.
fn library_version() -> &'static str {
    let mut lines = include_str!("../Cargo.lock").lines();
    lines
        .find(|line| *line == "name = \"pingora\"")
        .and_then(|_| lines.next())
        .and_then(|line| line.strip_prefix("version = "))
        .map_or("unknown", |version| version.trim_matches('"'))
}
