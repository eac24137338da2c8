//! One request of HTTP/2 and its answer.

use std::time::Instant;

use weir_model::suite::Request;
use weir_wire::http2::{self, Body, Client, ClientEvent, ClientOptions, Prepared};

use super::line::Line;
use super::{Answer, Fault, headers_but, host_of, owned};

/// Whom a request is for, and by what number its answer is known.
pub(super) struct Whom<'a> {
    pub tag: u32,
    pub scheme: &'a str,
    pub authority: &'a str,
}

/// Begins a connection. With TLS the peer must have agreed on HTTP/2.
pub(super) fn start(line: &mut Line) -> Result<Client, String> {
    if let Some(agreed) = line.negotiated()
        && agreed.alpn.as_deref() != Some("h2")
    {
        return Err("the peer did not agree on h2 by ALPN".to_owned());
    }
    let mut client = Client::new(&ClientOptions::default());
    let mut out = Vec::new();
    client.start(&mut out);
    line.queue(&out)?;
    Ok(client)
}

/// Sends a request and reads its answer; whether the connection may carry another.
pub(super) fn exchange(
    line: &mut Line,
    client: &mut Client,
    request: &Request,
    whom: Whom<'_>,
    deadline: Instant,
) -> Result<(Answer, bool), Fault> {
    let mut out = Vec::new();
    let head = prepared(request, &whom)?;
    client
        .request(whom.tag, &head, Body::Copied(&request.body), &mut out)
        .map_err(|e| Fault::Gone(format!("the request cannot be sent: {e}")))?;
    let mut answer: Option<Answer> = None;
    // Of a connection that was kept, nothing has come for this request yet.
    let mut silent = true;
    loop {
        flush(line, &mut out)?;
        let came = line.take();
        let mut input = came.as_slice();
        let mut done = false;
        while let Some(event) = client.next(&mut input, &mut out).map_err(broken)? {
            match event {
                ClientEvent::Head { head, .. } => {
                    silent = false;
                    answer = Some(Answer::new(head.status, "HTTP/2", owned(head.headers.iter())));
                }
                ClientEvent::Data { bytes, .. } => {
                    if let Some(answer) = &mut answer {
                        answer.add(bytes)?;
                    }
                }
                ClientEvent::End { .. } => done = true,
                ClientEvent::Reset { cause, .. } if silent && cause.not_processed() => {
                    return Err(Fault::Gone(format!("the stream failed: {cause}")));
                }
                ClientEvent::Reset { cause, .. } => return Err(Fault::Broken(format!("the stream failed: {cause}"))),
                ClientEvent::Settings | ClientEvent::Informational { .. } | ClientEvent::GoAway { .. } => {}
            }
        }
        flush(line, &mut out)?;
        if done {
            let answer = answer.ok_or_else(|| Fault::Broken("an answer ended without a head".to_owned()))?;
            return Ok((answer.complete(), client.streams() > 0));
        }
        if let Some(why) = line.ended() {
            let why = why.to_owned();
            return Err(match silent {
                true => Fault::Gone(format!("{why} before it answered")),
                false => Fault::Broken(format!("{why} in the middle of its answer")),
            });
        }
        line.turn(deadline).map_err(Fault::Broken)?;
    }
}

fn flush(line: &mut Line, out: &mut Vec<u8>) -> Result<(), Fault> {
    if !out.is_empty() {
        line.queue(out).map_err(Fault::Broken)?;
        out.clear();
    }
    Ok(())
}

fn prepared(request: &Request, whom: &Whom<'_>) -> Result<Prepared, Fault> {
    let head = http2::Request {
        method: &request.method,
        scheme: whom.scheme,
        authority: host_of(request).unwrap_or(whom.authority),
        path: &request.path,
        headers: &headers_but(request, &["host"]),
    };
    Prepared::request(&head).map_err(|e| Fault::Broken(format!("the request cannot be sent: {e}")))
}

fn broken(error: http2::ConnectionError) -> Fault {
    Fault::Broken(format!("what came is not HTTP/2: {error}"))
}
