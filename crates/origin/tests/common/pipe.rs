//! Blocking clients below HTTP: bytes to and from an origin, with TLS or without.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use weir_origin::{Origin, tls};
use weir_wire::tls::{ClientConfig, ClientOptions, Scratch, ServerName, Session, TlsEvent};

use super::TIMEOUT;

/// A connection.
pub struct Pipe {
    pub stream: TcpStream,
    tls: Option<(Session, Scratch)>,
    closed: bool,
}

/// TLS options with a certificate made here.
pub fn server_options() -> tls::ServerOptions {
    let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
    tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() }
}

/// A client's options with this protocol by ALPN.
pub fn client_config(alpn: Option<&str>) -> ClientConfig {
    ClientConfig::new(&ClientOptions { alpn: alpn.map(str::to_owned), ..ClientOptions::default() }).expect("options")
}

impl Pipe {
    pub fn plain(origin: &Origin) -> Pipe {
        let stream = TcpStream::connect(origin.addr()).expect("the origin accepts");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Pipe { stream, tls: None, closed: false }
    }

    /// With TLS, the handshake done.
    pub fn with_tls(origin: &Origin, config: &ClientConfig) -> io::Result<Pipe> {
        let mut pipe = Pipe::plain(origin);
        let name = ServerName::new("localhost").expect("a name");
        let mut session = Session::client(config, &name).map_err(io::Error::other)?;
        let mut out = Vec::new();
        session.start(&mut out).map_err(io::Error::other)?;
        pipe.stream.write_all(&out)?;
        pipe.tls = Some((session, Scratch::new()));
        while !pipe.session().ready() {
            if pipe.receive(&mut Vec::new())? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(pipe)
    }

    pub fn session(&self) -> &Session {
        &self.tls.as_ref().expect("a connection with TLS").0
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.stream.write_all(bytes),
            Some((session, _)) => {
                let mut out = Vec::new();
                session.write(&[bytes], &mut out).map_err(io::Error::other)?;
                self.stream.write_all(&out)
            }
        }
    }

    /// Waits for bytes, and appends the plaintext. Returns the number of bytes below TLS; 0 means the end.
    pub fn receive(&mut self, to: &mut Vec<u8>) -> io::Result<usize> {
        let mut bytes = [0; 64 << 10];
        let count = loop {
            // Rings of this process interrupt the reads of its other threads, too.
            match self.stream.read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let Some((session, scratch)) = &mut self.tls else {
            to.extend_from_slice(&bytes[..count]);
            return Ok(count);
        };
        let (mut input, mut out) = (&bytes[..count], Vec::new());
        loop {
            match session.next(&mut input, scratch, &mut out).map_err(io::Error::other)? {
                None => break,
                Some(TlsEvent::Plaintext(place)) => to.extend_from_slice(&scratch[place]),
                Some(TlsEvent::Closed) => self.closed = true,
                Some(TlsEvent::Ready) => {}
            }
        }
        self.stream.write_all(&out)?;
        Ok(count)
    }

    /// Reads everything that still comes. Returns whether TLS closed properly.
    pub fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        while !matches!(self.receive(&mut bytes), Ok(0) | Err(_)) {}
        (bytes, self.closed)
    }
}
