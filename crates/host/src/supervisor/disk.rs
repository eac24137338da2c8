//! A small disk of memory that one program alone sees, and that can be filled. The supervisor mounts it in a mount namespace of
//! its own, before it starts the program. Without root it makes a user namespace for that, where the system allows it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use nix::mount::{MsFlags, mount as mount_at};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::host::Disk;

/// What fills a disk, in the disk's folder.
const BALLAST: &str = ".weir-fills-this-disk";

/// How much is written at a time.
const PIECE: usize = 1 << 20;

/// Mounts a disk, for this process and its descendants alone. The process must have one thread.
///
/// # Errors
/// What the system said, with what it was asked for.
pub(super) fn mount(disk: &Disk) -> io::Result<()> {
    let told = |what: &str| {
        let what = format!("a disk of memory on {}: {what}", disk.at.display());
        move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"))
    };
    fs::create_dir_all(&disk.at).map_err(told("its folder"))?;
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS).map_err(|e| told("a mount namespace")(e.into()))?;
    } else {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUSER)
            .map_err(|e| told("a user namespace, which this system may forbid")(e.into()))?;
        fs::write("/proc/self/setgroups", "deny").map_err(told("its groups"))?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(told("its user"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(told("its group"))?;
    }
    let none: Option<&str> = None;
    // What is mounted from here on stays in this namespace.
    mount_at(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|e| told("private mounts")(e.into()))?;
    let size = format!("size={}", disk.size);
    mount_at(Some("weir"), &disk.at, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
        .map_err(|e| told("tmpfs")(e.into()))
}

/// Fills a disk to its last byte.
///
/// # Errors
/// What the system said, except that the disk is full.
pub(super) fn fill(disk: &Disk) -> io::Result<()> {
    let mut ballast = File::create(ballast(disk))?;
    let zeros = vec![0; PIECE];
    // It ends when the disk is full, and is bounded should it not be one.
    for _ in 0..=disk.size / PIECE as u64 {
        match ballast.write_all(&zeros) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes what filled a disk.
///
/// # Errors
/// What the system said.
pub(super) fn free(disk: &Disk) -> io::Result<()> {
    fs::remove_file(ballast(disk))
}

fn ballast(disk: &Disk) -> PathBuf {
    disk.at.join(BALLAST)
}
