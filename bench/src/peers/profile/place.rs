//! Which part of the work a sample belongs to, by its call chain.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

/// Part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The program's own code.
    User,
    /// io_uring: submitting, task work, completions.
    Uring,
    /// epoll.
    Epoll,
    /// The way into a system call and to the socket.
    Call,
    /// `tcp_sendmsg` down to the loopback device.
    Send,
    /// Softirq: what was just sent comes in at the peer's socket, or the peer's packet at ours.
    SoftIn,
    /// Softirq: acknowledged buffers are freed, round trips and rates are reckoned.
    SoftAck,
    /// Softirq: whoever waits for the packet is woken.
    SoftWake,
    /// `tcp_recvmsg`.
    Receive,
    /// Going to sleep and waking up.
    Sleep,
    /// All else: interrupts, faults, freeing of buffers that the other CPU gave back.
    Other,
}

/// All, in the order of tables.
pub const PLACES: [Place; 11] = [
    Place::User,
    Place::Uring,
    Place::Epoll,
    Place::Call,
    Place::Send,
    Place::SoftIn,
    Place::SoftAck,
    Place::SoftWake,
    Place::Receive,
    Place::Sleep,
    Place::Other,
];

impl Place {
    /// Its line in tables.
    pub fn name(self) -> &'static str {
        match self {
            Place::User => "user",
            Place::Uring => "io_uring",
            Place::Epoll => "epoll",
            Place::Call => "system calls",
            Place::Send => "send: TCP and IP out",
            Place::SoftIn => "softirq: IP and TCP in",
            Place::SoftAck => "softirq: acknowledged",
            Place::SoftWake => "softirq: waking the reader",
            Place::Receive => "receive: copied out",
            Place::Sleep => "sleeping and waking",
            Place::Other => "other",
        }
    }

    /// Whether it is TCP's and IP's work, whatever the program does.
    pub fn is_tcp(self) -> bool {
        matches!(self, Place::Send | Place::SoftIn | Place::SoftAck | Place::SoftWake | Place::Receive)
    }

    /// Of a call chain, innermost first.
    fn of(chain: &[&str]) -> Place {
        let any = |names: &[&str]| chain.iter().any(|frame| names.iter().any(|name| frame.contains(name)));
        let in_kernel = any(&["entry_SYSCALL", "do_syscall", "asm_", "ret_from_fork", "net_rx_action"])
            || any(&["tcp_", "io_uring", "schedule"]);
        match () {
            () if any(&["net_rx_action"]) => match () {
                () if any(&["try_to_wake_up", "__wake_up", "sock_def_readable"]) => Place::SoftWake,
                () if any(&["tcp_ack", "tcp_clean_rtx"]) => Place::SoftAck,
                () => Place::SoftIn,
            },
            () if any(&["tcp_sendmsg", "tcp_push"]) => Place::Send,
            () if any(&["tcp_recvmsg", "inet_recvmsg", "tcp_cleanup_rbuf"]) => Place::Receive,
            () if any(&["schedule", "finish_task_switch"]) => Place::Sleep,
            () if any(&["ep_poll", "epoll"]) => Place::Epoll,
            () if any(&["io_uring", "io_submit", "io_issue", "io_run", "io_poll", "__io_"]) => Place::Uring,
            () if any(&["entry_SYSCALL", "do_syscall"]) => Place::Call,
            () if in_kernel => Place::Other,
            () => Place::User,
        }
    }
}

/// How the samples of a process are shared out.
#[derive(Debug, Default)]
pub struct Shares {
    all: u64,
    /// Samples of each place, by the innermost function.
    by_place: BTreeMap<Place, BTreeMap<String, u64>>,
}

impl Shares {
    /// Share of a place, 0 to 1.
    pub fn of(&self, place: Place) -> f64 {
        let count: u64 = self.by_place.get(&place).map_or(0, |functions| functions.values().sum());
        if self.all == 0 { 0.0 } else { count as f64 / self.all as f64 }
    }

    /// The functions in which most of a place's samples were, with their shares of all.
    pub fn tops(&self, place: Place) -> String {
        let Some(functions) = self.by_place.get(&place) else { return String::new() };
        let mut sorted: Vec<(&String, &u64)> = functions.iter().collect();
        sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let share = |count: u64| 100.0 * count as f64 / self.all as f64;
        let shown = sorted.into_iter().take(6).filter(|(_, count)| share(**count) >= 0.3);
        shown.map(|(name, count)| format!("`{name}` {:.1} %", share(*count))).collect::<Vec<_>>().join(", ")
    }
}

/// Shares of one process in the output of `perf script -F pid,ip,sym`.
pub fn shares(script: &str, pid: u32) -> Shares {
    let mut shares = Shares::default();
    each_chain(script, pid, |chain| {
        shares.all += 1;
        let functions = shares.by_place.entry(Place::of(chain)).or_default();
        *functions.entry(short(chain.first().copied().unwrap_or("?"))).or_default() += 1;
    });
    shares
}

/// Gives the call chain of every sample, innermost first.
fn each_chain(script: &str, pid: u32, mut give: impl FnMut(&[&str])) {
    for sample in script.split("\n\n") {
        let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
        let of = lines.next().and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        if of == Some(pid) {
            let chain: Vec<&str> = lines.filter_map(|line| line.trim().split_once(' ').map(|(_, name)| name)).collect();
            if !chain.is_empty() {
                give(&chain);
            }
        }
    }
}

/// Without generic arguments' contents, and not long.
fn short(name: &str) -> String {
    let name: String = name.replace("weir_", "").chars().take(60).collect();
    name.replace('|', "/")
}

/// Draws a flame graph of one process with `inferno-flamegraph`; nothing where that is not there.
///
/// # Errors
/// When the file cannot be written.
pub fn flame(script: &str, pid: u32, file: &Path) -> anyhow::Result<()> {
    let Some(program) = crate::peers::tool::find("inferno-flamegraph") else { return Ok(()) };
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    each_chain(script, pid, |chain| {
        let names: Vec<String> = chain.iter().rev().map(|name| short(name).replace(';', ":")).collect();
        *folded.entry(names.join(";")).or_default() += 1;
    });
    let out = std::fs::File::create(file).with_context(|| file.display().to_string())?;
    let mut command = Command::new(program);
    command.args(["--minwidth", "0.4", "--title", &file.file_stem().unwrap_or_default().to_string_lossy()]);
    let mut child = command.stdin(Stdio::piped()).stdout(out).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        for (chain, count) in folded {
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
    fn samples_belong_to_the_innermost_part_of_the_work() {
        let found = shares(SCRIPT, 77);
        assert_eq!(found.all, 4);
        for place in [Place::SoftAck, Place::Send, Place::Uring, Place::User] {
            assert_eq!(found.of(place), 0.25, "{place:?}");
        }
        assert_eq!(found.tops(Place::User), "`wire::h1::next` 25.0 %");
        assert_eq!(shares(SCRIPT, 88).of(Place::Send), 1.0);
        assert_eq!(shares(SCRIPT, 99).of(Place::Send), 0.0);
    }
}
