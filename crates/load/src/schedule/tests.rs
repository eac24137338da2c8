use proptest::prelude::*;
use weir_model::load::RecordedDue;

use super::*;
use crate::clock::{MILLI, SECOND, to_secs};

fn merged(table: &Timetable, threads: u32, until: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..threads)
        .flat_map(|thread| table.schedule(7, thread, threads).take_while(move |due| *due < until).collect::<Vec<_>>())
        .collect();
    all.sort_unstable();
    all
}

fn steps(warmup_s: f64, all: &[(f64, f64)], arrivals: Arrivals) -> Timetable {
    let steps = all.iter().map(|&(rate, for_s)| Step { rate, for_s }).collect();
    let kind = LoadKind::Open { rate: OfferedRate::Steps(steps), arrivals };
    check(&kind).unwrap();
    Timetable::new(&kind, from_secs(warmup_s), 100 * SECOND).unwrap()
}

fn ramp(warmup_s: f64, from: f64, to: f64, over_s: f64, arrivals: Arrivals) -> Timetable {
    Timetable::new(
        &LoadKind::Open { rate: OfferedRate::Ramp { from, to }, arrivals },
        from_secs(warmup_s),
        from_secs(over_s),
    )
    .unwrap()
}

/// The straight way to the integral: a sum of small trapezia of the rate as ordered.
fn integral(rate: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let n = 20_000;
    let step = (to - from) / f64::from(n);
    (0..n).map(|i| rate(from + (f64::from(i) + 0.5) * step) * step).sum()
}

proptest! {
    #[test]
    fn passing_over_times_is_walking_through_them(
        shape in 0..3,
        rate in 1.0..3e6f64,
        to in 0.0..3e6f64,
        threads in 1u32..4,
        on_ms in 0u64..5,
        taken in 0usize..50,
        until in 0u64..60_000_000,
        most in 0u64..30_000,
    ) {
        let step = |rate, for_s| Step { rate, for_s };
        let steps = OfferedRate::Steps(vec![step(rate, 0.01), step(0.0, 0.01), step(to.max(1.0), 0.01)]);
        let timetable = match shape {
            0 => Timetable::Rate(rate, Arrivals::Constant),
            1 => ramp(0.01, rate, to, 0.03, Arrivals::Constant),
            _ => Timetable::new(&LoadKind::Open { rate: steps, arrivals: Arrivals::Constant }, 0, SECOND).unwrap(),
        };
        let bursts = (on_ms > 0).then_some(Bursts { on: on_ms * MILLI, off: 2 * MILLI });
        let mut walked = timetable.schedule(0, threads - 1, threads).in_bursts(bursts);
        for _ in 0..taken {
            walked.next_due();
        }
        let mut skipped = walked.clone();
        let mut n = 0;
        let mut ahead = walked.clone();
        while n < most && ahead.next_due() <= until {
            walked.next_due();
            n += 1;
        }
        prop_assert_eq!((skipped.skip_until(until, most), skipped.next_due()), (n, walked.next_due()));
    }
}

#[test]
fn constant_does_not_drift_over_ten_million_events() {
    let mut schedule = Timetable::Rate(3_333.0, Arrivals::Constant).schedule(0, 0, 1);
    let mut last = 0;
    for _ in 0..=10_000_000 {
        last = schedule.next_due();
    }
    // 1e7 / 3333 s = 3000.300030003000300.. s
    assert_eq!(last, 3_000_300_030_003);
}

#[test]
fn threads_of_a_constant_load_interleave_evenly() {
    for threads in 1..=5 {
        let all = merged(&Timetable::Rate(1_000.0, Arrivals::Constant), threads, SECOND);
        let expected: Vec<u64> = (0..1_000).map(|i| i * 1_000_000).collect();
        assert_eq!(all, expected, "{threads} threads");
    }
}

#[test]
fn poisson_has_the_mean_and_variance_of_its_rate() {
    // The same rate as a rate and as a curve.
    let tables =
        [Timetable::Rate(500.0, Arrivals::Poisson), steps(1.0, &[(500.0, 3.0), (500.0, 9.0)], Arrivals::Poisson)];
    for (table, threads) in tables.iter().flat_map(|table| [(table, 1), (table, 3)]) {
        let seconds = 2_000;
        let all = merged(table, threads, seconds * SECOND);
        let mut counts = vec![0f64; seconds as usize];
        for due in &all {
            counts[(due / SECOND) as usize] += 1.0;
        }
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Counts a second have mean 500 and variance 500. Over 2000 seconds the mean's standard error is
        // sqrt(500 / 2000) = 0.5 and the variance's is 500 * sqrt(2 / 1999) = 16: five of each are allowed.
        assert!((mean - 500.0).abs() < 2.5, "mean {mean}");
        assert!((variance - 500.0).abs() < 80.0, "variance {variance}");
    }
}

#[test]
fn poisson_repeats_by_seed_and_differs_by_thread() {
    let take = |seed, thread| {
        Timetable::Rate(100.0, Arrivals::Poisson).schedule(seed, thread, 2).take(100).collect::<Vec<_>>()
    };
    assert_eq!(take(1, 0), take(1, 0));
    assert_ne!(take(1, 0), take(2, 0));
    assert_ne!(take(1, 0), take(1, 1));
}

#[test]
fn steps_send_exactly_their_share_and_pauses_send_nothing() {
    let table =
        steps(2.0, &[(1_000.0, 3.0), (0.0, 2.0), (250.0, 4.0), (0.1, 30.0), (2_000.0, 1.0)], Arrivals::Constant);
    let all = merged(&table, 3, 43 * SECOND);
    let between = |from: u64, to: u64| all.iter().filter(|due| (from * SECOND..to * SECOND).contains(due)).count();
    assert_eq!(between(0, 2), 2_000, "warm-up at the first rate");
    assert_eq!(between(2, 5), 3_000);
    assert_eq!(between(5, 7), 0, "a pause");
    assert_eq!(between(7, 11), 1_000);
    // Ten seconds a request: the first is due as the step begins.
    assert_eq!(between(11, 41), 3);
    // The last goes on.
    assert_eq!(between(41, 42), 2_000);
    assert_eq!(between(42, 43), 2_000);
    // The first after the pause is due at its end, not at its beginning.
    assert!(all.contains(&(7 * SECOND)) && !all.contains(&(5 * SECOND)));
}

#[test]
fn a_pause_at_the_end_ends_the_schedule() {
    let table = steps(0.0, &[(10.0, 1.0), (0.0, 1.0)], Arrivals::Constant);
    let mut schedule = table.schedule(0, 0, 1);
    assert_eq!(schedule.by_ref().count(), 10);
    assert_eq!(schedule.next_due(), NEVER);
    assert_eq!(schedule.next_due(), NEVER);
    let poisson = steps(0.0, &[(10.0, 1.0), (0.0, 1.0)], Arrivals::Poisson);
    assert!(poisson.schedule(3, 0, 1).all(|due| due < SECOND));
}

#[test]
fn a_ramp_has_the_times_of_the_formula() {
    // N(t) = 50 t^2 for a ramp from 0 to 1000 over 10 s, so that request k is due at sqrt(k / 50).
    let all: Vec<u64> = ramp(5.0, 0.0, 1_000.0, 10.0, Arrivals::Constant).schedule(0, 0, 1).take(5_001).collect();
    for (k, due) in all.iter().enumerate() {
        let expected = 5e9 + (k as f64 / 50.0).sqrt() * 1e9;
        assert!((*due as f64 - expected).abs() <= 1.0, "{k}: {due} is not {expected}");
    }
    assert_eq!(all[5_000], 15 * SECOND);
    // And down again: what is left to come at t is 50 (10 - t)^2.
    let all: Vec<u64> = ramp(0.0, 1_000.0, 0.0, 10.0, Arrivals::Constant).schedule(0, 0, 1).collect();
    assert_eq!(all.len(), 5_000);
    for (k, due) in all.iter().enumerate() {
        let expected = 10e9 - ((5_000.0 - k as f64) / 50.0).sqrt() * 1e9;
        assert!((*due as f64 - expected).abs() <= 100.0, "{k}: {due} is not {expected}");
    }
}

#[test]
fn a_replay_is_dealt_out_as_given_and_ends() {
    let kind =
        LoadKind::Open { rate: OfferedRate::Replay(vec![0.0, 0.25, 0.25, 3.0, 3.5]), arrivals: Arrivals::Constant };
    // No warm-up.
    let table = Timetable::new(&kind, 0, 10 * SECOND).unwrap();
    let of = |thread| table.schedule(1, thread, 2).collect::<Vec<_>>();
    assert_eq!(of(0), [0, SECOND / 4, 3_500_000_000]);
    assert_eq!(of(1), [SECOND / 4, 3 * SECOND]);
    let mut schedule = table.schedule(1, 1, 2);
    schedule.by_ref().for_each(drop);
    assert_eq!(schedule.next_due(), NEVER);
}

#[test]
fn a_recorded_request_is_known_by_its_time() {
    let due = [(0.0, 2), (0.25, 0), (0.25, 1), (0.25, 0), (3.0, 2)];
    let recorded = due.iter().map(|(at_s, request)| RecordedDue { at_s: *at_s, request: *request }).collect();
    let kind = LoadKind::Open { rate: OfferedRate::Recorded(recorded), arrivals: Arrivals::Constant };
    let table = Timetable::new(&kind, 0, 10 * SECOND).unwrap();
    let quarter = SECOND / 4;
    let of = |thread| table.schedule(1, thread, 2).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec![0, quarter + 1, 3 * SECOND], vec![quarter, quarter + 2]));
    let schedule = table.schedule(1, 1, 2);
    let asked = [0, quarter, quarter + 1, quarter + 2, 3 * SECOND, 7].map(|at| schedule.request_at(at));
    assert_eq!(asked, [Some(2), Some(0), Some(1), Some(0), Some(2), None]);
    assert_eq!(table.mean_rate(0, SECOND), 4.0);
    assert_eq!(Timetable::Rate(1.0, Arrivals::Constant).schedule(1, 0, 1).request_at(0), None);
}

#[test]
fn bursts_delay_what_falls_due_between_them() {
    let bursts: Bursts = weir_model::load::Bursts { on_s: 0.010, off_s: 0.020 }.into();
    let due: Vec<u64> =
        Timetable::Rate(200.0, Arrivals::Constant).schedule(0, 0, 1).in_bursts(Some(bursts)).take(5).collect();
    assert_eq!(due, [0, 5, 30, 35, 60].map(|ms| ms * MILLI));
    let next = [0, 9, 10, 29, 30, 45].map(|ms| bursts.next(ms * MILLI));
    assert_eq!(next, [None, None, Some(30 * MILLI), Some(30 * MILLI), None, Some(60 * MILLI)]);
}

#[test]
fn the_mean_rate_is_of_the_window() {
    let mean = |table: &Timetable, warmup_s, window_s| table.mean_rate(from_secs(warmup_s), from_secs(window_s));
    assert_eq!(mean(&Timetable::Rate(123.0, Arrivals::Poisson), 1.0, 2.0), 123.0);
    assert_eq!(mean(&ramp(3.0, 100.0, 300.0, 10.0, Arrivals::Constant), 3.0, 10.0), 200.0);
    assert_eq!(mean(&steps(3.0, &[(100.0, 1.0), (0.0, 1.0), (20.0, 1.0)], Arrivals::Constant), 3.0, 4.0), 35.0);
    let replay = Timetable::new(
        &LoadKind::Open { rate: OfferedRate::Replay(vec![0.0, 1.0, 2.0]), arrivals: Arrivals::Constant },
        0,
        2 * SECOND,
    )
    .unwrap();
    assert_eq!(mean(&replay, 0.0, 2.0), 1.5, "the last is due at the end");
}

#[test]
fn loads_that_are_not_open_have_no_timetable() {
    assert!(Timetable::new(&LoadKind::Closed, 0, SECOND).is_none());
    assert!(Timetable::new(&LoadKind::Count { requests: 5 }, 0, SECOND).is_none());
}

#[test]
fn poisson_follows_a_changing_rate() {
    // 10 s of ramp, 5 s of pause, 10 s of a step; many seeds together, so that each interval has thousands.
    let parts: &[(f64, f64)] = &[(200.0, 10.0), (0.0, 5.0), (1_000.0, 10.0)];
    let stepped = |t: f64| match t {
        t if t < 10.0 => 200.0,
        t if t < 15.0 => 0.0,
        _ => 1_000.0,
    };
    let rising = |t: f64| 50.0 + 10.0 * t;
    let tables: [(Timetable, &dyn Fn(f64) -> f64); 2] =
        [(steps(0.0, parts, Arrivals::Poisson), &stepped), (ramp(0.0, 50.0, 300.0, 25.0, Arrivals::Poisson), &rising)];
    for (table, rate) in tables {
        let mut counts = [0f64; 25];
        for seed in 0..20 {
            for thread in 0..2 {
                let due = table.schedule(seed, thread, 2).take_while(|due| *due < 25 * SECOND);
                due.for_each(|due| counts[(due / SECOND) as usize] += 1.0);
            }
        }
        let mut chi = 0.0;
        let mut degrees = 0.0;
        for (second, count) in counts.iter().enumerate() {
            let expected = 20.0 * integral(rate, second as f64, second as f64 + 1.0);
            if expected == 0.0 {
                assert_eq!(*count, 0.0, "something was due in a pause, in second {second}");
                continue;
            }
            chi += (count - expected).powi(2) / expected;
            degrees += 1.0;
        }
        // Chi-square has the mean `degrees` and the variance twice that; five deviations either way: neither
        // another rate nor too even.
        let slack = 5.0 * (2.0f64 * degrees).sqrt();
        assert!((chi - degrees).abs() < slack, "chi-square {chi} with {degrees} degrees of freedom");
    }
}

/// Profiles: rates of 0 to 5000 for up to 3 s each.
fn profile() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let rate = prop_oneof![1 => Just(0.0), 4 => (0u32..50_000).prop_map(|tenths| f64::from(tenths) / 10.0)];
    let length = prop_oneof![(1u32..30).prop_map(|tenths| f64::from(tenths) / 10.0), 0.001f64..3.0];
    proptest::collection::vec((rate, length), 1..8)
        .prop_filter("something is sent", |all| all.iter().any(|(rate, _)| *rate > 0.0))
}

proptest! {
    // Each case walks some hundred thousand events.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn constant_counts_are_exact_for_whole_windows(
        rate in 1u32..20_000,
        warmup in 0u64..5,
        window in 1u64..5,
        threads in 1u32..6,
    ) {
        let table = Timetable::Rate(f64::from(rate), Arrivals::Constant);
        let all = merged(&table, threads, (warmup + window) * SECOND);
        let inside = all.iter().filter(|due| **due >= warmup * SECOND).count() as u64;
        prop_assert_eq!(inside, u64::from(rate) * window);
    }

    #[test]
    fn constant_counts_are_exact_for_rates_in_tenths(tenths in 1u64..20_000, window in 1u64..4) {
        let table = Timetable::Rate(tenths as f64 / 10.0, Arrivals::Constant);
        let all = merged(&table, 2, (10 + window * 10) * SECOND);
        let inside = all.iter().filter(|due| **due >= 10 * SECOND).count() as u64;
        prop_assert_eq!(inside, tenths * window);
    }

    #[test]
    fn due_times_never_go_back(seed: u64, rate in 1f64..1e6, to in 0f64..1e6) {
        for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
            let tables = [
                Timetable::Rate(rate, arrivals),
                ramp(0.001, rate, to, 0.01, arrivals),
                steps(0.001, &[(rate, 0.001), (0.0, 0.1), (to, 0.001), (rate, 0.01)], arrivals),
            ];
            for table in tables {
                let all: Vec<u64> = table.schedule(seed, 0, 1).take(1_000).collect();
                prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
            }
        }
    }

    #[test]
    fn counts_of_any_interval_match_the_integral_within_one(
        parts in profile(),
        warmup in 0f64..2.0,
        cuts in proptest::collection::vec(0f64..1.0, 8),
    ) {
        let table = steps(warmup, &parts, Arrivals::Constant);
        let end = warmup + parts.iter().map(|(_, length)| length).sum::<f64>() + 1.0;
        let all = merged(&table, 2, from_secs(end));
        let rate = |t: f64| {
            let mut begin = warmup;
            for (rate, length) in &parts {
                begin += length;
                if t < begin {
                    return *rate;
                }
            }
            parts[parts.len() - 1].0
        };
        for cut in cuts {
            let at = from_secs(cut * end);
            let count = all.iter().filter(|due| **due < at).count() as f64;
            // By sum over the parts, independently of the cumulated counts under test.
            let mut expected = rate(0.0) * to_secs(at).min(warmup);
            let mut begin = warmup;
            for (index, (rate, length)) in parts.iter().enumerate() {
                let length = if index + 1 == parts.len() { f64::INFINITY } else { *length };
                expected += rate * (to_secs(at) - begin).clamp(0.0, length);
                begin += length;
            }
            prop_assert!((count - expected).abs() <= 1.001, "{} due before {} s, {} expected", count, to_secs(at), expected);
        }
    }

    #[test]
    fn a_ramps_counts_match_the_integral_within_one(from in 0f64..5_000.0, to in 0f64..5_000.0, over in 0.1f64..5.0, cut in 0f64..1.0) {
        let table = ramp(0.0, from, to.max(1.0), over, Arrivals::Constant);
        let all = merged(&table, 3, from_secs(over));
        let at = cut * over;
        let expected = integral(|t| from + (to.max(1.0) - from) * t / over, 0.0, at);
        let count = all.iter().filter(|due| **due < from_secs(at)).count() as f64;
        prop_assert!((count - expected).abs() <= 1.001, "{} due before {} s, {} expected", count, at, expected);
    }

    #[test]
    fn threads_together_are_one_and_walking_twice_is_the_same(parts in profile(), threads in 2u32..6) {
        let table = steps(0.5, &parts, Arrivals::Constant);
        let until = 3 * SECOND;
        prop_assert_eq!(merged(&table, threads, until), merged(&table, 1, until));
        let poisson = steps(0.5, &parts, Arrivals::Poisson);
        for table in [&table, &poisson] {
            let mut first = table.schedule(9, 1, threads);
            let taken: Vec<u64> = first.clone().take(50).collect();
            prop_assert!(taken.iter().all(|due| *due == first.next_due()));
        }
    }
}
