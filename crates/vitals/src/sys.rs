//! Small files of `/proc` and `/sys` that are read once: for the environment and for the doctor.
//!
//! Does not know what the values mean.

use std::path::Path;

use weir_model::units::CpuList;

/// A file's text without the blanks around it; `None` when it cannot be read or is not text.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// A file that holds one number, or one of another thing that is read from text.
pub(crate) fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// A kernel setting by its sysctl name, blanks within as single spaces.
pub(crate) fn sysctl(name: &str) -> Option<String> {
    let value = text(format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A file that holds a list of CPUs, such as `0-3,8`.
pub(crate) fn cpu_list(path: impl AsRef<Path>) -> Option<Vec<u32>> {
    number::<CpuList>(path).map(CpuList::into_vec)
}

/// CPUs that are online.
pub(crate) fn online_cpus() -> Option<Vec<u32>> {
    cpu_list("/sys/devices/system/cpu/online")
}

/// Local ports that the kernel gives to connections made here (`net.ipv4.ip_local_port_range`): first and last.
pub fn local_ports() -> Option<(u16, u16)> {
    ports(&sysctl("net.ipv4.ip_local_port_range")?)
}

fn ports(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(' ')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Soft and hard limit of a resource; unlimited is `u64::MAX`.
pub(crate) fn limits(resource: rustix::process::Resource) -> (u64, u64) {
    let limit = rustix::process::getrlimit(resource);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_two_numbers() {
        assert_eq!(ports("32768 60999"), Some((32_768, 60_999)));
        assert_eq!(ports("32768"), None);
        assert_eq!(ports("0 70000"), None);
    }
}
