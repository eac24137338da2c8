//! Changes of a product's route that a load asks for (`change_every`): when each was made, which responses showed it, and what follows
//! from the two. The lab makes the changes, and the client sees the numbers. This module does not know how a product takes a change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::LoadResult;
use crate::record::ResourceSecond;

/// The response header with the number of the last change that the product has taken; 0 before the first.
pub const CHANGE_HEADER: &str = "x-weir-change";

/// The change that weir makes before the load, to see that the product takes any. Those of the load follow it.
pub const VERIFIED: u32 = 1;

/// Responses with one number, of those with a status that may be right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSeen {
    /// The number.
    pub number: u32,
    /// When the head of the first came, seconds from the window's start; 0 before it.
    pub first_s: f64,
    /// The same of the last.
    pub last_s: f64,
    /// How many.
    pub responses: u64,
}

impl ChangeSeen {
    /// Adds what another thread or client saw.
    pub fn add(sum: &mut Vec<ChangeSeen>, more: &[ChangeSeen]) {
        for seen in more {
            match sum.binary_search_by_key(&seen.number, |one| one.number) {
                Ok(at) => {
                    let one = &mut sum[at];
                    one.first_s = one.first_s.min(seen.first_s);
                    one.last_s = one.last_s.max(seen.last_s);
                    one.responses += seen.responses;
                }
                Err(at) => sum.insert(at, seen.clone()),
            }
        }
    }
}

/// What was changed, and what the product used then. The change of number [`VERIFIED`] + 1 is the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// When weir began to make each, seconds from the window's start.
    pub began_s: Vec<f64>,
    /// Resident memory of the product in the first second and in the last, bytes; `None` where not known.
    pub memory_bytes: Option<(u64, u64)>,
    /// Its processes in the same seconds.
    pub processes: Option<(u64, u64)>,
}

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangeOutcome {
    /// From its beginning to the last response with an older number: seconds.
    Taken(f64),
    /// No response had its number, but some had a later one. Older numbers ended so long after its beginning: seconds.
    Skipped(f64),
    /// No response had its number or a later one.
    Lost,
}

impl ChangeRecord {
    /// Takes memory and processes from the rows of a window.
    pub fn used(self, series: &[ResourceSecond]) -> ChangeRecord {
        let rows = || series.iter().filter(|row| row.who == "proxy");
        let ends = |value: fn(&ResourceSecond) -> Option<u64>| {
            rows().next().and_then(value).zip(rows().next_back().and_then(value))
        };
        ChangeRecord { memory_bytes: ends(|row| row.rss_bytes), processes: ends(|row| row.processes), ..self }
    }

    /// What became of each change.
    pub fn outcomes(&self, load: &LoadResult) -> Vec<ChangeOutcome> {
        let outcome = |(number, began_s): (u32, &f64)| {
            let older = load.changes.iter().filter(|seen| seen.number < number);
            let until_s = older.map(|seen| seen.last_s).fold(*began_s, f64::max) - began_s;
            match load.changes.iter().find(|seen| seen.number >= number) {
                Some(seen) if seen.number == number => ChangeOutcome::Taken(until_s),
                Some(_) => ChangeOutcome::Skipped(until_s),
                None => ChangeOutcome::Lost,
            }
        };
        (VERIFIED + 1..).zip(&self.began_s).map(outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(number: u32, first_s: f64, last_s: f64) -> ChangeSeen {
        ChangeSeen { number, first_s, last_s, responses: 10 }
    }

    #[test]
    fn a_change_is_taken_when_the_last_older_number_came() {
        use ChangeOutcome::{Lost, Skipped, Taken};
        let record = ChangeRecord { began_s: vec![1.0, 2.0, 3.0, 4.0], ..ChangeRecord::default() };
        let outcomes = |changes| record.outcomes(&LoadResult { changes, ..LoadResult::default() });
        // A worker of before the first change responds once more after the second.
        let all = [seen(1, 0.0, 2.25), seen(2, 1.25, 2.5), seen(3, 2.125, 3.5), seen(5, 4.5, 5.0)].to_vec();
        assert_eq!(outcomes(all.clone()), [Taken(1.25), Taken(0.5), Skipped(0.5), Taken(0.0)]);
        assert_eq!(outcomes(all[..2].to_vec()), [Taken(1.25), Lost, Lost, Lost]);
        assert_eq!(outcomes(Vec::new()), [Lost; 4]);
    }

    #[test]
    fn what_threads_saw_is_added_by_number() {
        let mut sum = vec![seen(1, 0.0, 2.0), seen(3, 3.0, 4.0)];
        ChangeSeen::add(&mut sum, &[seen(1, 0.0, 1.0), seen(2, 2.0, 3.0)]);
        assert_eq!(sum, [ChangeSeen { responses: 20, ..seen(1, 0.0, 2.0) }, seen(2, 2.0, 3.0), seen(3, 3.0, 4.0)]);
    }

    #[test]
    fn memory_and_processes_are_those_of_the_first_and_the_last_second() {
        let row = |who: &str, rss, processes| ResourceSecond {
            who: who.to_owned(),
            rss_bytes: Some(rss),
            processes,
            ..ResourceSecond::default()
        };
        let rows =
            [row("client", 1, Some(1)), row("proxy", 2, Some(2)), row("proxy", 3, None), row("proxy", 4, Some(3))];
        let used = ChangeRecord::default().used(&rows);
        assert_eq!((used.memory_bytes, used.processes), (Some((2, 4)), Some((2, 3))));
        assert_eq!(ChangeRecord::default().used(&rows[..1]), ChangeRecord::default());
    }
}
