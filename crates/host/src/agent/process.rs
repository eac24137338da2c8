//! The agent as a process: `weir agent`. It keeps its host to one run, makes the run's folder, and ends with everything that it
//! started, whatever happens to weir, to the transport or to itself.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use weir_model::record::Link;

use super::lease::{Holder, Lease, LeaseError, TAKES_OVER_WITHIN, file_of_this_host};
use super::message::Hello;
use super::serve::{End, Opened, serve};
use super::watchdog::SILENCE;
use crate::local::{LocalHost, Offer};
use crate::placement::restrict_to;
use crate::supervisor::end_left_behind;

/// First part of the names of agents' folders.
const FOLDER: &str = "weir-work-";

/// Serves weir at standard input and output until the connection ends. `weir` is this program's own binary, and `offer` what
/// it can be called for. Silence ends the process with status 4.
///
/// # Errors
/// When the system refuses what an agent needs.
pub fn run(weir: PathBuf, offer: Arc<Offer>) -> std::io::Result<End> {
    let (input, output) = own_streams()?;
    let open = |hello: &Hello| open(hello, LocalHost::new(weir).with_offer(offer));
    serve(input, output, open, SILENCE, Arc::new(end_now))
}

/// Takes standard input and output for the connection alone: what any code prints, and what a child would inherit, would
/// break its frames.
fn own_streams() -> std::io::Result<(File, File)> {
    let (input, output) = (File::from(dup(std::io::stdin())?), File::from(dup(std::io::stdout())?));
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    nix::unistd::dup2_stdout(std::io::stderr())?;
    Ok((input, output))
}

fn dup(stream: impl std::os::fd::AsFd) -> std::io::Result<std::os::fd::OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(stream, 3)?)
}

/// weir is silent: the roles are killed, and the kernel tells the supervisors by closing their pipes.
fn end_now(groups: &[u32]) {
    for group in groups.iter().filter_map(|group| Pid::from_raw(group.cast_signed())) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // SAFETY: `_exit` has no preconditions. `exit` would wait for locks that hanging threads hold.
    unsafe { libc::_exit(4) }
}

fn open(hello: &Hello, host: LocalHost) -> Result<Opened, String> {
    // Machines of a cluster may have one folder for temporary files, and equal process numbers.
    let work = hello.own_disk.then(|| std::env::temp_dir().join(format!("{FOLDER}{:016x}", rand::random::<u64>())));
    let lease = match hello.lease {
        true => Some(lease(hello, work.as_deref())?),
        false => None,
    };
    restrict_to(&hello.own_cpus).map_err(|error| format!("of no use: its agent cannot keep to its CPUs: {error}"))?;
    let folder = work.clone().map(Folder::make).transpose()?;
    let left_behind = end_left_behind();
    let host = host.with_facts(|facts| {
        facts.left_behind = left_behind;
        facts.name.clone_from(&hello.name);
        facts.address = hello.address;
        facts.cpus.retain(|cpu| hello.cpus.is_empty() || hello.cpus.contains(cpu));
        facts.work = work;
        let of_traffic = |link: &&mut Link| hello.address.is_some_and(|address| link.addresses.contains(&address));
        if let Some(link) = facts.environment.links.iter_mut().find(of_traffic) {
            link.bits_per_s = hello.rate.or(link.bits_per_s);
        }
    });
    Ok(Opened { host: Arc::new(host), kept: Box::new((folder, lease)) })
}

fn lease(hello: &Hello, work: Option<&Path>) -> Result<Lease, String> {
    let holder = Holder::this(&hello.run, &hello.who, work.map(Path::to_owned));
    let taken = file_of_this_host().map_err(LeaseError::File);
    let taken = taken.and_then(|file| Lease::take(&file, &holder, TAKES_OVER_WITHIN));
    let (lease, left) = taken.map_err(|error| match error {
        LeaseError::Held(_) => error.to_string(),
        LeaseError::File(error) => format!("of no use: its lease cannot be taken: {error}"),
    })?;
    if let Some(left) = left.and_then(|left| left.work).filter(|left| is_ours(left)) {
        let _ = std::fs::remove_dir_all(left);
    }
    Ok(lease)
}

/// Whether a path can be that of an agent's folder: a file said it, and what it says is removed.
pub(super) fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    folder.parent() == Some(&std::env::temp_dir()) && name.is_some_and(|name| name.starts_with(FOLDER))
}

/// The run's folder, for this user alone. Dropping it removes it.
struct Folder(PathBuf);

impl Folder {
    fn make(path: PathBuf) -> Result<Folder, String> {
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("of no use: {}: {error}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_agents_folder_is_removed_as_one_that_was_left() {
        let temp = std::env::temp_dir();
        assert!(is_ours(&temp.join("weir-work-12")));
        for other in
            ["/", "/etc", "/etc/weir-work-12"].map(PathBuf::from).into_iter().chain([temp.join("x"), temp.clone()])
        {
            assert!(!is_ours(&other), "{}", other.display());
        }
    }
}
