//! What must hold for any bytes that arrive as frames. The fuzz target and the tests of frames share it.

use std::io::Read;

use weir_host::agent::frame::{Frame, FrameError, FrameReader, FrameWriter, MOST};

/// Gives out its bytes in pieces of `step`.
struct Pieces<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.step.min(buffer.len()).min(self.bytes.len());
        buffer[..length].copy_from_slice(&self.bytes[..length]);
        self.bytes = &self.bytes[length..];
        Ok(length)
    }
}

/// The frames in these bytes, and the error behind the last one.
pub fn frames(bytes: &[u8], step: usize) -> (Vec<Frame>, FrameError) {
    let mut reader = FrameReader::new(Pieces { bytes, step });
    let mut all = Vec::new();
    loop {
        match reader.read() {
            Ok(frame) => all.push(frame),
            Err(error) => return (all, error),
        }
    }
}

/// The frames as bytes.
pub fn written(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(&mut bytes);
    frames.iter().for_each(|frame| writer.write(frame).expect("memory takes everything"));
    bytes
}

/// How the bytes are cut makes no difference; what was read can be written, and is then what was read.
pub fn check(bytes: &[u8]) {
    let (all, error) = frames(bytes, usize::MAX);
    let (cut, cut_error) = frames(bytes, 7);
    assert_eq!((&all, error.to_string()), (&cut, cut_error.to_string()));
    assert!(all.iter().all(|frame| frame.text().len() + frame.bytes().len() <= MOST));
    let again = written(&all);
    assert_eq!(again, bytes[..again.len()]);
    assert_eq!(matches!(error, FrameError::Ended), again.len() == bytes.len());
}
