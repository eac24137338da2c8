//! What must hold for any bytes and any protocol of whole messages. Used by the tests here and by the fuzz targets.
//!
//! - How the bytes are cut makes no difference to the messages, to the error, or to where the stream ends.
//! - A reader never gives up without an error: `None` means that it used all it was given.
//! - An error stays.
//! - A message that arrives whole is returned where it is, and not copied.
//! - No message is longer than the limit.

use weir_wire::messages::{Frame, Messages};

/// What a stream held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<E> {
    pub messages: Vec<Vec<u8>>,
    /// How it ended: between two messages, inside one, or with what the peer did wrong.
    pub end: Result<bool, E>,
}

/// Passes the pieces to a reader, one after the other, and checks its promises.
pub fn read<'i, F: Frame<Error: PartialEq>>(
    frame: F,
    limit: usize,
    pieces: impl IntoIterator<Item = &'i [u8]>,
) -> Seen<F::Error> {
    let mut reader = Messages::new(frame);
    let mut messages = Vec::new();
    for mut input in pieces {
        loop {
            let before = input;
            let was_between = reader.is_between();
            match reader.next(&mut input) {
                Ok(Some(message)) => {
                    assert!(!message.is_empty() && message.len() <= limit, "{} bytes", message.len());
                    let used = before.len() - input.len();
                    if was_between {
                        assert_eq!(message.as_ptr_range(), before[..used].as_ptr_range(), "not copied");
                    } else {
                        assert!(message.ends_with(&before[..used]));
                    }
                    messages.push(message.to_vec());
                    assert!(reader.is_between());
                }
                Ok(None) => {
                    assert!(input.is_empty(), "None leaves no bytes");
                    break;
                }
                Err(error) => {
                    let left = input;
                    assert_eq!(reader.next(&mut input), Err(error), "an error stays");
                    assert_eq!(input, left, "no bytes are used after an error");
                    assert!(!reader.is_between());
                    return Seen { messages, end: Err(error) };
                }
            }
        }
    }
    Seen { messages, end: Ok(reader.is_between()) }
}

/// What a stream holds, the same whole and in pieces of these sizes, over and over.
#[track_caller]
pub fn read_cut<F: Frame<Error: PartialEq>>(
    new: impl Fn() -> F,
    limit: usize,
    bytes: &[u8],
    sizes: &[usize],
) -> Seen<F::Error> {
    let whole = read(new(), limit, [bytes]);
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    let pieces = std::iter::from_fn(|| {
        let size = sizes.next().map_or(1, |size| (*size).max(1)).min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        (size > 0).then_some(piece)
    });
    assert_eq!(read(new(), limit, pieces), whole, "cut or not");
    whole
}

/// The same for few bytes, which are cut in two in every place, too.
#[track_caller]
pub fn read_however_cut<F: Frame<Error: PartialEq>>(new: impl Fn() -> F, limit: usize, bytes: &[u8]) -> Seen<F::Error> {
    let whole = read_cut(&new, limit, bytes, &[1]);
    for at in 0..bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(read(new(), limit, [first, &[], second]), whole, "cut at {at}");
    }
    whole
}

/// The parts of a fuzz target's input: two bytes, counted from `0`, that say how to read, and what to read.
///
/// - First: bit 0 for a limit of 64 bytes a message instead of 1 MiB. Its other bits are the target's.
/// - Second: how to cut: `0` byte by byte, others seed two sizes of pieces, over and over.
pub struct Input<'i> {
    pub options: u8,
    pub limit: usize,
    pub sizes: [usize; 2],
    pub bytes: &'i [u8],
}

impl Input<'_> {
    pub fn of(data: &[u8]) -> Option<Input<'_>> {
        let (&[options, seed], bytes) = data.split_first_chunk()?;
        let (options, seed) = (options ^ b'0', usize::from(seed ^ b'0'));
        let limit = if options & 1 == 1 { 64 } else { 1 << 20 };
        Some(Input { options, limit, sizes: [1 + seed % 16, 1 + seed / 16], bytes })
    }
}
