//! This machine as a host: the implementation of [`Host`] that `weir` uses.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::Value;
use weir_model::At;
use weir_model::clock::ClockReading;
use weir_model::record::{Environment, Role};
use weir_model::speed::CpuSpeed;
use weir_vitals::{Connections, Plan, Watch, Window};

use crate::files::FileError;
use crate::host::{Host, HostError, HostFacts, Process, ProgramSpec, RoleProcess, RoleSpec, Sampler};
use crate::lock::locked;
use crate::ports::{self, NoPort};
use crate::role::{LocalRole, OpenCount, RoleError};
use crate::supervisor::{self, StartError, Supervised};
use crate::{placement, tail};

/// Variables of the user that products may see: enough to find their libraries and helpers.
const VARIABLES: [&str; 3] = ["PATH", "HOME", "TMPDIR"];
/// The language of products: that of the user could change what they do.
const LANGUAGE: (&str, &str) = ("LANG", "C.UTF-8");

/// What a program offers on its host besides, for [`Host::call`]: its name, argument and progress in, its result out.
pub type Offer = dyn Fn(&str, Value, &mut dyn FnMut(Value)) -> Result<Value, String> + Send + Sync;

/// This machine.
#[derive(Clone)]
pub struct LocalHost {
    weir: PathBuf,
    facts: Arc<HostFacts>,
    offer: Option<Arc<Offer>>,
    /// Roles that run: samplers ask them for their connections.
    roles: Arc<Mutex<Vec<Weak<LocalRole>>>>,
}

impl std::fmt::Debug for LocalHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalHost").field("weir", &self.weir).field("name", &self.facts.name).finish_non_exhaustive()
    }
}

impl LocalHost {
    /// `weir` is this program's own binary, which is started again for roles and supervisors.
    pub fn new(weir: PathBuf) -> LocalHost {
        LocalHost { weir, facts: Arc::new(facts()), offer: None, roles: Arc::default() }
    }

    /// The same, with other facts: an agent is told its name and its folder.
    pub fn with_facts(self, change: impl FnOnce(&mut HostFacts)) -> LocalHost {
        let mut facts = (*self.facts).clone();
        change(&mut facts);
        LocalHost { facts: Arc::new(facts), ..self }
    }

    /// The same, with something that can be called.
    pub fn with_offer(self, offer: Arc<Offer>) -> LocalHost {
        LocalHost { offer: Some(offer), ..self }
    }

    /// A role of this host.
    fn role(&self, pid: u32) -> Option<Arc<LocalRole>> {
        let roles = locked(&self.roles);
        roles.iter().filter_map(Weak::upgrade).find(|role| role.pid() == pid)
    }
}

fn facts() -> HostFacts {
    let of_user = VARIABLES.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
    let env: BTreeMap<String, String> = of_user.chain([(LANGUAGE.0.to_owned(), LANGUAGE.1.to_owned())]).collect();
    let pid_namespaces = match supervisor::pid_namespaces() {
        Ok(()) => "yes".to_owned(),
        Err(why) => format!("no: {why}"),
    };
    let environment = Environment {
        product_env: env.clone(),
        pid_namespaces: Some(pid_namespaces),
        product_account: Some(supervisor::account::described()),
        ..weir_vitals::environment()
    };
    HostFacts {
        name: "local".to_owned(),
        environment,
        machine: std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
        cpus: placement::allowed_cpus(),
        env,
        address: None,
        work: None,
        left_behind: Vec::new(),
    }
}

impl Host for LocalHost {
    fn facts(&self) -> &HostFacts {
        &self.facts
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn at(&self, here: At) -> At {
        here
    }

    fn read_clock(&self) -> Result<ClockReading, HostError> {
        Ok(ClockReading::default())
    }

    fn start(&self, spec: &ProgramSpec) -> Result<Box<dyn Process>, StartError> {
        Ok(Box::new(Supervised::start(&self.weir, spec)?))
    }

    fn start_role(&self, spec: &RoleSpec) -> Result<Arc<dyn RoleProcess>, RoleError> {
        let failed = |error| RoleError::Start { role: spec.name.clone(), error };
        let role = Arc::new(LocalRole::start(&self.weir, &spec.args, &spec.output).map_err(failed)?);
        let mut roles = locked(&self.roles);
        roles.retain(|role| role.strong_count() > 0);
        roles.push(Arc::downgrade(&role));
        Ok(role)
    }

    fn speeds(&self, cpus: &[u32]) -> std::io::Result<Vec<CpuSpeed>> {
        weir_vitals::speeds(cpus)
    }

    fn watch(&self, plan: Plan, counted: Vec<(Role, u32)>) -> std::io::Result<Box<dyn Sampler>> {
        let gone = |pid| std::io::Error::other(format!("no role of weir's has the pid {pid}"));
        let count = |(role, pid)| {
            let process = self.role(pid).ok_or_else(|| gone(pid))?;
            Ok((role, Box::new(OpenCount::of(process)) as Box<dyn Connections>))
        };
        let counted = counted.into_iter().map(count).collect::<std::io::Result<_>>()?;
        Ok(Box::new(Watch::start_with_connections(plan, counted)?))
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

    fn free_ports(&self, at: IpAddr, count: usize) -> Result<Vec<SocketAddr>, NoPort> {
        ports::free(at, count)
    }

    fn create_dir(&self, folder: &Path) -> Result<(), FileError> {
        std::fs::create_dir_all(folder).map_err(FileError::at(folder))
    }

    fn write(&self, path: &Path, bytes: &[u8], private: bool) -> Result<(), FileError> {
        if let Some(parent) = path.parent() {
            self.create_dir(parent)?;
        }
        replace(path, bytes, if private { 0o600 } else { 0o666 }).map_err(FileError::at(path))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        std::fs::read(path).map_err(FileError::at(path))
    }

    fn read_part(&self, path: &Path, from: u64, most: usize) -> Result<Vec<u8>, FileError> {
        let read = || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(from))?;
            let mut part = Vec::new();
            file.take(most as u64).read_to_end(&mut part)?;
            Ok(part)
        };
        read().map_err(FileError::at(path))
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, FileError> {
        let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(inner) = folders.pop() {
            for entry in std::fs::read_dir(&inner).map_err(FileError::at(&inner))? {
                let path = entry.map_err(FileError::at(&inner))?.path();
                let about = std::fs::symlink_metadata(&path).map_err(FileError::at(&path))?;
                if about.is_dir() {
                    folders.push(path);
                } else if about.is_file() {
                    files.push(path.strip_prefix(folder).unwrap_or(&path).to_owned());
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// This machine is where weir runs, so that the files are there.
    fn fetch(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        match from == to {
            true => Ok(()),
            false => Err(FileError::at(to)(std::io::Error::other(format!("{} is on the same disk", from.display())))),
        }
    }

    fn remove(&self, path: &Path) {
        let is_folder = std::fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
        let _ = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }

    fn last_lines(&self, path: &Path, lines: usize) -> String {
        tail::last_lines(path, lines)
    }

    fn call(&self, name: &str, argument: Value, progress: &mut dyn FnMut(Value)) -> Result<Value, HostError> {
        let offer = self.offer.as_ref().ok_or_else(|| HostError::Failed(format!("this host offers no {name}")))?;
        offer(name, argument, progress).map_err(HostError::Failed)
    }
}

impl Sampler for Watch {
    fn begin_window(&self, from: At, to: Option<At>) -> std::io::Result<()> {
        Watch::begin_window(self, from, to)
    }

    fn end_window(&self) -> std::io::Result<Window> {
        Watch::end_window(self)
    }

    fn stop(self: Box<Self>) {
        Watch::stop(*self);
    }
}

/// Puts a file in the place of another, whole, so that a product that watches it never reads half of it. The owner stays.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // Products write in the same folders: no link of theirs is followed, and what is in the way is removed.
    let _ = std::fs::remove_file(&new);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(bytes)?;
    if let Ok(old) = std::fs::symlink_metadata(path)
        && old.is_file()
        && old.uid() != file.metadata()?.uid()
    {
        fchown(&file, Some(old.uid()), Some(old.gid()))?;
    }
    std::fs::rename(&new, path)
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
    fn a_file_is_replaced_whole_and_no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let [others, path, new] = ["others", "file", "file.new"].map(|name| dir.path().join(name));
        let host = LocalHost::new("/weir".into());
        host.write(&others, b"theirs", false).expect("written");
        for in_the_way in [&path, &new] {
            std::os::unix::fs::symlink(&others, in_the_way).expect("linked");
        }
        host.write(&path, b"one", false).expect("written");
        let first = std::fs::metadata(&path).expect("there").ino();
        host.write(&path, b"two", false).expect("written");
        assert_eq!(
            (host.read(&path).expect("read"), host.read(&others).expect("read")),
            (b"two".to_vec(), b"theirs".to_vec())
        );
        assert_ne!(std::fs::metadata(&path).expect("there").ino(), first, "whoever reads the old file has all of it");
        assert!(!new.exists());
    }

    #[test]
    fn files_are_listed_and_read_in_parts() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let host = LocalHost::new("/weir".into());
        for name in ["b", "a/deep/file"] {
            host.write(&dir.path().join(name), b"0123456789", false).expect("written");
        }
        std::os::unix::fs::symlink("/etc", dir.path().join("link")).expect("linked");
        assert_eq!(host.list(dir.path()).expect("a folder"), ["a/deep/file", "b"].map(PathBuf::from));
        let part = |from, most| host.read_part(&dir.path().join("b"), from, most).expect("a file");
        assert_eq!([part(0, 4), part(4, 100), part(10, 4)], [&b"0123"[..], b"456789", b""]);
        assert!(host.list(&dir.path().join("none")).is_err());
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
