//! This machine as a host: the implementation of [`Host`] that `weir` uses.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_model::record::Role;
use weir_vitals::{Connections, Watch, Watched, Window};

use crate::files::FileError;
use crate::host::{Host, Process, ProgramSpec, RoleProcess, RoleSpec, Sampler};
use crate::ports::{self, NoPort};
use crate::role::{LocalRole, RoleError};
use crate::supervisor::{self, StartError, Supervised};
use crate::{placement, tail};

/// This machine.
#[derive(Debug, Clone)]
pub struct LocalHost {
    weir: PathBuf,
}

impl LocalHost {
    /// `weir` is this program's own binary, which is started again for roles and supervisors.
    pub fn new(weir: PathBuf) -> LocalHost {
        LocalHost { weir }
    }
}

impl Host for LocalHost {
    fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError> {
        Ok(Box::new(Supervised::start(&self.weir, spec)?))
    }

    fn start_role(&self, spec: &RoleSpec) -> Result<Arc<dyn RoleProcess>, RoleError> {
        let failed = |error| RoleError::Start { role: spec.role.as_str(), error };
        Ok(Arc::new(LocalRole::start(&self.weir, &spec.args, &spec.output).map_err(failed)?))
    }

    fn watch(
        &self,
        trees: Vec<Watched>,
        connections: Vec<(Role, Box<dyn Connections>)>,
    ) -> std::io::Result<Box<dyn Sampler>> {
        Ok(Box::new(Watch::start_with_connections(trees, connections)?))
    }

    fn descendants(&self, root: u32) -> Vec<u32> {
        supervisor::descendants(root)
    }

    fn owns_listener(&self, root: u32, addr: SocketAddr) -> Result<(), String> {
        ports::listener_belongs_to(addr, &supervisor::descendants(root))
    }

    fn accepts(&self, addr: SocketAddr, within: Duration) -> bool {
        TcpStream::connect_timeout(&addr, within).is_ok()
    }

    fn free_ports(&self, count: usize) -> Result<Vec<SocketAddr>, NoPort> {
        ports::free(count)
    }

    fn cpus(&self) -> Vec<u32> {
        placement::allowed_cpus()
    }

    fn create_dir(&self, folder: &Path) -> Result<(), FileError> {
        std::fs::create_dir_all(folder).map_err(FileError::at(folder))
    }

    fn write(&self, path: &Path, bytes: &[u8], private: bool) -> Result<(), FileError> {
        if let Some(parent) = path.parent() {
            self.create_dir(parent)?;
        }
        let mode = if private { 0o600 } else { 0o666 };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path);
        file.and_then(|mut file| file.write_all(bytes)).map_err(FileError::at(path))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        std::fs::read(path).map_err(FileError::at(path))
    }

    fn remove(&self, path: &Path) {
        let is_folder = std::fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
        let _ = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }

    fn last_lines(&self, path: &Path, lines: usize) -> String {
        tail::last_lines(path, lines)
    }
}

impl Sampler for Watch {
    fn begin_window(&self) -> std::io::Result<()> {
        Watch::begin_window(self)
    }

    fn end_window(&self) -> std::io::Result<Window> {
        Watch::end_window(self)
    }

    fn stop(self: Box<Self>) {
        Watch::stop(*self);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn private_files_are_their_owners_alone() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let host = LocalHost::new("/weir".into());
        let mode = |name: &str, private| {
            let path = dir.path().join("new").join(name);
            host.write(&path, b"text", private).expect("written");
            assert_eq!(host.read(&path).expect("read"), b"text");
            std::fs::metadata(path).expect("there").permissions().mode() & 0o777
        };
        assert_eq!(mode("key", true), 0o600);
        assert_eq!(mode("cert", false) & 0o600, 0o600);
        assert!(host.read(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn removing_a_link_leaves_what_it_points_to() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| dir.path().join(name);
        let host = LocalHost::new("/weir".into());
        for name in ["data/deep/db", "pid", "kept/file"] {
            host.write(&at(name), b"", false).expect("written");
        }
        std::os::unix::fs::symlink(at("kept"), at("link")).expect("linked");
        for name in ["data", "pid", "link", "never-made"] {
            host.remove(&at(name));
        }
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["kept"]);
        assert!(at("kept/file").exists());
    }
}
