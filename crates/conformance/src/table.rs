//! The table of all checks, in the order in which they are shown. `run` executes them, and `weir products test` lists
//! and filters them.

use serde::{Deserialize, Serialize, Serializer};
use weir_model::suite::Protocol;

use super::cell::{Cell, either};
use super::checks;
use super::testbed::Testbed;

/// One check of a product.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Check {
    /// The name for `--only` and for JSON: `keep-alive`.
    pub name: &'static str,
    /// The title in the first column: `Upstream keep-alive`.
    pub title: &'static str,
    /// What is checked and how, and what the cells mean; one sentence or two.
    pub asks: &'static str,
    /// What the product is asked in.
    pub protocol: AskedIn,
    /// When the check runs.
    #[serde(skip)]
    pub when: When,
    /// The check's function. Its error is a cell, too: a result that ends the check early.
    #[serde(skip)]
    pub run: fn(&mut dyn Testbed) -> Result<Cell, Cell>,
}

impl Check {
    /// A check that uses HTTP/1.1 and can run at any time.
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        asks: &'static str,
        run: fn(&mut dyn Testbed) -> Result<Cell, Cell>,
    ) -> Check {
        Check { name, title, asks, protocol: AskedIn::One(Protocol::Http11), when: When::Any, run }
    }

    /// A check about keys and values, in any such protocol over plain TCP.
    pub(crate) const fn of_keys(
        name: &'static str,
        title: &'static str,
        asks: &'static str,
        run: fn(&mut dyn Testbed) -> Result<Cell, Cell>,
    ) -> Check {
        Check { protocol: AskedIn::KeyValue { tls: false }, ..Check::new(name, title, asks, run) }
    }

    pub(crate) const fn over(self, protocol: Protocol) -> Check {
        Check { protocol: AskedIn::One(protocol), ..self }
    }

    pub(crate) const fn over_tls(self) -> Check {
        Check { protocol: AskedIn::KeyValue { tls: true }, ..self }
    }

    pub(crate) const fn when(self, when: When) -> Check {
        Check { when, ..self }
    }

    /// Runs it.
    pub(crate) fn cell(&self, bed: &mut dyn Testbed) -> Cell {
        either((self.run)(bed))
    }
}

/// What a product is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedIn {
    /// This protocol.
    One(Protocol),
    /// Every protocol of keys and values that the product speaks, over TLS or over plain TCP.
    KeyValue {
        /// Over TLS.
        tls: bool,
    },
}

impl AskedIn {
    /// Whether a protocol is meant.
    pub fn fits(self, protocol: Protocol) -> bool {
        match self {
            AskedIn::One(one) => protocol == one,
            AskedIn::KeyValue { tls } => protocol.is_keyvalue() && protocol.is_tls() == tls,
        }
    }
}

/// As text: a protocol's name, `key-value` or `key-value over TLS`.
impl Serialize for AskedIn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            AskedIn::One(protocol) => protocol.as_str(),
            AskedIn::KeyValue { tls: false } => "key-value",
            AskedIn::KeyValue { tls: true } => "key-value over TLS",
        })
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
            Kind::Http => checks::get::CHECK.name,
            Kind::KeyValue => checks::keyvalue::GET.name,
        }
    }

    /// Whether a check is about it.
    pub fn has(self, check: &Check) -> bool {
        self == match check.protocol {
            AskedIn::One(protocol) => Kind::of(protocol),
            AskedIn::KeyValue { .. } => Kind::KeyValue,
        }
    }
}

/// When a check runs, counted from the start of the product. The table has its own order, in which results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Before all others: the product was just started, and earlier use hides nothing.
    First,
    /// Next, with very many connections. The product is restarted afterwards, because it may keep what it allocated for
    /// them.
    ManyConnections,
    /// The first after that restart: there is no connection to the origin yet.
    Early,
    /// At any time.
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
pub static CHECKS: &[Check] = &[
    checks::get::CHECK,
    checks::head::CHECK,
    checks::post::CHECK,
    checks::chunked::CHECK,
    checks::no_body::CHECK,
    checks::expect::CHECK,
    checks::headers_up::CHECK,
    checks::headers_down::CHECK,
    checks::path::CHECK,
    checks::errors::CHECK,
    checks::large_heads::CHECK,
    checks::http10::CHECK,
    checks::pipelined::CHECK,
    checks::keep_alive::CHECK,
    checks::slow::CHECK,
    checks::gone::CHECK,
    checks::back::CHECK,
    checks::graceful::CHECK,
    checks::reload::CHECK,
    checks::resources::PROCESSES,
    checks::resources::CORES,
    checks::resources::MEMORY_IDLE,
    checks::resources::MEMORY_MANY,
    checks::tls::HTTPS,
    checks::tls::NEGOTIATED,
    checks::tls::RESUMPTION,
    checks::http2::CLEARTEXT,
    checks::http2::OVER_TLS,
    checks::tls::HTTP2_NEGOTIATED,
    checks::h3::CHECK,
    checks::keyvalue::GET,
    checks::keyvalue::CREATE,
    checks::keyvalue::DESTROY,
    checks::keyvalue::LARGE,
    checks::keyvalue::EXPIRES,
    checks::keyvalue::PIPELINED,
    checks::keyvalue::SHARED,
    checks::keyvalue::REPLICATED,
    checks::keyvalue::MALFORMED,
    checks::keyvalue::SPREAD,
    checks::keyvalue::GONE,
    checks::keyvalue::OVER_TLS,
];

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
            assert_eq!(check(one.name).map(|c| c.title), Some(one.title));
        }
        assert!(check("gett").is_none());
        for kind in Kind::ALL {
            assert!(check(kind.first_check()).is_some_and(|first| kind.has(first)), "{kind:?}");
        }
    }

    #[test]
    fn a_check_of_keys_is_asked_in_what_the_product_speaks() {
        use Protocol::{H2, Http11, Juno, Junos, Redis};

        let plain = checks::keyvalue::GET.protocol;
        let tls = checks::keyvalue::OVER_TLS.protocol;
        let fits = |asked: AskedIn| [Http11, H2, Redis, Juno, Junos].map(|protocol| asked.fits(protocol));
        assert_eq!(fits(plain), [false, false, true, true, false]);
        assert_eq!(fits(tls), [false, false, false, false, true]);
        assert_eq!(fits(AskedIn::One(H2)), [false, true, false, false, false]);
        let text = |asked: AskedIn| serde_json::to_value(asked).expect("a text");
        assert_eq!([text(plain), text(tls), text(AskedIn::One(H2))], ["key-value", "key-value over TLS", "h2"]);
    }
}
