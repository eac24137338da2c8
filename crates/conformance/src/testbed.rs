//! The interface that checks use: a product in front of an origin, and the actions on both.
//!
//! It is a trait with two implementations: `real` for real products, and `fake` for tests.

use std::time::Duration;

use weir_model::counters::OriginCounters;
use weir_model::record::RoleUsage;
use weir_model::suite::Protocol;

use weir_host::stop::Stop;
use weir_product::client::Endpoint;

/// A product under test.
pub trait Testbed {
    /// Reports a request to stop.
    fn stop(&self) -> &Stop;

    /// The product's endpoint.
    fn product(&self) -> Endpoint;

    /// The protocol in which the product is asked.
    fn protocol(&self) -> Protocol;

    /// The endpoint of the first origin, past the product.
    fn origin(&self) -> Endpoint;

    /// How many origins there are. 0: the product holds the data itself, and none can be asked or ended.
    fn origins(&self) -> usize;

    /// It asks several origins for one request.
    fn replicates(&self) -> bool;

    /// The counters of all origins, once everything that reached them has been answered.
    ///
    /// # Errors
    /// Why they cannot be read.
    fn counters(&mut self) -> Result<OriginCounters, String>;

    /// Ends all origins: their connections are closed, and their ports refuse new ones.
    fn stop_origin(&mut self);

    /// Starts the origins again at the same addresses, and returns when they listen.
    ///
    /// # Errors
    /// Why they do not start.
    fn start_origin(&mut self) -> Result<(), String>;

    /// Sends the product the signal for a graceful stop.
    ///
    /// # Errors
    /// Why the signal cannot be sent.
    fn terminate(&mut self) -> Result<(), String>;

    /// Waits for the product to end; false if it has not ended `within` that time.
    fn has_ended(&mut self, within: Duration) -> bool;

    /// True when the product's file says how to reload its configuration.
    fn can_reload(&self) -> bool;

    /// Makes the product reload its configuration.
    ///
    /// # Errors
    /// Why the reload failed.
    fn reload(&mut self) -> Result<(), String>;

    /// The product's current processes.
    fn pids(&self) -> Vec<u32>;

    /// The current processes, threads and memory of the product.
    ///
    /// # Errors
    /// What cannot be read.
    fn sample(&mut self) -> Result<RoleUsage, String>;

    /// What the product used under a closed load. The load runs once; later calls return the same result.
    ///
    /// # Errors
    /// Why the load failed.
    fn under_load(&mut self) -> Result<LoadSample, String>;
}

/// Measurements of a product under load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadSample {
    /// What it used.
    pub usage: RoleUsage,
    /// Successful responses/s.
    pub rate: f64,
    /// Requests without a successful response.
    pub errors: u64,
}

/// The memory in a sample and its kind: the proportional set if the kernel reports it, else the resident set.
pub fn memory(usage: &RoleUsage) -> (u64, &'static str) {
    match usage.pss_max_bytes {
        Some(bytes) => (bytes, "PSS"),
        None => (usage.rss_max_bytes, "RSS"),
    }
}

/// Sleeps, unless the run is asked to stop.
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
