//! Turns flags into requests and their expected responses: methods, headers, bodies, and the mix of several requests.
//! Called by `verbs::load::spec`.

use weir_model::load::{Endpoint, Feed, RequestSpec, Target};
use weir_model::suite::{Expect, Request};
use weir_requests::feed;
use weir_requests::template::Template;

use super::flag_values::ConnectTo;
use super::flags::Args;
use super::urls::{UrlLine, resolve};
use crate::exit::Failure;

/// The largest file of `--feed`, bytes.
const LARGEST_FEED: u64 = 256 << 20;

/// Targets and requests of a load.
#[derive(Debug)]
pub struct Mix {
    pub targets: Vec<Target>,
    pub requests: Vec<RequestSpec>,
    /// The rule of `--connect-to` that made each target, where other hosts may share it.
    rules: Vec<Option<usize>>,
}

/// Resolves each server once and makes the requests.
///
/// # Errors
/// What is wrong in a flag, and names that cannot be resolved.
pub fn mix(args: &Args, lines: &[UrlLine], feed: Option<&Feed>) -> Result<Mix, Failure> {
    let (flags, responses) = (&args.request, &args.responses);
    let body = flags.body.as_ref().or(flags.body_size.as_ref()).cloned().unwrap_or_default();
    let expect = Expect {
        status: responses.expect_status,
        size: responses.expect_size.map(|size| size.0),
        hash: responses.expect_hash.or(responses.expect_hash_of),
        headers: responses.expect_header.clone(),
        any_body: false,
        errors: None,
    };
    let default = flags.method.as_deref().unwrap_or(if body.is_empty() { "GET" } else { "POST" });
    let default = default.to_ascii_uppercase();
    let mut mix = Mix { targets: Vec::new(), requests: Vec::new(), rules: Vec::new() };
    let is_idle = |rule: &&ConnectTo| !lines.iter().any(|line| rule.is_for(&line.url));
    if let Some(idle) = args.connections.connect_to.iter().find(is_idle) {
        let found = format!("no URL is of the server whose connections are to go to {}", idle.to.authority);
        return Err(Failure::wrong("--connect-to", found, "host and port of a URL, or HOST:PORT for all"));
    }
    for line in lines {
        let target = mix.target(line, args)?;
        // GET and HEAD have no body, also in a mix.
        let without = matches!(line.method.as_deref(), Some("GET" | "HEAD"));
        let mut headers = headers(&flags.header, &line.headers);
        let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        if !has_host && mix.targets[target as usize].authority != line.url.authority {
            headers.push(("Host".to_owned(), line.url.authority.clone()));
        }
        let request = Request {
            method: line.method.clone().unwrap_or_else(|| default.clone()),
            path: line.url.path.clone(),
            headers,
            body: match &line.body {
                Some(own) => own.clone(),
                None if without => Vec::new(),
                None => body.clone(),
            },
        };
        let template = flags.template || feed.is_some();
        if template {
            check_fields(&request, feed)?;
        }
        mix.requests.push(RequestSpec { target, weight: line.weight, template, request, expect: expect.clone() });
    }
    mix.check_weights(lines)?;
    Ok(mix)
}

/// The headers of flags, and those of the request's own that these do not replace.
fn headers(given: &[(String, String)], own: &[(String, String)]) -> Vec<(String, String)> {
    let is_given = |name: &str| given.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    given.iter().chain(own.iter().filter(|(name, _)| !is_given(name))).cloned().collect()
}

/// The table of `--feed`, in its order.
///
/// # Errors
/// A file that cannot be read, and what is wrong in it.
pub fn feed(args: &Args) -> Result<Option<Feed>, Failure> {
    let Some(path) = &args.request.feed else { return Ok(None) };
    let name = path.display().to_string();
    let unread = |e: std::io::Error| Failure::wrong("--feed", format!("{name}: {e}"), "a CSV file that can be read");
    let size = std::fs::metadata(path).map_err(unread)?.len();
    if size > LARGEST_FEED {
        return Err(Failure::wrong("--feed", format!("{name} has {size} bytes"), "at most 256 MiB"));
    }
    let feed = feed::parse(&name, &std::fs::read(path).map_err(unread)?).map_err(Failure::input)?;
    Ok(Some(feed.in_order((args.request.feed_order)(args.load.seed))))
}

impl Mix {
    /// The number of the line's server; a new one is looked up. Without TLS, hosts whose connections go to one server share them.
    fn target(&mut self, line: &UrlLine, args: &Args) -> Result<u32, Failure> {
        let rule = args.connections.connect_to.iter().position(|rule| rule.is_for(&line.url));
        let shared = rule.filter(|_| !line.url.protocol.is_tls());
        let is_known = |(target, rule): (&Target, &Option<usize>)| {
            target.authority == line.url.authority || (shared.is_some() && shared == *rule)
        };
        if let Some(known) = self.targets.iter().zip(&self.rules).position(is_known) {
            return Ok(known as u32);
        }
        let address = match &args.connections.unix {
            Some(path) => Endpoint::Unix(path.clone()),
            None => {
                let server = rule.map_or(&line.url, |rule| &args.connections.connect_to[rule].to);
                Endpoint::Tcp(resolve(server, &line.place).map_err(Failure::input)?)
            }
        };
        self.targets.push(Target { address, authority: line.url.authority.clone() });
        self.rules.push(shared);
        Ok((self.targets.len() - 1) as u32)
    }

    /// Refuses a weight for the only URL of its server, which has nothing to be weighed against.
    fn check_weights(&self, lines: &[UrlLine]) -> Result<(), Failure> {
        if self.targets.len() == 1 {
            return Ok(());
        }
        for (request, line) in self.requests.iter().zip(lines) {
            let alone = self.requests.iter().filter(|other| other.target == request.target).count() == 1;
            if request.weight != 1 && alone {
                let (weight, server) = (request.weight, &line.url.authority);
                let found = format!(
                    "a weight of {weight} for the only URL of {server}: servers get connections in turn, one like the other"
                );
                return Err(Failure::input(line.place.wrong(found, "weights among URLs of the same server")));
            }
        }
        Ok(())
    }
}

/// Checks the fields here, where the flag can be named, and that there are any.
fn check_fields(request: &Request, feed: Option<&Feed>) -> Result<(), Failure> {
    let flag = if feed.is_some() { "--feed" } else { "--template" };
    let values = request.headers.iter().map(|(_, value)| value.as_bytes());
    let texts = std::iter::once(request.path.as_bytes()).chain(values).chain(std::iter::once(request.body.as_slice()));
    let mut fields = false;
    for text in texts {
        let template = Template::parse_with(text, feed).map_err(|e| Failure::wrong(flag, e.found, e.wanted))?;
        fields |= !template.is_text();
    }
    if !fields {
        let found = format!("there is no field in {} {}", request.method, request.path);
        let wanted = "a field such as {{seq}} in path, header values or body (weir help load request)";
        return Err(Failure::wrong(flag, found, wanted));
    }
    Ok(())
}
