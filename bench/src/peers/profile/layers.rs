//! Assigns each sample of `perf` to a layer by its call chain.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

/// A layer of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The program's own code.
    User,
    /// io_uring: submitting, task work, completions.
    Uring,
    /// epoll.
    Epoll,
    /// The way into a system call and to the socket.
    Syscall,
    /// `tcp_sendmsg` down to the loopback device.
    Send,
    /// Softirq: what was just sent comes in at the peer's socket, or the peer's packet at ours.
    SoftirqIn,
    /// Softirq: acknowledged buffers are freed, round trips and rates are computed.
    SoftirqAck,
    /// Softirq: whoever waits for the packet is woken.
    SoftirqWake,
    /// `tcp_recvmsg`.
    Receive,
    /// Going to sleep and waking up.
    Sleep,
    /// All else: interrupts, faults, freeing of buffers that the other CPU returned.
    Other,
}

/// All, in the order of tables, with their names there, and whether they are TCP's and IP's work, whatever the program does.
pub const LAYERS: [(Layer, &str, bool); 11] = [
    (Layer::User, "user", false),
    (Layer::Uring, "io_uring", false),
    (Layer::Epoll, "epoll", false),
    (Layer::Syscall, "system calls", false),
    (Layer::Send, "send: TCP and IP out", true),
    (Layer::SoftirqIn, "softirq: IP and TCP in", true),
    (Layer::SoftirqAck, "softirq: acknowledged", true),
    (Layer::SoftirqWake, "softirq: waking the reader", true),
    (Layer::Receive, "receive: copied out", true),
    (Layer::Sleep, "sleeping and waking", false),
    (Layer::Other, "other", false),
];

const SOFTIRQ: &[&str] = &["net_rx_action"];

/// A sample belongs to the first of these of which the call chain has one of the first names and one of the second.
const RULES: [(Layer, &[&str], &[&str]); 10] = [
    (Layer::SoftirqWake, SOFTIRQ, &["try_to_wake_up", "__wake_up", "sock_def_readable"]),
    (Layer::SoftirqAck, SOFTIRQ, &["tcp_ack", "tcp_clean_rtx"]),
    (Layer::SoftirqIn, SOFTIRQ, &[""]),
    (Layer::Send, &["tcp_sendmsg", "tcp_push"], &[""]),
    (Layer::Receive, &["tcp_recvmsg", "inet_recvmsg", "tcp_cleanup_rbuf"], &[""]),
    (Layer::Sleep, &["schedule", "finish_task_switch"], &[""]),
    (Layer::Epoll, &["ep_poll", "epoll"], &[""]),
    (Layer::Uring, &["io_uring", "io_submit", "io_issue", "io_run", "io_poll", "__io_"], &[""]),
    (Layer::Syscall, &["entry_SYSCALL", "do_syscall"], &[""]),
    (Layer::Other, &["asm_", "ret_from_fork", "tcp_"], &[""]),
];

impl Layer {
    /// Of a call chain.
    fn of(chain: &[&str]) -> Layer {
        let any = |names: &[&str]| chain.iter().any(|frame| names.iter().any(|name| frame.contains(name)));
        RULES.iter().find(|(_, first, second)| any(first) && any(second)).map_or(Layer::User, |(layer, ..)| *layer)
    }
}

/// How the samples of a process are shared out.
#[derive(Debug, Default)]
pub struct Shares {
    all: u64,
    /// Samples of each layer, by the innermost function.
    by_layer: BTreeMap<Layer, BTreeMap<String, u64>>,
}

impl Shares {
    /// Share of a layer, 0 to 1.
    pub fn of(&self, layer: Layer) -> f64 {
        let count: u64 = self.by_layer.get(&layer).map_or(0, |functions| functions.values().sum());
        if self.all == 0 { 0.0 } else { count as f64 / self.all as f64 }
    }

    /// The functions in which most of a layer's samples were, with their shares of all.
    pub fn top_functions(&self, layer: Layer) -> String {
        let Some(functions) = self.by_layer.get(&layer) else { return String::new() };
        let mut sorted: Vec<(&String, &u64)> = functions.iter().collect();
        sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let share = |count: u64| 100.0 * count as f64 / self.all as f64;
        let shown = sorted.into_iter().take(3).filter(|(_, count)| share(**count) >= 1.0);
        shown.map(|(name, count)| format!("`{name}` {:.1} %", share(*count))).collect::<Vec<_>>().join(", ")
    }
}

/// Shares of one process in the output of `perf script -F pid,ip,sym`.
pub fn shares(script: &str, pid: u32) -> Shares {
    let mut shares = Shares::default();
    for chain in chains(script, pid) {
        shares.all += 1;
        *shares.by_layer.entry(Layer::of(&chain)).or_default().entry(short(chain[0])).or_default() += 1;
    }
    shares
}

/// The call chain of every sample of a process, innermost first; none is empty.
fn chains(script: &str, pid: u32) -> impl Iterator<Item = Vec<&str>> {
    script.split("\n\n").filter_map(move |sample| {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let of: u32 = lines.next()?.split_whitespace().next()?.parse().ok()?;
        let chain: Vec<&str> = lines.filter_map(|line| line.trim().split_once(' ').map(|(_, name)| name)).collect();
        (of == pid && !chain.is_empty()).then_some(chain)
    })
}

/// A function's name as it fits into a table.
fn short(name: &str) -> String {
    let name: String = name.replace("weir_", "").chars().take(60).collect();
    name.replace('|', "/")
}

/// Draws a flame graph of one process with `inferno-flamegraph`; nothing where that is not installed.
///
/// # Errors
/// When the file cannot be written.
pub fn flame_graph(script: &str, pid: u32, file: &Path) -> anyhow::Result<()> {
    let Some(program) = crate::peers::process::find("inferno-flamegraph") else { return Ok(()) };
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for chain in chains(script, pid) {
        let names: Vec<String> = chain.iter().rev().map(|name| short(name).replace(';', ":")).collect();
        *counts.entry(names.join(";")).or_default() += 1;
    }
    let out = std::fs::File::create(file).with_context(|| file.display().to_string())?;
    let mut command = Command::new(program);
    command.args(["--minwidth", "0.4", "--title", &file.file_stem().unwrap_or_default().to_string_lossy()]);
    let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        for (chain, count) in counts {
            writeln!(stdin, "{chain} {count}")?;
        }
    }
    child.wait()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
 77 \n\tffff tcp_ack\n\tffff tcp_rcv_established\n\tffff net_rx_action\n\tffff tcp_sendmsg\n\tffff do_syscall_64\n\n\
 77 \n\tffff skb_copy\n\tffff tcp_sendmsg\n\tffff io_issue_sqe\n\tffff do_syscall_64\n\n\
 77 \n\tffff io_submit_sqes\n\tffff do_syscall_64\n\n\
 77 \n\t55aa weir_wire::http1::next\n\t55aa main\n\n\
 88 \n\tffff tcp_sendmsg\n\n";

    #[test]
    fn samples_belong_to_the_innermost_layer() {
        let found = shares(SCRIPT, 77);
        assert_eq!(found.all, 4);
        for layer in [Layer::SoftirqAck, Layer::Send, Layer::Uring, Layer::User] {
            assert_eq!(found.of(layer), 0.25, "{layer:?}");
        }
        assert_eq!(found.top_functions(Layer::User), "`wire::http1::next` 25.0 %");
        assert_eq!(shares(SCRIPT, 88).of(Layer::Send), 1.0);
        assert_eq!(shares(SCRIPT, 99).of(Layer::Send), 0.0);
    }
}
