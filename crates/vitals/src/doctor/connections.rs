//! How many connections a load on this machine may have. The doctor runs it.

use super::kernel::io_uring_allowed;
use super::limits::most_a_process;
use super::{Check, bytes, judge};
use crate::environment::{kernel_version, meminfo};
use crate::sys::{local_ports, sysctl};

/// Kernel memory of an established connection of client and origin on one machine, both ends, in bytes: 200,000 idle
/// ones took 9.9 KB each on Linux 6.18, sockets and io_uring's receives together.
const MEMORY: u64 = 10 * 1024;

/// The share of available memory that may be used: the rest is for bytes under way and for the programs.
const SHARE: (u64, u64) = (3, 4);

/// Descriptors that a process needs for other things.
const SPARE: u64 = 256;

/// The first kernel whose rings hold sockets without descriptors, so that each can be closed by itself.
const TABLES: (u32, u32) = (6, 13);

pub(super) fn checks() -> Vec<Check> {
    let uname = rustix::system::uname();
    let new_enough = kernel_version(&uname.release().to_string_lossy()).is_some_and(|version| version >= TABLES);
    let room = Room {
        descriptors: most_a_process(),
        tables: new_enough && io_uring_allowed(),
        memory: meminfo("MemAvailable"),
        files: sysctl("fs.file-nr").and_then(|text| files(&text)),
    };
    vec![judge_connections(&room, local_ports()), judge_tcp_memory(sysctl("net.ipv4.tcp_mem").and_then(|t| pages(&t)))]
}

/// What limits the connections of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Descriptors a process may have.
    pub(super) descriptors: u64,
    /// Whether rings hold sockets without descriptors.
    pub(super) tables: bool,
    /// Bytes available.
    pub(super) memory: Option<u64>,
    /// Files that the whole system may still open. A socket is one, with a descriptor or without.
    pub(super) files: Option<u64>,
}

/// `fs.file-nr`: open, unused, most.
pub(super) fn files(text: &str) -> Option<u64> {
    let mut numbers = text.split(' ').map(str::parse::<u64>);
    let open = numbers.next()?.ok()?;
    Some(numbers.nth(1)?.ok()?.saturating_sub(open))
}

/// `net.ipv4.tcp_mem`: where TCP begins to hold back, in pages.
pub(super) fn pages(text: &str) -> Option<u64> {
    text.split(' ').nth(1)?.parse().ok()
}

/// A client and an origin on this machine. The published suites go to 10,000 connections, and one to 200,000.
pub(super) fn judge_connections(room: &Room, ports: Option<(u16, u16)>) -> Check {
    let name = "connections";
    let Some((most, why, mend)) = bounds(room).into_iter().min_by_key(|bound| bound.0) else {
        return Check::unknown(name, "the kernel does not say", "Connections may fail for want of memory.");
    };
    let how = match room.tables {
        true if most > by_descriptors(room) => "; most without a descriptor, in io_uring's tables",
        _ => "",
    };
    let seen = format!("a load may have about {}{how}", round(most));
    if most >= 10_000 {
        let address = match ports {
            Some((first, last)) => {
                let count = (u32::from(last) + 1).saturating_sub(u32::from(first));
                format!(" To one port of another machine it is {count} for each address of this one.")
            }
            None => String::new(),
        };
        return Check::ok(name, seen, &format!("{why}{address}"));
    }
    let check = Check::warn(name, seen, why);
    match mend {
        Some(command) => check.mend(command),
        None => check,
    }
}

fn by_descriptors(room: &Room) -> u64 {
    room.descriptors.saturating_sub(SPARE)
}

/// Each limit, the reason for it, and what raises it.
fn bounds(room: &Room) -> Vec<(u64, &'static str, Option<&'static str>)> {
    let mut bounds = Vec::new();
    if !room.tables {
        bounds.push((
            by_descriptors(room),
            "Each takes a descriptor of the client and one of the origin; from Linux 6.13 on, with io_uring, none.",
            Some("ulimit -Hn 1048576"),
        ));
    }
    if let Some(bytes) = room.memory {
        bounds.push((
            bytes / SHARE.1 * SHARE.0 / MEMORY,
            "Each takes some 10 KiB of the kernel's memory, both ends together; with a proxy between, twice that.",
            None,
        ));
    }
    if let Some(files) = room.files {
        bounds.push((
            files / 2,
            "Each takes two of the open files that the system may have, and with a proxy between, four.",
            Some("sysctl -w fs.file-max=10000000"),
        ));
    }
    bounds
}

/// Only two digits of it are known.
fn round(count: u64) -> u64 {
    let unit = 10_u64.pow(count.max(1).ilog10().saturating_sub(1));
    count / unit * unit
}

pub(super) fn judge_tcp_memory(pages: Option<u64>) -> Check {
    let limit = pages.map(|pages| pages.saturating_mul(rustix::param::page_size() as u64));
    judge("tcp-memory", bytes(limit, " on their way before TCP holds back"))
}
