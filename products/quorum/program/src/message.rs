//! juno's messages: a header, metadata and a record, as JunoDB's clients, proxy and stores send them.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Operations.
pub mod op {
    pub const NOP: u8 = 0;
    pub const CREATE: u8 = 1;
    pub const GET: u8 = 2;
    pub const UPDATE: u8 = 3;
    pub const SET: u8 = 4;
    pub const DESTROY: u8 = 5;
    pub const PREPARE_CREATE: u8 = 0x81;
    pub const READ: u8 = 0x82;
    pub const PREPARE_UPDATE: u8 = 0x83;
    pub const PREPARE_SET: u8 = 0x84;
    pub const PREPARE_DELETE: u8 = 0x85;
    pub const COMMIT: u8 = 0xC1;
    pub const ABORT: u8 = 0xC2;
    pub const REPAIR: u8 = 0xC3;
    pub const MARK_DELETE: u8 = 0xC4;
}

/// Statuses.
pub mod status {
    pub const OK: u8 = 0;
    pub const NO_KEY: u8 = 3;
    pub const DUPLICATE_KEY: u8 = 4;
    pub const BAD_PARAMETER: u8 = 7;
    pub const RECORD_LOCKED: u8 = 8;
    pub const NO_UNCOMMITTED: u8 = 10;
    pub const NO_STORE: u8 = 12;
    pub const BUSY: u8 = 14;
    /// A prepared write will make a new record.
    pub const INSERTING: u8 = 15;
    /// The same request was carried out before.
    pub const ALREADY_FULFILLED: u8 = 17;
    pub const VERSION_CONFLICT: u8 = 19;
    pub const STORE_ERROR: u8 = 21;
    pub const OUT_OF_RESOURCE: u8 = 22;
    pub const COMMIT_FAILURE: u8 = 25;
    pub const MARKED_DELETE: u8 = 27;
    pub const NOT_SUPPORTED: u8 = 28;
}

/// A repair with this flag writes a record that is marked as deleted.
pub const FLAG_MARK_DELETE: u8 = 2;

/// A number that is unique for ever.
pub type Id = [u8; 16];

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    pub opcode: u8,
    /// A response's status; `None`: a request.
    pub status: Option<u8>,
    pub flags: u8,
    pub opaque: u32,
    pub meta: Meta,
    pub namespace: Bytes,
    pub key: Bytes,
    /// The value, with a byte before it that says how it is encoded; empty where there is none.
    pub payload: Bytes,
}

/// The metadata. 0, `None` and empty fields are not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// s.
    pub ttl: u32,
    pub version: u32,
    /// s since 1970.
    pub created: u32,
    /// s since 1970.
    pub expires: u32,
    /// ns since 1970.
    pub modified: u64,
    /// Until when a store keeps the record, s since 1970; told among proxy and stores only.
    pub kept: u32,
    /// How long the proxy had the request, ms.
    pub handling: u32,
    pub request: Option<Id>,
    /// The request that wrote the record first.
    pub originator: Option<Id>,
}

/// A message that cannot be read. The connection ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// Largest message that is read, bytes. A value that is over its limit is refused by a status, not by closing.
const LIMIT: usize = 1024 * 1024;
const HEADERS: usize = 16;
const PAYLOAD: u8 = 1;
const META: u8 = 2;
/// The field `kept`, which is none of juno's: a number of 4 bytes.
const KEPT: u8 = 0x3F;
/// The fields in the order in which JunoDB writes them: size in the upper three bits, tag in the others.
const ORDER: [u8; 9] = [0x2A, 0x65, 0x68, 0x47, 0x21, 0x22, 0x23, 0x24, KEPT];

impl Message {
    /// Takes a message from a buffer; `None`: it is not whole.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Message>, Malformed> {
        let Some(header) = buffer.first_chunk::<HEADERS>() else { return Ok(None) };
        let size = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if header[..3] != [0x50, 0x50, 1] || !(HEADERS..=LIMIT).contains(&size) {
            return Err(Malformed);
        }
        if buffer.len() < size {
            buffer.reserve(size - buffer.len());
            return Ok(None);
        }
        let mut bytes = buffer.split_to(size).freeze();
        let response = bytes[3] == 0;
        let mut message = Message {
            opcode: bytes[12],
            status: response.then_some(bytes[15]),
            flags: bytes[13],
            opaque: u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            ..Message::default()
        };
        bytes.advance(HEADERS);
        while !bytes.is_empty() {
            let size = bytes.first_chunk().map_or(0, |size| u32::from_be_bytes(*size)) as usize;
            if size < 8 || size > bytes.len() {
                return Err(Malformed);
            }
            let component = bytes.split_to(size);
            match component[4] {
                PAYLOAD => message.read_record(component)?,
                META => message.meta = Meta::read(&component)?,
                _ => {}
            }
        }
        Ok(Some(message))
    }

    fn read_record(&mut self, mut component: Bytes) -> Result<(), Malformed> {
        if component.len() < 12 {
            return Err(Malformed);
        }
        component.advance(5);
        let lengths = [component.get_u8().into(), component.get_u16().into(), component.get_u32() as usize];
        if lengths.iter().sum::<usize>() > component.len() {
            return Err(Malformed);
        }
        [self.namespace, self.key, self.payload] = lengths.map(|length| component.split_to(length));
        Ok(())
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_slice(&[0x50, 0x50, 1, if self.status.is_some() { 0 } else { 0x40 }]);
        out.put_u32(0);
        out.put_u32(self.opaque);
        out.put_slice(&[self.opcode, self.flags, 0, self.status.unwrap_or(0)]);
        self.meta.write(out);
        let record = out.len();
        out.put_u32(0);
        out.put_slice(&[PAYLOAD, self.namespace.len() as u8]);
        out.put_u16(self.key.len() as u16);
        out.put_u32(self.payload.len() as u32);
        out.put_slice(&self.namespace);
        out.put_slice(&self.key);
        out.put_slice(&self.payload);
        close(out, record);
        let size = (out.len() - start) as u32;
        out[start + 4..start + 8].copy_from_slice(&size.to_be_bytes());
    }

    /// A response to this request, without a record or metadata.
    pub fn response(&self, status: u8) -> Message {
        Message {
            opcode: self.opcode,
            status: Some(status),
            opaque: self.opaque,
            meta: Meta { request: self.meta.request, ..Meta::default() },
            namespace: self.namespace.clone(),
            key: self.key.clone(),
            ..Message::default()
        }
    }
}

impl Meta {
    fn read(component: &[u8]) -> Result<Meta, Malformed> {
        let fields = usize::from(component[5]);
        let descriptors = component.get(6..6 + fields).ok_or(Malformed)?;
        let mut rest = component.get((6 + fields).next_multiple_of(4)..).ok_or(Malformed)?;
        let mut meta = Meta::default();
        for &descriptor in descriptors {
            let length = match descriptor >> 5 {
                0 => usize::from(*rest.first().ok_or(Malformed)?).max(1),
                size => 1 << (size + 1),
            };
            let (value, next) = rest.split_at_checked(length).ok_or(Malformed)?;
            meta.read_field(descriptor, value);
            rest = next;
        }
        Ok(meta)
    }

    /// Descriptors fix the lengths of the values that are read; others are passed over.
    fn read_field(&mut self, descriptor: u8, mut value: &[u8]) {
        match descriptor {
            0x21 => self.ttl = value.get_u32(),
            0x22 => self.version = value.get_u32(),
            0x23 => self.created = value.get_u32(),
            0x24 => self.expires = value.get_u32(),
            0x2A => self.handling = value.get_u32(),
            0x47 => self.modified = value.get_u64(),
            KEPT => self.kept = value.get_u32(),
            0x65 => self.request = value.try_into().ok(),
            0x68 => self.originator = value.try_into().ok(),
            _ => {}
        }
    }

    fn write(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_u32(0);
        out.put_slice(&[META, 0]);
        let present = ORDER.into_iter().filter(|descriptor| match descriptor {
            0x2A => self.handling != 0,
            0x65 => self.request.is_some(),
            0x68 => self.originator.is_some(),
            0x47 => self.modified != 0,
            0x21 => self.ttl != 0,
            0x22 => self.version != 0,
            0x23 => self.created != 0,
            0x24 => self.expires != 0,
            _ => self.kept != 0,
        });
        for descriptor in present.clone() {
            out.put_u8(descriptor);
            out[start + 5] += 1;
        }
        let padded = start + (out.len() - start).next_multiple_of(4);
        out.resize(padded, 0);
        for descriptor in present {
            match descriptor {
                0x2A => out.put_u32(self.handling),
                0x65 => out.put_slice(&self.request.unwrap_or_default()),
                0x68 => out.put_slice(&self.originator.unwrap_or_default()),
                0x47 => out.put_u64(self.modified),
                0x21 => out.put_u32(self.ttl),
                0x22 => out.put_u32(self.version),
                0x23 => out.put_u32(self.created),
                0x24 => out.put_u32(self.expires),
                _ => out.put_u32(self.kept),
            }
        }
        close(out, start);
    }
}

/// Fills a component up to a multiple of 8, and writes its size at its beginning.
fn close(out: &mut BytesMut, start: usize) {
    let size = (out.len() - start).next_multiple_of(8);
    out.resize(start + size, 0);
    out[start..start + 4].copy_from_slice(&(size as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Get's response and a Create's request, made by JunoDB's own encoder.
    const WORKED: [&str; 2] = [
        "50500100000000780000000202000000 0000005002082a656847212223240000 00000002202122232425262728292a2b \
         2c2d2e2f101112131415161718191a1b 1c1d1e1f112233445566778800000708 00000001640000006400070800000000 \
         0000001801020004000000066e736b65 79310076616c7565",
        "50500140000000580000000101000000 00000030020365210600000010111213 1415161718191a1b1c1d1e1f00000708 \
         1008c0017f0000016a756e6f6c6f6164 0000001801020004000000066e736b65 79310076616c7565",
    ];

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| Some(c.to_digit(16)? as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn taken(bytes: &[u8]) -> Message {
        let mut buffer = BytesMut::from(bytes);
        let message = Message::take(&mut buffer).unwrap().unwrap();
        assert!(buffer.is_empty());
        message
    }

    #[test]
    fn worked_bytes_are_read_and_written() {
        let [response, request] = WORKED.map(bytes);
        let message = taken(&response);
        assert_eq!((message.opcode, message.status, message.opaque), (op::GET, Some(status::OK), 2));
        assert_eq!(
            (&message.namespace[..], &message.key[..], &message.payload[..]),
            (&b"ns"[..], &b"key1"[..], &b"\0value"[..])
        );
        let Meta { ttl, version, created, expires, modified, handling, .. } = message.meta;
        assert_eq!((ttl, version, created, expires), (1800, 1, 0x6400_0000, 0x6400_0708));
        assert_eq!((modified, handling), (0x1122_3344_5566_7788, 2));
        let mut written = BytesMut::new();
        message.encode(&mut written);
        assert_eq!(written, response);
        // The source of a request is passed over.
        let message = taken(&request);
        assert_eq!((message.opcode, message.status, message.meta.ttl), (op::CREATE, None, 1800));
        assert_eq!(message.meta.request.unwrap()[..4], [0x10, 0x11, 0x12, 0x13]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let id = Some([7; 16]);
        let meta = Meta { version: 3, kept: 9, request: id, originator: id, ..Meta::default() };
        let message = Message {
            opcode: op::REPAIR,
            flags: 2,
            opaque: 5,
            meta,
            key: "k".into(),
            payload: "v".into(),
            ..Message::default()
        };
        let mut written = BytesMut::new();
        message.encode(&mut written);
        assert_eq!(taken(&written), message);
    }

    #[test]
    fn cut_anywhere_it_waits_and_broken_anywhere_it_does_not_panic() {
        for worked in WORKED.map(bytes) {
            for cut in 0..worked.len() {
                assert_eq!(Message::take(&mut BytesMut::from(&worked[..cut])), Ok(None), "{cut}");
            }
            for at in 0..worked.len() {
                for byte in 0..=u8::MAX {
                    let mut broken = worked.clone();
                    broken[at] = byte;
                    let _ = Message::take(&mut BytesMut::from(&broken[..]));
                }
            }
        }
    }
}
