//! What must hold for any bytes at the beginning of a connection that should have a header of the PROXY protocol. Used by the tests
//! here and by the fuzz target.
//!
//! - How the bytes are cut makes no difference to the header, to the error, or to what is left.
//! - A reader never gives up without an error: `None` means that it used all it was given.
//! - An error stays.
//! - What was read can be written, and reads the same again.

use weir_wire::proxy_protocol::{Header, ProxyError, Reader, write};

/// Checks one input, whole and in pieces of every length up to 40.
///
/// # Panics
/// When something does not hold.
pub fn proxy_protocol(input: &[u8]) {
    let (whole, left) = read(input, input.len().max(1));
    for size in 1..40 {
        assert_eq!(read(input, size), (whole, left), "in pieces of {size}");
    }
    if let Ok(Some(Header { version, addresses })) = whole {
        let mut written = Vec::new();
        write(&mut written, version, addresses);
        let length = written.len();
        written.extend_from_slice(b"PROXY");
        assert_eq!(read(&written, written.len()), (Ok(Some(Header { version, addresses })), 5), "{length} bytes");
    }
}

/// What came of it, and how many bytes are left.
fn read(input: &[u8], size: usize) -> (Result<Option<Header>, ProxyError>, usize) {
    let mut reader = Reader::default();
    let mut rest = input;
    while !rest.is_empty() {
        let (mut piece, after) = rest.split_at(size.min(rest.len()));
        match reader.next(&mut piece) {
            Ok(None) => assert!(piece.is_empty(), "None leaves no bytes"),
            Ok(found) => return (Ok(found), piece.len() + after.len()),
            Err(error) => {
                let left = piece;
                assert_eq!(reader.next(&mut piece), Err(error), "an error stays");
                assert_eq!(piece, left, "no bytes are used after an error");
                return (Err(error), piece.len() + after.len());
            }
        }
        rest = after;
    }
    (Ok(None), 0)
}
