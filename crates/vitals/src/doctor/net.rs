//! Ports, queues and the loopback interface. The doctor runs these checks.

use super::{Check, judge, judge_word};
use crate::sys::{local_ports, number, sysctl};

pub(super) fn checks() -> Vec<Check> {
    let setting = |name: &str| sysctl(name)?.parse().ok();
    let conntrack = |what: &str| number(format!("/proc/sys/net/netfilter/nf_conntrack_{what}"));
    vec![
        judge_ports(local_ports()),
        judge_somaxconn(setting("net.core.somaxconn")),
        judge_syn_backlog(setting("net.ipv4.tcp_max_syn_backlog")),
        judge_tw_reuse(setting("net.ipv4.tcp_tw_reuse")),
        judge_udp_buffers(setting("net.core.rmem_max").zip(setting("net.core.wmem_max"))),
        judge_mtu(number("/sys/class/net/lo/mtu")),
        judge_conntrack(conntrack("count").zip(conntrack("max"))),
    ]
}

pub(super) fn judge_ports(range: Option<(u16, u16)>) -> Check {
    let value = range.map(|(first, last)| {
        let count = (u32::from(last) + 1).saturating_sub(u32::from(first));
        (f64::from(count), format!("{first} to {last}: {count} connections from one address to one port"))
    });
    judge("ports", value)
}

pub(super) fn judge_somaxconn(most: Option<u64>) -> Check {
    judge("listen-queue", most.map(|n| (n as f64, format!("somaxconn {n}"))))
}

pub(super) fn judge_syn_backlog(most: Option<u64>) -> Check {
    judge("syn-queue", most.map(|n| (n as f64, format!("tcp_max_syn_backlog {n}"))))
}

pub(super) fn judge_tw_reuse(mode: Option<u64>) -> Check {
    judge("time-wait", mode.map(|mode| (mode as f64, format!("tcp_tw_reuse {mode}"))))
}

/// The most that a socket may ask for, to receive and to send, bytes.
pub(super) fn judge_udp_buffers(most: Option<(u64, u64)>) -> Check {
    let value = most.map(|(to_receive, to_send)| {
        (to_receive.min(to_send) as f64, format!("rmem_max {to_receive}, wmem_max {to_send}"))
    });
    judge("udp-buffers", value)
}

pub(super) fn judge_mtu(mtu: Option<u64>) -> Check {
    judge_word("loopback-mtu", mtu.map(|mtu| mtu.to_string()).as_deref())
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
