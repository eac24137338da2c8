//! The network interfaces of the network namespace in which weir runs: addresses, what they carry, and where the interrupts of
//! their queues go. `environment` lists them; the audit judges by them whether the network was the limit.
//!
//! `/sys` shows the namespace in which it was mounted, which need not be this one. So what it says of an interface counts only if
//! the interface has the same hardware address there. A virtual interface has no device and says nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use weir_model::record::Link;

use crate::sys::{cpu_list, number, text};

/// The interfaces with an address, without loopback, by name. What the kernel does not tell is left out.
pub(crate) fn links() -> Vec<Link> {
    let Ok(interfaces) = getifaddrs() else { return Vec::new() };
    let mut links: BTreeMap<String, (BTreeSet<IpAddr>, Option<String>)> = BTreeMap::new();
    for interface in interfaces.filter(|interface| !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)) {
        let (addresses, hardware) = links.entry(interface.interface_name).or_default();
        let Some(address) = interface.address else { continue };
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let v6 = address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
        addresses.extend(v4.or(v6));
        if let Some(bytes) = address.as_link_addr().and_then(|address| address.addr()) {
            *hardware = Some(bytes.map(|byte| format!("{byte:02x}")).join(":"));
        }
    }
    links.retain(|_, (addresses, _)| !addresses.is_empty());
    links
        .into_iter()
        .map(|(name, (addresses, hardware))| {
            let folder = hardware.and_then(|hardware| device(&name, &hardware));
            let (bits_per_s, queue_cpus) =
                folder.map(|folder| (speed(&folder), queue_cpus(&folder))).unwrap_or_default();
            Link { name, addresses: addresses.into_iter().collect(), bits_per_s, queue_cpus }
        })
        .collect()
}

/// Its folder in `/sys`, if it is a device's.
fn device(name: &str, hardware: &str) -> Option<PathBuf> {
    let folder = Path::new("/sys/class/net").join(name);
    let same = text(folder.join("address")).is_some_and(|address| address.eq_ignore_ascii_case(hardware));
    (same && folder.join("device").exists()).then_some(folder)
}

/// Virtual machines' devices often do not know theirs, and say -1.
fn speed(folder: &Path) -> Option<u64> {
    number::<u64>(folder.join("speed")).filter(|mbits| *mbits > 0).map(|mbits| mbits * 1_000_000)
}

fn queue_cpus(folder: &Path) -> Vec<u32> {
    let interrupts = text("/proc/interrupts").unwrap_or_default();
    // Those of a virtio device are its parent's, the PCI device's.
    let irqs = ["device/msi_irqs", "device/../msi_irqs"].map(|path| folder.join(path));
    let irqs = irqs.iter().find_map(|path| std::fs::read_dir(path).ok()).into_iter().flatten().flatten();
    let irqs = irqs.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let cpus = irqs.filter(|irq| has_packets(&interrupts, *irq)).filter_map(|irq| {
        let affinity = |file: &str| cpu_list(format!("/proc/irq/{irq}/{file}"));
        affinity("effective_affinity_list").or_else(|| affinity("smp_affinity_list"))
    });
    cpus.flatten().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether an interrupt of `/proc/interrupts` is a queue's: it came at least once, and is not about the device's configuration.
fn has_packets(interrupts: &str, irq: u32) -> bool {
    let line = |line: &&str| line.trim_start().strip_prefix(&irq.to_string()).is_some_and(|rest| rest.starts_with(':'));
    let Some(line) = interrupts.lines().find(line) else { return false };
    let counts = line.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    counts.sum::<u64>() > 0 && !line.contains("config")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_of_a_queue_is_told_from_others() {
        let text = "           CPU0       CPU1\n   9:       5          0   PCI-MSIX-0000:00:05.0   0-edge      virtio4-config\n\
             \x20 34:     880          0   PCI-MSIX-0000:00:05.0   1-edge      virtio4-input.0\n\
             \x20 35:       0          0   PCI-MSIX-0000:00:05.0   2-edge      virtio4-output.0\n";
        assert_eq!([9, 34, 35, 3, 4].map(|irq| has_packets(text, irq)), [false, true, false, false, false]);
    }

    #[test]
    fn what_is_listed_has_an_address_and_is_not_loopback() {
        for link in links() {
            assert!(!link.addresses.is_empty() && !link.addresses.iter().any(IpAddr::is_loopback), "{link:?}");
            assert_ne!(link.bits_per_s, Some(0));
        }
    }
}
