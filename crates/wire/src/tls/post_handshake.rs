//! Messages after the handshake, one behind another in their own records (RFC 8446, section 4.6). They are joined when
//! they arrive in pieces, which is rare.

/// Most bytes of a message; tickets are the largest, at 64 KiB and some.
const MOST: usize = (1 << 16) + 1024;

/// TLS 1.2: the server requests a new handshake.
pub(super) const HELLO_REQUEST: u8 = 0;
/// TLS 1.2: the client requests a new handshake.
pub(super) const CLIENT_HELLO: u8 = 1;
/// TLS 1.3: a ticket, to resume the session with.
pub(super) const NEW_SESSION_TICKET: u8 = 4;
/// TLS 1.3: new keys apply to everything that follows.
pub(super) const KEY_UPDATE: u8 = 24;

/// A message that is longer than allowed.
#[derive(Debug)]
pub(super) struct TooLong;

/// A complete message: its type, its content, and the bytes after it.
type Message<'a> = (u8, &'a [u8], &'a [u8]);

/// The first message, if it is complete.
pub(super) fn first(bytes: &[u8]) -> Result<Option<Message<'_>>, TooLong> {
    let [kind, a, b, c, rest @ ..] = bytes else { return Ok(None) };
    let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
    if len > MOST {
        return Err(TooLong);
    }
    Ok(rest.split_at_checked(len).map(|(content, rest)| (*kind, content, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        assert!(first(&[4, 0, 0]).unwrap().is_none());
        assert!(first(&[4, 0, 0, 2, 9]).unwrap().is_none());
        assert_eq!(first(&[4, 0, 0, 2, 9, 8, 24]).unwrap(), Some((4, &[9, 8][..], &[24][..])));
        assert!(first(&[4, 9, 0, 0]).is_err());
    }
}
