//! Checks that the host has the descriptors and local ports that a load needs.
//!
//! Four values identify a connection: source address and port, target address and port. One source address can have as
//! many connections to one target as `net.ipv4.ip_local_port_range` has ports, about 28,000 by default. All of
//! 127.0.0.0/8 is this host, so a load on a loopback target can use more source addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_model::load::DriverChoice;
use weir_net::{Capacity, DescriptorKind, DriverKind, ProbeError};

use crate::error::LoadError;

/// The file with the range of ports that the kernel hands out.
const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The kernel's default, used when the file cannot be read.
const DEFAULT_RANGE: (u16, u16) = (32768, 60999);

/// Descriptors that each thread's driver needs, beside what `weir_net` keeps for the rest of the process.
const DESCRIPTORS_A_THREAD: u32 = 8;

/// Most threads that a client of several takes for each that was wished.
const MOST_TIMES: u32 = 64;

/// With a new connection for every request, sockets that are still closing overlap with the next ones.
const CLOSING_AT_ONCE: u32 = 1024;

/// The number of connections from one source address when weir may use more addresses. The kernel first gives out every
/// second port. For each connection beyond those it searches all of them again: the 14,117th of 28,232 takes a
/// millisecond.
const PER_SOURCE: u32 = 10_000;

/// Source addresses for a load on loopback that makes a new connection for every request.
const SOURCES_FOR_CLOSE: u32 = 16;

/// The resources of a host for a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources {
    pub driver: DriverKind,
    pub capacity: Capacity,
    /// The range of local ports, both ends included.
    pub ports: (u16, u16),
}

impl Resources {
    /// Those of this host. Raises the soft limit of descriptors.
    ///
    /// # Errors
    /// When the driver cannot be had.
    pub(crate) fn of_host(choice: DriverChoice) -> Result<Resources, LoadError> {
        let driver = probe(choice)?;
        Ok(Resources { driver, capacity: weir_net::capacity(driver), ports: port_range() })
    }

    /// More descriptors than any load takes, and the kernel's default of ports.
    pub(crate) fn unlimited() -> Resources {
        let capacity = Capacity { descriptors: 1 << 30, per_ring: 0 };
        Resources { driver: DriverKind::Epoll, capacity, ports: DEFAULT_RANGE }
    }
}

/// The driver that a load on this host has.
///
/// # Errors
/// When io_uring is wanted and does not work here.
pub fn probe(choice: DriverChoice) -> Result<DriverKind, ProbeError> {
    weir_net::probe(match choice {
        DriverChoice::Auto => None,
        DriverChoice::IoUring => Some(DriverKind::Uring),
        DriverChoice::Epoll => Some(DriverKind::Epoll),
    })
}

/// How this many connections are held, and the least number of threads. Beyond the limit of descriptors they are held
/// in the tables of as many rings as necessary, one per thread.
///
/// # Errors
/// [`LoadError::Descriptors`] when the host cannot hold them.
pub(crate) fn hold(
    capacity: Capacity,
    connections: u32,
    threads: u32,
    close: bool,
) -> Result<(u32, DescriptorKind), LoadError> {
    let closing = if close { connections.min(CLOSING_AT_ONCE) } else { 0 };
    let beside = DESCRIPTORS_A_THREAD.saturating_mul(threads).saturating_add(closing);
    match capacity.plan(connections.saturating_add(beside) as usize) {
        Some(plan) => Ok((threads.max(plan.drivers as u32), plan.descriptors)),
        None => {
            let most = capacity.max_connections(threads as usize).saturating_sub(u64::from(beside));
            // Descriptors that are needed beside the connections and are not free now.
            let need = capacity.descriptors + u64::from(connections).saturating_sub(most);
            Err(LoadError::Descriptors { connections, need, limit: capacity.descriptors, most })
        }
    }
}

/// The threads of each of several clients that make one load together: as many as wished, or for all the same multiple of that
/// where the connections of one would not fit its host's descriptors. `hosts` has the wished threads of each, and the limit of
/// descriptors that a process has there.
pub fn threads_of_clients(hosts: &[(u32, u64)], connections: u32, close: bool) -> Vec<u32> {
    let all: u64 = hosts.iter().map(|(threads, _)| u64::from(*threads)).sum();
    let fits = |times: u32| {
        hosts.iter().all(|&(threads, descriptors)| {
            let capacity = Capacity { descriptors, per_ring: u32::try_from(descriptors).unwrap_or(u32::MAX) };
            let share = (u64::from(connections) * u64::from(threads)).div_ceil(all.max(1)) as u32;
            // What fits no number of threads is refused there, with what would be right.
            hold(capacity, share, threads * times, close).is_ok_and(|(needed, _)| needed <= threads * times)
        })
    };
    let times = (1..=MOST_TIMES).find(|times| fits(*times)).unwrap_or(1);
    hosts.iter().map(|(threads, _)| threads * times).collect()
}

/// The range of ports that the kernel hands out, both ends included.
pub(crate) fn port_range() -> (u16, u16) {
    std::fs::read_to_string(RANGE_FILE).ok().and_then(|text| parse_range(&text)).unwrap_or(DEFAULT_RANGE)
}

fn parse_range(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_whitespace().map(str::parse::<u16>);
    let low = numbers.next()?.ok()?;
    let high = numbers.next()?.ok()?;
    (low <= high).then_some((low, high))
}

/// Source addresses for this many connections to one target, used in turn: those given, otherwise as many as needed.
/// `None` leaves the choice to the kernel, and so does the unspecified address, for which the kernel tries all ports alike: the
/// better way when many are taken.
///
/// A tenth of the ports is left to other programs on this host and to sockets that are still closing. With a new
/// connection for every request (`close`), each connection blocks its port for at least a second (`TIME_WAIT`). So one
/// address allows some 28,000 connections a second, and loads on 127.0.0.0/8 then use several addresses, however few
/// connections are open at a time.
///
/// # Errors
/// [`LoadError::Ports`] when the connections do not fit, and addresses were given or the target is not in 127.0.0.0/8.
pub(crate) fn sources(
    target: SocketAddr,
    given: &[IpAddr],
    connections: u32,
    close: bool,
    range: (u16, u16),
) -> Result<Vec<Option<IpAddr>>, LoadError> {
    let all = u32::from(range.1.saturating_sub(range.0)) + 1;
    let ports = (all - all / 10).max(1);
    if !given.is_empty() {
        let ports = ports.saturating_mul(given.len() as u32);
        let fits = connections <= ports;
        let sources = given.iter().copied().map(Some).collect();
        return if fits { Ok(sources) } else { Err(LoadError::Ports { connections, target, ports }) };
    }
    let needed = connections.div_ceil(ports.min(PER_SOURCE)).max(if close { SOURCES_FOR_CLOSE } else { 1 });
    match target.ip() {
        IpAddr::V4(ip) if ip.is_loopback() && needed > 1 => {
            let first = u32::from(Ipv4Addr::LOCALHOST);
            Ok((0..needed).map(|i| Some(IpAddr::V4(Ipv4Addr::from(first + i)))).collect())
        }
        ip if connections <= ports => Ok(vec![(connections > all / 5 * 2).then(|| unspecified(ip))]),
        _ => Err(LoadError::Ports { connections, target, ports }),
    }
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn few_connections_leave_the_source_to_the_kernel() {
        let got = sources(addr("127.0.0.1:80"), &[], 10_000, false, (32768, 60999)).unwrap();
        assert_eq!(got, vec![None]);
    }

    #[test]
    fn many_connections_to_loopback_spread() {
        let got = sources(addr("127.0.0.1:80"), &[], 200_000, false, (32768, 60999)).unwrap();
        assert_eq!(got.len(), 20);
        assert_eq!(got[0], Some("127.0.0.1".parse().unwrap()));
        assert_eq!(got[19], Some("127.0.0.20".parse().unwrap()));
    }

    #[test]
    fn a_connection_for_every_request_takes_several_addresses_where_there_are_some() {
        let got = |target| sources(addr(target), &[], 10, true, (32768, 60999)).unwrap();
        assert_eq!(got("127.0.0.1:80").len(), 16);
        assert_eq!(got("192.0.2.1:80"), vec![None]);
    }

    #[test]
    fn given_addresses_are_used_and_counted() {
        let given = ["127.0.0.9".parse().unwrap(), "127.0.0.8".parse().unwrap()];
        let got = |n| sources(addr("127.0.0.1:80"), &given, n, false, (32768, 60999));
        assert_eq!(got(50_000).unwrap(), given.map(Some));
        assert!(matches!(got(51_000), Err(LoadError::Ports { ports: 50_818, .. })));
    }

    #[test]
    fn for_many_connections_elsewhere_all_ports_are_tried_alike() {
        let got = |target, n| sources(addr(target), &[], n, false, (32768, 60999)).unwrap();
        assert_eq!(got("192.0.2.1:80", 9_000), vec![None]);
        assert_eq!(got("192.0.2.1:80", 25_000), vec![Some("0.0.0.0".parse().unwrap())]);
        assert_eq!(got("[::1]:80", 25_000), vec![Some("::".parse().unwrap())]);
    }

    #[test]
    fn many_connections_elsewhere_are_refused_with_a_remedy() {
        for target in ["192.0.2.1:80", "[::1]:80"] {
            let error = sources(addr(target), &[], 26_000, false, (32768, 60999)).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("ip_local_port_range") && text.contains("at most 25409"), "{text}");
        }
    }

    #[test]
    fn range_is_read_as_the_kernel_writes_it() {
        assert_eq!(parse_range("32768\t60999\n"), Some((32768, 60999)));
        assert_eq!(parse_range("1024"), None);
        assert_eq!(parse_range("60999 32768"), None);
        assert_eq!(parse_range("a b"), None);
    }

    #[test]
    fn beyond_the_descriptors_there_are_tables() {
        let here = Capacity { descriptors: 20_000, per_ring: 20_000 };
        assert_eq!(hold(here, 10_000, 2, false).unwrap(), (2, DescriptorKind::Regular));
        assert_eq!(hold(here, 200_000, 2, false).unwrap(), (11, DescriptorKind::Direct));
        assert_eq!(hold(here, 200_000, 16, false).unwrap(), (16, DescriptorKind::Direct));
    }

    #[test]
    fn several_clients_take_threads_for_the_connections_of_each() {
        let four = [(1, 20_000); 4];
        assert_eq!(threads_of_clients(&four, 64, false), [1; 4]);
        assert_eq!(threads_of_clients(&four, 200_000, false), [3; 4]);
        assert_eq!(threads_of_clients(&[(1, 1 << 20), (3, 20_000)], 80_000, false), [2, 6], "60,000 on the second");
        assert_eq!(threads_of_clients(&[(2, 0)], 10, false), [2], "refused there");
    }

    #[test]
    fn too_few_descriptors_are_said_with_what_would_fit() {
        let epoll = Capacity { descriptors: 1024, per_ring: 0 };
        assert!(hold(epoll, 700, 1, false).is_ok());
        let error = hold(epoll, 1000, 1, false).unwrap_err();
        let text = error.to_string();
        // 256 are for the rest of the process, and 8 for the thread.
        assert!(text.contains("1264") && text.contains("at most 760"), "{text}");
        assert!(hold(epoll, 760, 1, false).is_ok());
        assert!(hold(epoll, 700, 1, true).is_err());
    }
}
