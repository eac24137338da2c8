//! The route of a download: allowed addresses, trusted certificates, the proxy, and redirects. [`super::fetch`] calls it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::{Response, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 10;

/// Certificates and proxy of a download.
#[derive(Clone)]
pub(in super::super) struct Route {
    roots: Roots,
    proxy: Option<Proxy>,
}

#[derive(Clone)]
enum Roots {
    OfTheMachine,
    #[cfg(test)]
    These(Vec<Certificate<'static>>),
}

impl Route {
    /// As the environment says.
    pub(in super::super) fn from_env() -> Route {
        Route { roots: Roots::OfTheMachine, proxy: Proxy::try_from_env() }
    }

    #[cfg(test)]
    pub(in super::super) fn trusting(certificate: &[u8], proxy: Option<&str>) -> Route {
        let roots = Roots::These(vec![Certificate::from_der(certificate).to_owned()]);
        Route { roots, proxy: proxy.map(|proxy| Proxy::new(proxy).expect("a proxy's address")) }
    }
}

/// The address, when it is one that weir downloads from.
pub(in super::super) fn allowed(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("no address: {error}"))?;
    check(&uri)?;
    Ok(uri)
}

fn check(uri: &Uri) -> Result<(), String> {
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_here(uri) => Ok(()),
        Some("http") => Err("an http:// address is taken of this machine only; https:// expected".to_owned()),
        _ => Err("an https:// address expected".to_owned()),
    }
}

fn is_here(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The response at the end of the redirects. Each is looked at before it is followed: none leads where a product's file
/// may not point, nor out of HTTPS.
pub(super) fn follow(uri: &Uri, route: &Route) -> Result<Response<Body>, String> {
    let mut at = uri.clone();
    for _ in 0..=MOST_REDIRECTS {
        let proxy = route.proxy.clone().filter(|proxy| !is_here(&at) && !proxy.is_no_proxy(&at));
        let through = proxy.as_ref().map(|proxy| format!("{}:{}", proxy.host(), proxy.port()));
        let agent = agent(&at, &route.roots, proxy);
        let response = agent.get(&at).call().map_err(|error| in_words(error, through.as_deref()))?;
        match response.status() {
            status if status.is_redirection() => at = next(&at, &response)?,
            status if status == 200 => return Ok(response),
            status => return Err(format!("the server answers {status}")),
        }
    }
    Err(format!("it leads on and on, more than {MOST_REDIRECTS} times"))
}

fn next(at: &Uri, response: &Response<Body>) -> Result<Uri, String> {
    let location = response.headers().get("location").and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| format!("the server answers {} and not where it is", response.status()))?;
    let wrong = |why: String| format!("it leads on to {location}: {why}");
    let next: Uri = joined(at, location).parse().map_err(|error| wrong(format!("no address: {error}")))?;
    check(&next).map_err(wrong)?;
    match (at.scheme_str(), next.scheme_str()) {
        (Some("https"), Some("http")) => Err(wrong("that is not https://".to_owned())),
        _ => Ok(next),
    }
}

/// The address of a redirect or a link, which may leave out what is as before.
pub(in super::super) fn joined(at: &Uri, location: &str) -> String {
    let scheme = at.scheme_str().unwrap_or("https");
    if location.contains("://") {
        return location.to_owned();
    }
    if location.starts_with("//") {
        return format!("{scheme}:{location}");
    }
    // The last component of a path is a file's name.
    let folder = at.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = if location.starts_with('/') { location.to_owned() } else { format!("{folder}/{location}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.trim_start_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let host = at.authority().map_or("", |authority| authority.as_str());
    format!("{scheme}://{host}/{}", parts.join("/"))
}

fn agent(uri: &Uri, roots: &Roots, proxy: Option<Proxy>) -> Agent {
    let secure = uri.scheme_str() == Some("https");
    let roots = match roots {
        Roots::OfTheMachine if !secure => RootCerts::new_with_certs(&[]),
        Roots::OfTheMachine => of_the_machine(),
        #[cfg(test)]
        Roots::These(certificates) => RootCerts::new_with_certs(certificates),
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
        .max_redirects(0)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent("weir")
        .build();
    Agent::new_with_config(config)
}

/// The machine's authorities, or those of browsers where it has none, as a minimal Debian.
fn of_the_machine() -> RootCerts {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return RootCerts::WebPki;
    }
    let certificates: Vec<_> = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    RootCerts::new_with_certs(&certificates)
}

fn in_words(error: ureq::Error, proxy: Option<&str>) -> String {
    let text = match error {
        ureq::Error::HostNotFound => "the host's name is not known".to_owned(),
        ureq::Error::Timeout(_) => format!("no response within {} s", SILENCE.as_secs()),
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

    #[test]
    fn a_redirect_may_leave_out_what_is_as_before() {
        let at: Uri = "https://example.org/a/b?c=d".parse().unwrap();
        for (location, address) in [
            ("http://other.example/x", "http://other.example/x"),
            ("//other.example/x?y=z", "https://other.example/x?y=z"),
            ("/x/y", "https://example.org/x/y"),
            ("x", "https://example.org/a/x"),
            ("./x/", "https://example.org/a/x/"),
            ("../x", "https://example.org/x"),
            ("../../../x", "https://example.org/x"),
        ] {
            assert_eq!(joined(&at, location), address, "{location}");
        }
    }
}
