use proptest::prelude::*;

use super::*;
use crate::sample::suite;

const OVERHEAD: Duration = Duration::from_millis(500);

fn overhead(_: &Entry) -> Duration {
    OVERHEAD
}

fn budget(time: Duration) -> Budget<'static> {
    Budget { time, overhead: &overhead, skipped: &[], keep_blocks: false }
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// 6 cases a load, 3 blocks: capacity of 10 s + 60 s, and 225,000 requests over 250 connections, which are estimated
/// to take 45 s.
fn long() -> Suite {
    let mut suite = suite();
    (suite.loads[0].warmup, suite.loads[0].duration) = (seconds(10), seconds(60));
    let load = &mut suite.loads[1];
    load.kind = LoadKind::Count { requests: 225_000 };
    (load.connections, load.duration) = (250, seconds(120));
    suite
}

fn words(suite: &Suite, time: Duration) -> Vec<String> {
    suite.fitted(&budget(time)).expect("fits").changed_from(suite)
}

#[test]
fn what_fits_stays_as_it_is() {
    let suite = long();
    let takes = suite.takes(&[], &overhead);
    assert_eq!(takes, (seconds(70) + seconds(45) + 2 * OVERHEAD) * 18);
    assert_eq!(suite.fitted(&budget(takes)), Ok(suite.clone()));
    assert_ne!(suite.fitted(&budget(takes - STEP)), Ok(suite));
}

#[test]
fn windows_go_first_and_requests_and_blocks_after_them() {
    let suite = long();
    assert_eq!(
        words(&suite, seconds(1490)),
        ["warm-up of capacity: 5.2s instead of 10s", "measured window of capacity: 31.5s instead of 60s"]
    );
    assert_eq!(
        words(&suite, seconds(320)),
        [
            "warm-up of capacity: 300ms instead of 10s",
            "measured window of capacity: 1s instead of 60s",
            "requests of latency: 77000 instead of 225000",
        ]
    );
    assert_eq!(
        words(&suite, seconds(32)),
        [
            "blocks: 1 instead of 3",
            "warm-up of capacity: 300ms instead of 10s",
            "measured window of capacity: 1s instead of 60s",
            "requests of latency: 15000 instead of 225000",
        ]
    );
}

#[test]
fn what_cannot_fit_says_what_the_smallest_takes_and_where() {
    let suite = long();
    let error = suite.fitted(&budget(seconds(10))).expect_err("too long");
    // 6 cases of 300 ms + 1 s, and 6 of 5,000 requests.
    assert_eq!(error.takes, (Duration::from_millis(1300) + seconds(1) + 2 * OVERHEAD) * 6);
    assert_eq!(error.smallest.takes(&[], &overhead), error.takes);
    assert_eq!(error.loads[1], ("latency".to_owned(), (seconds(1) + OVERHEAD) * 6));
    let asked = Budget { keep_blocks: true, ..budget(seconds(32)) };
    assert_eq!(suite.fitted(&asked).expect_err("too long").smallest.blocks, 3);
}

#[test]
fn rounds_of_a_series_stay_long_enough_to_show_a_curve() {
    let mut suite = long();
    suite.loads[0].series = Series::Rounds(9);
    suite.loads[0].steady = Some(seconds(60));
    let smallest = suite.fitted(&budget(Duration::ZERO)).expect_err("nothing takes no time").smallest;
    assert_eq!(smallest.loads[0].duration, LEAST_ROUND);
    assert_eq!(smallest.loads[0].steady, Some(LEAST_STEADY));
    suite.loads[0].kind = LoadKind::Search { objective: Vec::new() };
    let smallest = suite.fitted(&budget(Duration::ZERO)).expect_err("nothing takes no time").smallest;
    assert_eq!(smallest.loads[0].duration, LEAST_SEARCH);
}

prop_compose! {
    fn any_suite()(
        blocks in 1u32..40,
        windows in prop::collection::vec((0u64..200_000, 1u64..200_000), 2),
        requests in 1u64..2_000_000,
        (count, rounds, steady) in (any::<bool>(), 1u32..12, prop::option::of(1u64..300)),
        connections in 1u32..2000,
    ) -> Suite {
        let mut suite = Suite { blocks, ..suite() };
        for (load, (warmup, duration)) in suite.loads.iter_mut().zip(windows) {
            (load.warmup, load.duration) = (Duration::from_millis(warmup), Duration::from_millis(duration));
            load.connections = connections;
        }
        if rounds > 1 {
            suite.loads[0].series = Series::Rounds(rounds);
        }
        suite.loads[0].steady = steady.map(seconds);
        if count {
            suite.loads[1].kind = LoadKind::Count { requests };
        }
        suite
    }
}

proptest! {
    #[test]
    fn never_beyond_the_budget_and_never_more_than_as_written(suite in any_suite(), time in 0u64..20_000, keep in any::<bool>()) {
        let budget = Budget { keep_blocks: keep, ..budget(seconds(time)) };
        let (fitted, fits) = match suite.fitted(&budget) {
            Ok(fitted) => (fitted, true),
            Err(error) => (error.smallest, false),
        };
        prop_assert_eq!(fitted.takes(&[], &overhead) <= budget.time, fits);
        prop_assert!(fitted.blocks >= 1 && fitted.blocks <= suite.blocks && (!keep || fitted.blocks == suite.blocks));
        prop_assert_eq!(fitted.loads.len(), suite.loads.len());
        for (now, before) in fitted.loads.iter().zip(&suite.loads) {
            prop_assert!(now.duration <= before.duration && now.warmup <= before.warmup && now.steady <= before.steady);
            prop_assert!(now.estimated() <= before.estimated());
            prop_assert!(now.duration >= LEAST_WINDOW.min(before.duration));
            if let (LoadKind::Count { requests: now }, LoadKind::Count { requests: before }) = (&now.kind, &before.kind) {
                prop_assert!(*now <= *before && *now >= 1);
            }
        }
        // What is no number of the suite's stays.
        let mut same = fitted;
        same.blocks = suite.blocks;
        for (load, before) in same.loads.iter_mut().zip(&suite.loads) {
            (load.warmup, load.duration, load.steady) = (before.warmup, before.duration, before.steady);
            load.kind = before.kind.clone();
        }
        prop_assert_eq!(same, suite);
    }

    #[test]
    fn more_time_never_makes_it_smaller(suite in any_suite(), less in 0u64..5_000, more in 0u64..5_000) {
        let takes = |time: u64| match suite.fitted(&budget(seconds(time))) {
            Ok(fitted) => fitted.takes(&[], &overhead),
            Err(error) => error.takes,
        };
        let (less, more) = (less.min(more), less.max(more));
        // Within one step of rounding of each window.
        prop_assert!(takes(less) <= takes(more).max(seconds(less)));
    }
}

#[test]
fn a_window_keeps_room_for_its_faults() {
    let mut suite = long();
    suite.loads[0].faults = vec![Fault { at: seconds(5), lasts: seconds(4), ..Fault::default() }];
    let least = suite.fitted(&budget(seconds(0))).expect_err("takes longer").smallest;
    assert_eq!(least.loads[0].duration, seconds(9));
}
