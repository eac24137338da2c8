//! Counts of requests by the phase in which each was due. `worker::recorder` counts into them; the workers send them to
//! the calling thread through `shared`.

use weir_model::load::{Counts, ErrorKind};

/// A count for each kind of error, in the order of the kinds' discriminants.
pub(crate) type ErrorCounts = [u64; ErrorKind::ALL.len()];

/// The kinds that happened, with their counts.
pub(crate) fn happened(counts: &ErrorCounts) -> impl Iterator<Item = (ErrorKind, u64)> {
    ErrorKind::ALL.iter().copied().zip(counts.iter().copied()).filter(|(_, n)| *n > 0)
}

/// One more than the largest status code that the wire lets through.
const STATUSES: usize = 1000;

/// Counts of one of the specification's requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PerRequest {
    pub sent: u64,
    pub successful: u64,
}

/// Counts of requests, in plain arrays: adding is one instruction, and nothing is allocated.
#[derive(Debug, Clone)]
pub(crate) struct RequestCounts {
    pub due: u64,
    pub sent: u64,
    pub unsent: u64,
    pub successful: u64,
    pub body_bytes: u64,
    pub early: u64,
    errors: ErrorCounts,
    statuses: Box<[u64; STATUSES]>,
    /// The counts of each of the specification's requests; empty if there is only one. The last counts all further ones, too.
    requests: Box<[PerRequest]>,
    /// Their errors, apart, because they are rare and many numbers.
    request_errors: Box<[ErrorCounts]>,
}

impl RequestCounts {
    /// Empty counts, for so many requests of the specification each of its own; 0: for all as one.
    pub(crate) fn new(requests: usize) -> RequestCounts {
        RequestCounts {
            due: 0,
            sent: 0,
            unsent: 0,
            successful: 0,
            body_bytes: 0,
            early: 0,
            errors: ErrorCounts::default(),
            statuses: Box::new([0; STATUSES]),
            requests: vec![PerRequest::default(); requests].into(),
            request_errors: vec![ErrorCounts::default(); requests].into(),
        }
    }

    /// A request failed; `request`: which of the specification's, if it was sent.
    pub(crate) fn error(&mut self, request: Option<u32>, kind: ErrorKind) {
        self.errors[kind as usize] += 1;
        if let Some(errors) = request.and_then(|request| or_last(&mut self.request_errors, request)) {
            errors[kind as usize] += 1;
        }
    }

    pub(crate) fn status(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// The counts of one of the specification's requests, if there are several.
    #[inline]
    pub(crate) fn of_request(&mut self, request: u32) -> Option<&mut PerRequest> {
        or_last(&mut self.requests, request)
    }

    /// All of them, each with its errors by kind.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (&PerRequest, &ErrorCounts)> {
        self.requests.iter().zip(&self.request_errors)
    }

    /// Adds these counts to the record's.
    pub(crate) fn add_to(&self, counts: &mut Counts) {
        counts.due += self.due;
        counts.sent += self.sent;
        counts.unsent += self.unsent;
        counts.successful += self.successful;
        counts.body_bytes += self.body_bytes;
        counts.early += self.early;
        for (kind, n) in happened(&self.errors) {
            *counts.errors.entry(kind).or_default() += n;
        }
        for (status, n) in self.statuses.iter().enumerate().filter(|(_, n)| **n > 0) {
            *counts.statuses.entry(status as u16).or_default() += n;
        }
    }
}

/// The entry of a kind of request, or the last one, which is for all further kinds; `None` where there are none.
#[inline]
pub(crate) fn or_last<T>(all: &mut [T], kind: u32) -> Option<&mut T> {
    let last = all.len().checked_sub(1)?;
    all.get_mut((kind as usize).min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_own_index() {
        for (index, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }

    #[test]
    fn only_what_happened_is_listed() {
        let mut requests = RequestCounts::new(0);
        requests.error(Some(0), ErrorKind::WrongBody);
        requests.status(200);
        requests.status(200);
        requests.status(65_000);
        let mut counts = Counts::default();
        requests.add_to(&mut counts);
        requests.add_to(&mut counts);
        assert_eq!(counts.errors.into_iter().collect::<Vec<_>>(), [(ErrorKind::WrongBody, 2)]);
        assert_eq!(counts.statuses.into_iter().collect::<Vec<_>>(), [(200, 4)]);
    }
}
