//! `/proc/stat`, `/proc/pressure/*`, `/proc/net/*` and `/proc/meminfo`, as far as one row needs them. The samplers call it.

use super::{keyed, lines, number, words};

/// The machine's CPU time by state since boot, all CPUs, in clock ticks (proc_stat(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    /// User mode, niced included (and guests, which the kernel counts there).
    pub user: u64,
    /// The part of it that is niced.
    pub nice: u64,
    /// Kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle with I/O outstanding.
    pub iowait: u64,
    /// Hard and soft interrupts.
    pub irq: u64,
    /// The part of it that is soft ones.
    pub softirq: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// The first line of `/proc/stat`. Kernels before 2.6.11 have no steal; weir does not run there.
pub(crate) fn cpu_ticks(text: &[u8]) -> Option<CpuTicks> {
    ticks_of(lines(text).next()?.strip_prefix(b"cpu ")?)
}

/// Those of each CPU that is online, by its number.
pub(crate) fn ticks_by_cpu(text: &[u8]) -> impl Iterator<Item = (u32, CpuTicks)> {
    lines(text).filter_map(|line| {
        let (cpu, rest) = line.strip_prefix(b"cpu")?.split_at_checked(line.iter().position(|&b| b == b' ')? - 3)?;
        Some((u32::try_from(number(cpu)?).ok()?, ticks_of(rest)?))
    })
}

fn ticks_of(line: &[u8]) -> Option<CpuTicks> {
    let mut fields = words(line).map(number);
    let mut next = || fields.next().flatten();
    let (user, nice, system, idle, iowait, irq, softirq) =
        (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
    let steal = next()?;
    let (user, irq) = (user.saturating_add(nice), irq.saturating_add(softirq));
    Some(CpuTicks { user, nice, system, idle, iowait, irq, softirq, steal })
}

/// Microseconds since boot in which some task stalled, from a `/proc/pressure` file.
pub(crate) fn pressure_some_us(text: &[u8]) -> Option<u64> {
    let line = lines(text).find_map(|line| line.strip_prefix(b"some "))?;
    words(line).find_map(|word| number(word.strip_prefix(b"total=")?))
}

/// One counter of `/proc/net/snmp` or `/proc/net/netstat`: pairs of lines, names and then values, both beginning with
/// the group (`Tcp:`, `TcpExt:`).
pub(crate) fn net_counter(text: &[u8], group: &[u8], name: &[u8]) -> Option<u64> {
    let mut of_group = lines(text).filter_map(|line| line.strip_prefix(group));
    let column = words(of_group.next()?).position(|word| word == name)?;
    number(words(of_group.next()?).nth(column)?)
}

/// Sockets in TIME_WAIT, from `/proc/net/sockstat` (which counts both address families there).
pub(crate) fn time_wait(text: &[u8]) -> Option<u64> {
    let line = lines(text).find_map(|line| line.strip_prefix(b"TCP:"))?;
    let mut fields = words(line);
    fields.find(|word| *word == b"tw")?;
    number(fields.next()?)
}

/// Bytes received and sent over all interfaces, from `/proc/net/dev`.
pub(crate) fn net_bytes(text: &[u8]) -> Option<(u64, u64)> {
    let mut sum = None;
    for line in lines(text) {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        // Eight columns of receiving, then those of sending.
        let mut fields = words(&line[colon + 1..]).map(number);
        let (Some(received), Some(sent)) = (fields.next().flatten(), fields.nth(7).flatten()) else { continue };
        let (r, s) = sum.unwrap_or((0_u64, 0_u64));
        sum = Some((r.saturating_add(received), s.saturating_add(sent)));
    }
    sum
}

/// Packets that interfaces dropped, received and to be sent, from `/proc/net/dev`.
pub(crate) fn net_drops(text: &[u8]) -> Option<u64> {
    let mut sum = None;
    for line in lines(text) {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        // The fourth of eight columns of receiving, and of those of sending.
        let mut fields = words(&line[colon + 1..]).map(number);
        let (Some(received), Some(sent)) = (fields.nth(3).flatten(), fields.nth(7).flatten()) else { continue };
        sum = Some(sum.unwrap_or(0_u64).saturating_add(received).saturating_add(sent));
    }
    sum
}

/// Memory in use, bytes: total less what the kernel could make available, from `/proc/meminfo`.
pub(crate) fn memory_used(text: &[u8]) -> Option<u64> {
    let (total, available) = (keyed(text, b"MemTotal:")?, keyed(text, b"MemAvailable:")?);
    total.checked_sub(available)?.checked_mul(1024)
}

/// The machine's memory and swap, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    pub free: u64,
    /// Buffers, cached files, and what of the kernel's own memory it could give back.
    pub cache: u64,
    pub swap_total: u64,
    pub swap_free: u64,
}

/// From `/proc/meminfo`.
pub(crate) fn memory(text: &[u8]) -> Option<Memory> {
    let bytes = |key: &[u8]| keyed(text, key)?.checked_mul(1024);
    let cache = bytes(b"Buffers:")?.checked_add(bytes(b"Cached:")?)?.checked_add(bytes(b"SReclaimable:")?)?;
    let (swap_total, swap_free) = (bytes(b"SwapTotal:")?, bytes(b"SwapFree:")?);
    Some(Memory { free: bytes(b"MemFree:")?, cache, swap_total, swap_free })
}

/// `/proc/loadavg`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LoadAverage {
    /// Over 1, 5 and 15 minutes, in hundredths.
    pub hundredths: [u64; 3],
    /// Threads that run or wait for a CPU.
    pub running: u64,
    /// All threads, those of the kernel among them.
    pub threads: u64,
}

pub(crate) fn load_average(text: &[u8]) -> Option<LoadAverage> {
    let mut fields = words(text);
    let mut average = || {
        let field = fields.next()?;
        let at = field.iter().position(|b| *b == b'.')?;
        let (whole, part) = (number(&field[..at])?, number(&field[at + 1..])?);
        // The kernel writes two digits.
        (field.len() - at == 3).then_some(())?;
        whole.checked_mul(100)?.checked_add(part)
    };
    let hundredths = [average()?, average()?, average()?];
    let counts = fields.next()?;
    let at = counts.iter().position(|b| *b == b'/')?;
    Some(LoadAverage { hundredths, running: number(&counts[..at])?, threads: number(&counts[at + 1..])? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cpu_line() {
        let text = b"cpu  100293 3157 11243 257681 1005 2 213 60 5 0\ncpu0 48480 1552 5016 131447 194 0 100 22 0 0\n";
        let ticks = CpuTicks {
            user: 103_450,
            nice: 3157,
            system: 11_243,
            idle: 257_681,
            iowait: 1005,
            irq: 215,
            softirq: 213,
            steal: 60,
        };
        assert_eq!(cpu_ticks(text), Some(ticks));
        let of_one = CpuTicks {
            user: 50_032,
            nice: 1552,
            system: 5016,
            idle: 131_447,
            iowait: 194,
            irq: 100,
            softirq: 100,
            steal: 22,
        };
        assert_eq!(ticks_by_cpu(text).collect::<Vec<_>>(), [(0, of_one)]);
        assert_eq!(ticks_by_cpu(b"cpu\ncpu 1 2 3 4 5 6 7 8\ncpux 1 2 3 4 5 6 7 8\n").count(), 0);
        assert_eq!(cpu_ticks(b"cpu  1 2 3\n"), None);
        assert_eq!(cpu_ticks(b"cpu0 1 2 3 4 5 6 7 8\n"), None);
    }

    #[test]
    fn pressure() {
        let text = b"some avg10=17.49 avg60=51.64 avg300=26.22 total=144657510\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(pressure_some_us(text), Some(144_657_510));
        assert_eq!(pressure_some_us(b"full avg10=0.00 total=9\n"), None);
    }

    #[test]
    fn counters() {
        let snmp = b"Ip: Forwarding DefaultTTL\nIp: 1 64\n\
            Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs \
            OutSegs RetransSegs InErrs OutRsts InCsumErrors\n\
            Tcp: 1 200 120000 -1 13969 13736 79 4127 2 363928 356286 136 0 2249 0\n";
        assert_eq!(net_counter(snmp, b"Tcp:", b"RetransSegs"), Some(136));
        assert_eq!(net_counter(snmp, b"Tcp:", b"CurrEstab"), Some(2));
        assert_eq!(net_counter(snmp, b"Tcp:", b"MaxConn"), None);
        assert_eq!(net_counter(snmp, b"Tcp:", b"Nonesuch"), None);
        let netstat = b"TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 5 7\nIpExt: A\nIpExt: 1\n";
        assert_eq!(net_counter(netstat, b"TcpExt:", b"ListenDrops"), Some(7));
    }

    #[test]
    fn sockets() {
        let text = b"sockets: used 17\nTCP: inuse 1 orphan 0 tw 12 alloc 1 mem 167\nUDP: inuse 0 mem 0\n";
        assert_eq!(time_wait(text), Some(12));
        assert_eq!(time_wait(b"TCP: inuse 1 orphan 0 tw\n"), None);
    }

    #[test]
    fn interfaces() {
        let text = b"Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo: 1170299605  341025    0    0    0     0          0         0 1170299605  341025    0    0    0     0       0          0\n  \
            eth0: 613657531   23227    0    0    0     0          0         0  1454314   14810    0    0    0     0       0          0\n";
        assert_eq!(net_bytes(text), Some((1_783_957_136, 1_171_753_919)));
        assert_eq!(net_bytes(b"Inter-| x\n"), None);
        let text = b"eth0: 1 2 0 30 0 0 0 0 4 5 0 600 0 0 0 0\nlo: 1 2 0 7 0 0 0 0 4 5 0 0 0 0 0 0\n";
        assert_eq!((net_drops(text), net_drops(b"Inter-| x\n")), (Some(637), None));
    }

    #[test]
    fn memory_in_use() {
        assert_eq!(memory_used(b"MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n"), Some(400 * 1024));
        assert_eq!(memory_used(b"MemTotal: 1000 kB\n"), None);
    }

    #[test]
    fn memory_by_what_it_is_for() {
        let text = b"MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 600 kB\nBuffers: 20 kB\nCached: 300 kB\n\
            SwapCached: 7 kB\nSwapTotal: 50 kB\nSwapFree: 40 kB\nSReclaimable: 80 kB\n";
        let [free, cache, swap_total, swap_free] = [100, 400, 50, 40].map(|kib| kib * 1024);
        assert_eq!(memory(text), Some(Memory { free, cache, swap_total, swap_free }));
        assert_eq!(memory(b"MemFree: 100 kB\n"), None);
    }

    #[test]
    fn load_averages() {
        let seen = LoadAverage { hundredths: [171, 1083, 5], running: 3, threads: 245 };
        assert_eq!(load_average(b"1.71 10.83 0.05 3/245 34028\n"), Some(seen));
        for wrong in ["", "1.71 0.83 0.51", "1.7 0.8 0.5 3/2 1", "1.71 0.83 0.51 3 1", "x.71 0.83 0.51 3/2 1"] {
            assert_eq!(load_average(wrong.as_bytes()), None, "{wrong}");
        }
    }

    fn all(text: &[u8]) {
        let _ = (memory(text), load_average(text));
        let _ = (cpu_ticks(text), pressure_some_us(text), time_wait(text), net_bytes(text), memory_used(text));
        let _ = (net_counter(text, b"Tcp:", b"CurrEstab"), ticks_by_cpu(text).count());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
            all(&text);
        }

        #[test]
        fn no_likely_bytes_panic(
            text in "(cpu |cpu1|some |total=|Tcp:|TCP:| tw| CurrEstab|lo:|MemTotal:|MemAvailable:|[0-9]{1,22}| |\n){0,40}"
        ) {
            all(text.as_bytes());
        }
    }
}
