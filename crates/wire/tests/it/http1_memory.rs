//! What HTTP/1.1 costs in memory between two messages: nothing on the heap, however they arrived.

use crate::counting::BYTES;
use weir_wire::http1::{Limits, RequestParser, ResponseParser};

/// In time each of very many connections has a message that was split, so memory would grow for hours by what each keeps.
#[test]
fn a_message_in_pieces_leaves_nothing_behind() {
    let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n";
    let request = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n";
    let mut client = ResponseParser::new(Limits::default());
    let mut server = RequestParser::new(Limits::default());
    let before = BYTES.get();
    let mut held = 0;
    for size in 1..response.len() {
        client.request_sent(false);
        for mut piece in response.chunks(size) {
            while client.next(&mut piece).unwrap().is_some() {}
            held = held.max(BYTES.get() - before);
        }
        assert_eq!((client.in_flight(), BYTES.get()), (0, before), "responses in pieces of {size} B");
        for mut piece in request.chunks(size) {
            while server.next(&mut piece).unwrap().is_some() {}
        }
        assert_eq!(BYTES.get(), before, "requests in pieces of {size} B");
    }
    assert!(held > 0, "nothing was ever kept, so nothing was tested");
}
