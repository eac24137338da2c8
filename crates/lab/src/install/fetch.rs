//! One file from the vendor's own server into a folder of weir's.
//!
//! HTTPS with the machine's certificate authorities, through the proxy that the environment names. A plain `http://`
//! address is taken of this machine only, where no one else can listen in between. What comes is not trusted anyhow:
//! the caller compares the hash.
//!
//! A thread of its own reads, so that a server that says nothing does not keep weir from hearing Ctrl-C.

use std::fs::File;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Proxy, ResponseExt};

use super::{InstallError, Progress, Watch};
use crate::stop::Stop;

/// Most that one download may have. The largest release known today has 190 MB.
const MOST_BYTES: u64 = 2 << 30;
/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(30);
/// Between two looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);
const PIECE: usize = 1 << 16;

/// How a download came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

/// What a download goes by, besides its address.
pub(super) struct Route {
    roots: Roots,
    proxy: Option<Proxy>,
}

enum Roots {
    OfTheMachine,
    #[cfg(test)]
    These(Vec<Certificate<'static>>),
}

impl Route {
    /// As the environment says.
    pub(super) fn from_env() -> Route {
        Route { roots: Roots::OfTheMachine, proxy: Proxy::try_from_env() }
    }

    #[cfg(test)]
    pub(super) fn trusting(certificate: &[u8], proxy: Option<&str>) -> Route {
        let roots = Roots::These(vec![Certificate::from_der(certificate).to_owned()]);
        Route { roots, proxy: proxy.map(|proxy| Proxy::new(proxy).expect("a proxy's address")) }
    }
}

enum Piece {
    Begins(Option<u64>),
    Bytes(Vec<u8>),
    Ends,
    Fails(String),
}

/// Fetches `url` into the file `into`, which must not exist. `remedy` says what else the user can do.
pub(super) fn fetch(
    url: &str,
    into: &Path,
    route: Route,
    remedy: &str,
    stop: &Stop,
    watch: &mut Watch<'_>,
) -> Result<Fetched, InstallError> {
    let fails = |why: String| InstallError::Download { url: url.to_owned(), why, remedy: remedy.to_owned() };
    let uri = allowed(url).map_err(fails)?;
    let mut file = File::create_new(into).map_err(InstallError::io(into))?;
    let pieces = read(uri, route);
    let mut hasher = Sha256::new();
    let (mut done, mut of) = (0u64, None);
    loop {
        if stop.wanted() {
            return Err(InstallError::Interrupted);
        }
        match pieces.recv_timeout(LOOK) {
            Ok(Piece::Begins(length)) => of = length,
            Ok(Piece::Bytes(bytes)) => {
                done = done.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                if done.max(of.unwrap_or(0)) > MOST_BYTES {
                    return Err(fails(format!("it has more than {MOST_BYTES} bytes, which no release has")));
                }
                hasher.update(&bytes);
                file.write_all(&bytes).map_err(InstallError::io(into))?;
                watch(Progress::Bytes { done, of });
            }
            Ok(Piece::Ends) => break,
            Ok(Piece::Fails(why)) => {
                let came = if done > 0 { format!(" (after {done} bytes)") } else { String::new() };
                return Err(fails(format!("{why}{came}")));
            }
            Err(RecvTimeoutError::Timeout) => watch(Progress::Still),
            Err(RecvTimeoutError::Disconnected) => return Err(fails("the download broke off".to_owned())),
        }
    }
    let sha256 = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Fetched { sha256, bytes: done })
}

/// The address, when it is one that weir downloads from.
pub(super) fn allowed(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("no address: {error}"))?;
    check(&uri)?;
    Ok(uri)
}

fn check(uri: &Uri) -> Result<(), String> {
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_here(uri) => Ok(()),
        Some("http") => Err("an http:// address is taken of this machine only; https:// would be right".to_owned()),
        _ => Err("an https:// address would be right".to_owned()),
    }
}

fn is_here(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads in a thread of its own, which ends with the download, or soon after nobody takes what it reads.
fn read(uri: Uri, route: Route) -> Receiver<Piece> {
    let (sender, receiver) = sync_channel(4);
    std::thread::spawn(move || {
        let last = match pass_on(&uri, route, &sender) {
            Ok(()) => Piece::Ends,
            Err(why) => Piece::Fails(why),
        };
        // Nobody listens any more when the user wanted to stop.
        let _ = sender.send(last);
    });
    receiver
}

fn pass_on(uri: &Uri, route: Route, sender: &SyncSender<Piece>) -> Result<(), String> {
    let proxy = route.proxy.filter(|proxy| !is_here(uri) && !proxy.is_no_proxy(uri));
    let through = proxy.as_ref().map(|proxy| format!("{}:{}", proxy.host(), proxy.port()));
    let agent = agent(uri, route.roots, proxy)?;
    let mut response = agent.get(uri).call().map_err(|error| in_words(error, through.as_deref()))?;
    // A redirect must not lead where a product's file may not point.
    response.get_redirect_history().into_iter().flatten().try_for_each(check)?;
    if response.status() != 200 {
        return Err(format!("the server answers {}", response.status()));
    }
    let length = response.body().content_length();
    let mut body = response.body_mut().with_config().limit(MOST_BYTES + 1).reader();
    if sender.send(Piece::Begins(length)).is_err() {
        return Ok(());
    }
    let mut buffer = vec![0; PIECE];
    loop {
        match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                if sender.send(Piece::Bytes(buffer[..n].to_vec())).is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let of = length.map(|bytes| format!(" of {bytes} bytes")).unwrap_or_default();
                return Err(format!("the server broke off{of}: {error}"));
            }
        }
    }
}

fn agent(uri: &Uri, roots: Roots, proxy: Option<Proxy>) -> Result<Agent, String> {
    let secure = uri.scheme_str() == Some("https");
    let roots = match roots {
        Roots::OfTheMachine if !secure => RootCerts::new_with_certs(&[]),
        Roots::OfTheMachine => of_the_machine()?,
        #[cfg(test)]
        Roots::These(certificates) => RootCerts::new_with_certs(&certificates),
    };
    let tls = TlsConfig::builder()
        .root_certs(roots)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .https_only(secure)
        .proxy(proxy)
        .http_status_as_error(false)
        .max_redirects(10)
        .save_redirect_history(true)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent("weir")
        .build();
    Ok(Agent::new_with_config(config))
}

fn of_the_machine() -> Result<RootCerts, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!(
            "this machine has no certificates of authorities{why}; the package ca-certificates has them"
        ));
    }
    let certificates: Vec<_> = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    Ok(RootCerts::new_with_certs(&certificates))
}

fn in_words(error: ureq::Error, proxy: Option<&str>) -> String {
    let text = match error {
        ureq::Error::HostNotFound => "the host's name is not known".to_owned(),
        ureq::Error::Timeout(_) => format!("no answer within {} s", SILENCE.as_secs()),
        ureq::Error::TooManyRedirects => "it leads on and on, more than ten times".to_owned(),
        ureq::Error::RequireHttpsOnly(to) => format!("it leads on to {to}, which is not https://"),
        other => other.to_string(),
    };
    match proxy {
        Some(proxy) => format!("{text} (through the proxy {proxy}, which the environment names)"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_taken_of_this_machine_only() {
        for url in ["https://example.org/x", "http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]:80/x"] {
            assert!(allowed(url).is_ok(), "{url}");
        }
        for url in ["http://example.org/x", "http://127.0.0.1.example.org/", "ftp://x/", "x", "", "http://10.0.0.1/"] {
            assert!(allowed(url).unwrap_err().contains("https://") || allowed(url).is_err(), "{url}");
        }
        assert!(allowed("http://example.org/").unwrap_err().contains("this machine only"));
    }
}
