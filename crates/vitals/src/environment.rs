//! Facts about the machine that a reader of a run needs. The lab calls it for each run.
//!
//! It does not know products, placement or weir's own version: the lab adds those.

use std::collections::BTreeMap;

use rustix::process::Resource;
use weir_model::record::Environment;

use crate::links::links;
use crate::sys::{limits, number, online_cpus, sysctl, text};

/// Settings that change what a proxy can do or what weir may read.
const SYSCTLS: [&str; 24] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.io_uring_disabled",
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.sched_autogroup_enabled",
    "kernel.threads-max",
    "net.core.busy_poll",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "vm.overcommit_memory",
    "vm.swappiness",
];

/// The facts of this machine. Settings that it does not have are left out; an unknown text is `unknown`, an unknown
/// number 0. The fields of the run (weir, products, placement, start, seed, scale, doctor) keep their defaults.
pub fn environment() -> Environment {
    let uname = rustix::system::uname();
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    Environment {
        schema: 1,
        host: uname.nodename().to_string_lossy().into_owned(),
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        os: text("/etc/os-release").and_then(|text| pretty_name(&text)).unwrap_or_else(unknown),
        arch: uname.machine().to_string_lossy().into_owned(),
        cpu_model: cpu_field(&cpuinfo, "model name").map_or_else(unknown, str::to_owned),
        cpus: cpus(),
        memory_bytes: meminfo("MemTotal").unwrap_or(0),
        virtualization: virtualization(&hints(&cpuinfo)),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        descriptors: limits(Resource::Nofile),
        sysctls: SYSCTLS.iter().filter_map(|&name| Some((name.to_owned(), sysctl(name)?))).collect::<BTreeMap<_, _>>(),
        links: links(),
        ..Environment::default()
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// CPUs online; where the kernel does not list them, those this process may use.
fn cpus() -> u32 {
    let listed = online_cpus().and_then(|list| u32::try_from(list.len()).ok());
    listed.or_else(|| std::thread::available_parallelism().ok()?.get().try_into().ok()).unwrap_or(0)
}

/// A field of `/proc/meminfo`, bytes.
pub(crate) fn meminfo(field: &str) -> Option<u64> {
    let text = std::fs::read("/proc/meminfo").ok()?;
    crate::parse::keyed(&text, format!("{field}:").as_bytes())?.checked_mul(1024)
}

/// PRETTY_NAME of an os-release file (os-release(5)).
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

/// The first value of a field of `/proc/cpuinfo`.
fn cpu_field<'t>(cpuinfo: &'t str, field: &str) -> Option<&'t str> {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == field).map(|(_, value)| value)
}

/// Signs of a hypervisor or a container.
#[derive(Debug, Clone, Default)]
struct Hints {
    vendor: Option<String>,
    product: Option<String>,
    hypervisor_type: Option<String>,
    clocksources: Option<String>,
    hypervisor_flag: bool,
    container: Option<String>,
}

fn hints(cpuinfo: &str) -> Hints {
    let marked = |path: &str, name: &str| std::path::Path::new(path).exists().then(|| name.to_owned());
    Hints {
        vendor: text("/sys/class/dmi/id/sys_vendor"),
        product: text("/sys/class/dmi/id/product_name"),
        hypervisor_type: text("/sys/hypervisor/type"),
        clocksources: text("/sys/devices/system/clocksource/clocksource0/available_clocksource"),
        hypervisor_flag: cpu_field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
        container: text("/run/systemd/container")
            .or_else(|| marked("/.dockerenv", "docker"))
            .or_else(|| marked("/run/.containerenv", "podman")),
    }
}

/// One line such as `KVM (Amazon EC2 m7a.large), in a docker container`; `None` where nothing shows.
fn virtualization(hints: &Hints) -> Option<String> {
    let offered = hints.clocksources.as_deref().unwrap_or_default();
    let has = |name: &str| offered.split_whitespace().any(|source| source == name);
    let kind = match () {
        () if hints.hypervisor_type.as_deref() == Some("xen") => Some("Xen"),
        () if has("kvm-clock") => Some("KVM"),
        () if offered.contains("hyperv") => Some("Hyper-V"),
        () if hints.hypervisor_flag => Some("a hypervisor"),
        () => None,
    };
    let machine: Vec<&str> = [&hints.vendor, &hints.product].into_iter().flatten().map(String::as_str).collect();
    let machine = if machine.is_empty() { String::new() } else { format!(" ({})", machine.join(" ")) };
    let hypervisor = kind.map(|kind| format!("{kind}{machine}"));
    let container = hints.container.as_ref().map(|name| format!("in a {name} container"));
    let all: Vec<String> = hypervisor.into_iter().chain(container).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The kernel's version, major and minor.
pub(crate) fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The most descriptors that the kernel gives to one process, whatever its limits are.
pub(crate) fn most_descriptors() -> Option<u64> {
    number("/proc/sys/fs/nr_open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_facts() {
        let e = environment();
        assert_eq!(e.schema, 1);
        assert!(e.kernel.starts_with("Linux "), "{}", e.kernel);
        assert!(e.cpus >= 1 && e.memory_bytes > 1 << 20 && e.descriptors.0 > 0);
        assert!(e.sysctls.contains_key("net.ipv4.ip_local_port_range"));
        assert!(e.products.is_empty() && e.started.is_empty());
    }

    #[test]
    fn sysctls_are_in_order_and_once() {
        assert!(SYSCTLS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn names() {
        assert_eq!(pretty_name("A=1\nPRETTY_NAME=\"Debian 12\"\n").as_deref(), Some("Debian 12"));
        assert_eq!(pretty_name("NAME=x\n"), None);
        assert_eq!(cpu_field("processor\t: 0\nmodel name\t: AMD EPYC\n", "model name"), Some("AMD EPYC"));
        assert_eq!(kernel_version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(kernel_version("6.18.44-fc"), Some((6, 18)));
        assert_eq!(kernel_version("six"), None);
    }

    #[test]
    fn hypervisors_and_containers() {
        assert_eq!(virtualization(&Hints::default()), None);
        let vm = Hints {
            vendor: Some("Amazon EC2".into()),
            product: Some("m7a.large".into()),
            clocksources: Some("tsc kvm-clock acpi_pm".into()),
            hypervisor_flag: true,
            ..Hints::default()
        };
        assert_eq!(virtualization(&vm).as_deref(), Some("KVM (Amazon EC2 m7a.large)"));
        let container = Hints { container: Some("docker".into()), ..Hints::default() };
        assert_eq!(virtualization(&container).as_deref(), Some("in a docker container"));
        let unnamed = Hints { hypervisor_flag: true, ..Hints::default() };
        assert_eq!(virtualization(&unnamed).as_deref(), Some("a hypervisor"));
        // A vendor alone is a machine, not a hypervisor.
        let metal = Hints { vendor: Some("Dell Inc.".into()), ..Hints::default() };
        assert_eq!(virtualization(&metal), None);
    }
}
