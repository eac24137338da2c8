//! Free ports, and which process listens on one. The local host and the trial call it.
//!
//! Ports are below the kernel's ephemeral range, so an outgoing connection cannot take one between the check and the product's
//! bind. Where the ephemeral range begins below 16,000, a port may still be taken in between; the trial then becomes an error
//! row.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::Host;

/// First port weir gives out.
const LOWEST: u16 = 15_000;

/// 127.0.0.1.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// No free port was found.
#[derive(Debug, Clone, thiserror::Error, Serialize, Deserialize)]
#[error(
    "no free port on {at} between {LOWEST} and {top} in 200 tries\n  to mend it: see what listens there with `ss -ltn`"
)]
pub struct NoPort {
    /// The address that was tried.
    pub at: IpAddr,
    /// The last port that was tried.
    pub top: u16,
}

/// Chooses `count` different ports on which this address of this machine has no listener now.
///
/// # Errors
/// When 200 random candidates were all taken.
pub fn free(at: IpAddr, count: usize) -> Result<Vec<SocketAddr>, NoPort> {
    let top = ephemeral_start().max(LOWEST + 1_000);
    let mut found: Vec<SocketAddr> = Vec::with_capacity(count);
    let mut rng = rand::rng();
    for _ in 0..200 {
        if found.len() == count {
            return Ok(found);
        }
        let addr = SocketAddr::new(at, rng.random_range(LOWEST..top));
        // Without SO_REUSEADDR, bind also refuses ports with sockets in TIME_WAIT.
        if !found.contains(&addr) && TcpListener::bind(addr).is_ok() {
            found.push(addr);
        }
    }
    if found.len() == count { Ok(found) } else { Err(NoPort { at, top }) }
}

/// `N` free ports of a host's loopback address.
///
/// # Errors
/// When there are not enough free ports.
pub fn free_on<const N: usize>(host: &dyn Host) -> Result<[SocketAddr; N], NoPort> {
    host.free_ports(LOOPBACK, N)?.try_into().map_err(|_| NoPort { at: LOOPBACK, top: LOWEST })
}

fn ephemeral_start() -> u16 {
    weir_vitals::local_ports().map_or(32_768, |(first, _)| first)
}

/// Checks that the socket listening on `addr` belongs to one of `pids`, and not to another process on that port.
///
/// # Errors
/// What was found instead, as far as /proc shows it.
pub fn listener_belongs_to(addr: SocketAddr, pids: &[u32]) -> Result<(), String> {
    let inodes = listening_inodes(addr.port())?;
    if inodes.is_empty() {
        return Err(format!("nothing listens on {addr}"));
    }
    for pid in pids {
        let Ok(process) = procfs::process::Process::new(*pid as i32) else { continue };
        let Ok(fds) = process.fd() else { continue };
        for fd in fds.flatten() {
            if let procfs::process::FDTarget::Socket(inode) = fd.target
                && inodes.contains(&inode)
            {
                return Ok(());
            }
        }
    }
    Err(format!("the socket listening on {addr} belongs to none of the processes that weir started ({pids:?})"))
}

fn listening_inodes(port: u16) -> Result<Vec<u64>, String> {
    let mut sockets = procfs::net::tcp().map_err(|e| format!("/proc/net/tcp: {e}"))?;
    // A machine without IPv6 has no tcp6 table. A product may listen on [::] for both.
    sockets.extend(procfs::net::tcp6().unwrap_or_default());
    let listening: Vec<u64> = sockets
        .into_iter()
        .filter(|s| s.state == procfs::net::TcpState::Listen && s.local_address.port() == port)
        .map(|s| s.inode)
        .collect();
    if !listening.is_empty() {
        return Ok(listening);
    }
    // A server of HTTP/3 alone has a socket of UDP.
    let mut sockets = procfs::net::udp().map_err(|e| format!("/proc/net/udp: {e}"))?;
    sockets.extend(procfs::net::udp6().unwrap_or_default());
    Ok(sockets.into_iter().filter(|s| s.local_address.port() == port).map(|s| s.inode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_are_free_and_below_the_ephemeral_range() {
        assert!(free(LOOPBACK, 0).expect("no port is needed").is_empty());
        let ports = free(LOOPBACK, 3).expect("three of thousands of ports are free");
        assert_ne!(ports[0], ports[1]);
        assert_ne!(ports[1], ports[2]);
        for addr in ports {
            assert!(addr.port() < ephemeral_start().max(LOWEST + 1_000));
            assert!(TcpListener::bind(addr).is_ok(), "{addr} was said to be free");
        }
    }

    #[test]
    fn the_listener_is_found_only_with_its_own_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("bound");
        assert_eq!(listener_belongs_to(addr, &[std::process::id()]), Ok(()));
        assert!(listener_belongs_to(addr, &[1]).is_err());
        drop(listener);
        assert!(listener_belongs_to(addr, &[std::process::id()]).is_err());
        let bound = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let addr = bound.local_addr().expect("bound");
        assert_eq!(listener_belongs_to(addr, &[std::process::id()]), Ok(()));
        assert!(listener_belongs_to(addr, &[1]).is_err());
    }
}
