//! What a process tree and the host use, each second and over an exact window, as the kernel reports it; and checks
//! of the machine ([`doctor`]). The lab and the CLI call it.
//!
//! # What each number rests on
//!
//! | number | source | resolution |
//! |---|---|---|
//! | CPU time of a role | the processes' CPU clocks (clock_getcpuclockid(3)), threads that ended included | 1 ns |
//! | CPU time of processes that ended in the window | `cutime`, `cstime` of those that waited for them | 10 ms a parent |
//! | its user and kernel part | the exact total, divided as `utime` to `stime` | proportion of 10 ms ticks |
//! | resident set | `/proc/<pid>/stat`, summed: shared pages count in every process | page, but the kernel sums per-CPU counters lazily |
//! | largest resident set | the kernel's own mark (`VmHWM`), set back at each sample and summed over processes; a process that came and went between two samples is not in it | page |
//! | proportional set | `smaps_rollup` at begin and end, and every 5 s while reading it takes less than 5 ms; the largest: and what the largest resident set had more than the one at that time | 1 KiB |
//! | disk traffic | `/proc/<pid>/io`: pages of files made dirty, not sockets, pipes, or files in memory; unknown where a process shares memory through a mapped file | page |
//! | context switches | `status` of every thread, summed; a thread that ends takes its last second's along | 1 |
//! | descriptors | size of `/proc/<pid>/fd` | 1 |
//! | connections | the role's own counter, read ([`Connections`]) when a row ends; none by default | 1 |
//! | CPU time of control groups | v2: `cpu.stat`; v1: `cpuacct.usage`, divided as `cpuacct.stat` | 1 us; 1 ns |
//! | their memory | `memory.stat`: anonymous and mapped pages, each counted once | page, lazily summed |
//! | their threads | `pids.current`; processes, descriptors and switches are unknown | 1 |
//! | how long threads waited for a CPU | `schedstat` of every thread, summed | 1 ns |
//! | threads that may run elsewhere | `Cpus_allowed_list` of the `status` of those that ran; where they ran: the CPU they were last on, at each sample | a second |
//! | CPU time of other processes | their CPU clocks; on which CPU: where each thread was last, at each sample; children that ended: what parents waited for | 1 ns; a second; 10 ms |
//! | who else holds the product's connections | the kernel's list of established sockets (sock_diag) and `/proc/<pid>/fd`, before and after a window | 64 connections of its clients, 64 to its origins |
//! | limits of CPU time, and what they withheld | `cpu.max` and `cpu.stat` of the control groups of the roles' processes and of all above them, before and after a window; v1: `cpu.cfs_quota_us` | 1 us; 1 ns |
//! | the busiest thread of a role | `schedstat` of every thread | 1 ns |
//! | processes that were stopped | the state in `stat`, at each sample | a second |
//! | the host's CPU by state, and of each CPU of a role | `/proc/stat` | 10 ms a CPU |
//! | load averages, threads that run or want to | `/proc/loadavg`, at each sample: the sampling thread is one of them | 0.01; 1 |
//! | a role's busiest processes: priority, niceness, memory | `stat` and `statm`, after the window | page |
//! | pressure | `total=` of `/proc/pressure/*`, differences | 1 us, booked by the kernel at its own pace |
//! | established, TIME_WAIT | `CurrEstab` and `sockstat`: counters, sockets are not listed within a window | 1 |
//!
//! A number that could not be read is `None`, never 0.
//!
//! # What watching costs
//!
//! [`Window::own_cpu_us`] says what it was in a window. Most of it is the kernel writing each thread's `status`, the only file that
//! tells voluntary from involuntary switches. So it is read only for threads that have run since the sample before.
//!
//! To look at all other processes takes a call for each, and for each that ran its `stat`, and that of its threads. Files of all are
//! read before the window and after it alone, and so are the tables of sockets.
//!
//! Reading the proportional set walks the page tables of a process under its memory lock, in which its page faults may
//! wait: on that machine 0.05 ms for a `sleep`, 3 to 8 ms for 256 MiB, 40 to 60 ms for 2 GiB in small pages. So it is
//! read before the window begins and after it has ended, and within it only where that is cheap.
//!
//! This crate does not know what is measured, or why.

mod account;
mod cgroup;
pub mod clock;
pub mod doctor;
mod environment;
mod file;
mod holders;
mod host;
mod links;
mod others;
mod owners;
mod parse;
mod process;
mod quota;
mod sockets;
mod source;
mod speed;
mod sys;
mod task;
mod tree;
mod watch;
mod window;

pub use environment::environment;
pub use speed::speeds;
pub use sys::local_ports;
pub use tree::{Watched, What};
pub use watch::{Connections, Cost, Plan, Served, Watch};
pub use window::Window;
