//! Names what limited the rate, as far as the client can know. Called by `verbs::load::summary`.

use weir_model::load::{ErrorKind, LoadResult};

use crate::load::format::Outcome;
use weir_model::text::{fixed_us, full_rate};

/// A worker that is busier than this was itself the limit: responses wait for the client.
const BUSY: f64 = 0.9;

/// An open load was carried when at least this share was answered in its window.
const CARRIED: f64 = 0.99;

/// A request costs at most so many times as much in a thread that has little to do.
const AT_LEISURE: f64 = 10.0;

/// A lag above this share of the latency distorts it.
const LAG: f64 = 0.1;

/// The sentence, in at most two lines of 68 columns.
pub fn limit(outcome: Outcome<'_>) -> Vec<String> {
    let (result, open) = (outcome.result, outcome.spec.kind.is_open());
    let window = &result.window;
    if window.due == 0 {
        return vec!["not known: no request was due in the window".to_owned()];
    }
    let two = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    if window.successful == 0 && window.error_count() > 0 {
        return two("no response was successful: the times are those of failures", "(see statuses and errors)");
    }
    let wrong_data: u64 = window.errors.iter().filter(|(kind, _)| kind.is_wrong_data()).map(|(_, n)| n).sum();
    if wrong_data > 0 {
        return two(
            "the target answered what it cannot hold (WRONG DATA): no figure of",
            "it counts before that is explained",
        );
    }
    if let Some(most) = cannot_be_offered(result) {
        let us = cpu_us_of_request(result).unwrap_or_default();
        return vec![
            format!("the rate cannot be offered: a request takes {} of CPU, so that", fixed_us(us)),
            format!(
                "{} at most {}; more CPUs (-t) send more",
                if result.threads == 1 {
                    "1 thread sends".to_owned()
                } else {
                    format!("{} threads send", result.threads)
                },
                full_rate(most)
            ),
        ];
    }
    let percent = busiest(result) * 100.0;
    if busiest(result) > BUSY {
        let who = if result.threads == 1 { "its thread was" } else { "one of its threads was" };
        return vec![
            format!("weir, not the target: {who} busy {percent:.0} %;"),
            "more threads (-t) on more CPUs would show the target's limit".to_owned(),
        ];
    }
    // The window of a replay goes on until its last response, also where that took much longer than it should.
    let outlasted = outcome.spec.kind.is_finite()
        && result.window_s > outcome.spec.duration_s / CARRIED + result.service.max_us / 1e6;
    if open && carried(result) >= CARRIED && !outlasted {
        return carried_but(result);
    }
    // Requests waited longer for a connection than on it.
    let queued = window.unsent > 0 || result.lag.p90_us > result.service.p90_us;
    if open && queued {
        return two(
            "the target did not carry the offered load: every connection was busy",
            "and requests queued; more connections (-c) might carry more",
        );
    }
    let no_connection = [ErrorKind::ConnectFailed, ErrorKind::ConnectRefused, ErrorKind::ConnectTimeout]
        .iter()
        .filter_map(|kind| window.errors.get(kind))
        .sum::<u64>();
    if no_connection > 0 {
        return two(
            "the target did not accept connections (see errors): its listen",
            "queue is full, or ports or descriptors ran out (weir doctor)",
        );
    }
    let wrong = outcome.account().wrong_responses();
    if wrong as f64 > (1.0 - CARRIED) * window.due as f64 {
        let share = wrong as f64 / window.due.max(1) as f64 * 100.0;
        let what = format!("{share:.1} % of the responses were wrong (see statuses and errors), so");
        return vec![what, "this says little about what the target can carry".to_owned()];
    }
    if open {
        return vec!["some requests had no success in time (see errors, and the lag)".to_owned()];
    }
    vec![
        format!("not weir, whose thread was busy {percent:.0} %: the target, the network,"),
        "or too few connections (-c)".to_owned(),
    ]
}

/// What was offered was carried; were the requests on time too?
fn carried_but(result: &LoadResult) -> Vec<String> {
    // A request that waits for a connection is late because of the target.
    let own = result.lateness.as_ref().map_or(&result.lag, |lateness| &lateness.lag);
    let (lag, latency) = (own.p99_us, result.latency.p99_us);
    // Below the histogram's finest steps shares mean nothing.
    if lag > latency * LAG && lag > 10.0 {
        return vec![
            "none reached: the offered load was carried, but some were sent late:".to_owned(),
            format!("lag p99 {} of a latency p99 of {} (busy CPU?)", fixed_us(lag), fixed_us(latency)),
        ];
    }
    vec!["none reached: the offered load was carried".to_owned()]
}

/// Share of what was due in the window that was answered rightly in it.
pub fn carried(result: &LoadResult) -> f64 {
    if result.window.due == 0 { 1.0 } else { result.window.successful_in_window as f64 / result.window.due as f64 }
}

/// The most that the threads could send, requests a second, where the offered rate is higher.
fn cannot_be_offered(result: &LoadResult) -> Option<f64> {
    let offered = result.offered_rate.filter(|_| carried(result) < CARRIED)?;
    let most = f64::from(result.threads) * 1e6 / cpu_us_of_request(result)?;
    // A thread that has time to spare could work at a lower price.
    let least = if busiest(result) > BUSY { most } else { most * AT_LEISURE };
    (offered > least).then_some(most)
}

/// CPU time that a request took of the client, µs; `None` where none ended.
pub fn cpu_us_of_request(result: &LoadResult) -> Option<f64> {
    let ended: u64 = result.series.iter().map(|row| row.successful + row.errors).sum();
    // The time awake and waiting for due times is not the price of a request.
    let work = (result.cpu_us.0 + result.cpu_us.1).saturating_sub(result.busy_poll_us);
    (ended > 0 && work > 0).then(|| work as f64 / ended as f64)
}

/// Share of its time that the busiest worker was at work.
pub fn busiest(result: &LoadResult) -> f64 {
    result.thread_busy.iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use weir_model::load::OfferedRate;
    use weir_model::suite::{Arrivals, LoadKind};

    use super::*;
    use crate::load::sample::{self, Sample};

    fn said(sample: &Sample) -> String {
        let lines = limit(sample.outcome());
        assert!(lines.len() <= 2 && lines.iter().all(|line| line.chars().count() <= 68), "{lines:?}");
        lines.join(" ")
    }

    #[test]
    fn each_limit_is_named() {
        let mut sample = sample::plain();
        assert!(said(&sample).starts_with("not weir, whose thread was busy 42 %"));
        sample.result.thread_busy = vec![0.98];
        assert!(said(&sample).starts_with("weir, not the target: its thread was busy 98 %"));
        let mut sample = sample::everything();
        assert!(said(&sample).contains("every connection was busy"));
        // At 4 µs of CPU a request.
        for (busy, offered, said_so) in [(0.42, 2e6, false), (0.42, 3e6, true), (0.98, 2e5, false), (0.98, 3e5, true)] {
            (sample.result.thread_busy, sample.result.offered_rate) = (vec![busy], Some(offered));
            let said = said(&sample);
            assert_eq!(said.starts_with("the rate cannot be offered"), said_so, "{busy} {offered}: {said}");
            assert!(!said_so || said.ends_with("1 thread sends at most 250,000/s; more CPUs (-t) send more"), "{said}");
        }
        (sample.result.thread_busy, sample.result.offered_rate) = (vec![0.42], Some(10_000.0));
        sample.result.window.unsent = 0;
        sample.result.lag.p90_us = 2_000_000.0;
        assert!(said(&sample).contains("every connection was busy"));
        sample.result.lag.p90_us = 0.0;
        assert!(said(&sample).contains("did not accept connections"));
        sample.result.window.errors.remove(&ErrorKind::ConnectRefused);
        assert!(said(&sample).starts_with("3.8 % of the responses were wrong"), "{}", said(&sample));
        sample.result.window.errors.clear();
        assert!(said(&sample).contains("some requests had no success in time"));
        sample.result.window.successful_in_window = 20_000;
        assert_eq!(said(&sample), "none reached: the offered load was carried");
        // A replay of 1 s whose responses took about that time, or twice as much.
        let open = sample.spec.clone();
        let due_s = OfferedRate::Replay(vec![0.0, 1.0]);
        sample.spec.kind = LoadKind::Open { rate: due_s, arrivals: Arrivals::Constant };
        sample.spec.duration_s = 1.0;
        for (window_s, first) in [(1.01, "none reached"), (2.0, "some requests had no success in time")] {
            sample.result.window_s = window_s;
            assert!(said(&sample).starts_with(first), "{}", said(&sample));
        }
        (sample.spec, sample.result.window_s) = (open, 2.0);
        sample.result.lag.p99_us = 800.0;
        assert!(said(&sample).contains("lag p99 800 µs of a latency p99 of 1.04 ms"));
        sample.result.window.errors = [(ErrorKind::Lost, 1)].into();
        assert!(said(&sample).starts_with("the target answered what it cannot hold"));
        sample.result.window.successful = 0;
        sample.result.window.errors = [(ErrorKind::Reset, 1)].into();
        assert!(said(&sample).starts_with("no response was successful"));
        sample.result.window.due = 0;
        assert!(said(&sample).starts_with("not known"));
    }
}
