//! The account that products run as where weir is root: one without any rights, so that a product, which may come from anybody, can
//! harm neither the system nor what belongs to others. The supervisor keeps root's rights and calls this, and so does whoever asks a
//! program for its version.
//!
//! The account is a number that no user has, not a name: `nobody` belongs to other services too, whose processes and files a product
//! could then reach, and nothing has to be made on the system first. Its folder is the product's own; it gets the capabilities that the
//! product's file asks for, and no others; no program that it executes gets more (`no_new_privs`).
//!
//! weir's own folder and a run's are often below a folder that others may not enter, such as root's home. In the mount namespace of its
//! supervisor a product finds an empty folder in its place, with what it needs at its own path. Nothing on the disk changes but the
//! owner of the product's folder. Rejected: to open such folders to everybody, the capability to read every file, and copies (paths are
//! in configurations, and products are large).
//!
//! Where weir is root without all that this takes, as in most containers, products stay root; where it is not root they are what it is.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::mount::{MsFlags, mount};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chownat, fchown, openat, statat};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid,
};
use rustix::thread::{Gid, Uid};
use weir_model::product::Capability;

use super::namespace;
use crate::host::{Confined, ProgramSpec};
use crate::umask::ReadableByAll;

/// User and group. Neither Debian nor systemd gives this number to anybody, and it is among the 65,536 that containers have.
pub const ACCOUNT: u32 = 65_521;

/// What root needs to give the account its folder, to become it, to end and to watch its processes, and to mount.
const NEEDED: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_ADMIN);

/// Whether products get the account; if not, why.
///
/// # Errors
/// As said.
pub fn possible() -> Result<(), String> {
    if !geteuid().is_root() {
        return Err("weir is not root".to_owned());
    }
    let missing = NEEDED.difference(capabilities(None).map_err(|error| error.to_string())?.effective);
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
        return Err(format!("root has no {} here", names.join(", ")));
    }
    namespace::possible().map_err(|why| format!("root may not mount here: {why}"))
}

/// What products run as, in words, for the record and for `weir doctor`.
pub fn described() -> String {
    match possible() {
        Ok(()) => format!("user {ACCOUNT}, which nobody else is, without capabilities"),
        Err(why) if geteuid().is_root() => format!("root: {why}"),
        Err(_) => format!("user {}, as weir", geteuid().as_raw()),
    }
}

/// Starts a command that only asks a program something, such as its version: in `/`, as the account where that is possible, with the
/// folders `reads` in reach; else as weir itself. There is no supervisor: who asks waits for the response, and kills it when none comes.
///
/// # Errors
/// What the system said.
pub fn spawn(mut command: Command, reads: &[PathBuf]) -> io::Result<Child> {
    let account = possible().is_ok().then_some(ACCOUNT);
    let rights = Rights { account, capabilities: CapabilitySet::empty() };
    let mut needed = reads.to_vec();
    if account.is_some() {
        command.current_dir("/").env("HOME", "/nonexistent").env_remove("TMPDIR");
        // A closed folder of PATH would make it "permission denied".
        let program =
            found(Path::new(command.get_program()), std::env::var_os("PATH")).ok_or(io::ErrorKind::NotFound)?;
        needed.extend(program_folders(program));
    }
    namespace::in_thread(move || {
        if account.is_some() {
            namespace::separate_mounts()?;
            uncover(needed.into_iter())?;
        }
        rights.take()?;
        command.spawn()
    })
}

/// What a program may do, for the moment between fork and exec, or for the thread that starts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    account: Option<u32>,
    capabilities: CapabilitySet,
}

impl Rights {
    pub(super) fn of(confined: &Confined) -> Rights {
        let capabilities = confined.capabilities.iter().map(|one| capability(*one)).collect();
        Rights { account: confined.account, capabilities }
    }

    /// Gives up all others. It makes system calls alone.
    pub(super) fn take(self) -> io::Result<()> {
        if let Some(account) = self.account {
            let of_account = self.capabilities;
            set_keep_capabilities(!of_account.is_empty())?;
            set_thread_groups(&[])?;
            set_thread_gid(Gid::from_raw(account))?;
            set_thread_uid(Uid::from_raw(account))?;
            let sets = CapabilitySets { effective: of_account, permitted: of_account, inheritable: of_account };
            set_capabilities(None, sets)?;
            for one in of_account.iter() {
                configure_capability_in_ambient_set(one, true)?;
            }
        }
        Ok(set_no_new_privs(true)?)
    }
}

fn capability(one: Capability) -> CapabilitySet {
    match one {
        Capability::Bpf => CapabilitySet::BPF,
        Capability::IpcLock => CapabilitySet::IPC_LOCK,
        Capability::NetAdmin => CapabilitySet::NET_ADMIN,
        Capability::NetBindService => CapabilitySet::NET_BIND_SERVICE,
        Capability::NetRaw => CapabilitySet::NET_RAW,
        Capability::Perfmon => CapabilitySet::PERFMON,
        Capability::SysNice => CapabilitySet::SYS_NICE,
        Capability::SysResource => CapabilitySet::SYS_RESOURCE,
    }
}

/// Lets the account see what it needs, in this process's mount namespace, and makes its folder its home.
///
/// # Errors
/// What the system said.
pub(super) fn reveal(spec: &mut ProgramSpec) -> io::Result<()> {
    let Some(confined) = spec.confined.as_ref().filter(|confined| confined.account.is_some()) else { return Ok(()) };
    let program = spec.argv.first().and_then(|name| found(Path::new(name), spec.env.get("PATH").map(OsString::from)));
    let needed = std::iter::once(spec.dir.clone()).chain(program.into_iter().flat_map(program_folders));
    uncover(needed.chain(confined.reads.iter().cloned()))?;
    // It may not enter the user's own, nor write there.
    if !spec.env.get("HOME").is_some_and(|home| Path::new(home).starts_with(&spec.dir)) {
        spec.env.insert("HOME".to_owned(), spec.dir.display().to_string());
    }
    spec.env.remove("TMPDIR");
    Ok(())
}

/// Gives the account its folder with all that is in it.
///
/// # Errors
/// What the system said.
pub(super) fn give(spec: &ProgramSpec) -> io::Result<()> {
    match spec.confined.as_ref().and_then(|confined| confined.account) {
        None => Ok(()),
        Some(account) => give_folder(&open_folder(CWD, &spec.dir)?, Uid::from_raw(account), Gid::from_raw(account)),
    }
}

/// No link is followed: another part of the product may run already, and put links there.
fn give_folder(folder: &OwnedFd, user: Uid, group: Gid) -> io::Result<()> {
    fchown(folder, Some(user), Some(group))?;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => give_folder(&open_folder(folder, name)?, user, group)?,
            // It may be a file of somebody else, too.
            FileType::RegularFile if about.st_nlink > 1 => {}
            _ => chownat(folder, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?,
        }
    }
    Ok(())
}

fn open_folder(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

/// The folders with what a program needs of its own: where it is, and where links lead.
fn program_folders(program: PathBuf) -> impl Iterator<Item = PathBuf> {
    [program.canonicalize().ok(), Some(program)].into_iter().flatten().map(|program| around(&program))
}

/// Where a program is, as `execvp` looks for it.
fn found(name: &Path, path: Option<OsString>) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    let executable = |file: &PathBuf| file.metadata().is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0);
    std::env::split_paths(&path?).map(|folder| folder.join(name)).find(executable)
}

/// The folder above that of a program, if that is not closed itself: libraries are beside a folder of programs, and an interpreter that
/// was installed for one user is beside what starts it.
fn around(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(program);
    let above = folder.parent().filter(|above| closed(above).is_some());
    above.unwrap_or(folder).to_owned()
}

/// The outermost folder above a path that not everybody may enter.
fn closed(path: &Path) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let closed = |folder: &&Path| folder.metadata().is_ok_and(|about| about.mode() & 0o001 == 0);
    above.into_iter().rev().find(closed).map(Path::to_owned)
}

/// Puts an empty folder in the place of each that is closed, with these paths alone in it.
fn uncover(needed: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let mut below: Vec<(PathBuf, PathBuf, OwnedFd)> = Vec::new();
    for path in needed {
        let Some(cover) = closed(&path).filter(|_| path.exists()) else { continue };
        let opened = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        below.push((cover, path, opened));
    }
    let _readable = ReadableByAll::new();
    // A folder before what is in it.
    below.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let mut covered = None;
    for (cover, path, opened) in &below {
        if covered != Some(cover) {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some("weir"), cover, Some("tmpfs"), flags, Some("mode=755,size=1m"))?;
            covered = Some(cover);
        }
        bind(opened, path)?;
    }
    Ok(())
}

fn bind(opened: &OwnedFd, path: &Path) -> io::Result<()> {
    let none: Option<&str> = None;
    let from = format!("/proc/self/fd/{}", opened.as_raw_fd());
    match fs::metadata(&from)?.is_dir() {
        true => fs::create_dir_all(path)?,
        // Where it is there already, its folder was bound before.
        false if path.exists() => {}
        false => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            fs::File::create(path)?;
        }
    }
    Ok(mount(Some(from.as_str()), path, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?)
}
