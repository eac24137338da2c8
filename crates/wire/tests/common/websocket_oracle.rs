//! What must hold for any bytes in place of frames of WebSocket. Used by the tests here and by the fuzz target.
//!
//! - How the bytes are cut makes no difference to what is read, nor to what is wrong.
//! - What is read, written again and read again is the same.
//! - A reader leaves no bytes, and no bytes make a response to an upgrade that was not asked for.

use weir_wire::websocket::{Event, FrameError, Operation, Parser, is_close_code, put_frame, take_response};

/// Events, each as its operation and its bytes, and what ended them.
pub type Read = (Vec<(Operation, Vec<u8>)>, Option<FrameError>);

/// Checks the frames of a client if the first byte is odd, and else of a server: whole and in pieces of every length up to 20.
///
/// # Panics
/// When something does not hold.
pub fn frames(input: &[u8]) {
    let of_client = input.first().is_some_and(|byte| byte % 2 == 1);
    let input = input.get(1..).unwrap_or_default();
    let wanted = read(input, of_client, input.len().max(1));
    for size in 1..20 {
        assert_eq!(read(input, of_client, size), wanted, "in pieces of {size}");
    }
    let mut again = Vec::new();
    for (operation, bytes) in &wanted.0 {
        put_frame(&mut again, *operation, true, of_client.then_some([9, 8, 7, 6]), bytes);
    }
    assert_eq!(read(&again, of_client, 1_000), (wanted.0, None), "written again");
    assert_ne!(take_response(&mut Vec::new(), &mut &input[..], "the key of another"), Ok(true));
}

/// What is read of bytes that come in pieces of this size.
pub fn read(input: &[u8], of_client: bool, size: usize) -> Read {
    let (mut parser, mut events) = (Parser::new(of_client), Vec::new());
    for mut piece in input.chunks(size) {
        loop {
            events.push(match parser.next(&mut piece) {
                Ok(Some(Event::Message { text: true, data })) => (Operation::Text, data.to_vec()),
                Ok(Some(Event::Message { text: false, data })) => (Operation::Binary, data.to_vec()),
                Ok(Some(Event::Ping(data))) => (Operation::Ping, data.to_vec()),
                Ok(Some(Event::Pong(data))) => (Operation::Pong, data.to_vec()),
                Ok(Some(Event::Close { code: None, .. })) => (Operation::Close, Vec::new()),
                Ok(Some(Event::Close { code: Some(code), reason })) => {
                    assert!(is_close_code(code));
                    (Operation::Close, [&code.to_be_bytes(), reason.as_bytes()].concat())
                }
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            });
        }
        assert!(piece.is_empty(), "None leaves no bytes");
    }
    (events, None)
}
