//! The table of all checks, in the order in which they are shown. `run` executes them, and `weir products test` lists
//! and filters them.

use serde::Serialize;
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
    /// The protocol that the product uses during the check.
    pub protocol: Protocol,
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
        Check { name, title, asks, protocol: Protocol::Http11, when: When::Any, run }
    }

    pub(crate) const fn over(self, protocol: Protocol) -> Check {
        Check { protocol, ..self }
    }

    pub(crate) const fn when(self, when: When) -> Check {
        Check { when, ..self }
    }

    /// Runs it.
    pub(crate) fn cell(&self, bed: &mut dyn Testbed) -> Cell {
        either((self.run)(bed))
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
    }
}
