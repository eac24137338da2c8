//! The floor: a client and an origin on io_uring that parse almost nothing, read no clock and keep no histogram.
//!
//! Written on the io-uring crate alone, independent of weir's own driver: multishot receive into provided
//! buffers, sends without completions, sockets in the ring's table, and one system call a turn that submits
//! everything and waits. What such a program costs is what the kernel's TCP costs; no load generator that does the
//! same over the same kernel interface can cost less by more than noise.
//!
//! It does not know what a right answer is.

mod buffers;
pub mod client;
pub mod origin;
mod ring;

/// What an operation is, in the upper half of its token. The lower half is a connection's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Receive,
    Send,
    Accept,
    Close,
    Time,
}

impl Kind {
    fn token(self, number: u32) -> u64 {
        (self as u64) << 32 | u64::from(number)
    }

    fn of(token: u64) -> (Kind, u32) {
        let kind = match token >> 32 {
            0 => Kind::Receive,
            1 => Kind::Send,
            2 => Kind::Accept,
            3 => Kind::Close,
            _ => Kind::Time,
        };
        (kind, token as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_and_whose() {
        for kind in [Kind::Receive, Kind::Send, Kind::Accept, Kind::Close, Kind::Time] {
            assert_eq!(Kind::of(kind.token(u32::MAX)), (kind, u32::MAX));
        }
    }
}
