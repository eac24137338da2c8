//! What a faulty product does to requests and responses: faults by name, and the changes they make to messages. The product of the
//! simulated world misbehaves so, and the real faulty proxy of `make faults` does. It does not know sockets or clocks.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::relay::RelayFault;

/// What a product does besides serving, or instead.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Nothing.
    Honest,
    /// Serves all requests but the first from a cache.
    Cache,
    /// Serves from a cache, and asks the origin afterwards.
    Revalidate,
    /// Serves a tenth from a cache, and sends a tenth twice: the sums agree.
    CacheAndTwice,
    /// Asks once for several requests that wait at the same time.
    Coalesce,
    /// Serves from a cache, with the request's own ID in the response.
    Forge,
    /// The same with the time of now, and asks the origin afterwards.
    ForgeAll,
    /// Takes the response's ID away.
    Strip,
    /// Sends every request to the origin once more, beside.
    Mirror,
    /// Sends one in so many again.
    Retry(u64),
    /// Changes a byte in the body of one in so many.
    Corrupt(u64),
    /// Refuses one in so many with 503.
    Refuse(u64),
    /// Resets the connection of one in so many.
    Reset(u64),
    /// Sends one in so many half of the response, and closes the connection.
    Truncate(u64),
    /// Sends requests without their bodies.
    DropBody,
    /// Sends requests without the last byte of their bodies.
    ShortenBody,
    /// Adds a byte to the bodies of requests.
    LengthenBody,
    /// Changes a byte in the body of one request in so many.
    CorruptBody(u64),
    /// Asks as soon as it has a request's head, and drops the body when it comes.
    Early,
    /// Takes this header from requests.
    DropHeader(String),
    /// Asks with this method.
    Method(String),
    /// Takes the query from requests.
    DropQuery,
    /// Sends the headers of requests in another order and case, and adds some.
    RewriteHeaders,
    /// From this second on each request takes 5 ms longer.
    Step(u64),
    /// Until this second each request takes 5 ms longer.
    StepUp(u64),
    /// Each request takes 0.5 ms longer for each second so far.
    Ramp,
    /// Does nothing for 200 ms of each second.
    Stall,
    /// Does nothing for one second, this one.
    Pause(u64),
    /// Responds to nothing from this second on.
    Freeze(u64),
    /// Gives its listener to the process that waits at this path, which does the work.
    HandOver(String),
    /// Its threads run on this CPU.
    Elsewhere(usize),
    /// Its threads may run on every CPU.
    Anywhere,
    /// Uses 600 MB for 0.1 s.
    Spike,
    /// Writes a line for each request to a file.
    Log,
    /// From this second on responses have one more header.
    Header(u64),
    /// Responds to what is measured itself, with a body of its own.
    Own,
    /// Compresses responses, where requests accept that.
    Gzip,
    /// The same, but for one response of the load in so many.
    GzipMost(u64),
    /// Compresses, and refuses one in so many with 503.
    GzipRefuse(u64),
    /// Takes 4 ms longer for each request of one connection in so many.
    SlowConnection(u64),
    /// Never responds to what comes in the first 300 ms on one connection in so many.
    Swallow(u64),
    /// Four connections of five are on one of its two workers.
    Uneven,
    /// Gives the response to one in so many to the next request, and that one's to it.
    Exchange(u64),
    /// Works four times as long on requests without an ID.
    FavourId,
    /// Works four times as long on requests with a `User-Agent`.
    FavourNoAgent,
    /// Works as long on all requests as [`Fault::FavourId`] does on those without an ID.
    Slow,
    /// Refuses requests without a consumer's key, as it was told to.
    Authenticate,
    /// The same, and asks the origin all the same.
    AuthenticateLate,
    /// Lets requests with any key pass, once the load has begun.
    AuthenticateLaxly,
    /// Takes a change of its route so many milliseconds after it was told.
    Reload(u64),
    /// Resets the connections of so many requests when it takes a change of its route.
    ReloadDrop(u64),
    /// Dies when it is told this change of its route.
    ReloadDie(u64),
    /// Does not take changes of its route from this one on.
    ReloadIgnore(u64),
    /// Has so many connections of clients at most, and resets further ones.
    Connections(u64),
    /// Works on nothing while a client does not read its response.
    Block,
    /// Uses so many bytes for each connection of a client.
    Hold(u64),
    /// Is a [`crate::relay::Relay`], which passes streams on, or does this to them.
    Relay(RelayFault),
}

impl Fault {
    /// By its name, with a number or a path after `=` where it has one.
    pub fn parse(text: &str) -> Option<Fault> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let number = || value.parse().ok();
        let size = || value.parse().ok();
        Some(match name {
            "honest" => Fault::Honest,
            "cache" => Fault::Cache,
            "revalidate" => Fault::Revalidate,
            "cache-and-twice" => Fault::CacheAndTwice,
            "coalesce" => Fault::Coalesce,
            "forge" => Fault::Forge,
            "forge-all" => Fault::ForgeAll,
            "strip" => Fault::Strip,
            "mirror" => Fault::Mirror,
            "retry" => Fault::Retry(number()?),
            "corrupt" => Fault::Corrupt(number()?),
            "refuse" => Fault::Refuse(number()?),
            "reset" => Fault::Reset(number()?),
            "truncate" => Fault::Truncate(number()?),
            "drop-body" => Fault::DropBody,
            "shorten-body" => Fault::ShortenBody,
            "lengthen-body" => Fault::LengthenBody,
            "corrupt-body" => Fault::CorruptBody(number()?),
            "early" => Fault::Early,
            "drop-header" => Fault::DropHeader(value.to_owned()),
            "method" => Fault::Method(value.to_owned()),
            "drop-query" => Fault::DropQuery,
            "rewrite-headers" => Fault::RewriteHeaders,
            "step" => Fault::Step(number()?),
            "step-up" => Fault::StepUp(number()?),
            "ramp" => Fault::Ramp,
            "stall" => Fault::Stall,
            "pause" => Fault::Pause(number()?),
            "freeze" => Fault::Freeze(number()?),
            "hand-over" => Fault::HandOver(value.to_owned()),
            "elsewhere" => Fault::Elsewhere(value.parse().ok()?),
            "anywhere" => Fault::Anywhere,
            "spike" => Fault::Spike,
            "log" => Fault::Log,
            "header" => Fault::Header(number()?),
            "own" => Fault::Own,
            "gzip" => Fault::Gzip,
            "gzip-most" => Fault::GzipMost(number()?),
            "gzip-refuse" => Fault::GzipRefuse(number()?),
            "swallow" => Fault::Swallow(number()?),
            "slow-connection" => Fault::SlowConnection(number()?),
            "uneven" => Fault::Uneven,
            "exchange" => Fault::Exchange(number()?),
            "favour-id" => Fault::FavourId,
            "favour-no-agent" => Fault::FavourNoAgent,
            "slow" => Fault::Slow,
            "authenticate" => Fault::Authenticate,
            "authenticate-late" => Fault::AuthenticateLate,
            "authenticate-laxly" => Fault::AuthenticateLaxly,
            "reload" => Fault::Reload(number()?),
            "reload-drop" => Fault::ReloadDrop(number()?),
            "reload-die" => Fault::ReloadDie(number()?),
            "reload-ignore" => Fault::ReloadIgnore(number()?),
            "connections" => Fault::Connections(number()?),
            "block" => Fault::Block,
            "hold" => Fault::Hold(number()?),
            "relay" => Fault::Relay(RelayFault::None),
            "relay-buffer" => Fault::Relay(RelayFault::Buffer(size()?)),
            "relay-gather" => Fault::Relay(RelayFault::Gather(number()? * 1_000_000)),
            "relay-keep" => Fault::Relay(RelayFault::Keep),
            "relay-drop" => Fault::Relay(RelayFault::Drop(size()?)),
            "relay-alter" => Fault::Relay(RelayFault::Alter(size()?)),
            _ => return None,
        })
    }
}

impl Fault {
    /// Whether it refuses this request, in the load or before.
    pub fn refuses(&self, request: &[u8], in_load: bool) -> bool {
        let asks = match self {
            Fault::Authenticate | Fault::AuthenticateLate => true,
            Fault::AuthenticateLaxly => !in_load,
            _ => false,
        };
        asks && header(request, "apikey").is_some_and(|key| !key.starts_with(b"key-"))
    }

    /// How many times as long it works on a request as the product usually does.
    pub fn work(&self, request: &[u8]) -> u64 {
        const LONG: u64 = 4;
        let is_long = match self {
            Fault::FavourId => header(request, REQUEST_ID).is_none(),
            Fault::FavourNoAgent => header(request, "user-agent").is_some(),
            Fault::Slow => true,
            _ => false,
        };
        if is_long { LONG } else { 1 }
    }
}

/// The response of a product that refuses.
pub const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// The response of a product that lets only consumers pass.
pub const UNAUTHORIZED: &[u8] = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";

/// The response of a product that responds itself.
pub const OWN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

/// How requests begin to which it does.
pub const OWN_PATHS: &[u8] = b"GET /bytes";

/// The line that [`Fault::Header`] adds.
pub const ADDED_HEADER: &[u8] = b"X-Added: by the product\r\n";

/// The header of responses with their ID, and the one of requests.
const RESPONSE_ID: &str = "x-weir-origin";
const REQUEST_ID: &str = "x-weir-id";

/// Length of the ID, with which the request's header begins.
const ID_LENGTH: usize = 16;

/// Where the time stands in a response's ID: after the request's ID and the worker.
const TIME_AT: usize = 22;

/// The length of the message that `input` begins with, once it is whole. Bodies have a `Content-Length`.
pub fn message_length(input: &[u8]) -> Option<usize> {
    let (head, body) = head_and_body(input)?;
    (input.len() >= head + body).then_some(head + body)
}

/// The lengths of the head that `input` begins with, once it is whole, and of the body that follows it.
pub fn head_and_body(input: &[u8]) -> Option<(usize, usize)> {
    let head = find(input, b"\r\n\r\n")? + 4;
    Some((head, content_length(&input[..head])))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn content_length(head: &[u8]) -> usize {
    header(head, "content-length").and_then(|value| std::str::from_utf8(value).ok()?.parse().ok()).unwrap_or(0)
}

/// The value of a header.
pub fn header<'h>(head: &'h [u8], name: &str) -> Option<&'h [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        let rest = found.eq_ignore_ascii_case(name.as_bytes()).then(|| rest.strip_prefix(b":"))??;
        Some(rest.trim_ascii())
    })
}

/// The key of a cache: the request's first line.
pub fn cache_key(request: &[u8]) -> Vec<u8> {
    request.split(|byte| *byte == b'\r').next().unwrap_or_default().to_vec()
}

/// A request as a product sends it that changes requests; `None` where it does not change this one, with this number.
pub fn change_request(fault: &Fault, request: &[u8], number: u64) -> Option<Vec<u8>> {
    let (head, _) = head_and_body(request)?;
    let (head, body) = request.split_at(head);
    Some(match fault {
        Fault::DropBody | Fault::Early => with_body(head, b"", b""),
        Fault::ShortenBody => with_body(head, &body[..body.len().checked_sub(1)?], b""),
        Fault::LengthenBody => with_body(head, &[body, b"."].concat(), b""),
        Fault::CorruptBody(n) if number % n == n / 2 && !body.is_empty() => corrupt(request.to_vec()),
        Fault::DropHeader(name) => [without_header(head, name), body.to_vec()].concat(),
        Fault::Method(method) => {
            let (_, rest) = request.split_at(request.iter().position(|byte| *byte == b' ')?);
            [method.as_bytes(), rest].concat()
        }
        Fault::DropQuery => {
            let (query, end) = (find(request, b"?")?, find(request, b" HTTP/1.1")?);
            [&request[..query], &request[end..]].concat()
        }
        Fault::RewriteHeaders => {
            let mut lines = head[..head.len() - 2].split_inclusive(|byte| *byte == b'\n');
            let first = lines.next()?;
            let by_name = |line: &[u8]| {
                let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
                Some((name.to_ascii_lowercase(), value.to_vec()))
            };
            let mut lines: Vec<_> = lines.filter_map(by_name).collect();
            // Lines of one name stay in their order.
            lines.sort_by(|(a, _), (b, _)| b.cmp(a));
            let added = b"Via: 1.1 product\r\nX-Forwarded-For: ::1\r\n";
            let lines: Vec<u8> = lines.into_iter().flat_map(|(name, value)| [name, value].concat()).collect();
            [first, added, &lines, b"\r\n", body].concat()
        }
        _ => return None,
    })
}

/// A message with another body, and these lines in its head.
fn with_body(head: &[u8], body: &[u8], lines: &[u8]) -> Vec<u8> {
    let mut message = without_header(head, "content-length");
    message.truncate(message.len() - 2);
    message.extend_from_slice(lines);
    message.extend(format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes());
    message.extend_from_slice(body);
    message
}

/// A head without a header.
fn without_header(head: &[u8], name: &str) -> Vec<u8> {
    let has_name =
        |line: &&[u8]| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
    head.split_inclusive(|byte| *byte == b'\n').filter(|line| !has_name(line)).flatten().copied().collect()
}

/// Changes the last byte.
pub fn corrupt(mut response: Vec<u8>) -> Vec<u8> {
    if let Some(last) = response.last_mut() {
        *last ^= 1;
    }
    response
}

/// Adds a line to the head.
pub fn add_header(mut response: Vec<u8>, line: &[u8]) -> Vec<u8> {
    if let Some(at) = find(&response, b"\r\n\r\n") {
        response.splice(at + 2..at + 2, line.iter().copied());
    }
    response
}

/// Compresses the body, where the request accepts gzip.
///
/// # Errors
/// Those of the encoder.
pub fn compress(response: Vec<u8>, request: &[u8]) -> std::io::Result<Vec<u8>> {
    if header(request, "accept-encoding") != Some(b"gzip") {
        return Ok(response);
    }
    let head = find(&response, b"\r\n\r\n").map_or(response.len(), |at| at + 4);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&response[head..])?;
    Ok(with_body(&response[..head], &encoder.finish()?, b"Content-Encoding: gzip\r\n"))
}

/// Removes the response's ID.
pub fn strip_id(response: Vec<u8>) -> Vec<u8> {
    let Some((head, _)) = head_and_body(&response) else { return response };
    let (head, body) = response.split_at(head);
    [without_header(head, RESPONSE_ID), body.to_vec()].concat()
}

/// Writes the request's ID over that of an older response.
pub fn forge_id(mut response: Vec<u8>, request: &[u8]) -> Vec<u8> {
    let Some(id) = header(request, REQUEST_ID).and_then(|value| value.get(..ID_LENGTH)) else { return response };
    let Some(given) = header(&response, RESPONSE_ID).map(<[u8]>::to_vec) else { return response };
    if let (Some(at), true) = (find(&response, &given), given.len() >= id.len()) {
        response[at..at + id.len()].copy_from_slice(id);
    }
    response
}

/// Writes a time over that in the response's ID: microseconds of the monotonic clock.
pub fn forge_time(mut response: Vec<u8>, now_us: u64) -> Vec<u8> {
    let Some(given) = header(&response, RESPONSE_ID).map(<[u8]>::to_vec) else { return response };
    let text = format!("{now_us:016x}");
    if let Some(at) = find(&response, &given).map(|at| at + TIME_AT).filter(|at| at + text.len() <= response.len()) {
        response[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    response
}
