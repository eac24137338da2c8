//! A client connection that uses HTTP/3, over a UDP socket of this machine. [`crate::http`] and some of the conformance checks use it.
//!
//! `weir_quic` has the connection, on a driver that this thread turns while it waits. It knows no other network: not the simulated one.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_host::Clock;
use weir_host::stop::Stop;
use weir_model::At;
use weir_model::suite::Request;
use weir_net::{Address, Conn, Driver, EpollDriver, Event, Handler, Io};
use weir_quic::{ClientOptions, Failure, FailureKind, Over, Quic, Target};
use weir_wire::http1::Framing;
use weir_wire::http3::{self, Body, Client, ClientEvent, Code, Options, Prepared};
use weir_wire::quic::{Kind, Part, Reader, code, put, put_close, put_code};
use weir_wire::tls::Negotiated;

use super::transport::SLICE;
use super::{Endpoint, RequestError, Response, texts};

/// Our control stream, the first that a client opens in one direction.
const CONTROL: u64 = 2;

/// Requests that are asked for at a time, at most.
const MOST: u32 = 100;

/// One connection.
pub struct Http3 {
    driver: EpollDriver,
    quic: Quic,
    conn: Conn,
    seen: Seen,
    reader: Reader,
    client: Client,
    agreed: Arc<Mutex<Option<Negotiated>>>,
    clock: Arc<dyn Clock>,
    stop: Stop,
    authority: String,
    /// The next request's stream.
    next: u64,
    streams: u64,
    /// A response to the last requests has begun.
    began: bool,
}

impl std::fmt::Debug for Http3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http3").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// What the driver told.
#[derive(Debug, Default)]
struct Seen {
    connected: bool,
    bytes: Vec<u8>,
    end: Option<RequestError>,
}

impl Handler for Seen {
    fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, event: Event<'_>) {
        match event {
            Event::Connected => self.connected = true,
            Event::Data(bytes) => self.bytes.extend_from_slice(bytes),
            Event::Eof => self.end = Some(RequestError::Closed),
            Event::Failed { error, .. } => self.end = Some(failed(&error)),
            _ => {}
        }
    }
}

fn failed(error: &std::io::Error) -> RequestError {
    match Failure::of(error).map(|failure| failure.kind) {
        Some(FailureKind::Tls) => RequestError::Tls(error.to_string()),
        Some(FailureKind::Refused) => RequestError::Unreachable(error.to_string()),
        Some(FailureKind::Closed) => RequestError::Reset,
        _ => RequestError::Unreachable(error.to_string()),
    }
}

/// Responses in the making.
struct Open {
    responses: Vec<Option<Response>>,
    interim: Vec<Vec<u16>>,
    left: usize,
    /// A response has begun.
    began: bool,
    /// What TLS agreed on.
    tls: Option<Negotiated>,
}

impl Http3 {
    /// Opens a connection.
    ///
    /// # Errors
    /// How the connection failed.
    pub fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Http3, RequestError> {
        if !endpoint.network.is_kernel() {
            return Err(RequestError::Unreachable("HTTP/3 needs a UDP socket of this machine".to_owned()));
        }
        let clock = endpoint.network.clock();
        let begun = clock.now();
        let until = begun.plus(timeout);
        let (config, name) = endpoint.tls.clone().ok_or_else(|| RequestError::Tls("HTTP/3 has no other".to_owned()))?;
        let agreed = Arc::new(Mutex::new(None));
        let observed = Arc::clone(&agreed);
        let options = ClientOptions {
            targets: vec![Target { address: endpoint.addr, config, name }],
            streams: MOST,
            seed: begun.mono_ns,
            observe: Box::new(move |agreed, _| {
                observed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).replace(agreed.clone());
            }),
        };
        let unreachable = |error: std::io::Error| RequestError::Unreachable(error.to_string());
        let mut quic = Quic::client(options).map_err(|error| RequestError::Tls(error.to_string()))?;
        let mut driver = EpollDriver::new().map_err(unreachable)?;
        let to = Address::from(endpoint.addr);
        let conn = Over::new(&mut driver, &mut quic).connect(&to, None).map_err(unreachable)?;
        let mut http3 = Http3 {
            driver,
            quic,
            conn,
            seen: Seen::default(),
            reader: Reader::default(),
            client: Client::new(&Options::default()),
            agreed,
            clock,
            stop: endpoint.stop.clone(),
            authority: endpoint.authority(),
            next: 0,
            streams: 0,
            began: false,
        };
        while !http3.seen.connected {
            match http3.turn(until, begun) {
                Err(RequestError::Silent(time)) => {
                    let time = time.as_secs_f64();
                    let said =
                        format!("nothing responds by QUIC at port {} of UDP within {time:.1} s", endpoint.addr.port());
                    return Err(RequestError::Unreachable(said));
                }
                turned => turned?,
            }
            if let Some(end) = http3.seen.end.take() {
                return Err(end);
            }
        }
        let (mut control, mut out) = (Vec::new(), Vec::new());
        http3.client.start(&mut control);
        put(&mut out, CONTROL, Kind::Stream, &control);
        http3.send(&out);
        Ok(http3)
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.agreed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Whether a response to the last requests has begun, or may have.
    pub fn began(&self) -> bool {
        self.began
    }

    /// The number of concurrent requests that the peer allows, at most the 100 that this client asks for.
    pub fn streams(&self) -> u32 {
        self.streams.min(MOST.into()) as u32
    }

    /// Goes on from another port.
    ///
    /// # Errors
    /// When no socket can be made, and where the connection has ended.
    pub fn change_port(&mut self, endpoint: &Endpoint) -> Result<(), RequestError> {
        let changed = Over::new(&mut self.driver, &mut self.quic).change_port(self.conn, endpoint.addr);
        changed.map_err(|error| RequestError::Unreachable(error.to_string()))
    }

    /// Goes on with new keys.
    pub fn update_keys(&mut self) {
        Over::new(&mut self.driver, &mut self.quic).update_keys(self.conn);
    }

    /// Sends GETs for these targets at once, each on its own stream, and waits for all responses.
    ///
    /// # Errors
    /// How one of the requests failed.
    pub fn get_all(&mut self, targets: &[&str], timeout: Duration) -> Result<Vec<Response>, RequestError> {
        self.ask_all(&targets.iter().map(|target| Request::get(target)).collect::<Vec<_>>(), timeout)
    }

    /// Sends these requests at once, each on its own stream, and waits for all responses.
    ///
    /// # Errors
    /// How one of the requests failed.
    pub fn ask_all(&mut self, requests: &[Request], timeout: Duration) -> Result<Vec<Response>, RequestError> {
        let mut out = Vec::new();
        for (tag, request) in (0u32..).zip(requests) {
            let bytes = self.request(tag, request)?;
            put(&mut out, self.next - 4, Kind::StreamFin, &bytes);
        }
        self.responses(&out, requests.len(), timeout)
    }

    /// Sends a request of which only so many bytes come, and the stream's end.
    ///
    /// # Errors
    /// How it failed, which it should.
    pub fn ask_cut(&mut self, request: &Request, bytes: usize, timeout: Duration) -> Result<Response, RequestError> {
        let whole = self.request(0, request)?;
        let mut out = Vec::new();
        put(&mut out, self.next - 4, Kind::StreamFin, &whole[..bytes.min(whole.len())]);
        self.responses(&out, 1, timeout)?.pop().ok_or(RequestError::Closed)
    }

    /// A request's bytes on its stream, which is the next.
    fn request(&mut self, tag: u32, request: &Request) -> Result<Vec<u8>, RequestError> {
        let head = http3::Request {
            method: &request.method,
            scheme: "https",
            authority: request.header("host").unwrap_or(&self.authority),
            path: &request.path,
            headers: &request.headers_but(&["host", "content-length"]),
        };
        let head = Prepared::request(&head).map_err(stream_failed)?;
        let body = if request.body.is_empty() { Body::None } else { Body::Copied(&request.body) };
        let mut bytes = Vec::new();
        self.client.request(self.next, tag, &head, body, &mut bytes).map_err(stream_failed)?;
        self.next += 4;
        Ok(bytes)
    }

    fn responses(&mut self, out: &[u8], count: usize, timeout: Duration) -> Result<Vec<Response>, RequestError> {
        let begun = self.clock.now();
        let until = begun.plus(timeout);
        self.began = false;
        self.send(out);
        let tls = self.negotiated();
        let (responses, interim) = (vec![None; count], vec![Vec::new(); count]);
        let mut open = Open { responses, interim, left: count, began: false, tls };
        while open.left > 0 {
            if let Some(end) = self.seen.end.take() {
                return Err(if self.began { RequestError::Cut } else { end });
            }
            self.turn(until, begun)?;
            let bytes = mem::take(&mut self.seen.bytes);
            let taken = self.take(&bytes, &mut open, self.clock.since(begun));
            self.began = open.began;
            taken?;
        }
        let responses = open.responses.into_iter().zip(open.interim);
        Ok(responses.filter_map(|(response, interim)| response.map(|one| Response { interim, ..one })).collect())
    }

    /// Turns the driver until something happens, for a while at most.
    fn turn(&mut self, until: At, begun: At) -> Result<(), RequestError> {
        if self.stop.is_requested() {
            return Err(RequestError::Stopped);
        }
        let left = self.clock.left(until);
        if left.is_zero() {
            return Err(RequestError::Silent(self.clock.since(begun)));
        }
        let wait = self.driver.now() + left.min(SLICE).as_nanos() as u64;
        let turned = Over::new(&mut self.driver, &mut self.quic).poll(&mut self.seen, Some(wait));
        turned.map_err(|error| RequestError::Unreachable(error.to_string()))
    }

    fn send(&mut self, frames: &[u8]) {
        Over::new(&mut self.driver, &mut self.quic).send(self.conn, frames);
    }

    /// Takes bytes that came, so long after the requests began.
    fn take(&mut self, mut input: &[u8], open: &mut Open, took: Duration) -> Result<(), RequestError> {
        let mut out = Vec::new();
        while let Some(part) = self.reader.next(&mut input).map_err(|_| stream_failed("no frames of QUIC came"))? {
            let violated = match part {
                Part::Stream { stream, mut bytes, fin } => loop {
                    match self.client.next(stream, &mut bytes, fin) {
                        Ok(None) => break None,
                        Ok(Some(event)) => open.on_event(event, took, &mut out)?,
                        Err(error) => break Some(error),
                    }
                },
                Part::Other(header, payload) if header.kind == Kind::ResetStream => {
                    match self.client.reset(header.stream, code(payload)) {
                        Ok(Some(event)) => {
                            open.on_event(event, took, &mut out)?;
                            None
                        }
                        Ok(None) => None,
                        Err(error) => Some(error),
                    }
                }
                Part::Other(header, _) => {
                    if header.kind == Kind::MaxStreams {
                        self.streams = header.stream;
                    }
                    None
                }
            };
            if let Some(error) = violated {
                open.began = true;
                put_close(&mut out, error.code.0, "");
                self.send(&out);
                return Err(RequestError::Malformed(error.to_string()));
            }
        }
        self.send(&out);
        Ok(())
    }
}

impl Open {
    fn on_event(&mut self, event: ClientEvent<'_>, took: Duration, out: &mut Vec<u8>) -> Result<(), RequestError> {
        match event {
            ClientEvent::Head { tag, head } => {
                self.began = true;
                let framing = head.length.map_or(Framing::UntilClose, Framing::Length);
                let response = Response::new("HTTP/3", head.status, head.headers.iter(), framing);
                if let Some(slot) = self.responses.get_mut(tag as usize) {
                    *slot = Some(Response { tls: self.tls.clone(), ..response });
                }
            }
            ClientEvent::Informational { tag, status, .. } => {
                self.began = true;
                if let Some(interim) = self.interim.get_mut(tag as usize) {
                    interim.push(status);
                }
            }
            ClientEvent::Data { tag, bytes } => {
                if let Some(Some(response)) = self.responses.get_mut(tag as usize) {
                    response.add(bytes)?;
                }
            }
            ClientEvent::Trailers { tag, headers } => {
                if let Some(Some(response)) = self.responses.get_mut(tag as usize) {
                    response.trailers = texts(headers.iter());
                }
            }
            ClientEvent::End { tag } => {
                if let Some(Some(response)) = self.responses.get_mut(tag as usize) {
                    response.took = took;
                }
                self.left = self.left.saturating_sub(1);
            }
            ClientEvent::Reset { id, cause, .. } => {
                self.began |= !cause.not_processed();
                put_code(out, id, Kind::StopSending, cause.code().0);
                return Err(stream_failed(cause));
            }
            ClientEvent::Settings | ClientEvent::GoAway => {}
        }
        Ok(())
    }
}

impl Drop for Http3 {
    fn drop(&mut self) {
        // The peer is told, so that it does not keep the connection until it is idle for too long.
        let mut out = Vec::new();
        put_close(&mut out, Code::NO_ERROR.0, "");
        let mut over = Over::new(&mut self.driver, &mut self.quic);
        over.send(self.conn, &out);
        over.abort(self.conn);
        over.flush();
    }
}

fn stream_failed(why: impl std::fmt::Display) -> RequestError {
    RequestError::Stream(why.to_string())
}
