//! Tests of a case outside its windows (`tests` of `measurement.json`): how long keys lived, and what requests in disguise cost. The lab
//! makes them once for each case, the audit judges them. This module does not know how they are made.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::keyvalue::Resolution;
use crate::protocol::Application;

/// The tests of a case. They are made in its first trial without an error; the records of its later trials repeat them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseTests {
    /// Number of the trial in which they were made.
    pub trial: u32,
    /// Keys with a time to live, where the workload has one.
    pub expiry: Vec<KeyExpiry>,
    /// Requests in disguise; `None` where the case has none.
    pub control: Option<Control>,
}

/// How long a key lived. A server acts on a request between its sending and its response; both bounds hold whenever that was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyExpiry {
    /// The time to live in the write, seconds.
    pub ttl_s: f64,
    /// It lived at least so long, seconds: from the response to its write to the sending of the last read that found it.
    pub at_least_s: f64,
    /// It lived at most so long, seconds: from the sending of its write to the response of the first read without it. `None`: every
    /// read found it.
    pub at_most_s: Option<f64>,
}

impl KeyExpiry {
    fn resolution(&self, application: Application) -> (f64, f64) {
        let Resolution { early, late } = Resolution::of(application, Duration::from_secs_f64(self.ttl_s));
        (early.as_secs_f64(), late.as_secs_f64())
    }

    /// True when it was gone before its time.
    pub fn is_early(&self, application: Application) -> bool {
        self.at_most_s.is_some_and(|most| most < self.ttl_s - self.resolution(application).0)
    }

    /// True when it was there after its time.
    pub fn is_late(&self, application: Application) -> bool {
        self.at_least_s > self.ttl_s + self.resolution(application).1
    }
}

/// Short loads of requests in disguise: the same work for an honest product, without anything that tells them from those of others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The changes of the disguise, in words.
    pub changed: Vec<String>,
    /// Relative standard deviation of the window's rate, in slices as long as one of these loads.
    pub spread: f64,
    /// Rounds: one, and more where the first differed. In the first round `usual` is the measured window.
    pub rounds: Vec<ControlRound>,
}

/// The workload's requests, and the same in disguise, one after the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlRound {
    /// As they are measured.
    pub usual: ControlLoad,
    /// In disguise.
    pub disguised: ControlLoad,
}

/// The result of one of these loads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlLoad {
    /// Length of its window, seconds.
    pub window_s: f64,
    /// Successful responses a second.
    pub rate: f64,
    /// CPU time of the product for each successful response, µs; `None` where it is not known.
    pub cpu_us: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_judged_by_bounds_that_hold_whenever_the_server_acted() {
        let key = |ttl_s, at_least_s, at_most_s| KeyExpiry { ttl_s, at_least_s, at_most_s };
        for (application, key, is_early, is_late) in [
            // Milliseconds, by PX.
            (Application::Redis, key(0.5, 0.49, Some(0.51)), false, false),
            (Application::Redis, key(0.5, 0.0, Some(0.498)), true, false),
            (Application::Redis, key(0.5, 0.502, None), false, true),
            // Seconds, by EX.
            (Application::Redis, key(10.0, 0.2, Some(0.3)), true, false),
            (Application::Redis, key(10.0, 3.0, None), false, false),
            (Application::Redis, key(10.0, 8.9, Some(9.0)), false, false),
            (Application::Juno, key(2.0, 3.01, None), false, true),
            (Application::Memcached, key(2.0, 3.99, Some(4.1)), false, false),
            (Application::Memcached, key(2.0, 4.01, Some(4.1)), false, true),
            (Application::Memcached, key(2.0, 0.0, Some(0.99)), true, false),
        ] {
            assert_eq!((key.is_early(application), key.is_late(application)), (is_early, is_late), "{key:?}");
        }
    }
}
