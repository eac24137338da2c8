//! What can be wrong with a profile, in words that lead to the line.

use std::fmt;
use std::path::PathBuf;

/// Which text of a product was being rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A template file of the product's folder.
    Template(String),
    /// A value of `product.toml`, by its dotted key.
    Key(String),
}

impl Place {
    /// Lines mean something only in a file of its own.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self, Place::Template(_))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Template(file) => f.write_str(file),
            Place::Key(key) => write!(f, "product.toml: {key}"),
        }
    }
}

/// Why a profile could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The product is no program at all.
    #[error("{product} has no program to run: it is the client talking to the origin")]
    NoProgram {
        /// Whose.
        product: String,
    },
    /// No profile of that name.
    #[error("{product} has no profile `{profile}`\n  would be right: {}", list(.known))]
    UnknownProfile {
        /// Whose.
        product: String,
        /// The name asked for.
        profile: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The profile names a template that is not in the folder.
    #[error("{product}, profile {profile}: there is no template `{template}`\n  would be right: {}", list(.known))]
    MissingTemplate {
        /// Whose.
        product: String,
        /// Which profile.
        profile: String,
        /// The template named.
        template: String,
        /// The templates there are.
        known: Vec<String>,
    },
    /// The profile names a file outside of the trial's folder.
    #[error("{product}, profile {profile}: `{file}` leaves the trial's folder\n  would be right: a relative name without `..`")]
    FileName {
        /// Whose.
        product: String,
        /// Which profile.
        profile: String,
        /// The name.
        file: String,
    },
    /// A template uses a name that weir does not give it.
    #[error("{}: unknown variable `{variable}`\n  would be right: {}", whereabouts(.product, .profile, .place, *.line), list(.known))]
    UnknownVariable {
        /// Whose.
        product: String,
        /// Which profile; empty for what all profiles share.
        profile: String,
        /// Which text.
        place: Place,
        /// 1-based line in it, for template files.
        line: Option<usize>,
        /// The name.
        variable: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A template cannot be read or carried out.
    #[error("{}: {message}", whereabouts(.product, .profile, .place, *.line))]
    Template {
        /// Whose.
        product: String,
        /// Which profile; empty for what all profiles share.
        profile: String,
        /// Which text.
        place: Place,
        /// 1-based line in it, for template files.
        line: Option<usize>,
        /// What the template engine said.
        message: String,
    },
    /// A path that cannot be put into a configuration.
    #[error("the path {} {why}\n  would be right: an absolute path of letters, digits, spaces and the like (see --out)", .dir.display())]
    Folder {
        /// Which.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file cannot be written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
}

fn whereabouts(product: &str, profile: &str, place: &Place, line: Option<usize>) -> String {
    let mut text = product.to_owned();
    if !profile.is_empty() {
        text.push_str(&format!(", profile {profile}"));
    }
    text.push_str(&format!(", {place}"));
    if let Some(line) = line {
        text.push_str(&format!(":{line}"));
    }
    text
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "(there is none)".to_owned() } else { names.join(", ") }
}
