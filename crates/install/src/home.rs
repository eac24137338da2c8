//! weir's own folder: where products that no package manager keeps are put. All sources call it.
//!
//! It holds nothing that cannot be got again. This module does not know what is in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder: `$WEIR_HOME`, else `$XDG_DATA_HOME/weir`, else `~/.local/share/weir`, where `~` is `$HOME` or, without it, the home
/// of this user in `/etc/passwd`. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

/// No folder can be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// It would mean another folder for each place that weir is started from.
    #[error("WEIR_HOME: {} is a relative path\n  expected: an absolute path, such as WEIR_HOME=/some/folder", .0.display())]
    Relative(PathBuf),
    /// None is set, and the system knows none of this user.
    #[error(
        "no folder for weir's own files: neither WEIR_HOME nor XDG_DATA_HOME nor HOME is set to an absolute path, and /etc/passwd has no home of this user\n  expected: WEIR_HOME=/some/folder"
    )]
    None,
}

impl Home {
    /// The folder that the environment names.
    ///
    /// # Errors
    /// When it names none, or a relative one as weir's own.
    pub fn from_env() -> Result<Home, HomeError> {
        let passwd = || {
            let bytes = std::fs::read("/etc/passwd").ok()?;
            home_of(rustix::process::getuid().as_raw(), &String::from_utf8_lossy(&bytes))
        };
        Home::resolve(|name| std::env::var_os(name), passwd)
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

    /// The file that has the libraries whose programs the user agreed to run.
    pub fn libraries(&self) -> PathBuf {
        self.0.join("libraries")
    }

    /// Where compilers are kept that products need and the machine does not have.
    pub fn toolchains(&self) -> PathBuf {
        self.0.join("toolchains")
    }

    /// A relative path in the other two is passed over, as the XDG base directory specification asks.
    fn resolve(
        variable: impl Fn(&str) -> Option<OsString>,
        passwd: impl FnOnce() -> Option<PathBuf>,
    ) -> Result<Home, HomeError> {
        let own = variable("WEIR_HOME").map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
        if let Some(path) = own {
            return if path.is_absolute() { Ok(Home(path)) } else { Err(HomeError::Relative(path)) };
        }
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute("XDG_DATA_HOME")
            .map(|data| data.join("weir"))
            .or_else(|| absolute("HOME").or_else(passwd).map(|home| home.join(".local/share/weir")))
            .map(Home)
            .ok_or(HomeError::None)
    }
}

/// The home of a user in the text of `/etc/passwd`. The C library would ask other sources, too, by libraries that a static program
/// does not have.
fn home_of(uid: u32, passwd: &str) -> Option<PathBuf> {
    let of_user = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(uid)).then(|| PathBuf::from(fields.get(5).copied().unwrap_or_default()))
    };
    passwd.lines().find_map(of_user).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(variables: &[(&str, &str)]) -> Result<Home, HomeError> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        Home::resolve(variable, || None)
    }

    #[test]
    fn without_home_the_users_own_is_that_of_the_system() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nodd\nanna:x:1000:1000:,,,:/home/anna:/bin/sh\nnone:x:7:7:::\n";
        assert_eq!(home_of(0, passwd), Some("/root".into()));
        assert_eq!(home_of(1000, passwd), Some("/home/anna".into()));
        assert_eq!((home_of(7, passwd), home_of(8, passwd), home_of(0, "")), (None, None, None));
        let found = Home::resolve(|_| None, || home_of(1000, passwd));
        assert_eq!(found, Ok(Home::at("/home/anna/.local/share/weir")));
    }

    #[test]
    fn the_first_absolute_path_wins() {
        let all = [("HOME", "/h"), ("XDG_DATA_HOME", "/x"), ("WEIR_HOME", "/w")];
        assert_eq!(resolve(&all), Ok(Home::at("/w")));
        assert_eq!(resolve(&all[..2]), Ok(Home::at("/x/weir")));
        assert_eq!(resolve(&all[..1]), Ok(Home::at("/h/.local/share/weir")));
        assert_eq!(resolve(&[("WEIR_HOME", ""), ("XDG_DATA_HOME", "here"), ("HOME", "/h")]), resolve(&all[..1]));
        assert_eq!(resolve(&[("WEIR_HOME", "here"), ("HOME", "/h")]), Err(HomeError::Relative("here".into())));
        assert_eq!(resolve(&[]), Err(HomeError::None));
    }
}
