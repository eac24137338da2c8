//! Which CPUs each role gets. `weir run` and the launcher of products call it.
//!
//! Roles share no CPU where the machine allows it: a client that takes cycles from the proxy measures itself. By default the
//! proxy gets half of the CPUs, and client and origin split the rest. On two CPUs the proxy has one, and client and origin
//! share the other.
//!
//! This module does not know what runs on the CPUs.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use weir_model::record::Role;

/// CPUs by role. Sets overlap only when the machine has too few CPUs or the user asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Client's CPUs.
    pub client: Vec<u32>,
    /// Proxy's CPUs.
    pub proxy: Vec<u32>,
    /// Origin's CPUs.
    pub origin: Vec<u32>,
}

impl Placement {
    /// The default for these CPUs (ascending, not empty).
    ///
    /// 1: all roles share it. 2: the proxy has the second; client and origin share the first, which takes most of the machine's
    /// interrupts. 3: one each. 4 and more: the proxy has the upper half, the client the first quarter rounded up, and the
    /// origin the rest.
    pub fn automatic(cpus: &[u32]) -> Placement {
        let all = cpus.to_vec();
        match all.len() {
            0 | 1 => Placement { client: all.clone(), proxy: all.clone(), origin: all },
            2 => Placement { client: vec![all[0]], proxy: vec![all[1]], origin: vec![all[0]] },
            3 => Placement { client: vec![all[0]], origin: vec![all[1]], proxy: vec![all[2]] },
            n => {
                let rest = n - n / 2;
                let client = rest.div_ceil(2);
                Placement {
                    client: all[..client].to_vec(),
                    origin: all[client..rest].to_vec(),
                    proxy: all[rest..].to_vec(),
                }
            }
        }
    }

    /// The CPUs of one role.
    pub fn of(&self, role: Role) -> &[u32] {
        match role {
            Role::Client => &self.client,
            Role::Proxy => &self.proxy,
            Role::Origin => &self.origin,
        }
    }

    /// Roles that share a CPU with the proxy.
    pub fn sharing_with_proxy(&self) -> Vec<Role> {
        [Role::Client, Role::Origin]
            .into_iter()
            .filter(|role| self.of(*role).iter().any(|cpu| self.proxy.contains(cpu)))
            .collect()
    }

    /// As recorded in `environment.json`.
    pub fn to_map(&self) -> BTreeMap<String, Vec<u32>> {
        [Role::Client, Role::Proxy, Role::Origin]
            .into_iter()
            .map(|role| (role.as_str().to_owned(), self.of(role).to_vec()))
            .collect()
    }
}

/// Divides a role's CPUs among its parts. A part with a share (above 0, at most 1) gets that share for itself, rounded, and at
/// least one CPU. The other parts share the rest. If that leaves a part without a CPU, all parts share all CPUs.
pub fn divide(cpus: &[u32], shares: &[Option<f64>]) -> Vec<Vec<u32>> {
    let count = |share: f64| ((share * cpus.len() as f64).round() as usize).max(1);
    let own: usize = shares.iter().flatten().map(|share| count(*share)).sum();
    if own + usize::from(shares.contains(&None)) > cpus.len() {
        return vec![cpus.to_vec(); shares.len()];
    }
    let (mut own, rest) = cpus.split_at(own);
    let of_part = |share: &Option<f64>| match share {
        None => rest.to_vec(),
        Some(share) => {
            let (part, others) = own.split_at(count(*share));
            own = others;
            part.to_vec()
        }
    };
    shares.iter().map(of_part).collect()
}

/// CPUs this process may run on, ascending.
pub fn allowed_cpus() -> Vec<u32> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return vec![0];
    };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect()
}

/// Restricts the calling thread, and what it starts from now on, to these CPUs. An empty list changes nothing.
///
/// # Errors
/// When none of them exists or may be used.
pub fn restrict_to(cpus: &[u32]) -> std::io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    // The set panics beyond its end; no such CPU can be among those a process may use.
    for cpu in cpus.iter().filter(|cpu| (**cpu as usize) < rustix::thread::CpuSet::MAX_CPU) {
        set.set(*cpu as usize);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The CPUs as a mask that can be used between fork and exec, without allocation or lock.
pub(crate) fn affinity_mask(cpus: &[u32]) -> libc::cpu_set_t {
    // SAFETY: cpu_set_t is a plain array of integers; all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    for cpu in cpus {
        if (*cpu as usize) < libc::CPU_SETSIZE as usize {
            // SAFETY: the index was checked against the size of the set.
            unsafe { libc::CPU_SET(*cpu as usize, &mut set) };
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn automatic(n: u32) -> Placement {
        Placement::automatic(&(0..n).collect::<Vec<_>>())
    }

    #[test]
    fn two_cpus_give_the_proxy_one_of_its_own() {
        let p = automatic(2);
        assert_eq!((p.client.as_slice(), p.proxy.as_slice(), p.origin.as_slice()), (&[0][..], &[1][..], &[0][..]));
        assert!(p.sharing_with_proxy().is_empty());
    }

    #[test]
    fn one_cpu_is_shared_and_said_to_be() {
        assert_eq!(automatic(1).sharing_with_proxy(), [Role::Client, Role::Origin]);
    }

    #[test]
    fn from_three_cpus_on_roles_are_disjoint_and_use_every_cpu() {
        for n in 3..70 {
            let p = automatic(n);
            let mut all = [p.client.clone(), p.proxy.clone(), p.origin.clone()].concat();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>(), "{n} CPUs");
            assert!(!p.client.is_empty() && !p.proxy.is_empty() && !p.origin.is_empty());
            assert!(p.client.len() >= p.origin.len());
        }
    }

    #[test]
    fn parts_share_what_others_do_not_have_for_themselves() {
        let cpus = [4, 5, 6, 7];
        assert_eq!(divide(&cpus, &[None, None]), [cpus.to_vec(), cpus.to_vec()]);
        assert_eq!(divide(&cpus, &[Some(0.25), None, None]), [vec![4], vec![5, 6, 7], vec![5, 6, 7]]);
        assert_eq!(divide(&cpus, &[None, Some(0.1), Some(0.5)]), [vec![7], vec![4], vec![5, 6]]);
        // Too few for all: all parts share all CPUs.
        assert_eq!(divide(&cpus[..1], &[Some(0.25), None]), [vec![4], vec![4]]);
        assert_eq!(divide(&[], &[Some(0.25), None]), [vec![], vec![]] as [Vec<u32>; 2]);
    }

    #[test]
    fn cpus_that_cannot_exist_are_an_error_and_no_panic() {
        assert!(restrict_to(&[1_000_000]).is_err());
    }

    #[test]
    fn cpus_need_not_be_contiguous() {
        let p = Placement::automatic(&[3, 7]);
        assert_eq!(p.proxy, [7]);
    }
}
