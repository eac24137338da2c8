//! Tests how long a key-value server keeps keys that have a time to live. `requester` and `weir-conformance` call it.
//!
//! A key is written once, and then read until it is absent or has outlived its time. Each read narrows down how long it lived, by the
//! times of both requests and their responses. No read asks for a longer life. This module does not judge:
//! [`KeyExpiry`] does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_model::At;
use weir_model::case_tests::KeyExpiry;
use weir_model::protocol::{Application, Protocol};

use crate::client::{Endpoint, KeyValueClient, RequestError};

/// Time between two reads of a key.
const READ_EVERY: Duration = Duration::from_millis(20);

/// The end of a longer life is not awaited.
const LONGEST_AWAITED: Duration = Duration::from_secs(2);

const VALUE: &[u8] = b"for a while";

/// A key with a time to live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestKey {
    name: String,
    ttl: Duration,
    /// When its write was sent, and when the response came. `None`: it is still to be written.
    written: Option<(At, At)>,
    /// How long it lived, as far as that is known.
    pub expiry: KeyExpiry,
}

impl TestKey {
    /// A key that is still to be written.
    pub fn new(ttl: Duration) -> TestKey {
        let expiry = KeyExpiry { ttl_s: ttl.as_secs_f64(), ..KeyExpiry::default() };
        TestKey { name: format!("weir-expiry-{}", ttl.as_millis()), ttl, written: None, expiry }
    }

    /// The keys for a workload whose values live so long: one of them, and one whose end can be awaited.
    pub fn of_workload(application: Application, ttl: Duration) -> Vec<TestKey> {
        let short = match application {
            Application::Redis => Duration::from_millis(500),
            // They count in seconds, and less than two would be within their resolution.
            _ => LONGEST_AWAITED,
        };
        let ttl = application.whole_ttl(ttl);
        let mut all = vec![TestKey::new(short)];
        if ttl != short {
            all.push(TestKey::new(ttl));
        }
        all
    }

    fn write(&mut self, client: &mut KeyValueClient) -> Result<(), RequestError> {
        let sent = client.now();
        client.set(self.name.as_bytes(), VALUE, self.ttl)?;
        self.written = Some((sent, client.now()));
        Ok(())
    }

    fn read(&mut self, client: &mut KeyValueClient) -> Result<(), RequestError> {
        let Some((sent, acknowledged)) = self.written else { return Ok(()) };
        let asked = client.now();
        match client.get(self.name.as_bytes(), Duration::ZERO)? {
            Some(value) if value == VALUE => {
                let lived = acknowledged.until(asked).as_secs_f64();
                self.expiry.at_least_s = self.expiry.at_least_s.max(lived);
            }
            Some(value) => return Err(RequestError::Unexpected(format!("another value, of {} bytes", value.len()))),
            None => {
                self.expiry.at_most_s.get_or_insert(sent.until(client.now()).as_secs_f64());
            }
        }
        Ok(())
    }

    fn is_awaited(&self, application: Application) -> bool {
        self.ttl <= LONGEST_AWAITED && self.expiry.at_most_s.is_none() && !self.expiry.is_late(application)
    }
}

/// Writes the keys that are still to be written, and reads all until those with a short life are absent or late, each at least once.
/// Each request may take `timeout`.
///
/// # Errors
/// How a request failed, and a value that is not the one that was written.
pub fn test(
    keys: &mut [TestKey],
    server: &Endpoint,
    protocol: Protocol,
    timeout: Duration,
) -> Result<(), RequestError> {
    let application = protocol.application();
    let mut client = KeyValueClient::open(server, protocol, timeout)?;
    for key in keys.iter_mut().filter(|key| key.written.is_none()) {
        key.write(&mut client)?;
    }
    loop {
        for key in &mut *keys {
            key.read(&mut client)?;
        }
        if !keys.iter().any(|key| key.is_awaited(application)) {
            return Ok(());
        }
        if server.stop.is_requested() {
            return Err(RequestError::Stopped);
        }
        server.network.clock().sleep(READ_EVERY);
    }
}
