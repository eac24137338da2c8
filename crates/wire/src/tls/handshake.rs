//! A connection until its handshake is done: rustls, fed record by record.
//!
//! rustls gets whole records only, one at a time. So when the handshake is done, rustls holds nothing that came after
//! it, and its secrets can be extracted.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedConnectionCommon, UnbufferedStatus};
use rustls::{CommonState, Error, HandshakeKind, ProtocolVersion};

use super::alert;
use super::error::{TlsError, TlsErrorKind};
use super::keys::{HEADER, Keys};
use super::names::{group_name, suite_name};
use super::options::Version;
use super::records::{Fail, Kernel, Traffic, body_len};
use super::session::Negotiated;
use super::verify::key_kind;

/// The handshake of one connection.
pub(super) struct Handshake {
    half: Half,
    /// Records, or the start of one, that rustls has not consumed.
    buffer: Vec<u8>,
    /// How much of it rustls has seen. Messages that span several records stay until they are complete.
    seen: usize,
}

/// Which half of the connection this is.
pub(super) enum Half {
    Client {
        connection: UnbufferedClientConnection,
        /// Whether tickets are stored.
        tickets: bool,
    },
    Server(UnbufferedServerConnection),
}

/// Both of rustls's unbuffered connections.
trait Unbuffered<Data> {
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Data>;
}

impl Unbuffered<ClientConnectionData> for UnbufferedConnectionCommon<ClientConnectionData> {
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        self.process_tls_records(input)
    }
}

impl Unbuffered<ServerConnectionData> for UnbufferedConnectionCommon<ServerConnectionData> {
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        self.process_tls_records(input)
    }
}

/// The state of rustls after its input.
enum Step {
    /// It needs more.
    Wants,
    /// The handshake is done.
    Done,
    /// The peer has finished sending.
    Closed,
    /// Data came before the end of the handshake, which cannot happen record by record.
    Data,
}

impl Handshake {
    pub(super) fn new(half: Half) -> Handshake {
        Handshake { half, buffer: Vec::new(), seen: 0 }
    }

    /// Reads records from the input until the handshake is done (true) or the input is used up (false). With an empty
    /// input, it writes the first message.
    pub(super) fn next(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, Fail> {
        if input.is_empty() {
            return self.step(out);
        }
        while self.take_record(input)? {
            if self.step(out)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the rest of the next record. Returns whether it is complete.
    fn take_record(&mut self, input: &mut &[u8]) -> Result<bool, Fail> {
        loop {
            let record = &self.buffer[self.seen..];
            let whole = match record.first_chunk::<HEADER>() {
                Some(header) => HEADER + body_len(*header)?,
                None => HEADER,
            };
            let lacks = whole - record.len();
            if lacks == 0 {
                self.seen += whole;
                return Ok(true);
            }
            if input.is_empty() {
                return Ok(false);
            }
            let (now, later) = input.split_at(lacks.min(input.len()));
            self.buffer.extend_from_slice(now);
            *input = later;
        }
    }

    fn step(&mut self, out: &mut Vec<u8>) -> Result<bool, Fail> {
        // Not what belongs to a record that is not whole: there is none, for only whole ones are processed.
        let (step, taken) = match &mut self.half {
            Half::Client { connection, .. } => drive(&mut **connection, &mut self.buffer, out),
            Half::Server(connection) => drive(&mut **connection, &mut self.buffer, out),
        }
        .map_err(|e| Fail { alert: None, error: TlsError::of_handshake(&e) })?;
        self.seen -= taken;
        match step {
            Step::Wants => Ok(false),
            Step::Done if self.buffer.is_empty() => Ok(true),
            Step::Done | Step::Data => Err(Fail::new(
                alert::UNEXPECTED_MESSAGE,
                TlsErrorKind::Protocol,
                "something came inside the last record of the TLS handshake",
            )),
            Step::Closed => {
                let text = "the peer ended the TLS handshake: close_notify (0)";
                Err(Fail { alert: None, error: TlsError::new(TlsErrorKind::Handshake, text) })
            }
        }
    }

    /// The connection after its handshake; rustls's buffers are freed.
    pub(super) fn into_traffic(self) -> Result<Traffic, TlsError> {
        let failed =
            |e: Error| TlsError::new(TlsErrorKind::Misuse, format!("TLS cannot go on after the handshake: {e}"));
        let (negotiated, secrets, kernel) = match self.half {
            Half::Client { connection, tickets } => {
                let negotiated = negotiated(&connection);
                let (secrets, connection) = connection.dangerous_into_kernel_connection().map_err(failed)?;
                (negotiated, secrets, Kernel::Client { connection, tickets })
            }
            Half::Server(connection) => {
                let negotiated = negotiated(&connection);
                let (secrets, connection) = connection.dangerous_into_kernel_connection().map_err(failed)?;
                (negotiated, secrets, Kernel::Server(connection))
            }
        };
        let keys = |secrets| {
            Keys::new(negotiated.version, secrets)
                .map_err(|_| failed(Error::General("the keys are unusable".to_owned())))
        };
        Ok(Traffic::new(keys(secrets.rx)?, keys(secrets.tx)?, kernel, negotiated))
    }
}

/// Runs rustls until it needs more. Removes the consumed bytes from the buffer, and returns their number.
fn drive<Data>(
    connection: &mut UnbufferedConnectionCommon<Data>,
    buffer: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(Step, usize), Error>
where
    UnbufferedConnectionCommon<Data>: Unbuffered<Data>,
{
    let mut taken = 0;
    loop {
        let UnbufferedStatus { discard, state, .. } = connection.process(buffer);
        let step = match state {
            Ok(ConnectionState::EncodeTlsData(data)) => {
                encode(data, out)?;
                None
            }
            Ok(ConnectionState::TransmitTlsData(transmit)) => {
                transmit.done();
                None
            }
            Err(error) => {
                // It may have an alert to send about that, and sends it before it reads; it must not read again.
                while connection.wants_write() {
                    let ConnectionState::EncodeTlsData(data) = connection.process(buffer).state? else { break };
                    encode(data, out)?;
                }
                return Err(error);
            }
            Ok(ConnectionState::WriteTraffic(_)) => Some(Step::Done),
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Some(Step::Closed),
            Ok(ConnectionState::ReadTraffic(_) | ConnectionState::ReadEarlyData(_)) => Some(Step::Data),
            Ok(_) => Some(Step::Wants),
        };
        buffer.drain(..discard);
        taken += discard;
        match step {
            Some(Step::Done) if connection.is_handshaking() => return Ok((Step::Wants, taken)),
            Some(step) => return Ok((step, taken)),
            None => {}
        }
    }
}

/// Appends what rustls has to send.
fn encode<Data>(mut data: EncodeTlsData<'_, Data>, out: &mut Vec<u8>) -> Result<(), Error> {
    let failed = |e: EncodeError| Error::General(e.to_string());
    match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(needs)) => {
            let start = out.len();
            out.resize(start + needs.required_size, 0);
            data.encode(&mut out[start..]).map(drop).map_err(failed)
        }
        Err(e) => Err(failed(e)),
        Ok(_) => Ok(()),
    }
}

/// What the two sides agreed on, while rustls still has it.
pub(super) fn negotiated(common: &CommonState) -> Negotiated {
    let version = match common.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => Version::Tls12,
        _ => Version::Tls13,
    };
    Negotiated {
        version,
        suite: common.negotiated_cipher_suite().map_or("", |suite| suite_name(suite.suite())),
        group: common.negotiated_key_exchange_group().map(|group| group_name(group.name())),
        alpn: common.alpn_protocol().map(|name| String::from_utf8_lossy(name).into()),
        resumed: common.handshake_kind() == Some(HandshakeKind::Resumed),
        peer_key: common.peer_certificates().and_then(<[_]>::first).and_then(|certificate| key_kind(certificate)),
    }
}
