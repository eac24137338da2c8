//! The table of all checks, in the order in which they are shown. `run` executes them, and `weir products test` lists
//! and filters them.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_model::suite::Protocol;

use super::cell::{Cell, either};
use super::checks::keyvalue::{clients, servers, values};
use super::checks::{
    back, chunked, errors, expect, get, gone, graceful, h2_websocket, h3, head, headers_down, headers_up, http2,
    http10, keep_alive, large_heads, no_body, path, pipelined, post, reload, resources, slow, streams, tls, trailers,
};
use super::testbed::Testbed;

/// One check of a product: an entry of `checks.toml`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The name for `--only` and for JSON: `keep-alive`.
    pub name: String,
    /// The title in the first column: `Upstream keep-alive`.
    pub title: String,
    /// What is checked and how, and what the cells mean; one sentence or two.
    pub asks: String,
    /// The protocols in which it runs.
    #[serde(default)]
    pub protocol: AskedIn,
    /// When the check runs.
    #[serde(default, skip_serializing)]
    pub when: When,
}

impl Check {
    /// Runs it.
    pub(crate) fn cell(&self, bed: &mut dyn Testbed) -> Cell {
        let (_, run) = RUNS.iter().find(|(name, _)| *name == self.name).expect("a test looks for each");
        either(run(bed))
    }
}

/// The protocols in which a product is checked. As text: a protocol's name, `key-value` or `key-value over TLS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskedIn {
    /// Every protocol of keys and values that the product speaks, over plain TCP.
    #[serde(rename = "key-value")]
    KeyValue,
    /// The same over TLS.
    #[serde(rename = "key-value over TLS")]
    KeyValueOverTls,
    /// This protocol.
    #[serde(untagged)]
    One(Protocol),
}

impl Default for AskedIn {
    fn default() -> AskedIn {
        AskedIn::One(Protocol::Http11)
    }
}

impl AskedIn {
    /// Whether a protocol is meant.
    pub fn fits(self, protocol: Protocol) -> bool {
        match self {
            AskedIn::One(one) => protocol == one,
            AskedIn::KeyValue => protocol.is_keyvalue() && !protocol.is_tls(),
            AskedIn::KeyValueOverTls => protocol.is_keyvalue() && protocol.is_tls(),
        }
    }
}

/// Kinds of protocols. Each has its own checks, and a table of its own where results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// HTTP in all versions.
    Http,
    /// Keys and values.
    KeyValue,
}

impl Kind {
    /// All, in the order in which they are shown.
    pub const ALL: [Kind; 2] = [Kind::Http, Kind::KeyValue];

    /// The kind of a protocol.
    pub fn of(protocol: Protocol) -> Kind {
        if protocol.is_keyvalue() { Kind::KeyValue } else { Kind::Http }
    }

    /// The name of the check without which a product does not work at all.
    pub fn first_check(self) -> &'static str {
        match self {
            Kind::Http => "get",
            Kind::KeyValue => "kv-get",
        }
    }

    /// Whether a check is about it.
    pub fn has(self, check: &Check) -> bool {
        self == match check.protocol {
            AskedIn::One(protocol) => Kind::of(protocol),
            AskedIn::KeyValue | AskedIn::KeyValueOverTls => Kind::KeyValue,
        }
    }
}

/// When a check runs, counted from the start of the product. The table has its own order, in which results are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Before all others: the product was just started, and earlier use hides nothing.
    First,
    /// Next, with very many connections. The product is restarted afterwards, because it may keep what it allocated for
    /// them.
    ManyConnections,
    /// The first after that restart: there is no connection to the origin yet.
    Early,
    /// At any time.
    #[default]
    Any,
    /// After the others: it may leave the product in another state.
    Late,
    /// The product ends during the check, and is restarted.
    Last,
}

impl When {
    /// True when the product is restarted after the check.
    pub fn uses_up(self) -> bool {
        matches!(self, When::ManyConnections | When::Last)
    }
}

/// All checks.
pub static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
    let mut file: BTreeMap<String, Vec<Check>> = toml::from_str(include_str!("checks.toml")).expect("a test reads it");
    file.remove("check").unwrap_or_default()
});

/// The function of a check. Its error is a cell, too: a result that ends the check early.
type Run = fn(&mut dyn Testbed) -> Result<Cell, Cell>;

/// The functions of the checks.
const RUNS: [(&str, Run); 56] = [
    ("get", |bed| get::ask(bed)),
    ("head", head::run),
    ("post", post::run),
    ("chunked", chunked::run),
    ("no-body", no_body::run),
    ("100-continue", |bed| expect::with(&bed.product(), expect::WAITS)),
    ("headers-to-origin", headers_up::run),
    ("headers-to-client", headers_down::run),
    ("path", path::run),
    ("errors", errors::run),
    ("large-headers", large_heads::run),
    ("http-1.0", http10::run),
    ("pipelined", pipelined::run),
    ("keep-alive", keep_alive::run),
    ("slow-origin", |bed| slow::after(bed, "/delay/2s", slow::DELAY, slow::TIMEOUT)),
    ("request-body", |bed| streams::request_body(bed)),
    ("stream", |bed| streams::one_by_one(bed)),
    ("websocket", |bed| streams::upgrade(bed)),
    ("trailers", |bed| trailers::http1(bed)),
    ("client-gone", |bed| streams::client_gone(bed, streams::GONE_WITHIN)),
    ("origin-gone", gone::run),
    ("origin-back", |bed| back::within(bed, back::WITHIN)),
    ("graceful-stop", |bed| graceful::within(bed, graceful::ENDS_WITHIN)),
    ("reload", |bed| reload::with(bed, reload::BETWEEN)),
    ("processes", resources::processes),
    ("cores", resources::cores),
    ("memory-idle", resources::memory_idle),
    ("memory-1000", |bed| resources::memory_with(bed, resources::CLIENTS)),
    ("https", |bed| get::ask(bed)),
    ("https-tls", |bed| tls::agreed(bed, "http/1.1")),
    ("https-resumption", |bed| tls::resumption(bed)),
    ("h2c", http2::ask),
    ("h2", http2::ask),
    ("h2-websocket", |bed| h2_websocket::run(bed)),
    ("h2-trailers", |bed| trailers::http2(bed)),
    ("h2-tls", |bed| tls::agreed(bed, "h2")),
    ("h3", h3::ask),
    ("h3-alt-svc", h3::alt_svc),
    ("h3-truncated", h3::truncated),
    ("h3-trailers", |bed| trailers::http3(bed)),
    ("h3-large", h3::large),
    ("h3-port", h3::another_port),
    ("h3-keys", h3::new_keys),
    ("h3-versions", h3::versions),
    ("kv-get", |bed| values::same_bytes(bed)),
    ("kv-create", values::create),
    ("kv-destroy", values::destroy),
    ("kv-large", values::large),
    ("kv-expires", |bed| values::expires(bed, Duration::from_secs(2))),
    ("kv-pipelined", clients::pipelined),
    ("kv-shared", clients::shared),
    ("kv-replicated", servers::replicated),
    ("kv-malformed", clients::malformed),
    ("kv-spread", servers::spread),
    ("kv-gone", |bed| servers::gone(bed, Duration::from_secs(10))),
    ("kv-tls", |bed| values::same_bytes(bed)),
];

/// The cell of the check of that name.
#[cfg(test)]
pub(crate) fn cell_of(name: &str, bed: &mut dyn Testbed) -> Cell {
    check(name).expect("listed").cell(bed)
}

/// The check of that name.
pub fn check(name: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_plain_and_titles_fit_a_column() {
        for (n, one) in CHECKS.iter().enumerate() {
            assert!(
                one.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/.".contains(c)),
                "{}",
                one.name
            );
            assert!(one.title.chars().count() <= 24, "{}", one.title);
            assert!(one.asks.ends_with(['.', '?']), "{}", one.name);
            assert!(CHECKS[..n].iter().all(|other| other.name != one.name && other.title != one.title), "{}", one.name);
            assert_eq!(RUNS[n].0, one.name, "each has its function, in the same order");
        }
        assert!(check("gett").is_none());
        for kind in Kind::ALL {
            assert!(check(kind.first_check()).is_some_and(|first| kind.has(first)), "{kind:?}");
        }
    }

    #[test]
    fn a_check_of_keys_is_asked_in_what_the_product_speaks() {
        use Protocol::{H2, Http11, Juno, Junos, Redis};

        let plain = check("kv-get").expect("listed").protocol;
        let tls = check("kv-tls").expect("listed").protocol;
        let fits = |asked: AskedIn| [Http11, H2, Redis, Juno, Junos].map(|protocol| asked.fits(protocol));
        assert_eq!(fits(plain), [false, false, true, true, false]);
        assert_eq!(fits(tls), [false, false, false, false, true]);
        assert_eq!(fits(AskedIn::One(H2)), [false, true, false, false, false]);
        let text = |asked: AskedIn| serde_json::to_value(asked).expect("a text");
        assert_eq!([text(plain), text(tls), text(AskedIn::One(H2))], ["key-value", "key-value over TLS", "h2"]);
    }
}
