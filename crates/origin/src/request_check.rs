//! Compares each request that has an ID with the digest behind the ID ([`weir_wire::digest`]), and counts
//! differences. It does not know connections, nor what a difference means.

use weir_wire::digest::{BodyDigester, DIGEST_LENGTH, Digest, DigestKey};
use weir_wire::http1::{self, Framing, RequestHead};
use weir_wire::http2;
use weir_wire::request_id::REQUEST_ID_LENGTH;

use crate::counters::WorkerCounters;

/// Body checks kept for reuse.
const SPARE: usize = 64;

/// The checks of one worker.
#[derive(Debug)]
pub(crate) struct RequestCheck {
    key: DigestKey,
    /// The last heads that agreed with their digests. Most heads of a load differ in their IDs alone: comparing bytes costs less than a
    /// digest.
    last_http1: LastHttp1,
    last_http2: LastHttp2,
    /// For the headers of which a digest is made.
    list: Vec<u8>,
    #[expect(clippy::vec_box, reason = "boxes go to connections, which have 8 bytes for them, and come back")]
    spare: Vec<Box<BodyCheck>>,
}

/// A head of HTTP/1.1, and the place of its ID.
#[derive(Debug, Default)]
struct LastHttp1 {
    head: Vec<u8>,
    name_at: usize,
    digest: Digest,
}

/// What a head of HTTP/2 without headers to compare has: method, path and the digest's text.
#[derive(Debug, Default)]
struct LastHttp2 {
    method: Vec<u8>,
    path: Vec<u8>,
    text: Vec<u8>,
    digest: Digest,
}

/// A body as it comes, and what it has to be.
#[derive(Debug)]
pub(crate) struct BodyCheck {
    expected: Digest,
    length: u64,
    /// The digest of a body that came in one piece.
    whole: Option<u32>,
    digester: BodyDigester,
}

impl LastHttp1 {
    /// True if a head differs from this one in nothing but the ID, which stands there.
    #[inline]
    fn is_same(&self, head: &[u8], name_at: usize) -> bool {
        let after = name_at + REQUEST_ID_LENGTH;
        name_at == self.name_at
            && head.len() == self.head.len()
            && head[..name_at] == self.head[..name_at]
            && head[after..] == self.head[after..]
    }
}

impl LastHttp2 {
    /// True if a head with this text of a digest has the same method and path.
    #[inline]
    fn is_same(&self, head: &http2::RequestHead<'_>, text: &[u8]) -> bool {
        text == self.text && head.path == self.path && head.method == self.method
    }
}

/// Replaces what was kept.
fn keep(kept: &mut Vec<u8>, new: &[u8]) {
    kept.clear();
    kept.extend_from_slice(new);
}

impl RequestCheck {
    /// With the key of the load's digests.
    pub(crate) fn new(key: DigestKey) -> RequestCheck {
        let (last_http1, last_http2) = (LastHttp1::default(), LastHttp2::default());
        RequestCheck { key, last_http1, last_http2, list: Vec::new(), spare: Vec::new() }
    }

    /// A head of HTTP/1.1 came, in which this is the value of the header with the ID. Returns the check of its body, if there is one
    /// to check.
    #[inline]
    pub(crate) fn head_http1(
        &mut self,
        head: &RequestHead<'_>,
        value: &[u8],
        counters: &WorkerCounters,
    ) -> Option<Box<BodyCheck>> {
        let has_body = !matches!(head.framing, Framing::None | Framing::Length(0));
        let name_at = value.as_ptr() as usize - head.raw.as_ptr() as usize;
        if !self.last_http1.is_same(head.raw, name_at) {
            let (method, target, digest) = (head.method, head.target, &value[REQUEST_ID_LENGTH..]);
            let (expected, is_same) = self.head(method, target, http1::headers(head.raw), digest, counters)?;
            if !is_same {
                return self.body(expected, has_body, counters);
            }
            let last = &mut self.last_http1;
            keep(&mut last.head, head.raw);
            (last.name_at, last.digest) = (name_at, expected);
        }
        self.body(self.last_http1.digest, has_body, counters)
    }

    /// The same of HTTP/2.
    pub(crate) fn head_http2(
        &mut self,
        head: &http2::RequestHead<'_>,
        value: &[u8],
        counters: &WorkerCounters,
    ) -> Option<Box<BodyCheck>> {
        let text = &value[REQUEST_ID_LENGTH..];
        if !self.last_http2.is_same(head, text) {
            let (expected, is_same) = self.head(head.method, head.path, head.headers.iter(), text, counters)?;
            if !is_same || text.len() > DIGEST_LENGTH {
                return self.body(expected, !head.ends, counters);
            }
            let last = &mut self.last_http2;
            keep(&mut last.method, head.method);
            keep(&mut last.path, head.path);
            keep(&mut last.text, text);
            last.digest = expected;
        }
        self.body(self.last_http2.digest, !head.ends, counters)
    }

    /// Compares a head with its digest. Returns that, and whether the head agrees.
    fn head<'h>(
        &mut self,
        method: &[u8],
        target: &[u8],
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone,
        digest: &[u8],
        counters: &WorkerCounters,
    ) -> Option<(Digest, bool)> {
        let Some((expected, names)) = Digest::parse(digest) else {
            counters.unchecked.add(1);
            return None;
        };
        let same_target = self.key.target(method, target) == expected.target;
        let same_headers = self.key.headers(names, headers, &mut self.list) == expected.headers;
        counters.altered_targets.add(u64::from(!same_target));
        counters.altered_headers.add(u64::from(!same_headers));
        Some((expected, same_target && same_headers))
    }

    /// The check of a request's body. `None` if it has none and needs none.
    #[inline]
    fn body(&mut self, expected: Digest, has_body: bool, counters: &WorkerCounters) -> Option<Box<BodyCheck>> {
        match (has_body, expected.length) {
            (false, 0) => None,
            (false, _) => {
                counters.shortened.add(1);
                None
            }
            (true, _) => Some(self.body_check(expected)),
        }
    }

    fn body_check(&mut self, expected: Digest) -> Box<BodyCheck> {
        let Some(mut check) = self.spare.pop() else {
            let digester = self.key.body_digester();
            return Box::new(BodyCheck { expected, length: 0, whole: None, digester });
        };
        (check.expected, check.length, check.whole) = (expected, 0, None);
        check
    }

    /// A piece of a body came.
    #[inline]
    pub(crate) fn piece(&self, check: &mut BodyCheck, piece: &[u8]) {
        let is_first = check.length == 0;
        check.length += piece.len() as u64;
        if is_first && check.length == u64::from(check.expected.length) {
            check.whole = Some(self.key.body(piece));
        } else if check.length <= u64::from(check.expected.length) {
            // One that is too long is counted as such, whatever it has.
            if is_first {
                check.digester.reset();
            }
            check.digester.push(piece);
        }
    }

    /// A request is complete.
    #[inline]
    pub(crate) fn end(&mut self, check: Box<BodyCheck>, counters: &WorkerCounters) {
        let expected = u64::from(check.expected.length);
        if check.length < expected {
            counters.shortened.add(1);
        } else if check.length > expected {
            counters.lengthened.add(1);
        } else if expected > 0 {
            let digest = check.whole.unwrap_or_else(|| check.digester.finish());
            counters.altered_bodies.add(u64::from(digest != check.expected.body));
        }
        self.give_back(check);
    }

    /// The rest of a request will not come.
    #[cold]
    pub(crate) fn give_up(&mut self, check: Box<BodyCheck>, counters: &WorkerCounters) {
        counters.unfinished.add(1);
        self.give_back(check);
    }

    /// A body is not looked at any more.
    pub(crate) fn give_back(&mut self, check: Box<BodyCheck>) {
        if self.spare.len() < SPARE {
            self.spare.push(check);
        }
    }
}
