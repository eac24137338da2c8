//! Checks whether a response is right. `plan` makes the expectations, the protocols feed the responses to it, and
//! `worker::exchange` asks for the verdict. It does not know protocols.

use std::ops::Range;

use weir_model::coding::Coding;
use weir_model::load::{ErrorKind, LoadProtocol, RequestSpec};
use weir_model::suite::Expect;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A required header: its name, and its value unless any value is right.
type Wanted = (Vec<u8>, Option<Vec<u8>>);

/// The expectation of a response, prepared for fast checks.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    statuses: Range<u16>,
    size: Option<u64>,
    hash: Option<u64>,
    /// Headers with names in lower case.
    headers: Box<[Wanted]>,
    /// Bodies may come in this coding.
    coding: Option<Coding>,
    /// Headers have to be looked at.
    checks_headers: bool,
}

impl Expectation {
    /// The expectation of a request's response. A response to the method HEAD has no body.
    pub(crate) fn of(request: &RequestSpec, protocol: LoadProtocol) -> Expectation {
        let success = match protocol {
            LoadProtocol::Http1 { .. } | LoadProtocol::Http2 { .. } | LoadProtocol::Http3 { .. } => 200..400,
            // Their responses have statuses of their own for errors.
            _ => 0..u16::MAX,
        };
        Expectation::new(&request.expect, request.request.method != "HEAD", success)
    }

    /// `body`: the response has a body to check. `success`: the right statuses if none is named.
    pub(crate) fn new(expect: &Expect, body: bool, success: Range<u16>) -> Expectation {
        let header = |(name, value): &(String, Option<String>)| {
            (name.to_ascii_lowercase().into_bytes(), value.as_ref().map(|value| value.clone().into_bytes()))
        };
        Expectation {
            statuses: expect.status.map_or(success, |status| status..status.saturating_add(1)),
            size: expect.size.filter(|_| body),
            hash: expect.hash.filter(|_| body),
            headers: expect.headers.iter().map(header).collect(),
            coding: None,
            checks_headers: !expect.headers.is_empty(),
        }
    }

    /// The same for responses whose bodies may come in a coding.
    pub(crate) fn accepting(self, coding: Option<Coding>) -> Expectation {
        Expectation { coding, checks_headers: self.checks_headers || coding.is_some(), ..self }
    }

    /// The same for responses that have the number of a change.
    pub(crate) fn changing(self, changes: bool) -> Expectation {
        Expectation { checks_headers: self.checks_headers || changes, ..self }
    }

    /// Whether a response with this status may be right.
    #[inline]
    pub(crate) fn is_successful_status(&self, status: u16) -> bool {
        self.statuses.contains(&status)
    }

    /// Whether headers have to be looked at.
    #[inline]
    pub(crate) fn checks_headers(&self) -> bool {
        self.checks_headers
    }

    /// Looks at the headers of a response: whether all required ones are present, and how its body is coded.
    pub(crate) fn check_headers<'a>(
        &self,
        headers: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        response: &mut Response,
    ) {
        if !self.headers_match(headers.clone()) {
            response.wrong(ErrorKind::WrongHeader);
        }
        let mut codings = headers.filter(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"));
        if let (Some(accepted), Some((_, value))) = (self.coding, codings.next()) {
            match Coding::named(value).filter(|coding| *coding == accepted && codings.next().is_none()) {
                Some(coding) => response.begin_coded(coding),
                None => response.wrong(ErrorKind::WrongBody),
            }
        }
    }

    /// Whether all required headers are present. One right value is enough for a header that occurs several times.
    fn headers_match<'a>(&self, headers: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> bool {
        let has = |name: &[u8], value: Option<&[u8]>| {
            let right = |(n, v): (&[u8], &[u8])| n.eq_ignore_ascii_case(name) && value.is_none_or(|value| value == v);
            headers.clone().any(right)
        };
        self.headers.iter().all(|(name, value)| has(name, value.as_deref()))
    }

    /// Whether what a body says is looked at, and not only how long it is.
    #[inline]
    pub(crate) fn reads_bodies(&self) -> bool {
        self.hash.is_some()
    }

    /// What is wrong with a complete response, the most serious thing first.
    #[inline]
    pub(crate) fn validate(&self, response: &Response) -> Result<(), ErrorKind> {
        self.validate_body(response, response.size, || response.hash())
    }

    /// The same of a response whose body has this size and hash, as it came or decoded.
    #[inline]
    pub(crate) fn validate_body(
        &self,
        response: &Response,
        size: u64,
        hash: impl FnOnce() -> u64,
    ) -> Result<(), ErrorKind> {
        if !self.is_successful_status(response.status) {
            return Err(ErrorKind::BadStatus);
        }
        if let Some(kind) = response.wrong {
            return Err(kind);
        }
        if self.size.is_some_and(|right| right != size) {
            return Err(ErrorKind::WrongBody);
        }
        if self.hash.is_some_and(|right| right != hash()) {
            return Err(ErrorKind::WrongBody);
        }
        Ok(())
    }
}

/// The part of a response that has arrived.
#[derive(Default)]
pub(crate) struct Response {
    status: u16,
    /// What its protocol found wrong, such as a required header that is missing.
    wrong: Option<ErrorKind>,
    /// It was complete before all of its request was sent.
    early: bool,
    size: u64,
    /// The body's length if the head has it, to detect a body that arrives in one piece.
    length: Option<u64>,
    /// Hash of a body that came in one piece.
    whole: Option<u64>,
    /// The hash of a body that arrives in several pieces; made when first needed and reused for the stream's next
    /// responses.
    hasher: Option<Box<Xxh3>>,
    /// How its body is coded, if it is, and may be.
    coding: Option<Coding>,
    /// The coded body; made when first needed and reused.
    #[expect(clippy::box_collection, reason = "8 bytes of each stream instead of 24")]
    coded: Option<Box<Vec<u8>>>,
}

impl std::fmt::Debug for Response {
    /// Leaves out the state of the hash, which cannot be printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("size", &self.size)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// The head came.
    #[inline]
    pub(crate) fn head(&mut self, status: u16, length: Option<u64>) {
        self.status = status;
        self.wrong = None;
        self.early = false;
        self.size = 0;
        self.whole = None;
        self.length = length;
        self.coding = None;
    }

    /// Its body comes in a coding that was asked for.
    fn begin_coded(&mut self, coding: Coding) {
        self.coding = Some(coding);
        self.coded.get_or_insert_default().clear();
    }

    /// Its body as it came, if it is coded.
    #[inline]
    pub(crate) fn coded(&self) -> Option<(Coding, &[u8])> {
        Some((self.coding?, self.coded.as_ref()?))
    }

    /// It is complete, and a part of its request was not sent.
    pub(crate) fn before_its_request(&mut self) {
        self.early = true;
    }

    /// True if it was complete before all of its request was sent.
    #[inline]
    pub(crate) fn is_early(&self) -> bool {
        self.early
    }

    /// Something is wrong with it.
    pub(crate) fn wrong(&mut self, kind: ErrorKind) {
        self.wrong = Some(kind);
    }

    /// A piece of the body came.
    #[inline]
    pub(crate) fn body(&mut self, piece: &[u8], check: &Expectation) {
        let first = self.size == 0;
        self.size += piece.len() as u64;
        if self.coding.is_some() {
            if let Some(coded) = &mut self.coded {
                coded.extend_from_slice(piece);
            }
            return;
        }
        // A body of the wrong size is wrong whatever its hash, so hashing can stop where the size is exceeded.
        if check.hash.is_some() && check.size.is_none_or(|size| self.size <= size) {
            self.add_to_hash(first, piece);
        }
    }

    /// So many bytes of the body came, and nobody looked at them.
    pub(crate) fn skipped(&mut self, bytes: u64) {
        self.size += bytes;
    }

    /// Whether the body is coded, so that all of it is needed.
    pub(crate) fn is_coded(&self) -> bool {
        self.coding.is_some()
    }

    /// A body of this size was checked by its protocol.
    #[inline]
    pub(crate) fn checked(&mut self, size: u64) {
        self.size = size;
    }

    fn add_to_hash(&mut self, first: bool, piece: &[u8]) {
        if first && self.length == Some(self.size) {
            self.whole = Some(xxh3_64(piece));
            return;
        }
        let hasher = self.hasher.get_or_insert_with(|| Box::new(Xxh3::new()));
        if first {
            hasher.reset();
        }
        hasher.update(piece);
    }

    /// The status.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Bytes of body so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    fn hash(&self) -> u64 {
        match (self.whole, self.size, &self.hasher) {
            (Some(hash), _, _) => hash,
            (None, 1.., Some(hasher)) => hasher.digest(),
            _ => xxh3_64(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: Option<u16>, size: Option<u64>, hash: Option<u64>) -> Expectation {
        Expectation::new(&Expect { status, size, hash, ..Expect::default() }, true, 200..400)
    }

    fn validate(
        check: &Expectation,
        response: &mut Response,
        status: u16,
        length: Option<u64>,
        pieces: &[&[u8]],
    ) -> Result<(), ErrorKind> {
        response.head(status, length);
        for piece in pieces {
            response.body(piece, check);
        }
        check.validate(response)
    }

    #[test]
    fn any_good_status_will_do_unless_one_is_asked_for() {
        let any = check(None, None, None);
        let one = check(Some(404), None, None);
        let mut response = Response::default();
        for (status, any_right) in [(199, false), (200, true), (399, true), (400, false), (502, false)] {
            assert_eq!(validate(&any, &mut response, status, None, &[]).is_ok(), any_right, "{status}");
        }
        assert!(validate(&one, &mut response, 404, None, &[]).is_ok());
        assert_eq!(validate(&one, &mut response, 200, None, &[]), Err(ErrorKind::BadStatus));
    }

    #[test]
    fn a_bad_status_outranks_a_wrong_body() {
        let check = check(Some(200), Some(1), None);
        assert_eq!(validate(&check, &mut Response::default(), 502, None, &[]), Err(ErrorKind::BadStatus));
    }

    #[test]
    fn hashes_are_equal_however_the_body_comes_and_one_response_leaves_nothing_to_the_next() {
        let body = b"what flows over a weir is measured by its height";
        let whole = check(None, None, Some(xxh3_64(body)));
        let mut response = Response::default();
        for _ in 0..2 {
            let length = Some(body.len() as u64);
            assert!(validate(&whole, &mut response, 200, length, &[body]).is_ok());
            assert!(validate(&whole, &mut response, 200, length, &[&body[..7], &body[7..]]).is_ok());
            assert!(validate(&whole, &mut response, 200, None, &[body]).is_ok());
            assert!(validate(&whole, &mut response, 200, None, &[&body[..1], &body[1..]]).is_ok());
            for wrong in [&body[1..], &body[..0]] {
                assert_eq!(validate(&whole, &mut response, 200, length, &[wrong]), Err(ErrorKind::WrongBody));
            }
        }
        let empty = check(None, None, Some(xxh3_64(&[])));
        assert!(validate(&empty, &mut response, 204, None, &[]).is_ok());
    }

    #[test]
    fn headers_are_asked_for_by_name_and_perhaps_by_value() {
        let header = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let expect = |headers| Expect { headers, ..Expect::default() };
        let came: [(&[u8], &[u8]); 3] = [(b"Via", b"1.1 a"), (b"via", b"1.1 b"), (b"Server", b"weir")];
        for (asked, right) in [
            (vec![], true),
            (vec![header("via", None), header("server", Some("weir"))], true),
            (vec![header("via", Some("1.1 b"))], true),
            (vec![header("via", Some("1.1 c"))], false),
            (vec![header("server", None), header("x-cache", None)], false),
        ] {
            let check = Expectation::new(&expect(asked), true, 200..400);
            assert_eq!(check.headers_match(came.into_iter()), right, "{check:?}");
        }
        let check = Expectation::new(&expect(vec![header("x", None)]), false, 200..400);
        assert!(check.checks_headers(), "responses to HEAD have headers");
        let mut response = Response::default();
        response.head(200, None);
        response.wrong(ErrorKind::WrongHeader);
        assert_eq!(check.validate(&response), Err(ErrorKind::WrongHeader));
        response.head(500, None);
        response.wrong(ErrorKind::WrongHeader);
        assert_eq!(check.validate(&response), Err(ErrorKind::BadStatus));
        response.head(200, None);
        assert_eq!(check.validate(&response), Ok(()), "nothing is left of the response before");
    }

    #[test]
    fn size_is_checked_and_head_answers_are_not() {
        let expect = Expect { status: None, size: Some(3), hash: Some(1), ..Expect::default() };
        let mut response = Response::default();
        let get = Expectation::new(&expect, true, 200..400);
        assert_eq!(validate(&get, &mut response, 200, Some(2), &[b"ab"]), Err(ErrorKind::WrongBody));
        let head = Expectation::new(&expect, false, 200..400);
        assert!(validate(&head, &mut response, 200, None, &[]).is_ok());
    }
}
