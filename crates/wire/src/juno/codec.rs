//! Reading and writing a message. Integers are big-endian.

use super::frame::HEADERS;
use super::{EncodeError, Opcode, ParseError, Status};

const RESPONSE: u8 = 0;
const REQUEST: u8 = 0x40;
const ONE_WAY: u8 = 0xC0;
const PAYLOAD: u8 = 1;
const META: u8 = 2;

/// Longest value, bytes: with all that is around it, its message is shorter than 4 GiB.
const MOST_DATA: usize = u32::MAX as usize - (1 << 20);

/// A message. What it refers to is borrowed from the bytes that it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message<'a> {
    /// What it asks for.
    pub opcode: Opcode,
    /// A response's status; `None`: it is a request.
    pub status: Option<Status>,
    /// 1: replication, 2: mark as deleted. Clients send 0.
    pub flags: u8,
    /// Comes back in the response.
    pub opaque: u32,
    /// What is known of the record and of the request.
    pub meta: Meta<'a>,
    /// Namespace of the key.
    pub namespace: &'a [u8],
    /// The key.
    pub key: &'a [u8],
    /// The value; empty where there is none.
    pub payload: Payload<'a>,
}

/// A value, and how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Payload<'a> {
    /// 0 clear, 1 encrypted by the client, 2 encrypted by the proxy, 3 compressed by the client.
    pub kind: u8,
    /// The value.
    pub data: &'a [u8],
}

/// The metadata, less what neither a client nor a server of weir reads: who asks, and names for logs. 0 and `None` are not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meta<'a> {
    /// Time to live, s.
    pub ttl: u32,
    /// The record's version, from 1.
    pub version: u32,
    /// When the record was created, s since 1970.
    pub created: u32,
    /// When it expires, s since 1970.
    pub expires: u32,
    /// When it was written last, ns since 1970.
    pub modified: u64,
    /// How long the server had the request, ms.
    pub handling: u32,
    /// The request's own number, unique for ever.
    pub request_id: Option<&'a [u8; 16]>,
    /// The number of the request that wrote the record.
    pub originator: Option<&'a [u8; 16]>,
}

/// The fields of the metadata in the order in which JunoDB writes them: tag and descriptor. The descriptor's upper three
/// bits give the size: 0 for a value that begins with its length, else 2 to the power of n + 1 bytes.
const ORDER: [u8; 8] = [0x2A, 0x65, 0x68, 0x47, 0x21, 0x22, 0x23, 0x24];

impl<'a> Message<'a> {
    /// Reads a message that is whole.
    ///
    /// # Errors
    /// What the peer did wrong. Components and fields that are not known are passed over.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, ParseError> {
        let header = bytes.first_chunk::<HEADERS>().ok_or(ParseError::BadSize)?;
        if header[2] != 1 {
            return Err(ParseError::UnsupportedVersion);
        }
        let status = match header[3] {
            RESPONSE => Some(Status(header[15])),
            REQUEST | ONE_WAY => None,
            _ => return Err(ParseError::NotAnOperation),
        };
        let mut message = Message {
            opcode: Opcode(header[12]),
            status,
            flags: header[13],
            opaque: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
            ..Message::default()
        };
        let mut rest = &bytes[HEADERS..];
        while !rest.is_empty() {
            let size = rest.first_chunk().map_or(0, |size| u32::from_be_bytes(*size)) as usize;
            if size < 8 || !size.is_multiple_of(8) {
                return Err(ParseError::BadComponent);
            }
            let (component, next) = rest.split_at_checked(size).ok_or(ParseError::BadComponent)?;
            match component[4] {
                PAYLOAD => message.read_record(component)?,
                META => message.meta = Meta::read(component)?,
                _ => {}
            }
            rest = next;
        }
        Ok(message)
    }

    fn read_record(&mut self, component: &'a [u8]) -> Result<(), ParseError> {
        let lengths = component.first_chunk::<12>().ok_or(ParseError::BadRecord)?;
        let key = usize::from(u16::from_be_bytes([lengths[6], lengths[7]]));
        let value = u32::from_be_bytes([lengths[8], lengths[9], lengths[10], lengths[11]]) as usize;
        let rest = &component[12..];
        let (namespace, rest) = rest.split_at_checked(usize::from(lengths[5])).ok_or(ParseError::BadRecord)?;
        let (key, rest) = rest.split_at_checked(key).ok_or(ParseError::BadRecord)?;
        let payload = rest.get(..value).ok_or(ParseError::BadRecord)?;
        (self.namespace, self.key) = (namespace, key);
        self.payload = payload.split_first().map_or(Payload::default(), |(kind, data)| Payload { kind: *kind, data });
        Ok(())
    }

    /// Appends the message.
    ///
    /// # Errors
    /// What is too long. `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.check()?;
        let start = out.len();
        let kind = if self.status.is_some() { RESPONSE } else { REQUEST };
        out.extend_from_slice(&[0x50, 0x50, 1, kind, 0, 0, 0, 0]);
        out.extend_from_slice(&self.opaque.to_be_bytes());
        out.extend_from_slice(&[self.opcode.0, self.flags]);
        out.extend_from_slice(&self.status.map_or(0, |status| u16::from(status.0)).to_be_bytes());
        self.meta.write(out);
        self.write_record(out);
        let size = (out.len() - start) as u32;
        out[start + 4..start + 8].copy_from_slice(&size.to_be_bytes());
        Ok(())
    }

    /// Whether all lengths have room where they are written.
    #[inline]
    fn check(&self) -> Result<(), EncodeError> {
        if self.namespace.len() > usize::from(u8::MAX) {
            return Err(EncodeError::LongNamespace);
        }
        if self.key.len() > usize::from(u16::MAX) {
            return Err(EncodeError::LongKey);
        }
        if self.payload.data.len() > MOST_DATA {
            return Err(EncodeError::LongValue);
        }
        Ok(())
    }

    fn write_record(&self, out: &mut Vec<u8>) {
        let value = if self.payload == Payload::default() { 0 } else { self.payload.data.len() + 1 };
        let used = 12 + self.namespace.len() + self.key.len() + value;
        let size = used.next_multiple_of(8);
        out.extend_from_slice(&(size as u32).to_be_bytes());
        out.extend_from_slice(&[PAYLOAD, self.namespace.len() as u8]);
        out.extend_from_slice(&(self.key.len() as u16).to_be_bytes());
        out.extend_from_slice(&(value as u32).to_be_bytes());
        out.extend_from_slice(self.namespace);
        out.extend_from_slice(self.key);
        if value > 0 {
            out.push(self.payload.kind);
            out.extend_from_slice(self.payload.data);
        }
        out.resize(out.len() + size - used, 0);
    }
}

impl<'a> Meta<'a> {
    fn read(component: &'a [u8]) -> Result<Meta<'a>, ParseError> {
        let fields = usize::from(component[5]);
        let descriptors = component.get(6..6 + fields).ok_or(ParseError::BadField)?;
        let mut rest = component.get((6 + fields).next_multiple_of(4)..).ok_or(ParseError::BadField)?;
        let mut meta = Meta::default();
        for &descriptor in descriptors {
            let length = match descriptor >> 5 {
                0 => usize::from(*rest.first().ok_or(ParseError::BadField)?),
                size => 1 << (size + 1),
            };
            if length == 0 || !length.is_multiple_of(4) {
                return Err(ParseError::BadField);
            }
            let (value, next) = rest.split_at_checked(length).ok_or(ParseError::BadField)?;
            meta.read_field(descriptor, value).ok_or(ParseError::BadField)?;
            rest = next;
        }
        Ok(meta)
    }

    /// Takes a field; `None`: its value is malformed.
    fn read_field(&mut self, descriptor: u8, value: &'a [u8]) -> Option<()> {
        let number = |value: &[u8]| Some(u32::from_be_bytes(value.try_into().ok()?));
        match descriptor {
            0x21 => self.ttl = number(value)?,
            0x22 => self.version = number(value)?,
            0x23 => self.created = number(value)?,
            0x24 => self.expires = number(value)?,
            0x2A => self.handling = number(value)?,
            0x47 => self.modified = u64::from_be_bytes(value.try_into().ok()?),
            0x65 => self.request_id = Some(value.try_into().ok()?),
            0x68 => self.originator = Some(value.try_into().ok()?),
            _ => {}
        }
        Some(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, META, 0]);
        for descriptor in ORDER {
            if self.has(descriptor) {
                out.push(descriptor);
                out[start + 5] += 1;
            }
        }
        pad(out, start, 4);
        for descriptor in ORDER {
            if self.has(descriptor) {
                self.write_field(descriptor, out);
            }
        }
        pad(out, start, 8);
        let size = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }

    #[inline]
    fn has(&self, descriptor: u8) -> bool {
        match descriptor {
            0x21 => self.ttl != 0,
            0x22 => self.version != 0,
            0x23 => self.created != 0,
            0x24 => self.expires != 0,
            0x2A => self.handling != 0,
            0x47 => self.modified != 0,
            0x65 => self.request_id.is_some(),
            _ => self.originator.is_some(),
        }
    }

    #[inline]
    fn write_field(&self, descriptor: u8, out: &mut Vec<u8>) {
        match descriptor {
            0x21 => out.extend_from_slice(&self.ttl.to_be_bytes()),
            0x22 => out.extend_from_slice(&self.version.to_be_bytes()),
            0x23 => out.extend_from_slice(&self.created.to_be_bytes()),
            0x24 => out.extend_from_slice(&self.expires.to_be_bytes()),
            0x2A => out.extend_from_slice(&self.handling.to_be_bytes()),
            0x47 => out.extend_from_slice(&self.modified.to_be_bytes()),
            0x65 => out.extend_from_slice(self.request_id.unwrap_or(&[0; 16])),
            _ => out.extend_from_slice(self.originator.unwrap_or(&[0; 16])),
        }
    }
}

/// Fills up with zeros to a multiple of `unit` from `start`.
fn pad(out: &mut Vec<u8>, start: usize, unit: usize) {
    let length = (out.len() - start).next_multiple_of(unit);
    out.resize(start + length, 0);
}
