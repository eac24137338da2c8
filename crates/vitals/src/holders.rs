//! Who holds a product's connections, those of its clients and those to its origins: a process that is not its own would do its work.
//!
//! [`crate::watch`] calls it before a window, when the connections are there, and after it. Of many connections the first are looked
//! at. A socket that only an io_uring holds has no descriptor and no holder here. It does not know who serves.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use weir_model::owners::Holder;

use crate::file::Reader;
use crate::parse::number;
use crate::sockets;
use crate::watch::Served;

/// So many connections of each side are looked at.
const MOST: usize = 64;
/// So many sockets are listed in any case: those to origins may come last.
const LEAST_LISTED: u32 = 10_000;
/// So many are listed until so many connections of clients are found.
const MOST_LISTED: u32 = 200_000;
/// Descriptors of a process that are looked at.
const MOST_DESCRIPTORS: usize = 65_536;

/// The processes among `pids` that hold connections of the product's clients, or to its origins. weir's own hold some to origins.
pub(crate) fn holders(served: &Served, pids: impl Iterator<Item = u32>, reader: &mut Reader) -> Vec<Holder> {
    let inodes = connections(served);
    if inodes.is_empty() {
        return Vec::new();
    }
    let of = inodes.len() as u32;
    let own = program("self");
    pids.filter_map(|pid| {
        let connections = held(pid, &inodes, reader);
        let is_weir = || own.is_some() && program(&pid.to_string()) == own;
        (connections > 0 && !is_weir()).then(|| Holder { name: name(pid), pid, connections, of, used: None })
    })
    .collect()
}

/// The file that a process runs: device and inode.
fn program(pid: &str) -> Option<(u64, u64)> {
    let file = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((file.dev(), file.ino()))
}

/// What was found before a window and after it: of each process where it held most.
pub(crate) fn joined(before: Vec<Holder>, after: Vec<Holder>) -> Vec<Holder> {
    let mut all: HashMap<u32, Holder> = before.into_iter().map(|holder| (holder.pid, holder)).collect();
    for holder in after {
        let known = all.entry(holder.pid).or_insert_with(|| holder.clone());
        if holder.connections > known.connections {
            *known = holder;
        }
    }
    let mut all: Vec<Holder> = all.into_values().collect();
    all.sort_by_key(|holder| (std::cmp::Reverse(holder.connections), holder.pid));
    all
}

/// Inodes of the first of its connections, of both sides.
fn connections(served: &Served) -> HashSet<u64> {
    let (mut clients, mut origins, mut listed) = (HashSet::new(), HashSet::new(), 0);
    // A kernel that cannot be asked says of nobody that he holds one.
    let _ = sockets::list(|one| {
        listed += 1;
        if one.local_port == served.port && clients.len() < MOST {
            clients.insert(one.inode);
        } else if served.origins.contains(&one.remote_port) && origins.len() < MOST {
            origins.insert(one.inode);
        }
        let some = clients.len() == MOST && (origins.len() == MOST || listed > LEAST_LISTED);
        !some && listed < MOST_LISTED
    });
    clients.extend(origins);
    clients.remove(&0);
    clients
}

/// How many of these sockets a process holds.
fn held(pid: u32, inodes: &HashSet<u64>, reader: &mut Reader) -> u32 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = openat(CWD, format!("/proc/{pid}/fd"), flags, Mode::empty()) else { return 0 };
    let mut descriptors = Vec::new();
    // A process of which this may not be read holds what it holds unseen.
    let _ = reader.numbers_in(&dir, |fd| descriptors.push(fd));
    let sockets = descriptors.into_iter().take(MOST_DESCRIPTORS).filter_map(|fd| socket(&dir, fd));
    sockets.filter(|inode| inodes.contains(inode)).collect::<HashSet<u64>>().len() as u32
}

fn socket(dir: &OwnedFd, fd: u32) -> Option<u64> {
    let target = readlinkat(dir, format!("{fd}"), Vec::new()).ok()?;
    number(target.to_bytes().strip_prefix(b"socket:[")?.strip_suffix(b"]")?)
}

fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_process_that_has_a_connection_is_found() {
        // A shell that holds both ends of a connection; this test itself runs the program that is left out.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let client = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        let (accepted, _) = listener.accept().expect("accepts");
        // Those of earlier loads are no connections any more.
        let earlier = TcpListener::bind("127.0.0.1:0").expect("a port");
        for _ in 0..4_000 {
            drop(TcpStream::connect(earlier.local_addr().expect("bound")).expect("connects"));
            drop(earlier.accept().expect("accepts"));
        }
        let holding = |stream: TcpStream| {
            let stream = std::process::Stdio::from(std::os::fd::OwnedFd::from(stream));
            std::process::Command::new("sleep").arg("20").stdin(stream).spawn().expect("sleep starts")
        };
        let mut sides = [holding(accepted), holding(client)];
        let pids = [sides[0].id(), sides[1].id(), std::process::id()];
        let seen = |served: Served| {
            let found = holders(&served, pids.into_iter(), &mut Reader::new());
            found.into_iter().map(|it| (it.name, it.pid, it.connections, it.of)).collect::<Vec<_>>()
        };
        let both = [seen(Served { port, origins: Vec::new() }), seen(Served { port: 1, origins: vec![port] })];
        let none = seen(Served { port: 1, origins: Vec::new() });
        for side in &mut sides {
            side.kill().expect("killed");
            side.wait().expect("ended");
        }
        let of = |pid| vec![("sleep".to_owned(), pid, 1, 1)];
        assert_eq!(both, [of(pids[0]), of(pids[1])]);
        assert!(none.is_empty());
    }

    #[test]
    fn a_holder_is_told_once() {
        let holder = |pid, connections| Holder { name: "a".into(), pid, connections, of: 9, used: None };
        let both = joined(vec![holder(1, 2), holder(2, 9)], vec![holder(1, 5)]);
        assert_eq!(both.iter().map(|it| (it.pid, it.connections)).collect::<Vec<_>>(), [(2, 9), (1, 5)]);
    }
}
