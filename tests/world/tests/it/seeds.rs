//! Random runs. `make sim SEEDS=20000` runs more of them.

use weir_world::seeds::{again, run_alone, run_many};

/// Seeds that found something, while it is the same that they make: rounds of a control that all had the same arrivals.
const FOUND: [u64; 2] = [2961, 5639];

#[test]
fn whatever_happens_certain_things_hold() {
    let failed = run_many(0..300, &|seed, why| println!("seed {seed}: {why}\n  again: {}", again(seed)));
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in (0..6).chain(FOUND) {
        let once = run_alone(seed, false);
        assert!(once.is_ok(), "seed {seed}: {once:?}");
        assert_eq!(once, run_alone(seed, false), "seed {seed}");
    }
}
