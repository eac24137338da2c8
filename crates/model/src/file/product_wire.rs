//! `product.toml` as written. `product` turns these structs into a `Product`, and `schema` generates the JSON schema
//! from them. Editors show the doc comments of the fields beside the keys.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::install_wire::InstallTable;
use crate::product::Signal;
use crate::suite::Protocol;
use crate::units::HumanDuration;

/// A product of weir: a program under test, as data.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "weir product")]
pub(super) struct ProductFile {
    /// What it is.
    pub product: Head,
    /// Ways to get it, tried in order; one `[[install]]` each.
    #[serde(default)]
    pub install: Vec<InstallTable>,
    /// How its version is read from the binary itself.
    #[serde(default)]
    pub version: Option<VersionTable>,
    /// How it is run, when it is one process.
    #[serde(default)]
    pub process: Option<ProcessTable>,
    /// How it is run, when it is several: one `[[part]]` each, in the order in which they start. Clients talk to the last.
    #[serde(default)]
    pub part: Vec<PartTable>,
    /// Named configurations: `[profile.stock]` is what its documentation shows first, `[profile.tuned]` what its own
    /// experts would run.
    #[schemars(extend("x-weir-wanted" = "at least [profile.stock]"))]
    pub profile: BTreeMap<String, ProfileTable>,
}

/// What it is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// Name as its makers write it.
    #[schemars(length(min = 1))]
    pub title: String,
    /// One line: what it is.
    #[schemars(length(min = 1))]
    pub about: String,
    /// Home page.
    #[schemars(regex(pattern = "^https?://[!-~]+$"), extend("x-weir-wanted" = "an address that begins with https://"))]
    pub home: String,
    /// What it can speak with clients, with weir's files.
    #[schemars(length(min = 1))]
    pub speaks: Vec<Protocol>,
    /// It answers from a cache of its own: the audit then says so instead of calling requests lost.
    #[serde(default)]
    pub caches: bool,
    /// Traps, one a line, for people.
    #[serde(default)]
    pub notes: Vec<String>,
    /// A proxy, or no proxy at all.
    #[serde(default)]
    pub kind: Kind,
}

/// A proxy, or no proxy at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A program that weir starts.
    #[default]
    Proxy,
    /// No program: the client talks to the origin.
    Direct,
}

/// How a product's version is read from the binary itself.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionTable {
    /// Template of the arguments; the first is the binary: `["{{ binary }}", "-v"]`.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Regular expression with one group, searched in what the command prints.
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// Lowest version accepted. Left out, every version is.
    #[serde(default)]
    #[schemars(
        regex(pattern = "^[0-9]+(\\.[0-9]+)*$"),
        extend("x-weir-wanted" = "numbers with points between, such as \"1.18\"")
    )]
    pub at_least: Option<String>,
}

/// One of the processes of a product that has several.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PartTable {
    /// Its name: lower-case letters, digits and `-`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Names of ports that it listens on, beside the one for clients; weir chooses the numbers: `{{ ports.<name> }}` in every
    /// template. It is ready when all of them accept connections, and the next part starts then.
    #[serde(default)]
    pub ports: Vec<String>,
    /// Share of the proxy's CPUs that it has for itself, such as 0.25: at least one CPU. Left out, it shares what the others
    /// leave.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-weir-wanted" = "a number above 0 and at most 1, such as 0.25"))]
    pub cpus: Option<f64>,
    /// How it is run.
    pub process: ProcessTable,
}

/// How a product's process is run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessTable {
    /// Template of the arguments that run it in the foreground; the first is the binary.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Template of the product's own check of its configuration, run before it starts.
    #[serde(default)]
    pub check: Vec<String>,
    /// Templates of environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How long it may take to answer the first request.
    #[serde(default = "ten_seconds")]
    #[schemars(extend("x-weir-positive" = true))]
    pub ready_within: HumanDuration,
    /// How long it may take to end after SIGTERM, before SIGKILL.
    #[serde(default = "five_seconds")]
    #[schemars(extend("x-weir-positive" = true))]
    pub stop_within: HumanDuration,
    /// The signal by which it takes no more connections, finishes what is in flight, and ends. Left out, `TERM`.
    #[serde(default)]
    pub graceful: Signal,
    /// How it reads its configuration anew while it runs: `{ signal = "HUP" }` or `{ command = […] }`. Left out, it cannot.
    #[serde(default)]
    pub reload: Option<ReloadTable>,
    /// What it makes in its folder that is large and that nobody reads afterwards, such as a data base: removed when it
    /// has ended.
    #[serde(default)]
    pub scratch: Vec<String>,
}

/// How a product reads its configuration anew while it runs: one of the two.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadTable {
    /// A signal to its first process.
    #[serde(default)]
    pub signal: Option<Signal>,
    /// Template of the arguments of a command beside it.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
}

fn ten_seconds() -> HumanDuration {
    HumanDuration(std::time::Duration::from_secs(10))
}

fn five_seconds() -> HumanDuration {
    HumanDuration(std::time::Duration::from_secs(5))
}

/// A named configuration of a product.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileTable {
    /// One line: what it stands for.
    #[schemars(length(min = 1))]
    pub about: String,
    /// Files rendered into the trial's folder: name of the file = name of its template.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Every line that differs from `stock`, why, and where that comes from; one `[[profile.<name>.reason]]` each.
    #[serde(default)]
    pub reason: Vec<ReasonTable>,
    /// What the product speaks with clients under this profile, where that is less than it can. Left out, all.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub speaks: Option<Vec<Protocol>>,
    /// Scheduling priority of its processes as `nice` gives it: 0, like every other program, to 19, behind all others.
    #[serde(default)]
    #[schemars(range(max = 19))]
    pub nice: u8,
}

/// Why a profile's line is what it is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonTable {
    /// The setting, as in the configuration.
    #[schemars(length(min = 1))]
    pub setting: String,
    /// Why.
    #[schemars(length(min = 1))]
    pub why: String,
    /// The document it comes from.
    #[schemars(length(min = 1))]
    pub source: String,
}
