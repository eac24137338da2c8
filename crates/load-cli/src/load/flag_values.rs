//! Parsers of flag values with a notation of their own, and of files that flags name. Their errors say what was found and
//! what would be right; clap names the flag. Used by `verbs::load::flags`.

use std::io::Read;
use std::path::PathBuf;

use weir_model::condition::Condition;
use weir_model::load::{Step, TlsVersion};
use weir_model::protocol::Application;
use weir_model::units::{ByteCount, HumanDuration, Rate, UnitError};
use xxhash_rust::xxh3::xxh3_64;

use super::urls::{self, Url};
use crate::exit::{value_error, wrong_value};

/// Content of generated bodies: lines of text, which servers can log.
const FILLING: &[u8] = b"weir weir weir weir weir weir weir weir weir weir weir weir weir\n";

/// Largest generated body, in bytes.
const LARGEST_BODY: u64 = 1 << 30;

/// Reads `FROM..TO`, requests a second. Either may be 0, not both.
pub fn ramp(text: &str) -> Result<(f64, f64), String> {
    let wrong = |what: &str| wrong_value(format!("\"{text}\" {what}"), "two rates, such as 100..20k");
    let (from, to) = text.split_once("..").ok_or_else(|| wrong("has no \"..\""))?;
    let (from, to) = (rate(from)?, rate(to)?);
    if from == 0.0 && to == 0.0 { Err(wrong("is no load")) } else { Ok((from, to)) }
}

/// Reads `RATExTIME,RATExTIME`.
pub fn steps(text: &str) -> Result<Vec<Step>, String> {
    let steps = text.split(',').map(step).collect::<Result<Vec<Step>, String>>()?;
    if steps.iter().all(|step| step.rate == 0.0) {
        return Err(wrong_value(format!("\"{text}\" is no load"), "at least one rate above 0"));
    }
    Ok(steps)
}

fn step(text: &str) -> Result<Step, String> {
    let wrong = |what: &str| wrong_value(format!("\"{text}\" {what}"), "a rate and a time, such as 1000x10s");
    let (rate_text, time) = text.split_once('x').ok_or_else(|| wrong("has no \"x\""))?;
    let HumanDuration(time) = time.parse().map_err(|e| format!("{e}"))?;
    if time.is_zero() {
        Err(wrong("takes no time"))
    } else {
        Ok(Step { rate: rate(rate_text)?, for_s: time.as_secs_f64() })
    }
}

/// A rate that may be 0.
fn rate(text: &str) -> Result<f64, String> {
    match text.trim() {
        "0" => Ok(0.0),
        _ => text.parse::<Rate>().map(Rate::per_second).map_err(|e| e.to_string()),
    }
}

/// A server that connections go to instead of to the servers of the URLs, or of some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    /// The host and the port that it is for; `None`: any.
    host: Option<String>,
    port: Option<u16>,
    /// The server.
    pub to: Url,
}

impl ConnectTo {
    /// Returns whether it is for this server.
    pub fn is_for(&self, url: &Url) -> bool {
        self.host.as_ref().is_none_or(|host| host.eq_ignore_ascii_case(&url.host))
            && self.port.is_none_or(|port| port == url.port)
    }
}

/// Reads `HOST:PORT`, or curl's `HOST1:PORT1:HOST2:PORT2`, of which the first two may be empty.
pub fn connect_to(text: &str) -> Result<ConnectTo, String> {
    let mut inside = false;
    let colons: Vec<usize> = text
        .char_indices()
        .filter(|(_, c)| {
            inside = (inside || *c == '[') && *c != ']';
            *c == ':' && !inside
        })
        .map(|(at, _)| at)
        .collect();
    let (for_host, for_port, to) = match colons[..] {
        [_] => ("", "", text),
        [first, second, _] => (&text[..first], &text[first + 1..second], &text[second + 1..]),
        _ => {
            let found = format!("\"{text}\" is not where connections go");
            return Err(wrong_value(found, "HOST:PORT, or HOST1:PORT1:HOST2:PORT2 as curl has it"));
        }
    };
    let port = match for_port {
        "" => None,
        port => Some(port.parse().map_err(|_| wrong_value(format!("\"{port}\" is no port"), "1 to 65535"))?),
    };
    let host = Some(for_host.trim_matches(['[', ']'])).filter(|host| !host.is_empty());
    Ok(ConnectTo { host: host.map(str::to_owned), port, to: urls::server(to).map_err(value_error)? })
}

/// How many times as fast as recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(pub f64);

/// Reads `2x` or `2`.
pub fn speed(text: &str) -> Result<Speed, String> {
    let factor = text.strip_suffix('x').unwrap_or(text);
    let plain = factor.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let factor = factor.parse().ok().filter(|factor: &f64| plain && (1e-3..=1e6).contains(factor));
    factor
        .map(Speed)
        .ok_or_else(|| wrong_value(format!("\"{text}\" is no speed"), "0.001x to 1000000x, such as 2x or 0.5x"))
}

/// Reads a length of time above 0, or a bare 0 for no end.
pub fn duration(text: &str) -> Result<HumanDuration, String> {
    let time: HumanDuration = text.parse().map_err(|error: UnitError| error.to_string())?;
    if time.0.is_zero() && text.trim() != "0" {
        return Err(wrong_value(
            format!("\"{text}\" takes no time"),
            "a time such as 30s or 1m30s, or 0 (until Ctrl-C)",
        ));
    }
    Ok(time)
}

/// Reads one or several conditions.
pub fn conditions(text: &str) -> Result<Vec<Condition>, String> {
    Condition::list(text).map_err(|e| e.to_string())
}

/// Reads `name: value`, or `name` for any value.
pub fn expected_header(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
        None => (text.trim(), None),
    };
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(wrong_value(format!("\"{text}\" is not a header"), "'name: value', or 'name'"));
    }
    Ok((name.to_ascii_lowercase(), value))
}

/// A body: a text, or what `@FILE` or, as `@-`, standard input has.
pub fn body(text: &str) -> Result<Vec<u8>, String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.as_bytes().to_vec()) };
    let mut body = Vec::new();
    let read = match path {
        "-" => std::io::stdin().read_to_end(&mut body).map(|_| body),
        path => std::fs::read(path),
    };
    read.map_err(|e| {
        wrong_value(
            format!("{path}: {e}"),
            "a file that can be read, or - (a text that begins with @ stands in a file)",
        )
    })
}

/// The content of a file.
pub fn content(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| wrong_value(e, "a file that can be read"))
}

/// Reads `16KiB`, and makes a body of that size.
pub fn generated(text: &str) -> Result<Vec<u8>, String> {
    let ByteCount(size) = text.parse().map_err(|e| format!("{e}"))?;
    if size > LARGEST_BODY {
        return Err(wrong_value(format!("{size} bytes"), "at most 1GiB"));
    }
    Ok(FILLING.iter().copied().cycle().take(size as usize).collect())
}

/// Reads an XXH3-64 as hexadecimal digits, with or without `0x`.
pub fn hash(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let wanted = "up to 16 hexadecimal digits, as `xxhsum -H3` prints them";
    // Rust's own parser takes signs as well.
    let hash = if digits.starts_with('+') { None } else { u64::from_str_radix(digits, 16).ok() };
    hash.ok_or_else(|| wrong_value(format!("\"{text}\" is no XXH3-64"), wanted))
}

/// The XXH3-64 of a file's content.
pub fn hash_of(path: &str) -> Result<u64, String> {
    Ok(xxh3_64(&content(path)?))
}

/// Reads a version of HTTP.
pub fn http(text: &str) -> Result<Application, String> {
    match text {
        "1.1" | "1" => Ok(Application::Http1),
        "2" => Ok(Application::Http2),
        "3" => Ok(Application::Http3),
        _ => Err(wrong_value(format!("weir load does not speak HTTP/{text}"), "1.1, 2 or 3")),
    }
}

/// Reads `1.2`, `1.3` or `1.2..1.3`: the oldest version and the newest.
pub fn versions(text: &str) -> Result<(TlsVersion, TlsVersion), String> {
    let wrong = |what: String| wrong_value(what, "1.2, 1.3 or 1.2..1.3");
    let one = |part: &str| match part.trim() {
        "1.2" => Ok(TlsVersion::Tls12),
        "1.3" => Ok(TlsVersion::Tls13),
        other => Err(wrong(format!("\"{other}\" is no version of TLS that weir speaks"))),
    };
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let (from, to) = (one(from)?, one(to)?);
    if from > to { Err(wrong(format!("\"{text}\" ends before it begins"))) } else { Ok((from, to)) }
}

/// The path of a PEM file that has a certificate. Its content is parsed when the load begins.
pub fn certificate(path: &str) -> Result<PathBuf, String> {
    pem(path, "CERTIFICATE")
}

/// The path of a PEM file that has a private key.
pub fn private_key(path: &str) -> Result<PathBuf, String> {
    pem(path, "PRIVATE KEY")
}

fn pem(path: &str, what: &str) -> Result<PathBuf, String> {
    let end = format!("{what}-----");
    if content(path)?.windows(end.len()).any(|part| part == end.as_bytes()) {
        return Ok(path.into());
    }
    let found = format!("there is no {} in it", what.to_lowercase());
    Err(wrong_value(found, &format!("a PEM file, which has a line that ends with {end}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_rates_are_read() {
        assert_eq!(ramp("100..20k"), Ok((100.0, 20_000.0)));
        assert_eq!(ramp("0..1000/s"), Ok((0.0, 1_000.0)));
        let two = steps("1000x10s,0x500ms").expect("right");
        assert_eq!(two, [Step { rate: 1_000.0, for_s: 10.0 }, Step { rate: 0.0, for_s: 0.5 }]);
        for wrong in ["100", "0..0", "a..b", "..", "1..-2"] {
            assert!(ramp(wrong).expect_err(wrong).contains("expected: "), "{wrong}");
        }
        for wrong in ["", "1000", "1000x", "1000x10", "x10s", "0x1s", "1000x0s", "1000x1s,"] {
            assert!(steps(wrong).expect_err(wrong).contains("expected: "), "{wrong}");
        }
    }

    #[test]
    fn connections_go_where_curl_would_send_them() {
        let url = |text: &str| urls::server(text).expect(text);
        for (text, to, yes, no) in [
            ("127.0.0.1:8443", "127.0.0.1:8443", "a.test:80", None),
            ("[::1]:8443", "[::1]:8443", "[::2]:80", None),
            ("::b.test:1", "b.test:1", "a.test:80", None),
            ("a.test:80:127.0.0.1:1", "127.0.0.1:1", "A.test:80", Some("a.test:81")),
            ("a.test::127.0.0.1:1", "127.0.0.1:1", "a.test:81", Some("b.test:80")),
            (":80:[::1]:1", "[::1]:1", "b.test:80", Some("b.test:81")),
            ("[::2]:80:[::1]:1", "[::1]:1", "[::2]:80", Some("[::3]:80")),
        ] {
            let rule = connect_to(text).expect(text);
            assert_eq!(rule.to.authority, to);
            assert!(rule.is_for(&url(yes)) && !no.is_some_and(|no| rule.is_for(&url(no))), "{text}");
        }
        for wrong in ["", "a.test", ":80", "a.test:", "a:b", "a:80:b", "a:x:b:80", "a:80:b:80:c:80", "a:80/", "u@a:80"]
        {
            assert!(connect_to(wrong).expect_err(wrong).contains("expected: "), "{wrong}");
        }
    }

    #[test]
    fn a_body_is_a_text_or_a_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b"{\"a\": 1}\n\xff").expect("written");
        assert_eq!(body(&format!("@{}", file.path().display())), Ok(b"{\"a\": 1}\n\xff".to_vec()));
        assert_eq!(body("a@b"), Ok(b"a@b".to_vec()));
        for missing in ["@/no/such/file", "@"] {
            assert!(body(missing).expect_err(missing).contains("No such file"), "{missing}");
        }
    }

    #[test]
    fn versions_and_hashes_are_read() {
        assert_eq!(versions("1.2"), Ok((TlsVersion::Tls12, TlsVersion::Tls12)));
        assert_eq!(versions("1.2..1.3"), Ok((TlsVersion::Tls12, TlsVersion::Tls13)));
        for wrong in ["1.1", "1.3..1.2", "", "13"] {
            assert!(versions(wrong).expect_err(wrong).contains("expected: "), "{wrong}");
        }
        assert_eq!(hash("0x00000000000000ff"), Ok(255));
        assert_eq!(hash("DEADbeef"), Ok(0xdead_beef));
        for wrong in ["", "0x", "xyz", "11112222333344445", "+1"] {
            assert!(hash(wrong).expect_err(wrong).contains("expected: "), "{wrong}");
        }
    }

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

    #[test]
    fn a_pem_file_has_what_it_is_for() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "-----BEGIN CERTIFICATE-----\n").expect("written");
        let path = file.path().to_str().expect("UTF-8");
        assert_eq!(certificate(path), Ok(path.into()));
        assert!(private_key(path).expect_err("a certificate").contains("there is no private key in it"));
        assert!(certificate("/no/such/file").expect_err("no file").contains("No such file"));
    }
}
