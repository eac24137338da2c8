//! A record as a store keeps it.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::message::{FLAG_MARK_DELETE, Id, Message, Meta};

/// A record.
#[derive(Debug, Clone)]
pub struct Record {
    /// Until when it is kept, s since 1970: its own expiry, or that of an older record of its key if that is later. A
    /// store that missed this one still has the older one, and must not be believed.
    pub kept: u32,
    pub deleted: bool,
    /// s since 1970.
    pub expires: u32,
    pub created: u32,
    pub version: u32,
    /// ns since 1970.
    pub modified: u64,
    /// The request that wrote it last.
    pub request: Id,
    /// The request that wrote it first.
    pub originator: Id,
    pub payload: Bytes,
}

/// Bytes before the value.
const HEAD: usize = 57;

impl Record {
    /// Reads it; `None`: it is none.
    pub fn decode(mut bytes: Bytes) -> Option<Record> {
        if bytes.len() < HEAD {
            return None;
        }
        let (kept, deleted) = (bytes.get_u32(), bytes.get_u8() != 0);
        let (expires, created, version, modified) =
            (bytes.get_u32(), bytes.get_u32(), bytes.get_u32(), bytes.get_u64());
        let (mut request, mut originator) = (Id::default(), Id::default());
        bytes.copy_to_slice(&mut request);
        bytes.copy_to_slice(&mut originator);
        Some(Record { kept, deleted, expires, created, version, modified, request, originator, payload: bytes })
    }

    /// Writes it.
    pub fn encode(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(HEAD + self.payload.len());
        out.put_u32(self.kept);
        out.put_u8(self.deleted.into());
        out.put_u32(self.expires);
        out.put_u32(self.created);
        out.put_u32(self.version);
        out.put_u64(self.modified);
        out.put_slice(&self.request);
        out.put_slice(&self.originator);
        out.put_slice(&self.payload);
        out
    }

    /// What a commit or a repair writes: its metadata, and a value.
    pub fn of(message: &Message, payload: Bytes) -> Record {
        let meta = &message.meta;
        let expires = if meta.expires != 0 { meta.expires } else { now().saturating_add(meta.ttl) };
        Record {
            kept: meta.kept.max(expires),
            deleted: message.flags & FLAG_MARK_DELETE != 0,
            expires,
            created: meta.created,
            version: meta.version,
            modified: meta.modified,
            request: meta.request.unwrap_or_default(),
            originator: meta.originator.or(meta.request).unwrap_or_default(),
            payload,
        }
    }

    /// What is said of it in a response to a request.
    pub fn meta(&self, request: Option<Id>) -> Meta {
        Meta {
            ttl: self.expires.saturating_sub(now()),
            version: self.version,
            created: self.created,
            expires: self.expires,
            modified: self.modified,
            kept: self.kept,
            handling: 0,
            request,
            originator: Some(self.originator),
        }
    }

    /// Whether clients may see it: it is neither deleted nor past its time.
    pub fn is_live(&self) -> bool {
        !self.deleted && self.expires > now()
    }
}

/// Whether a store may forget the record in these bytes.
pub fn is_over(mut bytes: &[u8]) -> bool {
    bytes.len() >= HEAD && bytes.get_u32() <= now()
}

/// s since 1970.
pub fn now() -> u32 {
    (now_ns() / 1_000_000_000) as u32
}

/// ns since 1970.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64)
}
