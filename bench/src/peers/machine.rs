//! Waits until the machine is quiet enough to measure on, and describes it for readers of the results.
//! [`super::compare`], [`super::many`] and [`super::profile`] call it once at their start.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;
use weir_vitals::doctor::{self, Status};

use super::{Common, Fact};

impl Common {
    /// Why the machine is busy, with `--anyway`; otherwise waits until it is quiet.
    ///
    /// # Errors
    /// When it stays busy.
    pub fn wait_until_quiet(&self) -> anyhow::Result<Vec<String>> {
        let (start, most) = (Instant::now(), Duration::from_secs(self.wait));
        let mut told = false;
        loop {
            let busy: Vec<String> = doctor::others()
                .into_iter()
                .filter(|check| check.status > Status::Unknown)
                .map(|check| check.seen)
                .collect();
            let why = busy.join("; ");
            if busy.is_empty() || self.anyway {
                return Ok(busy);
            }
            if start.elapsed() >= most {
                bail!("the machine is busy: {why}. Wait, or use --anyway; nothing was measured or written");
            }
            if !told {
                eprintln!("{why}; waiting for up to {} s", most.as_secs());
                told = true;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Date, CPUs, kernel, this program's command line and weir's version.
pub fn facts(weir: &Path) -> Vec<Fact> {
    let machine = weir_vitals::environment();
    // It decides what an acknowledgement costs: bbr computes a rate for every one.
    let congestion = machine.sysctls.get("net.ipv4.tcp_congestion_control").cloned();
    let arguments: Vec<String> = std::env::args().skip(1).map(|argument| without_folder(&argument)).collect();
    let source = first_line(Command::new("git").args(["describe", "--always", "--dirty"]));
    [
        ("date", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string()),
        ("CPUs", format!("{} x {}", machine.cpus, machine.cpu_model)),
        ("kernel", machine.kernel.trim_start_matches("Linux ").to_owned()),
        ("congestion control", congestion.unwrap_or_default()),
        ("command", format!("`peers {}`", arguments.join(" ")).replace(" `", "`")),
        ("weir", format!("{}, source {source}", first_line(Command::new(weir).arg("--version")))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// An argument without the folder of an absolute path in it, which says something about one machine only.
pub fn without_folder(argument: &str) -> String {
    let (name, value) = argument.split_once('=').unwrap_or(("", argument));
    let path = Path::new(value);
    match path.file_name().filter(|_| path.is_absolute()) {
        Some(file) if name.is_empty() => file.to_string_lossy().into_owned(),
        Some(file) => format!("{name}={}", file.to_string_lossy()),
        None => argument.to_owned(),
    }
}

/// The first line that a program prints, on either output.
pub fn first_line(command: &mut Command) -> String {
    let Ok(output) = command.output() else { return "?".to_owned() };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or("?").to_owned()
}

/// The version of an installed package.
pub fn apt_version(package: &str) -> String {
    first_line(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_not_shown() {
        assert_eq!(without_folder("--weir=/a/b/weir"), "--weir=weir");
        assert_eq!(without_folder("/a/b/weir"), "weir");
        assert_eq!(without_folder("clients,open"), "clients,open");
        assert_eq!(without_folder("--only=open"), "--only=open");
    }

    #[test]
    fn the_machine_is_described() {
        let facts = facts(Path::new("/bin/true"));
        assert!(facts.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()), "{facts:?}");
    }
}
