//! Small files of `/proc` and `/sys` that are read once: for the environment and for the doctor.
//!
//! Does not know what the values mean.

use std::path::Path;

/// A file's text without the blanks around it; `None` when it cannot be read or is not text.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// A file that holds one number.
pub(crate) fn number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// A kernel setting by its sysctl name, blanks within as single spaces.
pub(crate) fn sysctl(name: &str) -> Option<String> {
    let value = text(format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The numbers in a list of the kernel's, such as `0-3,8`. `None` when it is not one, or has more than 65,536.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last - first > 65_536 || numbers.len() > 65_536 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// CPUs that are online.
pub(crate) fn online_cpus() -> Option<Vec<u32>> {
    cpu_list(&text("/sys/devices/system/cpu/online")?).filter(|list| !list.is_empty())
}

/// Soft and hard limit of a resource; unlimited is `u64::MAX`.
pub(crate) fn limits(resource: rustix::process::Resource) -> (u64, u64) {
    let limit = rustix::process::getrlimit(resource);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// A size as people read it, in units of 1024.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list(""), Some(vec![]));
        assert_eq!(cpu_list("3-1"), None);
        assert_eq!(cpu_list("0-4294967295"), None);
        assert_eq!(cpu_list("all"), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(size(512), "512 bytes");
        assert_eq!(size(1536 << 20), "1.5 GiB");
    }

    proptest! {
        #[test]
        fn no_list_panics(text in "[0-9,-]{0,30}|\\PC{0,20}") {
            let _ = cpu_list(&text);
        }
    }
}
