//! A connection after its handshake: it opens and seals records.
//!
//! Errors are reported to the peer by an alert, then to the caller. The limits on what a peer may send without data
//! (empty records, warnings, key updates) are OpenSSL's: 32 in a row.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;

use super::alert;
use super::error::{TlsError, TlsErrorKind};
use super::keys::{BODY_MOST, HEADER, Keys, PLAIN_MOST};
use super::options::Version;
use super::pending::Pending;
use super::post_handshake::{self, CLIENT_HELLO, HELLO_REQUEST, KEY_UPDATE, NEW_SESSION_TICKET};
use super::scratch::Scratch;
use super::session::{Negotiated, TlsEvent};

pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const DATA: u8 = 23;

/// Records in a row that may come without data.
const IDLE_MOST: u8 = 32;

const WARNING: u8 = 1;
const FATAL: u8 = 2;

/// What rustls keeps for a connection whose records it does not see: the secrets for the next keys, and the ticket
/// store.
pub(super) enum Kernel {
    Client {
        connection: KernelConnection<ClientConnectionData>,
        /// Whether tickets are stored.
        tickets: bool,
    },
    Server(KernelConnection<ServerConnectionData>),
}

/// Why a connection fails, and the alert for the peer.
#[derive(Debug)]
pub(super) struct Fail {
    /// `None`: the peer knows already.
    pub(super) alert: Option<u8>,
    pub(super) error: TlsError,
}

impl Fail {
    pub(super) fn new(alert: u8, kind: TlsErrorKind, text: impl Into<String>) -> Fail {
        Fail { alert: Some(alert), error: TlsError::new(kind, text) }
    }

    fn unexpected(text: impl Into<String>) -> Fail {
        Fail::new(alert::UNEXPECTED_MESSAGE, TlsErrorKind::Protocol, text)
    }
}

/// The length of a record's body, from its header.
pub(super) fn body_len(header: [u8; HEADER]) -> Result<usize, Fail> {
    let [kind, major, _, high, low] = header;
    if !(CHANGE_CIPHER_SPEC..=DATA).contains(&kind) || major != 3 {
        let text = format!("what came is not TLS: \"{}\"", header.escape_ascii());
        return Err(Fail::new(alert::UNEXPECTED_MESSAGE, TlsErrorKind::NotTls, text));
    }
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len > BODY_MOST {
        return Err(overflow());
    }
    Ok(len)
}

fn overflow() -> Fail {
    Fail::new(alert::RECORD_OVERFLOW, TlsErrorKind::Protocol, "a TLS record is larger than 16 KiB")
}

/// A connection whose handshake is done.
pub(super) struct Traffic {
    rx: Keys,
    tx: Keys,
    kernel: Kernel,
    pub(super) negotiated: Negotiated,
    /// A record that is incomplete.
    pending: Pending,
    /// A message after the handshake that is incomplete.
    joined: Vec<u8>,
    /// The number of records without data since the last one with data.
    idle: u8,
    /// The peer has finished sending.
    closed_by_peer: bool,
    /// We have sent close_notify.
    closed: bool,
}

impl Traffic {
    pub(super) fn new(rx: Keys, tx: Keys, kernel: Kernel, negotiated: Negotiated) -> Traffic {
        Traffic {
            rx,
            tx,
            kernel,
            negotiated,
            pending: Pending::default(),
            joined: Vec::new(),
            idle: 0,
            closed_by_peer: false,
            closed: false,
        }
    }

    /// As [`super::Session::next`].
    pub(super) fn next(
        &mut self,
        input: &mut &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<Option<TlsEvent>, Fail> {
        while !self.closed_by_peer {
            let Some((kind, len)) = self.open(input, scratch)? else { return Ok(None) };
            if len > PLAIN_MOST {
                return Err(overflow());
            }
            if kind == DATA && len > 0 {
                if !self.joined.is_empty() {
                    return Err(Fail::unexpected("TLS data came inside a message of the handshake's kind"));
                }
                self.idle = 0;
                return Ok(Some(TlsEvent::Plaintext(0..len)));
            }
            self.idle += 1;
            if self.idle > IDLE_MOST {
                return Err(Fail::unexpected("more than 32 TLS records came in a row without data"));
            }
            let content = &scratch[..len];
            match kind {
                DATA => {}
                ALERT => self.alert(content)?,
                HANDSHAKE => self.handshake(content, out)?,
                _ => return Err(Fail::unexpected(format!("a TLS record of type {kind} came after the handshake"))),
            }
            if self.closed_by_peer {
                return Ok(Some(TlsEvent::Closed));
            }
        }
        *input = &[];
        Ok(None)
    }

    /// Opens the next record into the scratch, if it is complete. Returns its content type and length.
    fn open(&mut self, input: &mut &[u8], scratch: &mut Scratch) -> Result<Option<(u8, usize)>, Fail> {
        if input.is_empty() {
            return Ok(None);
        }
        if let (true, Some((header, after))) = (self.pending.is_empty(), input.split_first_chunk::<HEADER>()) {
            let len = body_len(*header)?;
            if let Some((body, rest)) = after.split_at_checked(len) {
                *input = rest;
                return self.open_record(*header, body, scratch.target()).map(Some);
            }
        }
        if !self.pending.fill(input, scratch)? {
            return Ok(None);
        }
        let (header, buffer, len) = self.pending.take();
        let opened = self.open_record(header, &buffer[..len], scratch.target());
        scratch.give_back(buffer);
        opened.map(Some)
    }

    fn open_record(&mut self, header: [u8; HEADER], body: &[u8], plain: &mut [u8]) -> Result<(u8, usize), Fail> {
        if self.negotiated.version == Version::Tls13 && header[0] != DATA {
            return Err(Fail::unexpected("a TLS 1.3 record came that is not encrypted"));
        }
        self.rx.open(header, body, plain).map_err(|_| {
            let text = "a TLS record does not open with the keys agreed on";
            Fail::new(alert::BAD_RECORD_MAC, TlsErrorKind::Decrypt, text)
        })
    }

    fn alert(&mut self, content: &[u8]) -> Result<(), Fail> {
        let &[level, number] = content else {
            return Err(Fail::new(alert::DECODE_ERROR, TlsErrorKind::Protocol, "a TLS alert is not two bytes long"));
        };
        // TLS 1.3 has no levels; two of its alerts are not errors.
        let harmless = match self.negotiated.version {
            Version::Tls12 => level == WARNING,
            Version::Tls13 => number == alert::USER_CANCELED,
        };
        if number == alert::CLOSE_NOTIFY {
            self.closed_by_peer = true;
        } else if !harmless {
            let text = format!("the peer ended the TLS connection: {}", alert::text(number));
            return Err(Fail { alert: None, error: TlsError::new(TlsErrorKind::Alert, text) });
        }
        Ok(())
    }

    fn handshake(&mut self, content: &[u8], out: &mut Vec<u8>) -> Result<(), Fail> {
        let joined = std::mem::take(&mut self.joined);
        let whole;
        let mut rest = content;
        if content.is_empty() {
            return Err(Fail::unexpected("an empty TLS record of the handshake's kind came"));
        }
        if !joined.is_empty() {
            whole = [&joined, content].concat();
            rest = &whole;
        }
        let too_long =
            |_| Fail::new(alert::DECODE_ERROR, TlsErrorKind::Protocol, "a TLS message is longer than any can be");
        while let Some((kind, content, after)) = post_handshake::first(rest).map_err(too_long)? {
            rest = after;
            match (self.negotiated.version, kind, &self.kernel) {
                (Version::Tls13, KEY_UPDATE, _) => self.key_update(content, rest.is_empty(), out)?,
                (Version::Tls13, NEW_SESSION_TICKET, Kernel::Client { .. }) => self.ticket(content)?,
                // Renegotiation is refused, which the peer may accept (RFC 5246, section 7.2.2).
                (Version::Tls12, HELLO_REQUEST, Kernel::Client { .. })
                | (Version::Tls12, CLIENT_HELLO, Kernel::Server(_)) => {
                    if !self.closed {
                        self.seal(ALERT, &[WARNING, alert::NO_RENEGOTIATION], out)?;
                    }
                }
                _ => return Err(Fail::unexpected(format!("a TLS message of type {kind} came after the handshake"))),
            }
        }
        self.joined = rest.to_vec();
        Ok(())
    }

    fn ticket(&mut self, content: &[u8]) -> Result<(), Fail> {
        match &mut self.kernel {
            Kernel::Client { connection, tickets: true } => {
                connection.handle_new_session_ticket(content).map_err(|e| {
                    let text = format!("a TLS ticket cannot be read: {e}");
                    Fail::new(alert::DECODE_ERROR, TlsErrorKind::Protocol, text)
                })
            }
            _ => Ok(()),
        }
    }

    /// RFC 8446, section 4.6.3: new keys apply to what follows. We change ours, too, if requested.
    fn key_update(&mut self, content: &[u8], last: bool, out: &mut Vec<u8>) -> Result<(), Fail> {
        if !last {
            return Err(Fail::unexpected("a TLS message came behind a key update, in the same record"));
        }
        let asked = match content {
            [0] => false,
            [1] => true,
            _ => {
                let text = "a TLS key update cannot be read";
                return Err(Fail::new(alert::DECODE_ERROR, TlsErrorKind::Protocol, text));
            }
        };
        let secrets = match &mut self.kernel {
            Kernel::Client { connection, .. } => connection.update_rx_secret(),
            Kernel::Server(connection) => connection.update_rx_secret(),
        };
        self.rx = secrets.map_err(drop).and_then(|s| Keys::new(Version::Tls13, s).map_err(drop)).map_err(no_keys)?;
        if asked && !self.closed { self.update_keys(false, out) } else { Ok(()) }
    }

    /// Announces that our next record is under new keys, and changes them. The peer may be asked to change its own.
    pub(super) fn update_keys(&mut self, ask: bool, out: &mut Vec<u8>) -> Result<(), Fail> {
        self.seal(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, u8::from(ask)], out)?;
        let secrets = match &mut self.kernel {
            Kernel::Client { connection, .. } => connection.update_tx_secret(),
            Kernel::Server(connection) => connection.update_tx_secret(),
        };
        self.tx = secrets.map_err(drop).and_then(|s| Keys::new(Version::Tls13, s).map_err(drop)).map_err(no_keys)?;
        Ok(())
    }

    /// Appends a record of another type than data.
    pub(super) fn seal(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Result<(), Fail> {
        self.tx.seal(kind, std::iter::once(content), content.len(), out).map_err(|_| no_keys(()))
    }

    /// As [`super::Session::write`].
    pub(super) fn write(&mut self, plain: &[&[u8]], out: &mut Vec<u8>) -> Result<(), Fail> {
        if self.closed {
            let error = TlsError::new(TlsErrorKind::Misuse, "data was written to TLS after its end");
            return Err(Fail { alert: None, error });
        }
        let mut left: usize = plain.iter().map(|part| part.len()).sum();
        if left <= PLAIN_MOST && left > 0 && !self.tx.worn() {
            return self.tx.seal(DATA, plain.iter().copied(), left, out).map_err(|_| no_keys(()));
        }
        let mut from = 0;
        while left > 0 {
            if self.tx.worn() {
                self.update_keys(false, out)?;
            }
            let len = left.min(PLAIN_MOST);
            self.tx.seal(DATA, pieces(plain, from, len), len, out).map_err(|_| no_keys(()))?;
            from += len;
            left -= len;
        }
        Ok(())
    }

    /// Appends close_notify, once.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        if !self.closed {
            self.closed = true;
            // Without keys it cannot be sent; the end of the stream means the same.
            let _ = self.seal(ALERT, &[WARNING, alert::CLOSE_NOTIFY], out);
        }
    }

    /// Appends the alert of a failure. Nothing is sent after it.
    pub(super) fn give_up(&mut self, fail: &Fail, out: &mut Vec<u8>) {
        if let (Some(alert), false) = (fail.alert, self.closed) {
            let _ = self.seal(ALERT, &[FATAL, alert], out);
        }
        self.closed = true;
    }
}

#[cfg(test)]
impl Traffic {
    /// Sets the number of the next record that is sealed, so that the sending keys reach their limit.
    pub(super) fn wear_out(&mut self) -> u64 {
        self.tx.count_to(1 << 23);
        1 << 23
    }

    /// Sets the number of the next record that is received.
    pub(super) fn expect_number(&mut self, number: u64) {
        self.rx.count_to(number);
    }

    /// Records sealed with the sending keys.
    pub(super) fn sealed(&self) -> u64 {
        self.tx.count()
    }
}

/// The `len` bytes from `from` on of the parts, taken as one.
fn pieces<'a>(parts: &'a [&'a [u8]], from: usize, len: usize) -> impl Iterator<Item = &'a [u8]> {
    let (mut skip, mut left) = (from, len);
    parts.iter().map(move |part| {
        let start = skip.min(part.len());
        skip -= start;
        let end = (start + left).min(part.len());
        left -= end - start;
        &part[start..end]
    })
}

fn no_keys((): ()) -> Fail {
    Fail::new(alert::INTERNAL_ERROR, TlsErrorKind::Misuse, "the crypto library refused a TLS key or record")
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn parts_are_cut_as_one() {
        let parts: [&[u8]; 4] = [b"ab", b"", b"cde", b"f"];
        for from in 0..=6 {
            for len in 0..=6 - from {
                let cut: Vec<u8> = pieces(&parts, from, len).flatten().copied().collect();
                assert_eq!(cut, b"abcdef"[from..from + len]);
            }
        }
    }
}
