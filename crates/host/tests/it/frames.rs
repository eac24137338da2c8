//! Frames: what is written is read, and nothing else is.

use crate::frames_oracle::{check, frames, written};
use proptest::prelude::*;
use weir_host::agent::frame::{Frame, FrameError, FrameWriter, MOST};

fn some_frames() -> impl Strategy<Value = Vec<Frame>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    proptest::collection::vec((bytes(), bytes()).prop_map(|(text, bytes)| Frame::new(text, &bytes)), 1..5)
}

proptest! {
    #[test]
    fn frames_are_read_as_they_were_written(all in some_frames(), step in 1_usize..50) {
        let (read, error) = frames(&written(&all), step);
        prop_assert_eq!(read, all);
        prop_assert!(matches!(error, FrameError::Ended));
    }

    #[test]
    fn a_flipped_bit_is_noticed(all in some_frames(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut bytes = written(&all);
        bytes[at.index(all_length(&all))] ^= 1_u8 << bit;
        let (read, error) = frames(&bytes, usize::MAX);
        prop_assert!(read.len() < all.len() && read[..] == all[..read.len()], "{read:?}");
        prop_assert!(!matches!(error, FrameError::Ended), "{error}");
    }

    #[test]
    fn a_cut_is_noticed(all in some_frames(), at in any::<prop::sample::Index>()) {
        let bytes = written(&all);
        let kept = at.index(bytes.len());
        let (read, error) = frames(&bytes[..kept], usize::MAX);
        prop_assert_eq!(&read[..], &all[..read.len()]);
        let between = written(&read).len() == kept;
        prop_assert_eq!(matches!(error, FrameError::Ended), between);
        prop_assert_eq!(matches!(error, FrameError::Cut(_)), !between);
    }

    #[test]
    fn any_bytes_are_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), tail in some_frames()) {
        check(&bytes);
        check(&[written(&tail), bytes].concat());
    }
}

fn all_length(all: &[Frame]) -> usize {
    written(all).len()
}

#[test]
fn errors_say_what_was_wrong() {
    let one = Frame::new(b"{}".to_vec(), b"raw");
    let bytes = written(&[one.clone(), one.clone()]);
    let half = bytes.len() / 2;
    let said = |bytes: &[u8]| frames(bytes, usize::MAX).1.to_string();
    assert_eq!(said(&bytes), "the connection ended without a goodbye");
    assert_eq!(said(&bytes[..half + 21]), "the connection ended within a message: byte 21 of it was the last");
    let lost_or_repeated = |found, expected| {
        format!("the connection lost or repeated a message (number {found} came instead of {expected})")
    };
    assert_eq!(said(&[&bytes[..half], &bytes[..half]].concat()), lost_or_repeated(0, 1));
    assert_eq!(said(&bytes[half..]), lost_or_repeated(1, 0));
    let mut damaged = bytes.clone();
    damaged[half + 21] ^= 1;
    assert_eq!(said(&damaged), "the connection changed a message on its way (number 1: wrong checksum)");
    assert_eq!(said(b"Welcome to m1!"), "the connection ended within a message: byte 14 of it was the last");
    // A greeting of a login shell, taken for a length.
    let greeting = said(b"Welcome to the machine m1!\n");
    assert_eq!(greeting, "the connection carried a message of impossible length (1668048215 bytes)");
}

#[test]
fn a_frame_that_nobody_would_read_is_not_written() {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(&mut bytes);
    assert!(writer.write(&Frame::new(Vec::new(), &vec![0; MOST + 1])).is_err());
    writer.write(&Frame::new(Vec::new(), &vec![0; MOST])).expect("the longest");
    check(&bytes);
}

#[test]
fn the_corpus_of_the_fuzz_target_holds() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/agent_frames");
    let inputs: Vec<_> =
        std::fs::read_dir(corpus).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    assert!(inputs.len() >= 7, "{inputs:?}");
    inputs.iter().for_each(|input| check(&std::fs::read(input).expect("readable")));
}
