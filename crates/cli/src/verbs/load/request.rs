//! Turns flags into requests and their expected responses: methods, headers, bodies, and the mix of several requests.
//! Called by `verbs::load::spec`.

use weir_load::template::Template;
use weir_model::load::{Endpoint, RequestSpec, Target};
use weir_model::suite::{Expect, Request};
use xxhash_rust::xxh3::xxh3_64;

use super::flags::{AnswerFlags, Args, RequestFlags};
use super::urls::UrlLine;
use super::{target, wrong};
use crate::exit::Failure;

/// Targets and requests of a load.
#[derive(Debug)]
pub struct Mix {
    pub targets: Vec<Target>,
    pub requests: Vec<RequestSpec>,
}

/// Resolves each server once and makes the requests.
///
/// # Errors
/// What is wrong in a flag, and names that cannot be resolved.
pub fn mix(args: &Args, lines: &[UrlLine]) -> Result<Mix, Failure> {
    let headers = args.request.header.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
    let body = body(&args.request)?;
    let expect = expect(&args.answers)?;
    let default = args.request.method.as_deref().unwrap_or(if body.is_empty() { "GET" } else { "POST" });
    let default = default.to_ascii_uppercase();
    let mut mix = Mix { targets: Vec::new(), requests: Vec::new() };
    for line in lines {
        let target = mix.target(line, args)?;
        // GET and HEAD have no body, also in a mix.
        let without = matches!(line.method.as_deref(), Some("GET" | "HEAD"));
        let request = Request {
            method: line.method.clone().unwrap_or_else(|| default.clone()),
            path: line.url.path.clone(),
            headers: headers.clone(),
            body: if without { Vec::new() } else { body.clone() },
        };
        let template = args.request.template;
        if template {
            check_fields(&request)?;
        }
        mix.requests.push(RequestSpec { target, weight: line.weight, template, request, expect: expect.clone() });
    }
    mix.check_weights(lines)?;
    Ok(mix)
}

impl Mix {
    /// The number of the line's server; a new one is looked up.
    fn target(&mut self, line: &UrlLine, args: &Args) -> Result<u32, Failure> {
        let known = self.targets.iter().position(|target| target.authority == line.url.authority);
        if let Some(known) = known {
            return Ok(known as u32);
        }
        let address = match &args.connections.unix {
            Some(path) => Endpoint::Unix(path.clone()),
            None => Endpoint::Tcp(target::resolve(&line.url, &line.source, line.line).map_err(Failure::input)?),
        };
        self.targets.push(Target { address, authority: line.url.authority.clone() });
        Ok((self.targets.len() - 1) as u32)
    }

    /// Refuses a weight for the only URL of its server, which has nothing to be weighed against.
    fn check_weights(&self, lines: &[UrlLine]) -> Result<(), Failure> {
        for (request, line) in self.requests.iter().zip(lines) {
            let alone = self.requests.iter().filter(|other| other.target == request.target).count() == 1;
            if request.weight != 1 && alone && self.targets.len() > 1 {
                let at = line.line.map_or_else(|| "--weight".to_owned(), |n| format!("{}:{n}", line.source));
                return Err(wrong(
                    &at,
                    format!(
                        "a weight of {} for the only URL of {}: servers get connections in turn, one like the other",
                        request.weight, line.url.authority
                    ),
                    "weights among URLs of the same server",
                ));
            }
        }
        Ok(())
    }
}

/// Checks the fields here, where the flag can be named, and that there are any.
fn check_fields(request: &Request) -> Result<(), Failure> {
    let values = request.headers.iter().map(|(_, value)| value.as_bytes());
    let texts = std::iter::once(request.path.as_bytes()).chain(values).chain(std::iter::once(request.body.as_slice()));
    let mut fields = false;
    for text in texts {
        let template = Template::parse(text).map_err(|e| wrong("--template", e.found, e.wanted))?;
        fields |= !template.is_text();
    }
    if !fields {
        let found = format!("there is no field in {} {}", request.method, request.path);
        return Err(wrong(
            "--template",
            found,
            "a field such as {{seq}} in path, header values or body (weir help load request)",
        ));
    }
    Ok(())
}

fn header(text: &str) -> Result<(String, String), Failure> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(wrong("-H", format!("\"{text}\" is not a header"), "'name: value'")),
    }
}

/// Content of generated bodies: lines of text, which servers can log.
const FILLING: &[u8] = b"weir weir weir weir weir weir weir weir weir weir weir weir weir\n";

/// Largest generated body, in bytes.
const LARGEST_BODY: u64 = 1 << 30;

fn body(flags: &RequestFlags) -> Result<Vec<u8>, Failure> {
    if let Some(text) = &flags.body {
        return Ok(text.clone().into_bytes());
    }
    if let Some(path) = &flags.body_file {
        return read("--body-file", path);
    }
    let size = flags.body_size.map_or(0, |size| size.0);
    if size > LARGEST_BODY {
        return Err(wrong("--body-size", format!("{size} bytes"), "at most 1GiB"));
    }
    Ok(FILLING.iter().copied().cycle().take(size as usize).collect())
}

fn expect(flags: &AnswerFlags) -> Result<Expect, Failure> {
    let hash = match &flags.expect_hash_of {
        Some(path) => Some(xxh3_64(&read("--expect-hash-of", path)?)),
        None => flags.expect_hash,
    };
    let headers = flags.expect_header.iter().map(|text| expected_header(text)).collect::<Result<_, _>>()?;
    Ok(Expect { status: flags.expect_status, size: flags.expect_size.map(|size| size.0), hash, headers })
}

/// `name: value`, or `name` for any value.
fn expected_header(text: &str) -> Result<(String, Option<String>), Failure> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None => (text.trim(), None),
    };
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(wrong("--expect-header", format!("\"{text}\" is not a header"), "'name: value', or 'name'"));
    }
    Ok((name.to_ascii_lowercase(), value))
}

/// Reads a file that a flag names.
///
/// # Errors
/// An error text with the flag, the file and the kernel's error.
pub fn read(flag: &str, path: &std::path::Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| wrong(flag, format!("{}: {e}", path.display()), "a file that can be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_headers_are_names_or_names_with_values() {
        let read = |text: &str| expected_header(text).expect("right");
        assert_eq!(read("Content-Type: text/plain"), ("content-type".to_owned(), Some("text/plain".to_owned())));
        assert_eq!(read("ETag"), ("etag".to_owned(), None));
        assert_eq!(read("x:"), ("x".to_owned(), Some(String::new())));
        for wrong in ["", ": x", "a b: c", "x y"] {
            assert!(expected_header(wrong).is_err(), "{wrong}");
        }
    }
}
