//! What must hold for any bytes in place of server-sent events. Used by the tests here and by the fuzz target.
//!
//! - How the bytes are cut makes no difference to the events.
//! - A second reader, which takes the whole body line by line as the HTML Standard describes it, reads the same.
//! - A reader leaves no bytes.

use weir_wire::sse::Parser;

/// Name and data of an event.
pub type Owned = (Vec<u8>, Vec<u8>);

/// Checks one body of less than the largest event, whole and in pieces of every length up to 20.
///
/// # Panics
/// When something does not hold.
pub fn events(input: &[u8]) {
    let wanted = read_by_the_book(input);
    for size in (1..20).chain([input.len().max(1)]) {
        assert_eq!(read(input, size), wanted, "in pieces of {size}");
    }
}

/// The events of a body that comes in pieces of this size.
pub fn read(input: &[u8], size: usize) -> Vec<Owned> {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    for mut piece in input.chunks(size) {
        while let Some(event) = parser.next(&mut piece).expect("small enough") {
            events.push((event.name.to_vec(), event.data.to_vec()));
        }
        assert!(piece.is_empty(), "None leaves no bytes");
    }
    events
}

/// HTML Standard, section 9.2.6.
fn read_by_the_book(input: &[u8]) -> Vec<Owned> {
    let text = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if_eq(&&b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            byte => lines.last_mut().expect("one at least").push(*byte),
        }
    }
    // A line without an end is none.
    lines.pop();
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            let (name, mut data): Owned = (std::mem::take(&mut name), std::mem::take(&mut data));
            if data.pop().is_some() {
                events.push((name, data));
            }
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => data.extend(value.iter().chain(b"\n")),
            b"event" => name = value.to_vec(),
            _ => {}
        }
    }
    events
}
