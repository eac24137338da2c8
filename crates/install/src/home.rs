//! weir's own folder: where products that no package manager keeps are put. All sources call it.
//!
//! It holds nothing that cannot be got again. This module does not know what is in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder: `$WEIR_HOME`, else `$XDG_DATA_HOME/weir`, else `~/.local/share/weir`. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

/// No folder can be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no folder for weir's own files: neither WEIR_HOME nor XDG_DATA_HOME nor HOME is set to an absolute path\n  expected: WEIR_HOME=/some/folder"
)]
pub struct HomeError;

impl Home {
    /// The folder that the environment names.
    ///
    /// # Errors
    /// When it names none.
    pub fn from_env() -> Result<Home, HomeError> {
        Home::resolve(|name| std::env::var_os(name))
    }

    /// This folder.
    pub fn at(path: impl Into<PathBuf>) -> Home {
        Home(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where the versions of one product are kept.
    pub fn product(&self, name: &str) -> PathBuf {
        self.0.join("products").join(name)
    }

    /// A relative path in any of the three is passed over, as the XDG base directory specification asks: it would
    /// mean another folder for each place that weir is started from.
    fn resolve(variable: impl Fn(&str) -> Option<OsString>) -> Result<Home, HomeError> {
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("WEIR_HOME")
            .or_else(|| absolute("XDG_DATA_HOME").map(|data| data.join("weir")))
            .or_else(|| absolute("HOME").map(|home| home.join(".local/share/weir")))
            .map(Home)
            .ok_or(HomeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(variables: &[(&str, &str)]) -> Result<Home, HomeError> {
        Home::resolve(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn the_first_absolute_path_wins() {
        let all = [("HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("WEIR_HOME", "/w")];
        assert_eq!(resolve(&all), Ok(Home::at("/w")));
        assert_eq!(resolve(&all[..2]), Ok(Home::at("/x/weir")));
        assert_eq!(resolve(&all[..1]), Ok(Home::at("/h/.local/share/weir")));
        assert_eq!(resolve(&[("WEIR_HOME", "here"), ("XDG_DATA_HOME", ""), ("HOME", "/h")]), resolve(&all[..1]));
        assert_eq!(resolve(&[]), Err(HomeError));
    }
}
