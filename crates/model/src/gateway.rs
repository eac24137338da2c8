//! What a workload asks of a product beyond sending each request on to one origin, and the features by which products say what their
//! files can do of it. `lab::skipped` compares the two before a run, and templates see the former as `gateway`. This module does not
//! know how a product does anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::keyvalue::KeyChoice;
use crate::protocol::{Application, Protocol};
use crate::suite::Request;
use crate::text::one_of;

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
    /// Thousands of routes by the host.
    HostRoutes,
    /// TLS to the origin.
    UpstreamTls,
    /// HTTP/2 to the origin.
    UpstreamHttp2,
    /// gRPC, with HTTP/2 to the origin.
    Grpc,
    /// Upgrades of HTTP/1.1 to WebSocket.
    Websocket,
    /// The key exchange of TLS 1.3 that joins X25519 with ML-KEM-768.
    #[serde(rename = "x25519mlkem768")]
    #[strum(serialize = "x25519mlkem768")]
    X25519Mlkem768,
    /// A route that changes while it is used: `change` in templates.
    Reload,
    /// A filter.
    #[serde(untagged)]
    #[strum(transparent)]
    Filter(Filter),
}

impl Feature {
    /// The name used in files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A task of a gateway for each request, in addition to sending it on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Filter {
    /// Adds the header `x-gateway: weir` to requests and responses, and removes `x-internal` from responses.
    Headers,
    /// Takes `/rewrite` off the beginning of the path.
    Rewrite,
    /// Lets a hundred users pass, by HTTP's basic authentication.
    BasicAuth,
    /// Lets a hundred consumers pass, by their keys in the header `apikey`.
    KeyAuth,
    /// Lets bearers of a JSON Web Token pass that HMAC with SHA-256 has signed.
    JwtHs256,
    /// Lets bearers of a JSON Web Token pass that RSA with SHA-256 has signed.
    JwtRs256,
    /// Asks the origin about each request first (`/_weir/authorize`), and lets those pass for which it says 200.
    ExternalAuth,
    /// Lets `limit` requests a second pass, of all clients together.
    RateLimit,
    /// Lets bodies of at most 16 KiB pass.
    BodyLimit,
    /// Codes responses with gzip, for requests that accept it.
    Compression,
}

impl Filter {
    /// The name used in files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The status by which a product refuses what the filter does not let pass; `None`: it refuses nothing.
    pub fn refusal(self) -> Option<u16> {
        match self {
            Filter::Headers | Filter::Rewrite | Filter::Compression => None,
            Filter::BasicAuth | Filter::KeyAuth | Filter::JwtHs256 | Filter::JwtRs256 | Filter::ExternalAuth => {
                Some(401)
            }
            Filter::RateLimit => Some(429),
            Filter::BodyLimit => Some(413),
        }
    }
}

/// The path at which the origin tells whether a request may pass: 200 if its header `Authorization` begins with [`AUTHORIZED`], else 401.
pub const AUTHORIZER: &str = "/_weir/authorize";

/// The beginning of a value of `Authorization` that the origin lets pass.
pub const AUTHORIZED: &str = "Bearer key-";

/// The header that [`Filter::Headers`] adds, and its value.
pub const HEADER_ADDED: (&str, &str) = ("x-gateway", "weir");

/// The header that [`Filter::Headers`] removes from responses.
pub const HEADER_REMOVED: &str = "x-internal";

/// The beginning of the path that [`Filter::Rewrite`] takes off.
pub const REWRITTEN: &str = "/rewrite";

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

/// The part of a request that decides on its route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteKey {
    /// The beginning of the path.
    #[default]
    Path,
    /// The host.
    Host,
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
    /// begins with `/r/0/`, and each request takes a route of its own. Left out, one route for all.
    #[schemars(range(min = 1, max = 5000), extend("x-weir-wanted" = "a whole number from 1 to 5000"))]
    pub routes: Option<u32>,
    /// The part of a request that decides on its route: `path`, or `host`, which is `r0.test` and on, while all paths are alike. Left out, the
    /// path.
    pub route_by: Option<RouteKey>,
    /// How requests choose a route: `uniform` or `zipf:S`. Left out, uniform.
    #[schemars(with = "Option<String>")]
    pub route_choice: Option<KeyChoice>,
    /// Its task for each request, in addition to sending it on. A filter that refuses has requests to refuse: one in a hundred and one has a
    /// wrong key, or a body that is too long. Left out, it has none.
    pub filter: Option<Filter>,
    /// Requests a second that the filter `rate-limit` lets pass, of all clients together.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub limit: Option<u32>,
    /// The protocol between product and origin. Left out, `http/1.1`, and `h2c` for gRPC. The certificate of the origin is the run's, and
    /// products do not verify it.
    pub upstream: Option<Protocol>,
}

/// The beginning of the path of a workload with routes.
pub const FIRST_ROUTE: &str = "/r/0/";

/// The host of the first route, if hosts decide on routes.
const FIRST_HOST: &str = "r0.test";

/// Rows of a table of routes for each route, where some are more frequent than others.
const ROWS_A_ROUTE: f64 = 10.0;

impl Gateway {
    /// The features that a product needs for it, before so many origins.
    pub fn needs(&self, origins: u32) -> Vec<Feature> {
        let pool = (origins > 1).then_some(Feature::Pool);
        let failover = self.failover.then_some(Feature::Failover);
        let routes = self.route_key().map(|key| match key {
            RouteKey::Path => Feature::Routes,
            RouteKey::Host => Feature::HostRoutes,
        });
        let filter = self.filter.map(Feature::Filter);
        let tls = self.upstream.filter(|upstream| upstream.is_tls()).map(|_| Feature::UpstreamTls);
        let http2 = self.upstream.filter(|upstream| upstream.application() == Application::Http2);
        let http2 = http2.map(|_| Feature::UpstreamHttp2);
        let rest = [failover, routes, filter, tls, http2].into_iter().flatten();
        pool.into_iter().chain(self.balance.map(Feature::from)).chain(rest).collect()
    }

    /// The part of a request that decides on its route; `None`: there are no routes.
    pub fn route_key(&self) -> Option<RouteKey> {
        self.routes.map(|_| self.route_by.unwrap_or_default())
    }

    /// The host of the first route, if hosts decide on routes.
    pub fn first_host(&self) -> Option<&'static str> {
        (self.route_key() == Some(RouteKey::Host)).then_some(FIRST_HOST)
    }

    /// Makes the request of the first route one that takes a route of its own: the field `route` of its path or host is a column of
    /// [`Gateway::route_table`]. Returns whether it does: there may be no routes, or the path may be that of none.
    pub fn spread_over_routes(&self, request: &mut Request) -> bool {
        let place = match self.route_key() {
            None => None,
            Some(RouteKey::Path) => Some(&mut request.path).filter(|path| path.starts_with(FIRST_ROUTE)),
            Some(RouteKey::Host) => request.headers.iter_mut().find(|(name, _)| name == "host").map(|(_, host)| host),
        };
        let Some(place) = place else { return false };
        *place = place.replacen('0', "{{route}}", 1);
        true
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

    /// The beginning of paths that the product takes off.
    pub fn rewritten(&self) -> Option<&'static str> {
        (self.filter == Some(Filter::Rewrite)).then_some(REWRITTEN)
    }

    /// What makes no sense before so many origins: the key, what was found, and what would be right.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, origins: u32, path: &str) -> Result<(), (&'static str, String, String)> {
        if self.route_key() == Some(RouteKey::Path) && !path.starts_with("/r/") {
            let wanted =
                format!("a path that begins with {FIRST_ROUTE}, such as \"{FIRST_ROUTE}bytes/128\", or no routes");
            return Err(("routes", format!("the workload's path is {path:?}"), wanted));
        }
        let own_path = format!("{REWRITTEN}/");
        match self.filter {
            Some(_) if self.routes.is_some() => {
                return Err(("filter", "the workload has routes, too".to_owned(), "one of both".to_owned()));
            }
            Some(Filter::ExternalAuth) if self.upstream.is_some() => {
                let found = "the workload has an upstream, too, and the authorizer speaks HTTP/1.1".to_owned();
                return Err(("filter", found, "one of both".to_owned()));
            }
            Some(Filter::Rewrite) if !path.starts_with(&own_path) => {
                let wanted = format!("a path that begins with {own_path}, such as \"{own_path}bytes/128\"");
                return Err(("filter", format!("the workload's path is {path:?}"), wanted));
            }
            _ => {}
        }
        if (self.filter == Some(Filter::RateLimit)) != self.limit.is_some() {
            let found = if self.limit.is_some() { "there is no rate to limit" } else { "there is none" };
            let wanted = "filter = \"rate-limit\" and limit = 1000, or neither";
            return Err(("limit", found.to_owned(), wanted.to_owned()));
        }
        if self.route_by.is_some() && self.routes.is_none() {
            return Err(("route_by", "there are no routes".to_owned(), "routes = 1000, or no route_by".to_owned()));
        }
        let spoken = [Protocol::Http11, Protocol::Https11, Protocol::H2c, Protocol::H2];
        if let Some(upstream) = self.upstream.filter(|upstream| !spoken.contains(upstream)) {
            return Err(("upstream", format!("is {:?}", upstream.as_str()), one_of(spoken.map(Protocol::as_str))));
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
    }

    #[test]
    fn requests_are_spread_by_path_or_by_host() {
        let spread = |gateway: Gateway| {
            let headers = gateway.first_host().map(|host| ("host".to_owned(), host.to_owned()));
            let mut request = Request { headers: headers.into_iter().collect(), ..Request::get("/r/0/bytes/0/") };
            gateway.spread_over_routes(&mut request).then_some((request.path, request.headers))
        };
        let by_path = Gateway { routes: Some(3), ..Gateway::default() };
        assert_eq!(spread(by_path.clone()), Some(("/r/{{route}}/bytes/0/".to_owned(), vec![])));
        let host = ("host".to_owned(), "r{{route}}.test".to_owned());
        let by_host = Gateway { route_by: Some(RouteKey::Host), ..by_path.clone() };
        assert_eq!(by_host.needs(1), [Feature::HostRoutes]);
        assert_eq!(by_host.check(1, "/bytes/128"), Ok(()));
        assert_eq!(spread(by_host), Some(("/r/0/bytes/0/".to_owned(), vec![host])));
        assert_eq!(spread(Gateway::default()), None);
        assert!(!by_path.spread_over_routes(&mut Request::get("/r/none/bytes/0/")), "no route");
        let none = Gateway { route_by: Some(RouteKey::Host), ..Gateway::default() };
        assert_eq!(none.check(1, "/").err().map(|(key, ..)| key), Some("route_by"));
    }

    #[test]
    fn a_workload_needs_what_it_asks_for() {
        assert_eq!(Gateway::default().needs(1), []);
        assert_eq!(Gateway::default().needs(2), [Feature::Pool]);
        let hashed = Gateway { balance: Some(Balance::HeaderHash), failover: true, ..Gateway::default() };
        assert_eq!(hashed.needs(4), [Feature::Pool, Feature::HeaderHash, Feature::Failover]);
        let filtered = Gateway { filter: Some(Filter::JwtRs256), ..Gateway::default() };
        assert_eq!(filtered.needs(1), [Feature::Filter(Filter::JwtRs256)]);
        let upstream = |protocol| Gateway { upstream: Some(protocol), ..Gateway::default() };
        assert_eq!(upstream(Protocol::H2).needs(1), [Feature::UpstreamTls, Feature::UpstreamHttp2]);
        assert_eq!(upstream(Protocol::Https11).needs(1), [Feature::UpstreamTls]);
        assert_eq!(upstream(Protocol::Http11).needs(1), []);
        assert_eq!(upstream(Protocol::H3).check(1, "/").err().map(|(key, ..)| key), Some("upstream"));
    }

    #[test]
    fn filters_that_contradict_the_workload_are_refused() {
        let wrong = |gateway: Gateway, path| gateway.check(1, path).err().map(|(key, ..)| key);
        let with = |filter| Gateway { filter: Some(filter), ..Gateway::default() };
        assert_eq!(wrong(with(Filter::Rewrite), "/bytes/128"), Some("filter"));
        assert_eq!(wrong(with(Filter::Rewrite), "/rewrite/bytes/128"), None);
        assert_eq!(wrong(Gateway { routes: Some(2), ..with(Filter::KeyAuth) }, "/r/0/bytes/1"), Some("filter"));
        assert_eq!(wrong(Gateway { upstream: Some(Protocol::H2c), ..with(Filter::ExternalAuth) }, "/"), Some("filter"));
        assert_eq!(wrong(with(Filter::RateLimit), "/"), Some("limit"));
        assert_eq!(wrong(Gateway { limit: Some(5), ..with(Filter::KeyAuth) }, "/"), Some("limit"));
        assert_eq!(wrong(Gateway { limit: Some(5), ..with(Filter::RateLimit) }, "/"), None);
    }
}
