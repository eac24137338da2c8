//! QUIC's cryptography for `quinn-proto`, on the TLS of `weir_wire`: its options, checks, names and error texts, and what was negotiated.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use aws_lc_rs::aead;
use quinn_proto::crypto::{self, ExportKeyingMaterialError, KeyPair, Keys, UnsupportedVersion};

use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{Connection, KeyChange, Secrets, Suite, Version};
use weir_wire::tls::{self, ServerName, TlsError};

/// The one version of QUIC that is spoken.
pub(crate) const VERSION: u32 = 1;

/// The key and nonce that every Retry packet of that version is sealed with (RFC 9001 section 5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// The alert `internal_error`.
const INTERNAL_ERROR: u8 = 80;

/// How a target is spoken to.
pub(crate) struct Client {
    pub(crate) config: tls::ClientConfig,
    pub(crate) name: ServerName,
    pub(crate) initial: Suite,
}

impl crypto::ClientConfig for Client {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION {
            return Err(ConnectError::UnsupportedVersion);
        }
        // That the options allow TLS 1.3 was tried when this was made.
        let connection =
            self.config.quic(&self.name, Version::V1, to_vec(params)).map_err(|_| ConnectError::EndpointStopping)?;
        Ok(Box::new(Session::new(connection, self.initial)))
    }
}

/// How clients are spoken to.
pub(crate) struct Server {
    pub(crate) config: tls::ServerConfig,
    pub(crate) initial: Suite,
}

impl Server {
    /// As [`crypto::ServerConfig::start_session`], which cannot fail.
    pub(crate) fn check(&self) -> Result<(), TlsError> {
        self.config.quic(Version::V1, Vec::new()).map(drop)
    }
}

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        if version == VERSION {
            Ok(initial_keys(&self.initial, dst_cid, Side::Server))
        } else {
            Err(UnsupportedVersion)
        }
    }

    fn retry_tag(&self, _: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let pseudo = pseudo_packet(orig_dst_cid, &[packet]);
        let mut tag = [0; 16];
        // The key has the right length, and an empty message is never too long.
        if let Ok(sealed) =
            retry_key().and_then(|key| key.seal_in_place_separate_tag(nonce(), aead::Aad::from(&pseudo), &mut []))
        {
            tag.copy_from_slice(sealed.as_ref());
        }
        tag
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn crypto::Session> {
        match self.config.quic(Version::V1, to_vec(params)) {
            Ok(connection) => Box::new(Session::new(connection, self.initial)),
            // It was tried when the endpoint was made: without random numbers nothing else works either.
            Err(error) => panic!("{error}"),
        }
    }
}

fn to_vec(params: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes);
    bytes
}

fn initial_keys(suite: &Suite, dst_cid: &ConnectionId, side: Side) -> Keys {
    let side = if side == Side::Client { rustls::Side::Client } else { rustls::Side::Server };
    keys(suite.keys(dst_cid, side, Version::V1))
}

fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: KeyPair { local: Box::new(keys.local.packet), remote: Box::new(keys.remote.packet) },
    }
}

fn retry_key() -> Result<aead::LessSafeKey, aws_lc_rs::error::Unspecified> {
    aead::UnboundKey::new(&aead::AES_128_GCM, &RETRY_KEY).map(aead::LessSafeKey::new)
}

fn nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key(RETRY_NONCE)
}

/// What a Retry packet's tag is of.
fn pseudo_packet(orig_dst_cid: &ConnectionId, parts: &[&[u8]]) -> Vec<u8> {
    let mut pseudo = vec![orig_dst_cid.len() as u8];
    pseudo.extend_from_slice(orig_dst_cid);
    parts.iter().for_each(|part| pseudo.extend_from_slice(part));
    pseudo
}

/// The TLS of one connection.
struct Session {
    connection: Connection,
    initial: Suite,
    next: Option<Secrets>,
    /// QUIC was told that there is something to know.
    told: bool,
}

impl Session {
    fn new(connection: Connection, initial: Suite) -> Session {
        Session { connection, initial, next: None, told: false }
    }

    fn side(&self) -> Side {
        match self.connection {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        initial_keys(&self.initial, dst_cid, side)
    }

    /// A [`tls::Negotiated`].
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        (!self.connection.is_handshaking())
            .then(|| -> Box<dyn Any> { Box::new(tls::quic_negotiated(&self.connection)) })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.connection {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.connection.read_hs(buf).map_err(|error| {
            let alert = self.connection.alert().map_or(INTERNAL_ERROR, u8::from);
            let reason = tls::quic_error(&error).to_string();
            TransportError { code: TransportErrorCode::crypto(alert), frame: None, reason }
        })?;
        let done = !self.connection.is_handshaking();
        Ok(done && !std::mem::replace(&mut self.told, done))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(bytes) = self.connection.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side(), &mut Cursor::new(bytes))?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        Some(match self.connection.write_hs(buf)? {
            KeyChange::Handshake { keys: change } => keys(change),
            KeyChange::OneRtt { keys: change, next } => {
                self.next = Some(next);
                keys(change)
            }
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn crypto::PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((text, tag)) = payload.split_last_chunk::<16>() else { return false };
        let (pseudo, mut tag) = (pseudo_packet(orig_dst_cid, &[header, text]), *tag);
        retry_key().and_then(|key| key.open_in_place(nonce(), aead::Aad::from(&pseudo), &mut tag).map(drop)).is_ok()
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.connection.export_keying_material(out, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9001, appendix A.4.
    #[test]
    fn a_retry_is_sealed_as_the_rfc_seals_it() {
        let id = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        let packet = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74, 0x6f, 0x6b,
            0x65, 0x6e,
        ];
        let tag = [0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba];
        let pseudo = pseudo_packet(&id, &[&packet]);
        let sealed =
            retry_key().unwrap().seal_in_place_separate_tag(nonce(), aead::Aad::from(&pseudo), &mut []).unwrap();
        assert_eq!(sealed.as_ref(), tag);
    }
}
