//! Installs Debian and Ubuntu packages.
//!
//! Packages of servers start the server when they are installed, on ports of their own choice. weir wants the program
//! and not the service, and keeps it from starting in three ways, none of which leaves anything behind on the machine:
//!
//! - `SYSTEMD_OFFLINE=1` in the environment of `apt-get` (see systemd's `ENVIRONMENT` document): `systemctl`, when called
//!   by a package's scripts, does what concerns files and refrains from talking to the running system. A
//!   `/usr/sbin/policy-rc.d` would do as well, but has to be put there and taken away, and stays when weir is killed.
//! - `RUNLEVEL=1`, which System V style `invoke-rc.d` believes: servers do not run there.
//! - Afterwards, the services of those packages that were not installed before are disabled and stopped, so that they do
//!   not take their ports when the machine starts next. A service that was there before is left alone.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::child::{OnStop, words};
use super::{InstallError, Notify, Progress, child, lookup};
use weir_host::stop::Stop;

/// Downloads can be slow; prompts cannot be (there are none), so what takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Questions to dpkg and apt are answered from files.
const RESPONSE: Duration = Duration::from_secs(30);
/// Package lists older than this are fetched anew: archives delete what they have replaced.
const LISTS_AGE: Duration = Duration::from_secs(3 * 24 * 3600);
const LISTS: &str = "/var/lib/apt/lists";

/// Packages to install, in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AptStep {
    /// Package names, in the order of the products that want them.
    pub packages: Vec<String>,
    /// Whether the package lists are missing or old, and are fetched first.
    pub refresh: bool,
    /// What is to be downloaded, with dependencies, in bytes, where apt can say.
    pub download: Option<u64>,
}

impl fmt::Display for AptStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.refresh {
            write!(f, "apt-get update; ")?;
        }
        write!(f, "apt-get install -y --no-install-recommends {}", self.packages.join(" "))?;
        match self.download {
            Some(0) => write!(f, " (nothing to download)")?,
            Some(bytes) => write!(f, " ({:.1} MB to download)", bytes as f64 / 1e6)?,
            None => {}
        }
        write!(f, "; services that come with them are not started")
    }
}

/// Whether this machine has apt.
pub(super) fn is_here() -> bool {
    lookup::on_path("apt-get").is_some() && lookup::on_path("dpkg-query").is_some()
}

/// Why this user may not install packages; `None` when they may.
pub(super) fn why_not_root() -> Option<String> {
    Root::find().err()
}

/// The error for a user who may not install packages.
pub(super) fn not_root(why: &str, packages: &[String]) -> InstallError {
    let command = format!("sudo {}", child::command_line(&install_command(packages)));
    InstallError::Message(format!(
        "installing packages needs root, and `sudo -n` does not work here ({why})\n  expected: run this and try again: {command}"
    ))
}

/// A step that installs `packages`.
pub(super) fn step(packages: Vec<String>) -> AptStep {
    let refresh = lists_are_stale(Path::new(LISTS), SystemTime::now());
    let download = if refresh { None } else { download_size(&packages) };
    AptStep { packages, refresh, download }
}

/// The version of an installed package, as dpkg has it.
pub(super) fn installed_version(package: &str) -> Option<String> {
    let command = words(&format!(r"dpkg-query -W -f ${{db:Status-Abbrev}}${{Version}}\n {package}"));
    let response = child::ask(&command, RESPONSE).ok()?;
    Some(response.strip_prefix("ii ")?.lines().next()?.to_owned())
}

/// Installs what the step says. The caller holds the lock.
pub(super) fn install(step: &AptStep, stop: &Stop, notify: &mut Notify<'_>) -> Result<(), InstallError> {
    let wanted = install_command(&step.packages);
    let root = Root::find().map_err(|why| not_root(&why, &step.packages))?;
    let update = words("apt-get update");
    let before = installed_packages();
    if step.refresh {
        root.run(&update, stop, notify)?;
    }
    let result = match root.run(&wanted, stop, notify) {
        Err(error @ InstallError::Failed { .. }) if !step.refresh => {
            // Mostly lists that name packages which the archive has replaced since.
            notify(Progress::Action(&format!("{error}\nonce more, with new package lists")));
            root.run(&update, stop, notify).and_then(|()| root.run(&wanted, stop, notify))
        }
        result => result,
    };
    // Also when the user wants to stop: packages that came may have brought services.
    disable_new_services(&root, &before, notify);
    result
}

fn install_command(packages: &[String]) -> Vec<String> {
    // The lock of dpkg is often held for a while by unattended upgrades.
    let mut command = words("apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends --no-upgrade --");
    command.extend_from_slice(packages);
    command
}

/// The words before a command that run it as root.
struct Root(&'static str);

impl Root {
    /// The error says why there is no way.
    fn find() -> Result<Root, String> {
        if rustix::process::geteuid().is_root() {
            return Ok(Root(""));
        }
        let on_one_line = |why: &str| why.split_whitespace().collect::<Vec<_>>().join(" ");
        if lookup::on_path("sudo").is_none() {
            return Err("there is no sudo".to_owned());
        }
        match child::ask(&words("sudo -n echo weir-may"), RESPONSE) {
            Ok(response) if response.starts_with("weir-may") => Ok(Root("sudo -n")),
            Ok(response) => Err(on_one_line(&response)),
            Err(why) => Err(on_one_line(&format!("{why:?}"))),
        }
    }

    /// Runs a package manager, with the variables that keep systemd out of it.
    fn run(&self, command: &[String], stop: &Stop, notify: &mut Notify<'_>) -> Result<(), InstallError> {
        const OFFLINE: &str = "env DEBIAN_FRONTEND=noninteractive LC_ALL=C SYSTEMD_OFFLINE=1 RUNLEVEL=1";
        self.run_with(OFFLINE, command, LIMIT, stop, notify)
    }

    fn run_with(
        &self,
        variables: &str,
        command: &[String],
        limit: Duration,
        stop: &Stop,
        notify: &mut Notify<'_>,
    ) -> Result<(), InstallError> {
        notify(Progress::Action(&child::command_line(command)));
        let whole = [words(self.0), words(variables), command.to_vec()].concat();
        child::run(&whole, limit, OnStop::Wait, stop, notify)
    }
}

/// Disables services that the install brought. A failure here is only reported, because the program is installed.
fn disable_new_services(root: &Root, before: &BTreeSet<String>, notify: &mut Notify<'_>) {
    if lookup::on_path("systemctl").is_none() {
        return;
    }
    let services: Vec<String> =
        installed_packages().difference(before).flat_map(|package| services_of(package)).collect();
    let running = Path::new("/run/systemd/system").is_dir();
    let mut commands = Vec::new();
    if running {
        commands.push(words("systemctl daemon-reload"));
    }
    if !services.is_empty() {
        let mut disable = words(if running { "systemctl disable --now" } else { "systemctl disable" });
        disable.extend(services);
        commands.push(disable);
    }
    for command in commands {
        if let Err(error) = root.run_with("", &command, Duration::from_secs(120), &Stop::new(), notify) {
            notify(Progress::Action(&error.to_string()));
        }
    }
}

/// Services that a package brings and that would start with the machine.
fn services_of(package: &str) -> Vec<String> {
    let files = child::ask(&words(&format!("dpkg-query -L {package}")), RESPONSE).unwrap_or_default();
    let services = files.lines().filter(|line| line.contains("/systemd/system/") && line.ends_with(".service"));
    let names = services.filter_map(|line| line.rsplit('/').next());
    // A template (`name@.service`) is no service yet.
    let names = names.filter(|name| !name.contains('@'));
    let enabled = |name: &&str| {
        let response = child::ask(&words(&format!("systemctl is-enabled {name}")), RESPONSE);
        response.is_ok_and(|response| response.lines().next() == Some("enabled"))
    };
    names.filter(enabled).map(str::to_owned).collect()
}

fn installed_packages() -> BTreeSet<String> {
    let command = words(r"dpkg-query -W -f ${db:Status-Abbrev}${Package}\n");
    let response = child::ask_much(&command, RESPONSE).unwrap_or_default();
    response.lines().filter_map(|line| line.strip_prefix("ii ")).map(str::to_owned).collect()
}

/// Bytes that apt would download for these and what they depend on.
fn download_size(packages: &[String]) -> Option<u64> {
    let mut command = words("apt-get --print-uris -qq -y --no-install-recommends install --");
    command.extend_from_slice(packages);
    let response = child::ask(&command, RESPONSE).ok()?;
    if response.lines().any(|line| line.starts_with("E:")) {
        return None;
    }
    // 'http://...deb' name.deb 922692 MD5Sum:...
    let sizes = response.lines().filter(|line| line.starts_with('\''));
    sizes.map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum()
}

/// Whether the lists are missing or old. Their own dates are the server's; the folder's is when one last came.
fn lists_are_stale(lists: &Path, now: SystemTime) -> bool {
    let names = std::fs::read_dir(lists).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let any = names.filter_map(|name| name.into_string().ok()).any(|name| name.contains("_Packages"));
    let changed = lists.metadata().and_then(|meta| meta.modified());
    let young = changed.is_ok_and(|at| now.duration_since(at).map_or(true, |age| age < LISTS_AGE));
    !(any && young)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_stale_when_missing_or_old() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        assert!(lists_are_stale(&dir.path().join("none"), now));
        assert!(lists_are_stale(dir.path(), now), "empty");
        std::fs::write(dir.path().join("deb.example_Packages.lz4"), "").unwrap();
        assert!(!lists_are_stale(dir.path(), now));
        assert!(lists_are_stale(dir.path(), now + LISTS_AGE * 2));
    }

    #[test]
    fn a_step_says_what_it_does() {
        let mut step = AptStep { packages: words("a b"), refresh: true, download: None };
        let rest = "apt-get install -y --no-install-recommends a b";
        let end = "; services that come with them are not started";
        assert_eq!(step.to_string(), format!("apt-get update; {rest}{end}"));
        step.refresh = false;
        step.download = Some(1_250_000);
        assert_eq!(step.to_string(), format!("{rest} (1.2 MB to download){end}"));
    }
}
