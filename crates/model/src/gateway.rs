//! What a workload asks of a product beyond sending each request on to one origin, and the features by which products say what their
//! files can do of it. `lab::skipped` compares the two before a run, and templates see the former as `gateway`. This module does not
//! know how a product does anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::keyvalue::KeyChoice;

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
    /// Thousands of routes by the beginning of the path.
    Routes,
    /// gRPC, with HTTP/2 to the origin.
    Grpc,
    /// Upgrades of HTTP/1.1 to WebSocket.
    Websocket,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gateway {
    /// How requests are spread over the origins of the pool. Left out, as the product does it by itself.
    pub balance: Option<Balance>,
    /// Failed requests are tried at another origin, and origins are checked (`/_weir/ready`), as the product's manual advises. Left out, as
    /// the product does it by itself.
    pub failover: bool,
    /// So many routes by the beginning of the path, `/r/0/` and on, all to the same origins; any other path is 404. The workload's path
    /// begins with `/r/0/`, and each request takes a route of its own. Left out, one route for all paths.
    #[schemars(range(min = 1, max = 5000), extend("x-weir-wanted" = "a whole number from 1 to 5000"))]
    pub routes: Option<u32>,
    /// How requests choose a route: `uniform` or `zipf:S`. Left out, uniform.
    #[schemars(with = "Option<String>")]
    pub route_choice: Option<KeyChoice>,
}

/// The beginning of the path of a workload with routes.
pub const FIRST_ROUTE: &str = "/r/0/";

/// Rows of a table of routes for each route, where some are more frequent than others.
const ROWS_A_ROUTE: f64 = 10.0;

impl Gateway {
    /// The features that a product needs for it, before so many origins.
    pub fn needs(&self, origins: u32) -> Vec<Feature> {
        let pool = (origins > 1).then_some(Feature::Pool);
        let failover = self.failover.then_some(Feature::Failover);
        let routes = self.routes.map(|_| Feature::Routes);
        pool.into_iter().chain(self.balance.map(Feature::from)).chain(failover).chain(routes).collect()
    }

    /// The path of requests as a template, whose field `route` is a column of [`Gateway::route_table`]; `None` without routes.
    pub fn route_template(&self, path: &str) -> Option<String> {
        self.routes?;
        Some(format!("/r/{{{{route}}}}/{}", path.strip_prefix(FIRST_ROUTE)?))
    }

    /// Routes from which requests draw one at random: a frequent one stands there often.
    pub fn route_table(&self) -> Vec<String> {
        let routes = self.routes.unwrap_or(1);
        let KeyChoice::Zipf(power) = self.route_choice.unwrap_or(KeyChoice::Uniform) else {
            return (0..routes).map(|route| route.to_string()).collect();
        };
        let weight = |route: u32| (f64::from(route) + 1.0).powf(-power);
        let all: f64 = (0..routes).map(weight).sum();
        let rows = |route| (weight(route) / all * f64::from(routes) * ROWS_A_ROUTE).round().max(1.0) as usize;
        (0..routes).flat_map(|route| std::iter::repeat_n(route.to_string(), rows(route))).collect()
    }

    /// What makes no sense before so many origins: the key, what was found, and what would be right.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, origins: u32, path: &str) -> Result<(), (&'static str, String, String)> {
        if self.routes.is_some() && !path.starts_with("/r/") {
            let wanted =
                format!("a path that begins with {FIRST_ROUTE}, such as \"{FIRST_ROUTE}bytes/128\", or no routes");
            return Err(("routes", format!("the workload's path is {path:?}"), wanted));
        }
        match self.route_choice {
            Some(_) if self.routes.is_none() => {
                return Err((
                    "route_choice",
                    "there are no routes".to_owned(),
                    "routes, or no route_choice".to_owned(),
                ));
            }
            Some(KeyChoice::Fresh | KeyChoice::Sequential) => {
                let wanted = "\"uniform\" or \"zipf:0.99\"".to_owned();
                return Err(("route_choice", "is no way to choose a route".to_owned(), wanted));
            }
            _ => {}
        }
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
    fn frequent_routes_stand_more_often_in_the_table() {
        let table =
            |routes, choice| Gateway { routes: Some(routes), route_choice: choice, ..Gateway::default() }.route_table();
        assert_eq!(table(3, None), ["0", "1", "2"]);
        let zipf = table(1_000, Some(KeyChoice::Zipf(1.0)));
        let count = |route: &str| zipf.iter().filter(|other| *other == route).count();
        // 10,000 rows by 1/k, whose sum is 7.49.
        assert_eq!([count("0"), count("1"), count("9"), count("999")], [1_336, 668, 134, 1]);
        let gateway = Gateway { routes: Some(3), ..Gateway::default() };
        assert_eq!(gateway.route_template("/r/0/bytes/128").as_deref(), Some("/r/{{route}}/bytes/128"));
        assert_eq!(gateway.route_template("/r/none/bytes/128"), None, "a route that is not there");
        assert_eq!(Gateway::default().route_template("/r/0/bytes/128"), None);
    }

    #[test]
    fn a_workload_needs_what_it_asks_for() {
        assert_eq!(Gateway::default().needs(1), []);
        assert_eq!(Gateway::default().needs(2), [Feature::Pool]);
        let hashed = Gateway { balance: Some(Balance::HeaderHash), failover: true, ..Gateway::default() };
        assert_eq!(hashed.needs(4), [Feature::Pool, Feature::HeaderHash, Feature::Failover]);
    }
}
