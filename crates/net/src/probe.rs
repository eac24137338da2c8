//! Finds out by trying which driver this host can run, and explains why not where the requested one does not work.

use std::fmt;
use std::io;

use crate::uring::check;

/// The driver to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverKind {
    /// [`crate::UringDriver`].
    Uring,
    /// [`crate::EpollDriver`].
    Epoll,
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriverKind::Uring => "io_uring",
            DriverKind::Epoll => "epoll",
        })
    }
}

/// Why io_uring cannot be used here, with what can be done about it.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The sysctl forbids it.
    #[error(
        "io_uring is switched off by the sysctl kernel.io_uring_disabled = {value}{}; \
         set it to 0, or use the epoll driver",
        if *value == 1 { " (for all but privileged users)" } else { "" }
    )]
    Disabled {
        /// The sysctl's value: 1 or 2.
        value: u8,
    },
    /// Something other than the sysctl forbids it.
    #[error(
        "io_uring_setup is not permitted (EPERM) though no sysctl forbids it: a seccomp filter, as containers \
         have by default, or a security module; allow io_uring there, or use the epoll driver"
    )]
    Forbidden,
    /// There is no such system call.
    #[error("this kernel ({release}) has no io_uring, or a seccomp filter hides it (ENOSYS); use the epoll driver")]
    Missing {
        /// What `uname -r` says.
        release: String,
    },
    /// The kernel lacks something.
    #[error("this kernel's io_uring ({release}) lacks {lacks}; it takes Linux 6.0, better 6.1, or the epoll driver")]
    TooOld {
        /// What `uname -r` says.
        release: String,
        /// What it lacks.
        lacks: &'static str,
    },
    /// No memory may be locked.
    #[error(
        "the kernel refuses memory for io_uring (ENOMEM): raise the limit of locked memory (ulimit -l, now \
         {limit}), or use the epoll driver"
    )]
    Memory {
        /// The soft limit of locked memory, in bytes, or `unlimited`.
        limit: String,
    },
    /// Anything else.
    #[error("io_uring does not work here: {step}: {source}")]
    Other {
        /// What was tried.
        step: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Decides which driver to make: the one that is wanted, or the best that works. It sets up a ring to try it, which takes about
/// a millisecond: call it once, not for every thread.
///
/// # Errors
/// When io_uring is wanted and does not work here.
pub fn probe(wanted: Option<DriverKind>) -> Result<DriverKind, ProbeError> {
    match wanted {
        Some(DriverKind::Epoll) => Ok(DriverKind::Epoll),
        Some(DriverKind::Uring) => uring_works().map(|()| DriverKind::Uring),
        None => Ok(uring_works().map_or(DriverKind::Epoll, |()| DriverKind::Uring)),
    }
}

/// Tries everything of io_uring that the driver relies on: set-up, a ring of provided buffers, multishot receive, and
/// exact counts of partial sends.
///
/// # Errors
/// The first thing that does not work.
fn uring_works() -> Result<(), ProbeError> {
    check::check().map_err(|(step, error)| explain(step, error))
}

fn explain(step: check::Step, source: io::Error) -> ProbeError {
    match (step, source.raw_os_error()) {
        (check::Step::SetUp, Some(libc::EPERM | libc::EACCES)) => match disabled_by_sysctl() {
            0 => ProbeError::Forbidden,
            value => ProbeError::Disabled { value },
        },
        (check::Step::SetUp, Some(libc::ENOSYS)) => ProbeError::Missing { release: release() },
        (_, Some(libc::ENOMEM)) => ProbeError::Memory { limit: memory_limit() },
        (step, Some(libc::EINVAL | libc::EOPNOTSUPP)) => ProbeError::TooOld { release: release(), lacks: step.name() },
        (step, _) => ProbeError::Other { step: step.name(), source },
    }
}

/// The value of the sysctl, or zero where there is none.
fn disabled_by_sysctl() -> u8 {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn memory_limit() -> String {
    match rustix::process::getrlimit(rustix::process::Resource::Memlock).current {
        Some(bytes) => format!("{bytes} bytes"),
        None => "unlimited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoll_is_used_when_requested() {
        assert_eq!(probe(Some(DriverKind::Epoll)).unwrap(), DriverKind::Epoll);
    }

    #[test]
    fn io_uring_is_used_where_it_works() {
        uring_works().unwrap();
        assert_eq!(probe(Some(DriverKind::Uring)).unwrap(), DriverKind::Uring);
        assert_eq!(probe(None).unwrap(), DriverKind::Uring);
    }

    #[test]
    fn each_failure_names_its_cause_and_a_remedy() {
        let said = |step, errno| explain(step, io::Error::from_raw_os_error(errno)).to_string();
        assert!(said(check::Step::SetUp, libc::ENOSYS).contains("no io_uring"));
        assert!(said(check::Step::Buffers, libc::EINVAL).contains("provided buffers"));
        assert!(said(check::Step::Receive, libc::EINVAL).contains("multishot receive"));
        assert!(said(check::Step::SetUp, libc::ENOMEM).contains("ulimit -l"));
        let denied = said(check::Step::SetUp, libc::EPERM);
        assert!(denied.contains("seccomp") || denied.contains("io_uring_disabled"));
        for errno in [libc::ENOSYS, libc::EINVAL, libc::ENOMEM, libc::EPERM] {
            assert!(said(check::Step::SetUp, errno).contains("epoll"));
        }
        let two = ProbeError::Disabled { value: 2 }.to_string();
        assert!(two.contains("io_uring_disabled = 2;"), "{two}");
    }
}
