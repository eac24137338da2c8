//! Decodes the coded bodies of responses, so that they are checked as the origin's would be, and counts the successful ones. `worker`
//! hands over complete responses. `result` reads the counts. The module does not know which coding the load accepts; `check` does.
//!
//! A body that is the same as one of the last is not decoded again: its hash says so. Servers code the same body into the same bytes
//! unless they write the time into it.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::bufread::MultiGzDecoder;
use weir_model::coding::Coding;
use weir_model::load::{CodedResponses, ErrorKind};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::response_check::{Expectation, Response};

/// Different bodies that are remembered.
const MOST_KNOWN: usize = 64;

/// A body that becomes longer than this is none: 1 GiB.
const MOST_DECODED: u64 = 1 << 30;

/// A body of one coding that was decoded.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Hash of the body as it came, and its length then.
    coded: (Coding, u64, usize),
    body: Decoded,
}

/// What a body is when it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decoded {
    size: u64,
    /// XXH3-64.
    hash: u64,
}

/// The coded bodies of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodingWatch {
    known: Vec<Known>,
    /// The one of them that the next takes the place of.
    oldest: usize,
    /// What came so far.
    pub counts: BTreeMap<Coding, CodedResponses>,
}

impl CodingWatch {
    /// What is wrong with a complete response whose body came like this. One that cannot be decoded is a wrong body.
    pub(crate) fn validate(
        &mut self,
        expectation: &Expectation,
        response: &Response,
        (coding, body): (Coding, &[u8]),
    ) -> Result<(), ErrorKind> {
        let Some(Decoded { size, hash }) = self.decoded(coding, body) else {
            // A wrong status is the more serious.
            return expectation.validate_body(response, 0, || 0).and(Err(ErrorKind::WrongBody));
        };
        expectation.validate_body(response, size, || hash)?;
        let one = CodedResponses { responses: 1, bytes: body.len() as u64, decoded_bytes: size };
        self.counts.entry(coding).or_default().add(&one);
        Ok(())
    }

    fn decoded(&mut self, coding: Coding, body: &[u8]) -> Option<Decoded> {
        if body.is_empty() {
            // The response to HEAD has the header, too.
            return Some(Decoded { size: 0, hash: xxh3_64(&[]) });
        }
        let coded = (coding, xxh3_64(body), body.len());
        if let Some(known) = self.known.iter().find(|known| known.coded == coded) {
            return Some(known.body);
        }
        let body = decode(coding, body)?;
        let known = Known { coded, body };
        if self.known.len() < MOST_KNOWN {
            self.known.push(known);
        } else {
            self.known[self.oldest] = known;
            self.oldest = (self.oldest + 1) % MOST_KNOWN;
        }
        Some(body)
    }
}

/// Size and hash of a body; `None` if it is not coded so, to its last byte.
fn decode(coding: Coding, body: &[u8]) -> Option<Decoded> {
    let mut decoder = match coding {
        Coding::Gzip => MultiGzDecoder::new(body),
    };
    let mut piece = [0; 16 << 10];
    let (mut size, mut hash) = (0, Xxh3::new());
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => return Some(Decoded { size, hash: hash.digest() }),
            Ok(n) => {
                size += n as u64;
                hash.update(&piece[..n]);
            }
            Err(_) => return None,
        }
        if size > MOST_DECODED {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use weir_model::suite::Expect;

    use super::*;

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    /// A response with this body as it comes, in two pieces, to a request whose right body is `successful`.
    fn verdict(watch: &mut CodingWatch, right: &[u8], coding: &str, body: &[u8]) -> Result<(), ErrorKind> {
        let expect = Expect {
            status: Some(200),
            size: Some(right.len() as u64),
            hash: Some(xxh3_64(right)),
            ..Expect::default()
        };
        let expectation = Expectation::new(&expect, true, 200..400).accepting(Some(Coding::Gzip));
        let mut response = Response::default();
        response.head(200, Some(body.len() as u64));
        let headers = [(&b"Content-Encoding"[..], coding.as_bytes())];
        expectation.check_headers(headers.into_iter().filter(|_| !coding.is_empty()), &mut response);
        let (first, second) = body.split_at(body.len() / 2);
        [first, second].iter().for_each(|piece| response.body(piece, &expectation));
        assert_eq!(response.size(), body.len() as u64, "bytes are counted as they came");
        match response.coded() {
            Some(coded) => watch.validate(&expectation, &response, coded),
            None => expectation.validate(&response),
        }
    }

    #[test]
    fn a_coded_body_is_what_it_decodes_to() {
        let body = vec![b'a'; 1_000];
        let mut watch = CodingWatch::default();
        let coded = gzip(&body);
        let both = [gzip(&body[..400]), gzip(&body[400..])].concat();
        assert_eq!(verdict(&mut watch, &body, "gzip", &coded), Ok(()));
        assert_eq!(verdict(&mut watch, &body, "GZIP", &coded), Ok(()), "the second is known");
        assert_eq!(watch.known.len(), 1);
        assert_eq!(verdict(&mut watch, &body, "gzip", &both), Ok(()), "several members are one body");
        assert_eq!(verdict(&mut watch, &body, "", &body), Ok(()), "as it is");
        let bytes = (2 * coded.len() + both.len()) as u64;
        assert_eq!(watch.counts, [(Coding::Gzip, CodedResponses { responses: 3, bytes, decoded_bytes: 3_000 })].into());
    }

    #[test]
    fn what_decodes_to_something_else_or_to_nothing_is_wrong() {
        let body = b"the right body".repeat(20);
        let right = gzip(&body);
        let mut corrupt = right.clone();
        let at = corrupt.len() - 6;
        corrupt[at] ^= 1;
        let cases: [(&str, Vec<u8>); 8] = [
            ("gzip", gzip(b"another")),
            ("gzip", gzip(&body[1..])),
            ("gzip", corrupt),
            ("gzip", right[..right.len() - 1].to_vec()),
            ("gzip", [&right[..], b"more"].concat()),
            ("gzip", body.clone()),
            ("gzip", Vec::new()),
            ("br", body.clone()),
        ];
        for (coding, bytes) in cases {
            let mut watch = CodingWatch::default();
            assert_eq!(verdict(&mut watch, &body, coding, &bytes), Err(ErrorKind::WrongBody), "{coding} {bytes:x?}");
            assert!(watch.counts.is_empty(), "{coding} {bytes:x?}");
        }
        assert_eq!(
            verdict(&mut CodingWatch::default(), &body, "", &right),
            Err(ErrorKind::WrongBody),
            "without a word"
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut watch = CodingWatch::default();
        for n in 0..3 * MOST_KNOWN as u32 {
            let body = n.to_string().into_bytes();
            assert_eq!(verdict(&mut watch, &body, "gzip", &gzip(&body)), Ok(()));
        }
        assert_eq!(watch.known.len(), MOST_KNOWN);
    }
}
