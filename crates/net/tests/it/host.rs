//! What a thread asks of its host, and listening sockets.

use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;

use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::sockopt;
use weir_net::{EpollDriver, listen_socket, pin_to_cpu, raise_descriptor_limit};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[test]
fn the_soft_limit_becomes_the_hard_one() {
    let (soft, hard) = raise_descriptor_limit();
    assert_eq!(soft, hard);
    assert!(soft > 0);
}

#[test]
fn a_pinned_thread_may_use_one_cpu() {
    std::thread::spawn(|| {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        let first = (0..1024).find(|&cpu| before.is_set(cpu)).unwrap();
        pin_to_cpu(first as u32).unwrap();
        let after = rustix::thread::sched_getaffinity(None).unwrap();
        assert_eq!(after.count(), 1);
        assert!(after.is_set(first));
        assert!(pin_to_cpu(1_000_000).is_err());
        assert!(pin_to_cpu(1_000).is_err(), "a machine with so many CPUs?");
    })
    .join()
    .unwrap();
}

#[test]
fn a_driver_sets_its_threads_timer_slack() {
    std::thread::spawn(|| {
        let _driver = EpollDriver::new().unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
    })
    .join()
    .unwrap();
}

#[test]
fn listeners_have_the_required_options() {
    let listener = listen_socket(ANY_PORT, 100_000, false).unwrap();
    assert!(sockopt::tcp_nodelay(&listener).unwrap());
    let flags = rustix::fs::fcntl_getfl(&listener).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    assert!(fcntl_getfd(listener.as_fd()).unwrap().contains(FdFlags::CLOEXEC));
    let addr = listener.local_addr().unwrap();
    assert!(listen_socket(addr, 10, false).is_err(), "taken");
    assert!(listen_socket(addr, 10, true).is_err(), "both must share");
}

#[test]
fn two_listeners_can_share_an_address() {
    let one = listen_socket(ANY_PORT, 10, true).unwrap();
    let addr = one.local_addr().unwrap();
    let two = listen_socket(addr, 10, true).unwrap();
    assert_eq!(two.local_addr().unwrap(), addr);
}

#[test]
fn addresses_of_version_six_work() {
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let listener = listen_socket(any, 10, false).expect("an IPv6 loopback");
    let address = listener.local_addr().unwrap();
    assert_eq!(address.ip(), any.ip());
    TcpStream::connect(address).unwrap();
}
