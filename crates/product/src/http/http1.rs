//! One request of HTTP/1.1 and its response. [`super::Http`] calls it.

use std::time::Instant;

use weir_model::suite::Request;
use weir_wire::http1::{ParseError, ResponseEvent, ResponseParser, Version, encode, headers};

use super::connection::Connection;
use super::{RequestError, Response, headers_but, host_of, owned};

/// Sends a request and reads its response. Also returns whether the connection may carry another.
pub(super) fn exchange(
    connection: &mut Connection,
    parser: &mut ResponseParser,
    request: &Request,
    authority: &str,
    deadline: Instant,
) -> Result<(Response, bool), RequestError> {
    connection.queue(&written(request, authority)?).map_err(RequestError::Broken)?;
    parser.request_sent(request.method == "HEAD");
    let mut response = None;
    loop {
        let came = connection.take();
        let mut input = came.as_slice();
        while let Some(event) = parser.next(&mut input).map_err(broken)? {
            match event {
                ResponseEvent::Informational(_) => {}
                ResponseEvent::Head(head) => {
                    let version = match head.version {
                        Version::Http10 => "HTTP/1.0",
                        Version::Http11 => "HTTP/1.1",
                    };
                    response = Some(Response::new(head.status, version, owned(headers(head.raw))));
                }
                ResponseEvent::Body(piece) => {
                    if let Some(response) = &mut response {
                        response.add(piece)?;
                    }
                }
                ResponseEvent::End { keep_alive } => {
                    // A partly sent request makes the connection useless for the next.
                    let again = keep_alive && input.is_empty() && connection.all_sent();
                    let response =
                        response.ok_or_else(|| RequestError::Broken("a response ended without a head".to_owned()))?;
                    return Ok((response.complete(), again));
                }
            }
        }
        if let Some(why) = connection.ended() {
            let why = why.to_owned();
            return match (parser.on_eof(), response) {
                (Ok(true), Some(response)) => Ok((response.complete(), false)),
                (Err(ParseError::ClosedBeforeResponse), None) => {
                    Err(RequestError::Gone(format!("{why} before it answered")))
                }
                _ => Err(RequestError::Broken(format!("{why} in the middle of its response"))),
            };
        }
        connection.turn(deadline).map_err(RequestError::Broken)?;
    }
}

fn written(request: &Request, authority: &str) -> Result<Vec<u8>, RequestError> {
    let mut all = Vec::new();
    if host_of(request).is_none() {
        all.push(("Host", authority));
    }
    all.extend(headers_but(request, &[]));
    let mut bytes = Vec::new();
    encode::request(&mut bytes, &request.method, &request.path, &all, &request.body)
        .map_err(|e| RequestError::Broken(format!("the request cannot be sent: {e}")))?;
    Ok(bytes)
}

fn broken(error: ParseError) -> RequestError {
    RequestError::Broken(format!("what came is no response of HTTP/1.1: {error}"))
}
