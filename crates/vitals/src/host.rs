//! The machine as a whole: CPU by state, pressure, sockets, interfaces, memory.
//!
//! Network counters are those of the network namespace in which weir runs. Sockets are counted by the kernel's own
//! counters and never by listing them: reading `/proc/net/tcp` with 100,000 sockets takes the CPU for tens of
//! milliseconds, in the middle of what is measured. So there are two states, established (with CLOSE_WAIT, as
//! `CurrEstab` has it) and TIME_WAIT, and not eleven.
//!
//! For the same reason connections are not counted by port. Asking for the established sockets of one port
//! (sock_diag(7), with a filter in the kernel) took 0.9 ms of CPU on a machine with 262,144 buckets and hardly a
//! socket, 3.6 ms with 18,000 sockets of which none matched, and 12 ms where 9,000 did: the kernel walks all buckets
//! for every question. What a role's connections are shows in its descriptors.

use std::collections::BTreeMap;

use crate::file::{OpenFile, Reader};
use crate::parse::host::{
    CpuTicks, LoadAverage, Memory, cpu_ticks, load_average, memory, memory_used, net_bytes, net_counter, net_drops,
    pressure_some_us, ticks_by_cpu, time_wait,
};

/// The host at one moment. All but levels (`load`, `processes`, `memory`, `memory_used`, `established`, `time_wait`) count since
/// boot. `None` is what this kernel does not report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostSample {
    pub cpu: Option<CpuTicks>,
    /// Microseconds stalled: CPU, memory, I/O.
    pub pressure: [Option<u64>; 3],
    pub memory_used: Option<u64>,
    pub memory: Option<Memory>,
    pub load: Option<LoadAverage>,
    /// Processes of the PID namespace in which weir runs; who samples them sets it.
    pub processes: Option<u64>,
    pub established: Option<u64>,
    pub time_wait: Option<u64>,
    pub retransmits: Option<u64>,
    /// Segments sent, with those retransmitted.
    pub segments_sent: Option<u64>,
    /// Connections dropped at a listen queue. The kernel counts overflows among the drops; the larger is taken.
    pub listen_drops: Option<u64>,
    /// Received, sent.
    pub net: Option<(u64, u64)>,
    /// Packets that interfaces dropped.
    pub net_drops: Option<u64>,
}

/// The host's files, kept open.
#[derive(Debug)]
pub(crate) struct Host {
    stat: Option<OpenFile>,
    pressure: [Option<OpenFile>; 3],
    meminfo: Option<OpenFile>,
    loadavg: Option<OpenFile>,
    snmp: Option<OpenFile>,
    netstat: Option<OpenFile>,
    sockstat: Option<OpenFile>,
    dev: Option<OpenFile>,
}

impl Host {
    /// Opens the files that exist.
    pub fn open() -> Host {
        let open = |path: &str| OpenFile::open(path).ok();
        Host {
            stat: open("/proc/stat"),
            pressure: ["cpu", "memory", "io"].map(|kind| open(&format!("/proc/pressure/{kind}"))),
            meminfo: open("/proc/meminfo"),
            loadavg: open("/proc/loadavg"),
            snmp: open("/proc/net/snmp"),
            netstat: open("/proc/net/netstat"),
            sockstat: open("/proc/net/sockstat"),
            dev: open("/proc/net/dev"),
        }
    }

    /// Reads how each CPU has spent its time.
    pub fn cpus(&self, reader: &mut Reader) -> BTreeMap<u32, CpuTicks> {
        text(reader, &self.stat).map(|text| ticks_by_cpu(text).collect()).unwrap_or_default()
    }

    /// Reads everything.
    pub fn sample(&self, reader: &mut Reader) -> HostSample {
        let mut sample = HostSample {
            cpu: take(reader, &self.stat, cpu_ticks),
            pressure: [0, 1, 2].map(|kind| take(reader, &self.pressure[kind], pressure_some_us)),
            load: take(reader, &self.loadavg, load_average),
            time_wait: take(reader, &self.sockstat, time_wait),
            net: take(reader, &self.dev, net_bytes),
            net_drops: take(reader, &self.dev, net_drops),
            ..HostSample::default()
        };
        if let Some(text) = text(reader, &self.meminfo) {
            (sample.memory_used, sample.memory) = (memory_used(text), memory(text));
        }
        if let Some(text) = text(reader, &self.snmp) {
            sample.established = net_counter(text, b"Tcp:", b"CurrEstab");
            sample.retransmits = net_counter(text, b"Tcp:", b"RetransSegs");
            sample.segments_sent = net_counter(text, b"Tcp:", b"OutSegs");
        }
        if let Some(text) = text(reader, &self.netstat) {
            let counter = |name: &[u8]| net_counter(text, b"TcpExt:", name);
            sample.listen_drops = counter(b"ListenDrops").max(counter(b"ListenOverflows"));
        }
        sample
    }
}

fn text<'r>(reader: &'r mut Reader, file: &Option<OpenFile>) -> Option<&'r [u8]> {
    // Without pressure accounting the file opens, and reading it fails.
    reader.pieces(file.as_ref()?).ok()
}

fn take<T>(reader: &mut Reader, file: &Option<OpenFile>, parse: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    parse(text(reader, file)?)
}
