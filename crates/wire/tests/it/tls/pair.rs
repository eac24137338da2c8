//! A client and a server session, joined in memory.

use weir_wire::tls::{
    ClientConfig, ClientOptions, Identity, KeyKind, Scratch, ServerConfig, ServerName, ServerOptions, Session,
    TlsError, TlsEvent,
};

/// One half, with its output and the data it has received.
pub struct End {
    pub session: Session,
    pub scratch: Scratch,
    /// What is on its way to the other half.
    pub out: Vec<u8>,
    /// Plaintext that came.
    pub heard: Vec<u8>,
    pub ready: bool,
    pub closed: bool,
}

impl End {
    pub fn new(session: Session) -> End {
        let (scratch, out, heard) = (Scratch::new(), Vec::new(), Vec::new());
        End { session, scratch, out, heard, ready: false, closed: false }
    }

    /// Gives it bytes, and takes what comes of them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), TlsError> {
        let mut input = bytes;
        while let Some(event) = self.session.next(&mut input, &mut self.scratch, &mut self.out)? {
            match event {
                TlsEvent::Ready => {
                    assert!(!self.ready, "ready comes once");
                    self.ready = true;
                }
                TlsEvent::Plaintext(range) => {
                    assert!(self.ready && !self.closed);
                    assert!(!range.is_empty());
                    self.heard.extend_from_slice(&self.scratch[range]);
                }
                TlsEvent::Closed => {
                    assert!(!self.closed, "the end comes once");
                    self.closed = true;
                }
            }
        }
        assert!(input.is_empty(), "input was left over");
        Ok(())
    }

    /// Writes the given number of bytes.
    pub fn say(&mut self, bytes: &[u8]) {
        self.session.write(&[bytes], &mut self.out).expect("a ready session can be written to");
    }
}

pub struct Pair {
    pub client: End,
    pub server: End,
}

impl Pair {
    pub fn new(client: &ClientConfig, server: &ServerConfig) -> Pair {
        Pair::named(client, server, "localhost")
    }

    pub fn named(client: &ClientConfig, server: &ServerConfig, name: &str) -> Pair {
        let name = ServerName::new(name).expect("a name");
        let mut client = End::new(Session::client(client, &name).expect("a client"));
        let server = End::new(Session::server(server).expect("a server"));
        client.session.start(&mut client.out).expect("a hello");
        Pair { client, server }
    }

    /// Transfers everything until neither side has anything to send.
    pub fn settle(&mut self) -> Result<(), TlsError> {
        while !self.client.out.is_empty() || !self.server.out.is_empty() {
            let bytes = std::mem::take(&mut self.client.out);
            self.server.take(&bytes)?;
            let bytes = std::mem::take(&mut self.server.out);
            self.client.take(&bytes)?;
        }
        Ok(())
    }

    /// Both ready.
    pub fn joined(client: &ClientConfig, server: &ServerConfig) -> Pair {
        let mut pair = Pair::new(client, server);
        pair.settle().expect("a handshake");
        assert!(pair.client.ready && pair.server.ready);
        pair
    }

    /// Each side sends its own data, and the other receives it.
    pub fn talk(&mut self) {
        self.client.heard.clear();
        self.server.heard.clear();
        self.client.say(b"GET / HTTP/1.1\r\n\r\n");
        self.server.say(b"HTTP/1.1 204 No Content\r\n\r\n");
        self.settle().expect("data");
        assert_eq!(self.server.heard, b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(self.client.heard, b"HTTP/1.1 204 No Content\r\n\r\n");
    }
}

pub fn client(change: impl FnOnce(&mut ClientOptions)) -> ClientConfig {
    let mut options = ClientOptions::default();
    change(&mut options);
    ClientConfig::new(&options).expect("options of a client")
}

/// A server with a P-256 and an RSA certificate.
pub fn server(change: impl FnOnce(&mut ServerOptions)) -> ServerConfig {
    let mut options = ServerOptions { identities: vec![p256(), rsa()], ..ServerOptions::default() };
    change(&mut options);
    ServerConfig::new(&options).expect("options of a server")
}

pub fn p256() -> Identity {
    Identity::generated(KeyKind::P256).expect("a certificate")
}

pub fn rsa() -> Identity {
    Identity::generated(KeyKind::Rsa).expect("a certificate")
}
