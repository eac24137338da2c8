//! One request of HTTP/1.1 and its answer.

use std::time::Instant;

use weir_model::suite::Request;
use weir_wire::http1::{ParseError, ResponseEvent, ResponseParser, Version, encode, headers};

use super::line::Line;
use super::{Answer, Fault, headers_but, host_of, owned};

/// Sends a request and reads its answer; whether the connection may carry another.
pub(super) fn exchange(
    line: &mut Line,
    answers: &mut ResponseParser,
    request: &Request,
    authority: &str,
    deadline: Instant,
) -> Result<(Answer, bool), Fault> {
    line.queue(&written(request, authority)?).map_err(Fault::Broken)?;
    answers.request_sent(request.method == "HEAD");
    let mut answer = None;
    loop {
        let came = line.take();
        let mut input = came.as_slice();
        while let Some(event) = answers.next(&mut input).map_err(broken)? {
            match event {
                ResponseEvent::Informational(_) => {}
                ResponseEvent::Head(head) => {
                    let version = match head.version {
                        Version::Http10 => "HTTP/1.0",
                        Version::Http11 => "HTTP/1.1",
                    };
                    answer = Some(Answer::new(head.status, version, owned(headers(head.raw))));
                }
                ResponseEvent::Body(piece) => {
                    if let Some(answer) = &mut answer {
                        answer.add(piece)?;
                    }
                }
                ResponseEvent::End { keep_alive } => {
                    // A request that is not sent whole spoils the connection for the next.
                    let again = keep_alive && input.is_empty() && line.all_sent();
                    let answer = answer.ok_or_else(|| Fault::Broken("an answer ended without a head".to_owned()))?;
                    return Ok((answer.complete(), again));
                }
            }
        }
        if let Some(why) = line.ended() {
            let why = why.to_owned();
            return match (answers.on_eof(), answer) {
                (Ok(true), Some(answer)) => Ok((answer.complete(), false)),
                (Err(ParseError::ClosedBeforeResponse), None) => Err(Fault::Gone(format!("{why} before it answered"))),
                _ => Err(Fault::Broken(format!("{why} in the middle of its answer"))),
            };
        }
        line.turn(deadline).map_err(Fault::Broken)?;
    }
}

fn written(request: &Request, authority: &str) -> Result<Vec<u8>, Fault> {
    let mut all = Vec::new();
    if host_of(request).is_none() {
        all.push(("Host", authority));
    }
    all.extend(headers_but(request, &[]));
    let mut bytes = Vec::new();
    encode::request(&mut bytes, &request.method, &request.path, &all, &request.body)
        .map_err(|e| Fault::Broken(format!("the request cannot be sent: {e}")))?;
    Ok(bytes)
}

fn broken(error: ParseError) -> Fault {
    Fault::Broken(format!("what came is no answer of HTTP/1.1: {error}"))
}
