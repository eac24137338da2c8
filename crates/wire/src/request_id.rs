//! Request IDs: how the client writes one into a header, how the origin answers with it, and how both find it in
//! a head.
//!
//! An ID tells which load the request is of, which of the client's threads sent it (numbered through over all clients), and the how many-th
//! request of that thread it is. As text it always has the same length, so that it is written over the last one in place; behind it
//! stands the request's digest ([`crate::digest`]). The origin's response repeats the ID, with its worker, the time and a tag. The
//! tag takes the load's key, so that a product cannot write such a header itself. This module does not know who
//! has seen which ID.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::http1::headers;

/// Length of an ID as text.
pub const REQUEST_ID_LENGTH: usize = 16;

/// Length of a response's header as text: the ID, the worker in 4 digits, the time in 16, the tag in 8, and what is between them.
pub const RESPONSE_LENGTH: usize = REQUEST_ID_LENGTH + 1 + 4 + 1 + 16 + 1 + 8;

const NUMBER_BITS: u32 = 36;
const THREAD_BITS: u32 = 12;

/// The load and the thread of weir's own requests to a product, which are no load's: those that verify it.
pub const OWN: (u16, u32) = (0, 0);

/// The ID of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

impl RequestId {
    /// The request ID with this number (of 36 bits) of a thread (of 12) of a load. What exceeds its bits is lost.
    #[inline]
    pub const fn new(load: u16, thread: u32, number: u64) -> RequestId {
        let thread = (thread & ((1 << THREAD_BITS) - 1)) as u64;
        let number = number & ((1 << NUMBER_BITS) - 1);
        RequestId(((load as u64) << (THREAD_BITS + NUMBER_BITS)) | (thread << NUMBER_BITS) | number)
    }

    /// Which load it is of.
    #[inline]
    pub const fn load(self) -> u16 {
        (self.0 >> (THREAD_BITS + NUMBER_BITS)) as u16
    }

    /// Which thread of the load.
    #[inline]
    pub const fn thread(self) -> u32 {
        ((self.0 >> NUMBER_BITS) & ((1 << THREAD_BITS) - 1)) as u32
    }

    /// Its number among the thread's requests.
    #[inline]
    pub const fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }

    /// All of it.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What [`RequestId::bits`] gave.
    #[inline]
    pub const fn of_bits(bits: u64) -> RequestId {
        RequestId(bits)
    }

    /// The ID as text: hexadecimal digits in lower case.
    #[inline]
    pub fn text(self) -> [u8; REQUEST_ID_LENGTH] {
        digits16(self.0)
    }

    /// Reads an ID: [`REQUEST_ID_LENGTH`] hexadecimal digits in lower case, and nothing else.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<RequestId> {
        number16(text.try_into().ok()?).map(RequestId)
    }
}

/// What client and origin of a load know and a product does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResponseKey(pub [u64; 2]);

impl ResponseKey {
    /// The tag of what a response says. One that was guessed is right once in four thousand million times.
    #[inline]
    fn tag(self, answered: ResponseTag) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.0[0], self.0[1]);
        hasher.write_u64(answered.id.0);
        hasher.write_u64(answered.at_us);
        hasher.write_u64(u64::from(answered.worker));
        hasher.finish() as u32
    }
}

/// What a response says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseTag {
    /// The request ID that the origin answered.
    pub id: RequestId,
    /// Which of the origin's workers did.
    pub worker: u16,
    /// When: microseconds of `CLOCK_MONOTONIC` on the origin's host.
    pub at_us: u64,
}

impl ResponseTag {
    /// The header's value, tagged with the load's key.
    #[inline]
    pub fn text(self, key: ResponseKey) -> [u8; RESPONSE_LENGTH] {
        let mut text = [b'-'; RESPONSE_LENGTH];
        text[..16].copy_from_slice(&self.id.text());
        text[17..21].copy_from_slice(&digits8(u32::from(self.worker))[4..]);
        text[22..38].copy_from_slice(&digits16(self.at_us));
        text[39..].copy_from_slice(&digits8(key.tag(self)));
        text
    }

    /// Reads a header's value, which has to be as [`Answered::text`] writes it with this key.
    #[inline]
    pub fn parse(text: &[u8], key: ResponseKey) -> Option<ResponseTag> {
        let text: &[u8; RESPONSE_LENGTH] = text.try_into().ok()?;
        let (id, rest) = text.split_first_chunk()?;
        let [b'-', a, b, c, d, b'-', rest @ ..] = rest else { return None };
        let worker = number8([b'0', b'0', b'0', b'0', *a, *b, *c, *d])?;
        let (at, rest) = rest.split_first_chunk()?;
        let tag = number8(rest.strip_prefix(b"-")?.try_into().ok()?)?;
        let answered = ResponseTag { id: RequestId(number16(*id)?), worker: worker as u16, at_us: number16(*at)? };
        (tag == key.tag(answered)).then_some(answered)
    }
}

/// Finds the value of one header in heads of HTTP/1.1. It looks first where the last head had it, since the heads of a load differ in
/// little: an ID costs a comparison instead of a search.
#[derive(Debug, Clone)]
pub struct HeaderFinder {
    name: Box<[u8]>,
    /// Length of the last value, and so of those that are found quickly.
    length: usize,
    /// The end of the line before the header, its ID, and what is before its value, as they were last sent.
    line: Vec<u8>,
    /// Where in the head that was.
    at: usize,
}

impl HeaderFinder {
    /// For a header with this name.
    pub fn new(name: &str) -> HeaderFinder {
        HeaderFinder { name: name.to_ascii_lowercase().into_bytes().into(), length: 0, line: Vec::new(), at: 0 }
    }

    /// The header's value in a whole head, without the white space around it. Of several one of them.
    #[inline]
    pub fn find<'a>(&mut self, head: &'a [u8]) -> Option<&'a [u8]> {
        if let Some((line, rest)) = head.get(self.at..).and_then(|rest| rest.split_at_checked(self.line.len()))
            && !line.is_empty()
            && line == &*self.line
            && let Some((value, [b'\r', ..])) = rest.split_at_checked(self.length)
            && is_plain(value)
        {
            return Some(value);
        }
        self.search(head)
    }

    fn search<'a>(&mut self, head: &'a [u8]) -> Option<&'a [u8]> {
        let mut at = memchr::memchr(b'\n', head)?;
        loop {
            let line = &head[at + 1..];
            let end = memchr::memchr(b'\n', line)?;
            // Only a line that is long enough is compared.
            if line.get(self.name.len()) == Some(&b':') && line[..self.name.len()].eq_ignore_ascii_case(&self.name) {
                // The first line of what begins before the header is not read.
                let (_, value) = headers(&head[at..]).next()?;
                (self.at, self.length) = (at, value.len());
                self.line.clear();
                let before = value.as_ptr() as usize - head.as_ptr() as usize;
                self.line.extend_from_slice(&head[at..before]);
                return Some(value);
            }
            at += end + 1;
        }
    }
}

/// Whether a value has neither white space nor a line's end anywhere, so that it is all of one line's value.
#[inline]
pub(crate) fn is_plain(value: &[u8]) -> bool {
    value.iter().fold(true, |plain, byte| plain & matches!(byte, b'!'..=b'~'))
}

#[inline]
pub(crate) fn digits16(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&digits8((number >> 32) as u32));
    digits[8..].copy_from_slice(&digits8(number as u32));
    digits
}

/// The eight digits of a number at once: each nibble becomes a byte.
#[inline]
pub(crate) fn digits8(number: u32) -> [u8; 8] {
    let number = u64::from(number);
    let pairs = (number | (number << 16)) & 0x0000_ffff_0000_ffff;
    let bytes = (pairs | (pairs << 8)) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | (bytes << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 where a nibble is 10 and more, which is a letter.
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (nibbles + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

#[inline]
pub(crate) fn number16(digits: [u8; 16]) -> Option<u64> {
    let (high, low) = digits.split_at(8);
    let half = |half: &[u8]| number8(half.try_into().ok()?);
    Some((u64::from(half(high)?) << 32) | u64::from(half(low)?))
}

/// The number that [`digits8`] writes so; what it does not write is none.
#[inline]
pub(crate) fn number8(digits: [u8; 8]) -> Option<u32> {
    let bytes = u64::from_be_bytes(digits);
    let letters = (bytes >> 6) & 0x0101_0101_0101_0101;
    // Bytes that are no digits may carry into each other here; then they are not written so.
    let nibbles = (bytes & 0x0f0f_0f0f_0f0f_0f0f).wrapping_add(letters.wrapping_mul(9)) & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (nibbles | (nibbles >> 4)) & 0x00ff_00ff_00ff_00ff;
    let halves = (pairs | (pairs >> 8)) & 0x0000_ffff_0000_ffff;
    let number = (halves | (halves >> 16)) as u32;
    (digits8(number) == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http1::header;

    #[test]
    fn a_name_has_its_parts_and_is_read_as_written() {
        let id = RequestId::new(0xabcd, 0x123, 0x9_8765_4321);
        assert_eq!((id.load(), id.thread(), id.number()), (0xabcd, 0x123, 0x9_8765_4321));
        assert_eq!(&id.text(), b"abcd123987654321");
        assert_eq!(RequestId::parse(b"abcd123987654321"), Some(id));
        let answered = ResponseTag { id, worker: 0x1f, at_us: 0x1234_5678_9abc };
        // As in fuzz/http.dict.
        let other = ResponseTag { id: RequestId::new(1, 2, 3), worker: 1, at_us: 0x1234_5678_9abc };
        assert_eq!(&other.text(ResponseKey::default()), b"0001002000000003-0001-0000123456789abc-3ec979bb");
        let key = ResponseKey([1, 2]);
        let text = answered.text(key);
        assert_eq!(&text[..39], b"abcd123987654321-001f-0000123456789abc-");
        assert_eq!(ResponseTag::parse(&text, key), Some(answered));
        assert_eq!(ResponseTag::parse(&text, ResponseKey([1, 3])), None, "another key");
    }

    #[test]
    fn what_is_not_written_so_is_no_name() {
        for text in
            ["", "abcd12398765432", "abcd1239876543210", "ABCD123987654321", "abcd12398765432g", "abcd1239876543 1"]
        {
            assert_eq!(RequestId::parse(text.as_bytes()), None, "{text}");
        }
        let id = RequestId::new(0xabcd, 0x123, 0x9_8765_4321);
        let right = &ResponseTag { id, worker: 0x1f, at_us: 0x1234_5678_9abc }.text(ResponseKey::default());
        for at in 0..right.len() {
            for byte in [b' ', b'-', b'g', b'G', b'A', b'/', b':', b'`', b'@', 0, 0xff] {
                let mut wrong = *right;
                wrong[at] = byte;
                let answered = ResponseTag::parse(&wrong, ResponseKey::default());
                assert_eq!(answered.is_some(), byte == right[at], "{}", String::from_utf8_lossy(&wrong));
            }
        }
    }

    #[test]
    fn a_header_is_found_wherever_it_is_and_however_it_is_written() {
        let mut finder = HeaderFinder::new("X-Weir-Id");
        for (head, value) in [
            ("GET / HTTP/1.1\r\nx-weir-id: abcd\r\nHost: a\r\n\r\n", Some("abcd")),
            ("GET / HTTP/1.1\r\nx-weir-id: efgh\r\nHost: a\r\n\r\n", Some("efgh")),
            ("GET / HTTP/1.1\r\nx-weir-id: abcde\r\nHost: a\r\n\r\n", Some("abcde")),
            ("GET / HTTP/1.1\r\nx-weir-id: abc \r\nHost: a\r\n\r\n", Some("abc")),
            ("GET / HTTP/1.1\r\nx-weir-id:  abc\r\nHost: a\r\n\r\n", Some("abc")),
            ("GET /longer HTTP/1.1\r\nHost: a\r\nX-Weir-Id:abcd\r\n\r\n", Some("abcd")),
            ("GET / HTTP/1.1\r\nx-weir-ids: abcd\r\nHost: a\r\n\r\n", None),
            ("GET / HTTP/1.1\r\nHost: x-weir-id: abcd\r\n\r\n", None),
            ("GET / HTTP/1.1\r\nx-weir-id: abcd\r\n\r\n", Some("abcd")),
            ("GET / HTTP/1.1\r\nx-weir-id: a\r\nb\r\n\r\n", Some("a")),
            ("GET / HTTP/1.1\r\nx-weir-id:\r\n\r\n", Some("")),
            ("", None),
        ] {
            let found = finder.find(head.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
            assert_eq!(found.as_deref(), value, "{head}");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_read_as_written(bits in any::<u64>(), worker in any::<u16>(), at_us in any::<u64>(), key in any::<[u64; 2]>()) {
            let id = RequestId::of_bits(bits);
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
            prop_assert_eq!(text(&id.text()), format!("{bits:016x}"));
            prop_assert_eq!(RequestId::parse(&id.text()), Some(id));
            prop_assert_eq!(RequestId::new(id.load(), id.thread(), id.number()), id);
            let answered = ResponseTag { id, worker, at_us };
            let key = ResponseKey(key);
            prop_assert_eq!(text(&answered.text(key)[..38]), format!("{bits:016x}-{worker:04x}-{at_us:016x}"));
            prop_assert_eq!(ResponseTag::parse(&answered.text(key), key), Some(answered));
        }

        #[test]
        fn only_what_is_written_so_is_read(text in proptest::collection::vec(any::<u8>(), 0..50)) {
            if let Some(id) = RequestId::parse(&text) {
                prop_assert_eq!(&id.text()[..], &text[..]);
            }
            let key = ResponseKey::default();
            if let Some(answered) = ResponseTag::parse(&text, key) {
                prop_assert_eq!(&answered.text(key)[..], &text[..]);
            }
        }

        #[test]
        fn what_is_found_quickly_is_what_a_search_finds(
            heads in proptest::collection::vec("GET /[a-c]{0,3} HTTP/1.1\r\n((Host|x-n|X-N|y):? {0,2}[a-c]{0,4} {0,1}\r\n){0,4}\r\n", 1..8)
        ) {
            let mut finder = HeaderFinder::new("x-n");
            for head in &heads {
                let found = finder.find(head.as_bytes());
                let all: Vec<&[u8]> =
                    headers(head.as_bytes()).filter(|(name, _)| name.eq_ignore_ascii_case(b"x-n")).map(|(_, v)| v).collect();
                prop_assert_eq!(found.is_some(), header(head.as_bytes(), "x-n").is_some());
                prop_assert!(found.is_none_or(|value| all.contains(&value)), "{:?} in {:?}", found, head);
            }
        }
    }
}
