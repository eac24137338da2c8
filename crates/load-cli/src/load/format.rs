//! `--format` and `--hgrm` of `weir load`: prints the result as another tool would, and adds a note on pipelining.
//! Called by `verbs::load`; the formats themselves are in `weir_report::formats`.

#[cfg(test)]
mod tests;

use weir_load::Distributions;
use weir_model::condition::Condition;
use weir_model::load::{LoadProtocol, LoadResult, LoadSpec};
use weir_report::formats::hgrm::{Flavour, spectrum};
use weir_report::formats::{self, Account, Better};

use super::flags::FormatArg;

/// A load that is over: what was ordered, and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// The URL, or what stands for several.
    pub title: &'a str,
    pub spec: &'a LoadSpec,
    pub result: &'a LoadResult,
    pub distributions: &'a Distributions,
}

/// The result as that tool prints it.
pub fn text(format: FormatArg, outcome: Outcome<'_>, fail_if: &[Condition]) -> String {
    let account = outcome.account();
    let only = outcome.spec.requests.first().map(|request| request.name()).unwrap_or_default();
    let mut text = match format {
        FormatArg::Wrk => formats::wrk(account),
        FormatArg::Wrk2 => formats::wrk2(account),
        FormatArg::Hey => formats::hey(account),
        FormatArg::Junoload => formats::junoload(account, &only),
        FormatArg::Hgrm => return percentiles(outcome),
        FormatArg::K6 => formats::k6(account, fail_if),
        FormatArg::GithubBigger => formats::github(account, Better::Bigger),
        FormatArg::GithubSmaller => formats::github(account, Better::Smaller),
        FormatArg::Junit => formats::junit(account, fail_if),
    };
    // None of these tools pipelines: whoever compares must see it.
    if let Some(label) = pipelined(outcome.spec) {
        // JSON and XML have no room for a line.
        if text.starts_with(['{', '[', '<']) {
            remark!("{label}");
        } else {
            text.push_str(&format!("Pipelining: {label}\n"));
        }
    }
    text
}

/// What `--hgrm` writes: HdrHistogram's own text of the latencies.
pub fn percentiles(outcome: Outcome<'_>) -> String {
    let mut text = spectrum(&outcome.distributions.latency, Flavour::Hdr);
    if let Some(label) = pipelined(outcome.spec) {
        text.push_str(&format!("#[{label}]\n"));
    }
    text
}

/// What a result that was pipelined says of it.
pub fn pipelined(spec: &LoadSpec) -> Option<String> {
    match spec.protocol {
        LoadProtocol::Http1 { pipeline } if pipeline > 1 => Some(format!("HTTP/1.1 pipelined, {pipeline} deep")),
        _ => None,
    }
}

impl<'a> Outcome<'a> {
    /// What came of it, for those who draw a result without its order.
    pub fn account(self) -> Account<'a> {
        Account {
            title: self.title,
            connections: self.spec.connections,
            result: self.result,
            latency: &self.distributions.latency,
            service: &self.distributions.service,
        }
    }
}
