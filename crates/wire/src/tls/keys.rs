//! One direction's keys: records are sealed and opened with them (RFC 8446, section 5.2; RFC 5246, section 6.2.3.3 with
//! RFC 5288 for AES-GCM and RFC 7905 for ChaCha20-Poly1305).
//!
//! This module does not know what records mean.

use aws_lc_rs::aead;
use rustls::ConnectionTrafficSecrets;

use super::options::Version;

/// Bytes of a record's header: type, version, length.
pub(super) const HEADER: usize = 5;
/// Most bytes of plaintext in a record.
pub(super) const PLAIN_MOST: usize = 1 << 14;
/// Most bytes of a record after its header: TLS 1.2 allows 2048 more than plaintext, TLS 1.3 fewer.
pub(super) const BODY_MOST: usize = PLAIN_MOST + 2048;
/// Bytes of an authentication tag, of all suites.
const TAG: usize = 16;
/// Bytes of the nonce that TLS 1.2 sends with each AES-GCM record.
const EXPLICIT: usize = 8;

/// How a record is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// TLS 1.3: the content type is encrypted, after the content.
    Tls13,
    /// TLS 1.2, AES-GCM: eight bytes of the nonce precede the ciphertext.
    Gcm12,
    /// TLS 1.2, ChaCha20-Poly1305.
    ChaCha12,
}

/// The keys cannot be made, or a record cannot be opened. It says nothing more on purpose (as the crypto library).
#[derive(Debug)]
pub(super) struct Unusable;

/// One direction's key, nonce and counter.
pub(super) struct Keys {
    key: aead::LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    /// The number of records so far with this key.
    seq: u64,
    form: Form,
    /// Records that one key may seal ([RFC 8446, section 5.5]; the margin is rustls's).
    most: u64,
}

impl Keys {
    pub(super) fn new(version: Version, (seq, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Keys, Unusable> {
        let (algorithm, key, iv, gcm) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv, true),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv, true),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&aead::CHACHA20_POLY1305, key, iv, false),
            _ => return Err(Unusable),
        };
        let form = match (version, gcm) {
            (Version::Tls13, _) => Form::Tls13,
            (Version::Tls12, true) => Form::Gcm12,
            (Version::Tls12, false) => Form::ChaCha12,
        };
        let most = if gcm { 1 << 23 } else { u64::MAX };
        let key = aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, key.as_ref()).map_err(|_| Unusable)?);
        let iv = iv.as_ref().try_into().map_err(|_| Unusable)?;
        Ok(Keys { key, iv, seq, form, most })
    }

    /// Whether these keys have sealed as many records as they should, and new ones can be agreed on. TLS 1.2 cannot
    /// do that without a new handshake, so it continues, as the peers do: a benchmark sends no secrets.
    pub(super) fn worn(&self) -> bool {
        self.seq >= self.most && self.form == Form::Tls13
    }

    /// Bytes that a record has in addition to its content.
    pub(super) fn overhead(&self) -> usize {
        HEADER
            + TAG
            + match self.form {
                Form::Tls13 => 1,
                Form::Gcm12 => EXPLICIT,
                Form::ChaCha12 => 0,
            }
    }

    #[cfg(test)]
    pub(super) fn count_to(&mut self, seq: u64) {
        self.seq = seq;
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.seq
    }

    /// The nonce of the next record.
    fn nonce(&self) -> [u8; aead::NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, seq) in nonce[4..].iter_mut().zip(self.seq.to_be_bytes()) {
            *byte ^= seq;
        }
        nonce
    }

    /// The additional data that TLS 1.2 authenticates.
    fn aad12(&self, kind: u8, len: usize) -> [u8; 13] {
        let mut aad = [0; 13];
        aad[..8].copy_from_slice(&self.seq.to_be_bytes());
        aad[8] = kind;
        aad[9..11].copy_from_slice(&[3, 3]);
        // A record's content has at most 2^14 + 2048 bytes.
        aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
        aad
    }

    /// Appends a record whose content is the pieces one after another, `len` bytes in all, at most [`PLAIN_MOST`].
    pub(super) fn seal<'a>(
        &mut self,
        kind: u8,
        pieces: impl Iterator<Item = &'a [u8]>,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unusable> {
        let start = out.len();
        let nonce = self.nonce();
        let body = len + self.overhead() - HEADER;
        out.reserve(HEADER + body);
        let outer = if self.form == Form::Tls13 { super::records::DATA } else { kind };
        // At most 2^14 + 25.
        let [high, low] = (body as u16).to_be_bytes();
        let header = [outer, 3, 3, high, low];
        out.extend_from_slice(&header);
        if self.form == Form::Gcm12 {
            out.extend_from_slice(&nonce[4..]);
        }
        let from = out.len();
        for piece in pieces {
            out.extend_from_slice(piece);
        }
        debug_assert_eq!(out.len() - from, len);
        let unique = aead::Nonce::assume_unique_for_key(nonce);
        let sealed = if self.form == Form::Tls13 {
            out.push(kind);
            self.key.seal_in_place_separate_tag(unique, aead::Aad::from(header), &mut out[from..])
        } else {
            let aad = self.aad12(kind, len);
            self.key.seal_in_place_separate_tag(unique, aead::Aad::from(aad), &mut out[from..])
        };
        let Ok(tag) = sealed else {
            out.truncate(start);
            return Err(Unusable);
        };
        out.extend_from_slice(tag.as_ref());
        self.seq += 1;
        Ok(())
    }

    /// Opens a record into `plain` (which is at least as long as the body) and returns the content's type and length.
    pub(super) fn open(
        &mut self,
        header: [u8; HEADER],
        body: &[u8],
        plain: &mut [u8],
    ) -> Result<(u8, usize), Unusable> {
        let mut nonce = self.nonce();
        let mut body = body;
        if self.form == Form::Gcm12 {
            let (explicit, rest) = body.split_at_checked(EXPLICIT).ok_or(Unusable)?;
            nonce[4..].copy_from_slice(explicit);
            body = rest;
        }
        let len = body.len().checked_sub(TAG).ok_or(Unusable)?;
        let (sealed, tag) = body.split_at(len);
        let plain = &mut plain[..len];
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        let opened = if self.form == Form::Tls13 {
            self.key.open_separate_gather(nonce, aead::Aad::from(header), sealed, tag, plain)
        } else {
            let aad = self.aad12(header[0], len);
            self.key.open_separate_gather(nonce, aead::Aad::from(aad), sealed, tag, plain)
        };
        opened.map_err(|_| Unusable)?;
        self.seq += 1;
        if self.form != Form::Tls13 {
            return Ok((header[0], len));
        }
        // The type is the last byte that is not padding. A record that is all padding has none: type 0 is never valid.
        match plain.iter().rposition(|byte| *byte != 0) {
            Some(at) => Ok((plain[at], at)),
            None => Ok((0, 0)),
        }
    }
}
