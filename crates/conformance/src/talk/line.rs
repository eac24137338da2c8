//! A connection that speaks HTTP/1.1.

use std::time::{Duration, Instant};

use weir_wire::http1::{Framing, Limits, ParseError, ResponseEvent, ResponseHead, ResponseParser, Version, headers};
use weir_wire::tls::Negotiated;

use super::{Heard, Pipe, Trouble};

/// Bounds on answers: products may send large heads back, and 256 KiB is beyond what any check asks for.
const LIMITS: Limits = Limits { head_bytes: 256 * 1024, headers: 512, chunk_line_bytes: 1024, trailer_bytes: 8 * 1024 };

/// What came first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// An interim answer.
    Interim(u16),
    /// The final one.
    Answer(Heard),
}

/// One connection.
#[derive(Debug)]
pub struct Line {
    pipe: Pipe,
    answers: ResponseParser,
    input: Vec<u8>,
    /// How much of `input` is read.
    at: usize,
    interim: Vec<u16>,
    heard: Option<Heard>,
    /// When the last request was begun to be sent.
    asked: Instant,
}

impl Line {
    /// On this connection.
    pub fn new(pipe: Pipe) -> Line {
        Line {
            pipe,
            answers: ResponseParser::new(LIMITS),
            input: Vec::new(),
            at: 0,
            interim: Vec::new(),
            heard: None,
            asked: Instant::now(),
        }
    }

    /// What TLS came to.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.pipe.negotiated()
    }

    /// Sends the beginning of a request, or all of it. `head`: its answer has no body.
    ///
    /// # Errors
    /// When it is not taken within `patience`.
    pub fn send(&mut self, request: &[u8], head: bool, patience: Duration) -> Result<(), Trouble> {
        self.answers.request_sent(head);
        self.asked = Instant::now();
        self.more(request, patience)
    }

    /// Sends what belongs to the request that was sent last.
    ///
    /// # Errors
    /// When it is not taken within `patience`.
    pub fn more(&mut self, bytes: &[u8], patience: Duration) -> Result<(), Trouble> {
        self.pipe.write(bytes, Instant::now() + patience)
    }

    /// Sends several requests in one piece.
    ///
    /// # Errors
    /// When they are not taken within `patience`.
    pub fn send_all(&mut self, requests: &[Vec<u8>], patience: Duration) -> Result<(), Trouble> {
        for _ in requests {
            self.answers.request_sent(false);
        }
        self.asked = Instant::now();
        self.more(&requests.concat(), patience)
    }

    /// Sends a request and waits for its answer. An answer that comes before the request was taken, such as a 413, is one.
    ///
    /// # Errors
    /// What came instead.
    pub fn ask(&mut self, request: &[u8], head: bool, patience: Duration) -> Result<Heard, Trouble> {
        match self.send(request, head, patience) {
            Ok(()) => self.answer(patience),
            Err(Trouble::Stopped) => Err(Trouble::Stopped),
            Err(trouble) => self.answer(Duration::from_millis(200)).map_err(|_| trouble),
        }
    }

    /// Waits for a final answer; interim ones before it are in it.
    ///
    /// # Errors
    /// What came instead.
    pub fn answer(&mut self, patience: Duration) -> Result<Heard, Trouble> {
        let until = Instant::now() + patience;
        loop {
            match self.listen(until)? {
                Said::Answer(heard) => return Ok(heard),
                Said::Interim(_) => {}
            }
        }
    }

    /// Waits for whatever comes first, be it interim.
    ///
    /// # Errors
    /// What came instead.
    pub fn first(&mut self, patience: Duration) -> Result<Said, Trouble> {
        self.listen(Instant::now() + patience)
    }

    /// Whether the peer closes the connection, on which nothing is asked, within `patience`.
    ///
    /// # Errors
    /// [`Trouble::Stopped`] only.
    pub fn closes(&mut self, patience: Duration) -> Result<bool, Trouble> {
        match self.pipe.read(&mut self.input, Instant::now() + patience) {
            Ok(more) => Ok(!more),
            Err(Trouble::Stopped) => Err(Trouble::Stopped),
            Err(Trouble::Silent(_)) => Ok(false),
            Err(_) => Ok(true),
        }
    }

    fn listen(&mut self, until: Instant) -> Result<Said, Trouble> {
        loop {
            let mut left = &self.input[self.at..];
            let event = match self.answers.next(&mut left) {
                Ok(Some(ResponseEvent::Informational(status))) => Step::Interim(status),
                Ok(Some(ResponseEvent::Head(head))) => {
                    self.heard = Some(of(&head, std::mem::take(&mut self.interim)));
                    Step::On
                }
                Ok(Some(ResponseEvent::Body(piece))) => {
                    if let Some(heard) = &mut self.heard {
                        heard.body.extend_from_slice(piece);
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
                    return Ok(Said::Interim(status));
                }
                Step::End(keep_alive) => return self.done(keep_alive),
                Step::More => {
                    self.input.clear();
                    self.at = 0;
                    match self.pipe.read(&mut self.input, until) {
                        Ok(true) => {}
                        Ok(false) => return self.ended(),
                        // A server that refuses a request without reading all of it resets the connection when it closes.
                        Err(Trouble::Reset) if self.lasts_until_close() => return self.done(false),
                        Err(trouble) => return Err(trouble),
                    }
                }
            }
        }
    }

    fn lasts_until_close(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.framing == Framing::UntilClose)
    }

    fn ended(&mut self) -> Result<Said, Trouble> {
        match self.answers.on_eof() {
            Ok(true) => self.done(false),
            Ok(false) => Err(Trouble::Closed),
            Err(error) => Err(malformed(error)),
        }
    }

    fn done(&mut self, keep_alive: bool) -> Result<Said, Trouble> {
        let mut heard = self.heard.take().ok_or(Trouble::Closed)?;
        heard.keep_alive = keep_alive;
        heard.took = self.asked.elapsed();
        Ok(Said::Answer(heard))
    }
}

enum Step {
    On,
    Interim(u16),
    End(bool),
    More,
}

fn of(head: &ResponseHead<'_>, interim: Vec<u16>) -> Heard {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Heard {
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

fn malformed(error: ParseError) -> Trouble {
    match error {
        ParseError::ClosedBeforeResponse => Trouble::Closed,
        ParseError::TruncatedHead | ParseError::TruncatedBody => Trouble::Cut,
        other => Trouble::Malformed(other.to_string()),
    }
}

/// The framing in words.
pub fn framing(heard: &Heard) -> &'static str {
    match heard.framing {
        Framing::None => "no body",
        Framing::Length(_) => "Content-Length",
        Framing::Chunked => "chunked",
        Framing::UntilClose => "until the connection closes",
    }
}

/// The version in words.
pub fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::{Asked, Fake, Say};
    use super::*;
    use crate::talk::Door;
    use weir_host::stop::Stop;

    const SHORT: Duration = Duration::from_millis(300);

    fn said(bytes: &'static [u8]) -> Result<Heard, Trouble> {
        let fake = Fake::new(move |_: &Asked| Say::Last(bytes.to_vec()));
        Door::plain(fake.addr, Stop::new()).ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, SHORT)
    }

    #[test]
    fn answers_are_read_with_all_that_came_before() {
        let heard = said(
            b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        );
        let heard = heard.expect("an answer");
        assert_eq!((heard.interim.as_slice(), heard.status, heard.body.as_slice()), (&[103][..], 200, &b"ok"[..]));
        assert_eq!(framing(&heard), "chunked");
        let heard = said(b"HTTP/1.0 200 OK\r\n\r\nto the end").expect("an answer");
        assert_eq!(
            (version(heard.version), heard.keep_alive, heard.body.as_slice()),
            ("HTTP/1.0", false, &b"to the end"[..])
        );
    }

    #[test]
    fn every_way_to_fail_has_its_name() {
        assert_eq!(said(b""), Err(Trouble::Closed));
        assert_eq!(said(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), Err(Trouble::Cut));
        assert!(matches!(said(b"SSH-2.0-x\r\n\r\n"), Err(Trouble::Malformed(_))));
        let silent = Fake::new(|_: &Asked| Say::Nothing);
        let door = Door::plain(silent.addr, Stop::new());
        assert!(matches!(door.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, SHORT), Err(Trouble::Silent(_))));
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        assert_eq!(Door::plain(nobody, Stop::new()).get("/"), Err(Trouble::Refused));
    }

    #[test]
    fn a_wish_to_stop_ends_the_wait() {
        let silent = Fake::new(|_: &Asked| Say::Nothing);
        let stop = Stop::new();
        let door = Door::plain(silent.addr, stop.clone());
        let waits =
            std::thread::spawn(move || door.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(50));
        stop.set();
        assert_eq!(waits.join().expect("it returns"), Err(Trouble::Stopped));
    }
}
