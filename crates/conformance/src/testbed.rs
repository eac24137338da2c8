//! What a check may use: a product in front of an origin, and what can be done to either.
//!
//! A trait, so that a test can put a product of its own in the place of a real one ([`super::fake`]).

use std::time::Duration;

use weir_model::counters::OriginCounters;
use weir_model::record::RoleUsage;

use super::client::Endpoint;
use weir_host::stop::Stop;

/// A product under test.
pub trait Testbed {
    /// The wish to stop.
    fn stop(&self) -> &Stop;

    /// How the product is spoken to.
    fn product(&self) -> Endpoint;

    /// How the origin is spoken to, past the product.
    fn origin(&self) -> Endpoint;

    /// The origin's accounts, when what reached it has been answered.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn counters(&mut self) -> Result<OriginCounters, String>;

    /// Ends the origin: its connections are closed, and its port refuses new ones.
    fn stop_origin(&mut self);

    /// Starts the origin again, at the same address. Returns when it listens.
    ///
    /// # Errors
    /// Why it does not.
    fn start_origin(&mut self) -> Result<(), String>;

    /// Sends the product the signal after which it finishes what is in flight and ends.
    ///
    /// # Errors
    /// Why it cannot be sent.
    fn terminate(&mut self) -> Result<(), String>;

    /// Whether the product has ended, within so long.
    fn has_ended(&mut self, within: Duration) -> bool;

    /// Whether the product's file says how it reloads its configuration.
    fn can_reload(&self) -> bool;

    /// Makes the product reload its configuration.
    ///
    /// # Errors
    /// Why it does not.
    fn reload(&mut self) -> Result<(), String>;

    /// The product's processes, now.
    fn pids(&self) -> Vec<u32>;

    /// Processes, threads and memory of the product, now.
    ///
    /// # Errors
    /// What cannot be read.
    fn sample(&mut self) -> Result<RoleUsage, String>;

    /// What the product used under a closed load. Made once; later calls give the same.
    ///
    /// # Errors
    /// Why the load could not be made.
    fn under_load(&mut self) -> Result<LoadSample, String>;
}

/// A product under load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSample {
    /// What it used.
    pub usage: RoleUsage,
    /// Right answers a second.
    pub rate: f64,
    /// Requests without a right answer.
    pub errors: u64,
}

/// Memory of a look: the proportional set where the kernel says it, else the resident set, and which.
pub fn memory(usage: &RoleUsage) -> (u64, &'static str) {
    match usage.pss_max_bytes {
        Some(bytes) => (bytes, "PSS"),
        None => (usage.rss_max_bytes, "RSS"),
    }
}

/// Waits, unless somebody asks to stop.
pub fn pause(stop: &Stop, time: Duration) {
    let end = std::time::Instant::now() + time;
    while !stop.is_requested() {
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}
