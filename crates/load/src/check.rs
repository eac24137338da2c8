//! Whether an answer is the right one.

use weir_model::load::ErrorKind;
use weir_model::suite::Expect;
use weir_wire::h1::Framing;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What a right answer is, ready for use.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    status: Option<u16>,
    size: Option<u64>,
    hash: Option<u64>,
}

impl Check {
    /// Answers to HEAD have no body, so only their status is checked.
    pub(crate) fn new(expect: &Expect, head: bool) -> Check {
        Check { status: expect.status, size: expect.size.filter(|_| !head), hash: expect.hash.filter(|_| !head) }
    }

    /// What is wrong with a complete answer, the most serious thing first.
    pub(crate) fn judge(&self, answer: &Answer) -> Result<(), ErrorKind> {
        let status_right = match self.status {
            Some(status) => answer.status == status,
            None => (200..400).contains(&answer.status),
        };
        if !status_right {
            return Err(ErrorKind::BadStatus);
        }
        if self.size.is_some_and(|size| size != answer.size) {
            return Err(ErrorKind::WrongBody);
        }
        if self.hash.is_some_and(|hash| hash != answer.hash()) {
            return Err(ErrorKind::WrongBody);
        }
        Ok(())
    }
}

/// What has come of an answer so far.
#[derive(Default)]
pub(crate) struct Answer {
    status: u16,
    size: u64,
    /// The body's length if the head told, to know a body that came in one piece.
    length: Option<u64>,
    /// Hash of a body that came in one piece.
    whole: Option<u64>,
    /// Hash of one that did not; made when first needed and kept for the connection's next answers.
    stream: Option<Box<Xxh3>>,
}

impl std::fmt::Debug for Answer {
    /// Without the state of the hash, which says nothing to people and cannot be shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("size", &self.size)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Answer {
    /// The head came.
    pub(crate) fn head(&mut self, status: u16, framing: Framing) {
        self.status = status;
        self.size = 0;
        self.whole = None;
        self.length = match framing {
            Framing::Length(length) => Some(length),
            Framing::None | Framing::Chunked | Framing::UntilClose => None,
        };
    }

    /// A piece of the body came.
    pub(crate) fn body(&mut self, piece: &[u8], check: &Check) {
        let first = self.size == 0;
        self.size += piece.len() as u64;
        // A body of the wrong size is wrong whatever its hash, so hashing can stop where the size is exceeded.
        if check.hash.is_none() || check.size.is_some_and(|size| self.size > size) {
            return;
        }
        if first && self.length == Some(self.size) {
            self.whole = Some(xxh3_64(piece));
            return;
        }
        let stream = self.stream.get_or_insert_with(|| Box::new(Xxh3::new()));
        if first {
            stream.reset();
        }
        stream.update(piece);
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
        match (self.whole, self.size, &self.stream) {
            (Some(hash), _, _) => hash,
            (None, 1.., Some(stream)) => stream.digest(),
            _ => xxh3_64(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: Option<u16>, size: Option<u64>, hash: Option<u64>) -> Check {
        Check::new(&Expect { status, size, hash, headers: vec![] }, false)
    }

    fn judge(
        check: &Check,
        answer: &mut Answer,
        status: u16,
        framing: Framing,
        pieces: &[&[u8]],
    ) -> Result<(), ErrorKind> {
        answer.head(status, framing);
        for piece in pieces {
            answer.body(piece, check);
        }
        check.judge(answer)
    }

    #[test]
    fn any_good_status_will_do_unless_one_is_asked_for() {
        let any = check(None, None, None);
        let one = check(Some(404), None, None);
        let mut answer = Answer::default();
        for (status, any_right) in [(199, false), (200, true), (399, true), (400, false), (502, false)] {
            assert_eq!(judge(&any, &mut answer, status, Framing::None, &[]).is_ok(), any_right, "{status}");
        }
        assert!(judge(&one, &mut answer, 404, Framing::None, &[]).is_ok());
        assert_eq!(judge(&one, &mut answer, 200, Framing::None, &[]), Err(ErrorKind::BadStatus));
    }

    #[test]
    fn a_bad_status_outranks_a_wrong_body() {
        let check = check(Some(200), Some(1), None);
        assert_eq!(judge(&check, &mut Answer::default(), 502, Framing::None, &[]), Err(ErrorKind::BadStatus));
    }

    #[test]
    fn hashes_are_equal_however_the_body_comes_and_one_answer_leaves_nothing_to_the_next() {
        let body = b"what flows over a weir is measured by its height";
        let whole = check(None, None, Some(xxh3_64(body)));
        let mut answer = Answer::default();
        for _ in 0..2 {
            let length = Framing::Length(body.len() as u64);
            assert!(judge(&whole, &mut answer, 200, length, &[body]).is_ok());
            assert!(judge(&whole, &mut answer, 200, length, &[&body[..7], &body[7..]]).is_ok());
            assert!(judge(&whole, &mut answer, 200, Framing::Chunked, &[body]).is_ok());
            assert!(judge(&whole, &mut answer, 200, Framing::UntilClose, &[&body[..1], &body[1..]]).is_ok());
            for wrong in [&body[1..], &body[..0]] {
                assert_eq!(judge(&whole, &mut answer, 200, length, &[wrong]), Err(ErrorKind::WrongBody));
            }
        }
        let empty = check(None, None, Some(xxh3_64(&[])));
        assert!(judge(&empty, &mut answer, 204, Framing::None, &[]).is_ok());
    }

    #[test]
    fn size_is_checked_and_head_answers_are_not() {
        let expect = Expect { status: None, size: Some(3), hash: Some(1), headers: vec![] };
        let mut answer = Answer::default();
        let get = Check::new(&expect, false);
        assert_eq!(judge(&get, &mut answer, 200, Framing::Length(2), &[b"ab"]), Err(ErrorKind::WrongBody));
        let head = Check::new(&expect, true);
        assert!(judge(&head, &mut answer, 200, Framing::None, &[]).is_ok());
    }
}
