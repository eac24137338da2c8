//! How far another host's clock is from ours, read over the very channel that carries the messages. Weir's side of an agent
//! calls it.
//!
//! Only monotonic clocks are compared: wall clocks jump. Each exchange gives an offset that is wrong by at most half its
//! length, so the shortest of several counts.

use weir_model::clock::ClockReading;

/// How many exchanges a reading takes.
const EXCHANGES: usize = 16;

/// Reads a clock. `ours` reads ours and `theirs` asks for theirs, both in ns.
///
/// # Errors
/// The first of `theirs`.
pub fn read<E>(ours: impl Fn() -> u64, mut theirs: impl FnMut() -> Result<u64, E>) -> Result<ClockReading, E> {
    let mut best = ClockReading { offset_ns: 0, error_ns: u64::MAX };
    for _ in 0..EXCHANGES {
        let begun = ours();
        let there = theirs()?;
        let half = ours().saturating_sub(begun).div_ceil(2);
        if half < best.error_ns {
            best = ClockReading { offset_ns: there.wrapping_sub(begun + half).cast_signed(), error_ns: half };
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the ways there and back take, the offset is wrong by no more than it says.
        #[test]
        fn a_reading_is_as_wrong_as_it_says(
            offset in -1_000_000_000_000_i64..1_000_000_000_000,
            ways in proptest::collection::vec((0_u64..5_000_000, 0_u64..5_000_000), EXCHANGES),
        ) {
            let now = Cell::new(3_000_000_000_000_u64);
            let mut each = ways.iter();
            let read = read(|| now.get(), || {
                let (there, back) = each.next().expect("no more exchanges than that");
                now.set(now.get() + there);
                let theirs = now.get().checked_add_signed(offset).expect("positive");
                now.set(now.get() + back);
                Ok::<u64, ()>(theirs)
            }).expect("no error");
            prop_assert!(read.offset_ns.abs_diff(offset) <= read.error_ns, "{read:?}");
            let shortest = ways.iter().map(|(there, back)| there + back).min().expect("some");
            prop_assert_eq!(read.error_ns, shortest.div_ceil(2));
        }
    }

    #[test]
    fn a_host_that_does_not_answer_is_an_error() {
        assert_eq!(read(|| 0, || Err("gone")), Err("gone"));
    }
}
