//! CPU time an answer: the one definition that tables, pictures, comparisons and sentences use. Knows one window at a time.

use weir_model::load::LoadResult;
use weir_model::record::{Role, RoleUsage};

use crate::shaped::is_answer;

/// CPU microseconds of a role's process tree for one answer: user, system.
///
/// What the kernel charged it with during the window, by the answers of the window: right ones that came inside it, and wrong
/// ones (of another status, body or header than expected), for a proxy works for these as well. An answer that came when the
/// window was over took its CPU time after it, and does not count; of wrong ones it is only known to which window their
/// requests belong. What had no answer counts nowhere, although it may have cost something.
///
/// `None` for a role that had no process, as the proxy of the direct path, and without any answer.
pub(crate) fn cpu_us(load: &LoadResult, usage: &[RoleUsage], role: Role) -> Option<(f64, f64)> {
    let usage = usage_of(usage, role)?;
    let answers = answers(load);
    (answers > 0).then(|| (usage.cpu_user_us as f64 / answers as f64, usage.cpu_system_us as f64 / answers as f64))
}

/// User and system together.
pub fn all_cpu_us(load: &LoadResult, usage: &[RoleUsage], role: Role) -> Option<f64> {
    cpu_us(load, usage, role).map(|(user, system)| user + system)
}

/// What a role's process tree used; `None` where it had none.
pub fn usage_of(usage: &[RoleUsage], role: Role) -> Option<&RoleUsage> {
    usage.iter().find(|usage| usage.role == role)
}

fn answers(load: &LoadResult) -> u64 {
    let wrong = load.window.errors.iter().filter(|(kind, _)| is_answer(**kind)).map(|(_, n)| n);
    load.window.right_in_window + wrong.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::load::{Counts, ErrorKind};

    fn usage(role: Role, user: u64, system: u64) -> RoleUsage {
        RoleUsage {
            role,
            cpu_user_us: user,
            cpu_system_us: system,
            cores_busy: 0.0,
            rss_max_bytes: 0,
            pss_max_bytes: None,
            threads_max: 0,
            processes_max: 0,
            fds_max: None,
            switches: (0, 0),
        }
    }

    #[test]
    fn answers_of_the_window_share_its_cpu_time() {
        let window = Counts {
            right: 1_000,
            right_in_window: 80,
            errors: [
                (ErrorKind::BadStatus, 10),
                (ErrorKind::WrongBody, 6),
                (ErrorKind::WrongHeader, 4),
                (ErrorKind::Timeout, 900),
            ]
            .into(),
            // Those of the requests that were due in the window, whenever they came.
            statuses: [(200, 1_000), (502, 10)].into(),
            ..Counts::default()
        };
        let load = LoadResult { window, ..LoadResult::default() };
        let used = [usage(Role::Origin, 50, 50), usage(Role::Proxy, 3_000, 1_000)];
        assert_eq!(cpu_us(&load, &used, Role::Proxy), Some((30.0, 10.0)));
        assert_eq!(all_cpu_us(&load, &used, Role::Origin), Some(1.0));
        assert_eq!(cpu_us(&load, &used[..1], Role::Proxy), None, "the direct path has no proxy");
        assert_eq!(cpu_us(&LoadResult::default(), &used, Role::Proxy), None, "nothing was answered");
    }
}
