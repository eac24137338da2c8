//! A client connection that uses HTTP/1.1. `Endpoint::open` creates it; the checks use it.

use std::time::{Duration, Instant};

use weir_wire::http1::{Framing, Limits, ParseError, ResponseEvent, ResponseHead, ResponseParser, Version, headers};
use weir_wire::tls::Negotiated;

use super::{Failure, Response, Transport};

/// Limits of responses. Products may send large heads back; 256 KiB is more than any check needs.
const LIMITS: Limits = Limits { head_bytes: 256 * 1024, headers: 512, chunk_line_bytes: 1024, trailer_bytes: 8 * 1024 };

/// The first response that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstResponse {
    /// An interim response.
    Interim(u16),
    /// The final response.
    Final(Response),
}

/// One connection.
#[derive(Debug)]
pub struct Http1 {
    transport: Transport,
    answers: ResponseParser,
    input: Vec<u8>,
    /// The number of bytes of `input` that are parsed.
    at: usize,
    interim: Vec<u16>,
    response: Option<Response>,
    /// When sending the last request began.
    asked: Instant,
}

impl Http1 {
    /// A client on this connection.
    pub fn new(transport: Transport) -> Http1 {
        Http1 {
            transport,
            answers: ResponseParser::new(LIMITS),
            input: Vec::new(),
            at: 0,
            interim: Vec::new(),
            response: None,
            asked: Instant::now(),
        }
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.transport.negotiated()
    }

    /// Sends the beginning of a request, or all of it. With `head` its response has no body.
    ///
    /// # Errors
    /// When the peer does not accept it within `timeout`.
    pub fn send(&mut self, request: &[u8], head: bool, timeout: Duration) -> Result<(), Failure> {
        self.answers.request_sent(head);
        self.asked = Instant::now();
        self.more(request, timeout)
    }

    /// Sends more of the request that was sent last.
    ///
    /// # Errors
    /// When the peer does not accept it within `timeout`.
    pub fn more(&mut self, bytes: &[u8], timeout: Duration) -> Result<(), Failure> {
        self.transport.write(bytes, Instant::now() + timeout)
    }

    /// Sends several requests in one write.
    ///
    /// # Errors
    /// When the peer does not accept them within `timeout`.
    pub fn send_all(&mut self, requests: &[Vec<u8>], timeout: Duration) -> Result<(), Failure> {
        for _ in requests {
            self.answers.request_sent(false);
        }
        self.asked = Instant::now();
        self.more(&requests.concat(), timeout)
    }

    /// Sends a request and waits for its response. A response that arrives before the whole request was sent counts,
    /// such as a 413.
    ///
    /// # Errors
    /// How the request failed.
    pub fn ask(&mut self, request: &[u8], head: bool, timeout: Duration) -> Result<Response, Failure> {
        match self.send(request, head, timeout) {
            Ok(()) => self.answer(timeout),
            Err(Failure::Stopped) => Err(Failure::Stopped),
            Err(failure) => self.answer(Duration::from_millis(200)).map_err(|_| failure),
        }
    }

    /// Waits for a final response, which contains the interim ones before it.
    ///
    /// # Errors
    /// How the request failed.
    pub fn answer(&mut self, timeout: Duration) -> Result<Response, Failure> {
        let until = Instant::now() + timeout;
        loop {
            match self.listen(until)? {
                FirstResponse::Final(response) => return Ok(response),
                FirstResponse::Interim(_) => {}
            }
        }
    }

    /// Waits for the first response, interim or final.
    ///
    /// # Errors
    /// How the request failed.
    pub fn first(&mut self, timeout: Duration) -> Result<FirstResponse, Failure> {
        self.listen(Instant::now() + timeout)
    }

    /// True when the peer closes the idle connection within `timeout`.
    ///
    /// # Errors
    /// [`Failure::Stopped`] only.
    pub fn closes(&mut self, timeout: Duration) -> Result<bool, Failure> {
        match self.transport.read(&mut self.input, Instant::now() + timeout) {
            Ok(more) => Ok(!more),
            Err(Failure::Stopped) => Err(Failure::Stopped),
            Err(Failure::Silent(_)) => Ok(false),
            Err(_) => Ok(true),
        }
    }

    fn listen(&mut self, until: Instant) -> Result<FirstResponse, Failure> {
        loop {
            let mut left = &self.input[self.at..];
            let event = match self.answers.next(&mut left) {
                Ok(Some(ResponseEvent::Informational(status))) => Step::Interim(status),
                Ok(Some(ResponseEvent::Head(head))) => {
                    self.response = Some(of(&head, std::mem::take(&mut self.interim)));
                    Step::On
                }
                Ok(Some(ResponseEvent::Body(piece))) => {
                    if let Some(response) = &mut self.response {
                        response.body.extend_from_slice(piece);
                    }
                    Step::On
                }
                Ok(Some(ResponseEvent::End { keep_alive })) => Step::End(keep_alive),
                Ok(None) => Step::More,
                Err(error) => return Err(malformed(error)),
            };
            self.at = self.input.len() - left.len();
            match event {
                Step::On => {}
                Step::Interim(status) => {
                    self.interim.push(status);
                    return Ok(FirstResponse::Interim(status));
                }
                Step::End(keep_alive) => return self.done(keep_alive),
                Step::More => {
                    self.input.clear();
                    self.at = 0;
                    match self.transport.read(&mut self.input, until) {
                        Ok(true) => {}
                        Ok(false) => return self.ended(),
                        // A server that refuses a request before it has read all of it resets the connection when it
                        // closes.
                        Err(Failure::Reset) if self.lasts_until_close() => return self.done(false),
                        Err(failure) => return Err(failure),
                    }
                }
            }
        }
    }

    fn lasts_until_close(&self) -> bool {
        self.response.as_ref().is_some_and(|response| response.framing == Framing::UntilClose)
    }

    fn ended(&mut self) -> Result<FirstResponse, Failure> {
        match self.answers.on_eof() {
            Ok(true) => self.done(false),
            Ok(false) => Err(Failure::Closed),
            Err(error) => Err(malformed(error)),
        }
    }

    fn done(&mut self, keep_alive: bool) -> Result<FirstResponse, Failure> {
        let mut response = self.response.take().ok_or(Failure::Closed)?;
        response.keep_alive = keep_alive;
        response.took = self.asked.elapsed();
        Ok(FirstResponse::Final(response))
    }
}

enum Step {
    On,
    Interim(u16),
    End(bool),
    More,
}

fn of(head: &ResponseHead<'_>, interim: Vec<u16>) -> Response {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Response {
        interim,
        version: head.version,
        status: head.status,
        headers: headers(head.raw).map(|(name, value)| (text(name), text(value))).collect(),
        framing: head.framing,
        body: Vec::new(),
        keep_alive: true,
        took: Duration::ZERO,
    }
}

fn malformed(error: ParseError) -> Failure {
    match error {
        ParseError::ClosedBeforeResponse => Failure::Closed,
        ParseError::TruncatedHead | ParseError::TruncatedBody => Failure::Cut,
        other => Failure::Malformed(other.to_string()),
    }
}

/// The framing as text.
pub fn framing(response: &Response) -> &'static str {
    match response.framing {
        Framing::None => "no body",
        Framing::Length(_) => "Content-Length",
        Framing::Chunked => "chunked",
        Framing::UntilClose => "until the connection closes",
    }
}

/// The version as text.
pub fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::{Fake, Received, Reply};
    use super::*;
    use crate::client::Endpoint;
    use weir_host::stop::Stop;

    const SHORT: Duration = Duration::from_millis(300);

    fn said(bytes: &'static [u8]) -> Result<Response, Failure> {
        let fake = Fake::new(move |_: &Received| Reply::Close(bytes.to_vec()));
        Endpoint::plain(fake.addr, Stop::new()).ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, SHORT)
    }

    #[test]
    fn answers_are_read_with_all_that_came_before() {
        let response = said(
            b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        );
        let response = response.expect("an answer");
        assert_eq!(
            (response.interim.as_slice(), response.status, response.body.as_slice()),
            (&[103][..], 200, &b"ok"[..])
        );
        assert_eq!(framing(&response), "chunked");
        let response = said(b"HTTP/1.0 200 OK\r\n\r\nto the end").expect("an answer");
        assert_eq!(
            (version(response.version), response.keep_alive, response.body.as_slice()),
            ("HTTP/1.0", false, &b"to the end"[..])
        );
    }

    #[test]
    fn every_way_to_fail_has_its_name() {
        assert_eq!(said(b""), Err(Failure::Closed));
        assert_eq!(said(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), Err(Failure::Cut));
        assert!(matches!(said(b"SSH-2.0-x\r\n\r\n"), Err(Failure::Malformed(_))));
        let silent = Fake::new(|_: &Received| Reply::Silence);
        let endpoint = Endpoint::plain(silent.addr, Stop::new());
        assert!(matches!(endpoint.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, SHORT), Err(Failure::Silent(_))));
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        assert_eq!(Endpoint::plain(nobody, Stop::new()).get("/"), Err(Failure::Refused));
    }

    #[test]
    fn a_wish_to_stop_ends_the_wait() {
        let silent = Fake::new(|_: &Received| Reply::Silence);
        let stop = Stop::new();
        let endpoint = Endpoint::plain(silent.addr, stop.clone());
        let waits = std::thread::spawn(move || {
            endpoint.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, Duration::from_secs(60))
        });
        std::thread::sleep(Duration::from_millis(50));
        stop.set();
        assert_eq!(waits.join().expect("it returns"), Err(Failure::Stopped));
    }
}
