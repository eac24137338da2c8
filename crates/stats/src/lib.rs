//! Numbers that a reader can trust: medians with intervals, ratios within blocks and between runs, ranks that are
//! shared when the data cannot tell two products apart, how far two rankings agree, and what a run could have found
//! at all. Beside them questions about the shape of data: where a curve bends ([`knee`]), from where on a series keeps its
//! level ([`steady_part`]), and where runs over time take another one ([`change_points`]).
//!
//! The unit of every claim is the *block*: one trial of every case. Thousands of requests in one trial are not
//! thousands of independent observations, so no function here takes requests. Everything is a pure function of
//! its arguments; the seed is one of them, and equal arguments give equal bits.
//!
//! Values that are not finite stand for blocks without a number (a failed trial): they are left out, and the
//! `n` of an [`Estimate`] says how many values remained. Nothing in this crate panics on any input.
//!
//! # What an interval can promise
//!
//! At an asked level of 95 %:
//!
//! | blocks | interval of the median | covers the true median in |
//! |---|---|---|
//! | 1 | the value itself | no promise: `low == high`, [`Estimate::level`] is 0 |
//! | 2 | smallest to largest | 50 % of runs |
//! | 3 | smallest to largest | 75 % of runs |
//! | 4 | smallest to largest | 87.5 % of runs |
//! | 5 | smallest to largest | 93.75 % of runs |
//! | 6, 7 | smallest to largest | 97 %, 98 % of runs |
//! | 8 and more | percentile bootstrap | about 95 % of runs |
//!
//! Up to 7 blocks no resampling can make up for values that were never seen (Efron and Tibshirani, *An
//! Introduction to the Bootstrap*, 1993, chapters 13 and 19, on what the percentile interval and the
//! bootstrapped median do in small samples): the bootstrap of the median can only return what order
//! statistics say directly, and at n = 7 it would even claim 95 % for an interval that covers 87.5 %.
//!
//! This crate does not know files, the clock, or what the numbers measure.

mod change;
mod detect;
mod divisive;
mod estimate;
mod knee;
mod noise;
mod order;
mod rank;
mod ratio;
mod resample;
mod sequential;
mod steady;
mod student;
mod tau;
mod unpaired;

pub use change::{Stretch, other_level};
pub use detect::detectable_change;
pub use divisive::{ChangePoint, Changes, FEWEST as FEWEST_RUNS, best_split, change_points};
pub use estimate::{Estimate, median, median_interval};
pub use knee::{Bend, knee};
pub use noise::{detectable_difference, paired_noise, relative_noise};
pub use rank::{Ranked, shared_ranks};
pub use ratio::paired_ratio;
pub use sequential::anytime_ratio;
pub use steady::{SteadyPart, steady_part};
pub use tau::{Agreement, agreement};
pub use unpaired::unpaired_ratio;
