//! One request of HTTP/2 and its response. [`super::Http`] calls it.

use std::time::Instant;

use weir_model::suite::Request;
use weir_wire::http2::{self, Body, Client, ClientEvent, ClientOptions, Prepared};

use super::connection::Connection;
use super::{RequestError, Response, headers_but, host_of, owned};

/// Destination of a request, and the tag of its response.
pub(super) struct Destination<'a> {
    pub tag: u32,
    pub scheme: &'a str,
    pub authority: &'a str,
}

/// Begins a connection. With TLS the peer must have agreed on HTTP/2.
pub(super) fn start(connection: &mut Connection) -> Result<Client, String> {
    if let Some(agreed) = connection.negotiated()
        && agreed.alpn.as_deref() != Some("h2")
    {
        return Err("the peer did not agree on h2 by ALPN".to_owned());
    }
    let mut client = Client::new(&ClientOptions::default());
    let mut out = Vec::new();
    client.start(&mut out);
    connection.queue(&out)?;
    Ok(client)
}

/// Sends a request and reads its response. Also returns whether the connection may carry another.
pub(super) fn exchange(
    connection: &mut Connection,
    client: &mut Client,
    request: &Request,
    destination: Destination<'_>,
    deadline: Instant,
) -> Result<(Response, bool), RequestError> {
    let mut out = Vec::new();
    let head = prepared(request, &destination)?;
    client
        .request(destination.tag, &head, Body::Copied(&request.body), &mut out)
        .map_err(|e| RequestError::Gone(format!("the request cannot be sent: {e}")))?;
    let mut response: Option<Response> = None;
    // No part of this request's response has come yet.
    let mut silent = true;
    loop {
        flush(connection, &mut out)?;
        let came = connection.take();
        let mut input = came.as_slice();
        let mut done = false;
        while let Some(event) = client.next(&mut input, &mut out).map_err(broken)? {
            match event {
                ClientEvent::Head { head, .. } => {
                    silent = false;
                    response = Some(Response::new(head.status, "HTTP/2", owned(head.headers.iter())));
                }
                ClientEvent::Data { bytes, .. } => {
                    if let Some(response) = &mut response {
                        response.add(bytes)?;
                    }
                }
                ClientEvent::End { .. } => done = true,
                ClientEvent::Reset { cause, .. } if silent && cause.not_processed() => {
                    return Err(RequestError::Gone(format!("the stream failed: {cause}")));
                }
                ClientEvent::Reset { cause, .. } => {
                    return Err(RequestError::Broken(format!("the stream failed: {cause}")));
                }
                ClientEvent::Settings | ClientEvent::Informational { .. } | ClientEvent::GoAway { .. } => {}
            }
        }
        flush(connection, &mut out)?;
        if done {
            let response =
                response.ok_or_else(|| RequestError::Broken("a response ended without a head".to_owned()))?;
            return Ok((response.complete(), client.streams() > 0));
        }
        if let Some(why) = connection.ended() {
            let why = why.to_owned();
            return Err(match silent {
                true => RequestError::Gone(format!("{why} before it answered")),
                false => RequestError::Broken(format!("{why} in the middle of its response")),
            });
        }
        connection.turn(deadline).map_err(RequestError::Broken)?;
    }
}

fn flush(connection: &mut Connection, out: &mut Vec<u8>) -> Result<(), RequestError> {
    if !out.is_empty() {
        connection.queue(out).map_err(RequestError::Broken)?;
        out.clear();
    }
    Ok(())
}

fn prepared(request: &Request, destination: &Destination<'_>) -> Result<Prepared, RequestError> {
    let head = http2::Request {
        method: &request.method,
        scheme: destination.scheme,
        authority: host_of(request).unwrap_or(destination.authority),
        path: &request.path,
        headers: &headers_but(request, &["host"]),
    };
    Prepared::request(&head).map_err(|e| RequestError::Broken(format!("the request cannot be sent: {e}")))
}

fn broken(error: http2::ConnectionError) -> RequestError {
    RequestError::Broken(format!("what came is not HTTP/2: {error}"))
}
