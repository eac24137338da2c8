//! Ports, queues and the loopback interface.

use super::Check;
use crate::sys::{local_ports, number, sysctl};

pub(super) fn checks() -> Vec<Check> {
    let setting = |name: &str| sysctl(name)?.parse().ok();
    let conntrack = |what: &str| number(format!("/proc/sys/net/netfilter/nf_conntrack_{what}"));
    vec![
        judge_ports(local_ports()),
        judge_somaxconn(setting("net.core.somaxconn")),
        judge_syn_backlog(setting("net.ipv4.tcp_max_syn_backlog")),
        judge_tw_reuse(setting("net.ipv4.tcp_tw_reuse")),
        judge_mtu(number("/sys/class/net/lo/mtu")),
        judge_conntrack(conntrack("count").zip(conntrack("max"))),
    ]
}

/// Linux's own default, 32768 to 60999, has 28,232: a proxy that opens a connection per request uses them up in
/// seconds, and weir spreads its client over many source addresses. A smaller range was configured on this machine.
pub(super) fn judge_ports(range: Option<(u16, u16)>) -> Check {
    let name = "ports";
    let Some((first, last)) = range else {
        return Check::unknown(name, "the kernel does not say", "Connections may fail for want of a port.");
    };
    let count = (u32::from(last) + 1).saturating_sub(u32::from(first));
    let seen = format!("{first} to {last}: {count} connections from one address to one port");
    if count >= 28_000 {
        return Check::ok(name, seen, "weir's client uses further source addresses beyond that.");
    }
    let why = "A proxy that does not keep its upstream connections runs out of ports, and answers with errors.";
    Check::warn(name, seen, why).mend("sysctl -w net.ipv4.ip_local_port_range=\"15000 65000\"")
}

/// 4096 is Linux's default since 5.4; the 128 before that overflows when a few hundred connections come at once.
pub(super) fn judge_somaxconn(most: Option<u64>) -> Check {
    let name = "listen-queue";
    match most {
        None => Check::unknown(name, "the kernel does not say", "Connections that come at once may be dropped."),
        Some(n) if n >= 4096 => Check::ok(name, format!("somaxconn {n}"), "Connections that come at once can wait."),
        Some(n) => {
            let why =
                "Connections that come at once are dropped and tried again after a second: latency of 1 s appears.";
            Check::warn(name, format!("somaxconn {n}"), why).mend("sysctl -w net.core.somaxconn=65535")
        }
    }
}

/// The kernel's default grows with memory, from 128; 1024 is what machines of 4 GiB and more get at least.
pub(super) fn judge_syn_backlog(most: Option<u64>) -> Check {
    let name = "syn-queue";
    match most {
        None => Check::unknown(name, "the kernel does not say", "Connections that come at once may be dropped."),
        Some(n) if n >= 1024 => {
            Check::ok(name, format!("tcp_max_syn_backlog {n}"), "Handshakes that come at once can wait.")
        }
        Some(n) => {
            let why = "Handshakes that come at once are dropped, or answered with cookies that lose TCP options.";
            Check::warn(name, format!("tcp_max_syn_backlog {n}"), why)
                .mend("sysctl -w net.ipv4.tcp_max_syn_backlog=65535")
        }
    }
}

pub(super) fn judge_tw_reuse(mode: Option<u64>) -> Check {
    let name = "time-wait";
    let why = "On loopback a port in TIME_WAIT is used again after a second.";
    match mode {
        None => Check::unknown(name, "the kernel does not say", "Ports may stay blocked for a minute after use."),
        Some(0) => {
            let why = "Each closed connection blocks its port for a minute: products that do not keep connections \
                       stop at some 470 requests a second an address.";
            Check::warn(name, "tcp_tw_reuse 0", why).mend("sysctl -w net.ipv4.tcp_tw_reuse=2")
        }
        Some(mode) => Check::ok(name, format!("tcp_tw_reuse {mode}"), why),
    }
}

/// 65536 is Linux's default for loopback.
pub(super) fn judge_mtu(mtu: Option<u64>) -> Check {
    let name = "loopback-mtu";
    match mtu {
        None => Check::unknown(name, "there is no interface `lo`", "All traffic of a local run is on loopback."),
        Some(65536) => Check::ok(name, "65536", "Linux's default."),
        Some(other) => {
            let why = "Not Linux's default: large answers take another number of segments than elsewhere.";
            Check::warn(name, other.to_string(), why).mend("ip link set lo mtu 65536")
        }
    }
}

/// Count and maximum. If present, each connection, on loopback too, costs a table entry and a lookup per packet.
pub(super) fn judge_conntrack(table: Option<(u64, u64)>) -> Check {
    let name = "conntrack";
    let Some((count, most)) = table else {
        return Check::ok(name, "not loaded", "Packets on loopback are not tracked.");
    };
    let seen = format!("{count} of {most} connections tracked");
    if count < most / 2 {
        let why =
            "Noted: loaded by a firewall or by containers; it costs every packet a lookup, for all products alike.";
        return Check::ok(name, seen, why);
    }
    let why = "When the table is full, new connections are dropped.";
    Check::warn(name, seen, why).mend(format!("sysctl -w net.netfilter.nf_conntrack_max={}", most.saturating_mul(4)))
}
