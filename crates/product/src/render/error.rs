//! Errors of rendering a profile, with the file and the line.

use std::fmt;
use std::path::PathBuf;

/// Which text of a product was being rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceText {
    /// A template file of the product's folder.
    Template(String),
    /// A value of `product.toml`, by its dotted key.
    Key(String),
}

impl SourceText {
    /// Whether a line number is useful: only in a file of its own.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self, SourceText::Template(_))
    }
}

impl fmt::Display for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceText::Template(file) => f.write_str(file),
            SourceText::Key(key) => write!(f, "product.toml: {key}"),
        }
    }
}

/// Where something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Which product.
    pub product: String,
    /// Which profile; empty for what all profiles share.
    pub profile: String,
    /// Which text.
    pub source_text: SourceText,
    /// 1-based line in it, for template files.
    pub line: Option<usize>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.product)?;
        if !self.profile.is_empty() {
            write!(f, ", profile {}", self.profile)?;
        }
        write!(f, ", {}", self.source_text)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// Why a profile could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The product has no program.
    #[error("{product} has no program to run: it is the client talking to the origin")]
    NoProgram {
        /// Whose.
        product: String,
    },
    /// No profile of that name.
    #[error("{product} has no profile `{profile}`\n  expected: {}", list(.known))]
    UnknownProfile {
        /// Whose.
        product: String,
        /// The name asked for.
        profile: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The profile names a template that is not in the folder.
    #[error("{product}, profile {profile}: there is no template `{template}`\n  expected: {}", list(.known))]
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
    #[error(
        "{product}, profile {profile}: `{file}` leaves the trial's folder\n  expected: a relative name without `..`"
    )]
    FileName {
        /// Whose.
        product: String,
        /// Which profile.
        profile: String,
        /// The name.
        file: String,
    },
    /// A template uses an unknown variable.
    #[error("{at}: unknown variable `{variable}`\n  expected: {}", list(.known))]
    UnknownVariable {
        /// Where in which product. Boxed, because an error is not worth a large `Result` everywhere.
        at: Box<Position>,
        /// The name.
        variable: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A template cannot be parsed or rendered.
    #[error("{at}: {message}")]
    Template {
        /// Where in which product. Boxed, because an error is not worth a large `Result` everywhere.
        at: Box<Position>,
        /// What the template engine said.
        message: String,
    },
    /// A path that cannot be put into a configuration.
    #[error("the path {} {why}\n  expected: an absolute path of letters, digits, spaces and the like (see --out)", .dir.display())]
    Folder {
        /// Which.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] weir_host::files::FileError),
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "(there is none)".to_owned() } else { names.join(", ") }
}
