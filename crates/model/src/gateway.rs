//! What a workload asks of a product beyond sending each request on to one origin, and the features by which products say what their
//! files can do of it. `lab::skipped` compares the two before a run, and templates see the former as `gateway`. This module does not
//! know how a product does anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// What a product's files can do beyond sending each request on to one origin.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Feature {
    /// Several origins behind it, spread over as it does without being told how.
    Pool,
    /// Each origin of the pool in turn.
    RoundRobin,
    /// The origin with the fewest requests or connections open, or the better of two drawn at random.
    LeastConnections,
    /// The origin by a hash of the header with the request ID.
    HeaderHash,
    /// Retries and health checks, as its manual advises.
    Failover,
}

impl Feature {
    /// The name used in files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How requests are spread over the origins of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// Each origin in turn.
    RoundRobin,
    /// The origin with the fewest requests or connections open, or the better of two drawn at random.
    LeastConnections,
    /// The origin by a hash of the header with the request ID, which differs with each request.
    HeaderHash,
}

impl From<Balance> for Feature {
    fn from(balance: Balance) -> Feature {
        match balance {
            Balance::RoundRobin => Feature::RoundRobin,
            Balance::LeastConnections => Feature::LeastConnections,
            Balance::HeaderHash => Feature::HeaderHash,
        }
    }
}

/// What a workload asks of a product, beside sending requests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gateway {
    /// How requests are spread over the origins of the pool. Left out, as the product does it by itself.
    pub balance: Option<Balance>,
    /// Failed requests are tried at another origin, and origins are checked (`/_weir/ready`), as the product's manual advises. Left out, as
    /// the product does it by itself.
    pub failover: bool,
}

impl Gateway {
    /// The features that a product needs for it, before so many origins.
    pub fn needs(&self, origins: u32) -> Vec<Feature> {
        let pool = (origins > 1).then_some(Feature::Pool);
        let failover = self.failover.then_some(Feature::Failover);
        pool.into_iter().chain(self.balance.map(Feature::from)).chain(failover).collect()
    }

    /// What makes no sense before so many origins: the key, what was found, and what would be right.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, origins: u32) -> Result<(), (&'static str, String, String)> {
        if self.failover && origins < 2 {
            return Err((
                "failover",
                "the workload has one origin".to_owned(),
                "origins = 2 or more, or no failover".to_owned(),
            ));
        }
        if self.balance.is_some() && origins < 2 {
            return Err((
                "balance",
                "the workload has one origin".to_owned(),
                "origins = 2 or more, or no balance".to_owned(),
            ));
        }
        Ok(())
    }
}

/// What a product has written to its access log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLog {
    /// Lines.
    pub lines: u64,
    /// Bytes of all lines.
    pub bytes: u64,
}

impl AccessLog {
    /// What came since.
    pub fn since(self, before: AccessLog) -> AccessLog {
        let AccessLog { lines, bytes } = before;
        AccessLog { lines: self.lines.saturating_sub(lines), bytes: self.bytes.saturating_sub(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_needs_what_it_asks_for() {
        assert_eq!(Gateway::default().needs(1), []);
        assert_eq!(Gateway::default().needs(2), [Feature::Pool]);
        let hashed = Gateway { balance: Some(Balance::HeaderHash), failover: true };
        assert_eq!(hashed.needs(4), [Feature::Pool, Feature::HeaderHash, Feature::Failover]);
    }
}
