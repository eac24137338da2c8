//! Which CPUs each role gets, and each part of a product. `weir run` and the launcher of products call it, the audit
//! checks it, and `environment.json` records it.
//!
//! Roles share no CPU where the machine allows it: a client that takes cycles from the proxy measures itself. By default the
//! proxy gets half of the CPUs, and client and origin split the rest. On two CPUs the proxy has one, and client and origin
//! share the other. This module does not know what runs on the CPUs, nor how a process is kept on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Role;

/// CPUs by role. Sets overlap only when the machine has too few CPUs or the user asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Client's CPUs.
    pub client: Vec<u32>,
    /// Origin's CPUs.
    pub origin: Vec<u32>,
    /// Proxy's CPUs.
    pub proxy: Vec<u32>,
    /// Which machine each role is on, where not all are on one. CPUs of two machines are never the same, whatever their numbers.
    pub machines: BTreeMap<Role, String>,
}

impl Placement {
    /// The default for these CPUs (ascending, not empty).
    ///
    /// 1: all roles share it. 2: the proxy has the second; client and origin share the first, which takes most of the machine's
    /// interrupts. 3: one each. 4 and more: the proxy has the upper half, the client the first quarter rounded up, and the
    /// origin the rest.
    pub fn automatic(cpus: &[u32]) -> Placement {
        let all = cpus.to_vec();
        let machines = BTreeMap::new();
        match all.len() {
            0 | 1 => Placement { client: all.clone(), proxy: all.clone(), origin: all, machines },
            2 => Placement { client: vec![all[0]], proxy: vec![all[1]], origin: vec![all[0]], machines },
            3 => Placement { client: vec![all[0]], origin: vec![all[1]], proxy: vec![all[2]], machines },
            n => {
                let rest = n - n / 2;
                let client = rest.div_ceil(2);
                Placement {
                    client: all[..client].to_vec(),
                    origin: all[client..rest].to_vec(),
                    proxy: all[rest..].to_vec(),
                    machines,
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

    /// Gives CPUs to a role.
    pub fn set(&mut self, role: Role, cpus: Vec<u32>) {
        match role {
            Role::Client => self.client = cpus,
            Role::Proxy => self.proxy = cpus,
            Role::Origin => self.origin = cpus,
        }
    }

    /// CPUs that two roles share.
    pub fn shared(&self, one: Role, other: Role) -> Vec<u32> {
        let same_machine = self.machines.get(&one) == self.machines.get(&other);
        let shared = self.of(one).iter().filter(|cpu| same_machine && self.of(other).contains(cpu));
        shared.copied().collect()
    }

    /// Roles that share a CPU with the proxy.
    pub fn sharing_with_proxy(&self) -> Vec<Role> {
        [Role::Client, Role::Origin].into_iter().filter(|role| !self.shared(*role, Role::Proxy).is_empty()).collect()
    }

    /// The CPUs of each role, in the order of the roles' names.
    pub fn by_role(&self) -> [(Role, &[u32]); 3] {
        [Role::Client, Role::Origin, Role::Proxy].map(|role| (role, self.of(role)))
    }
}

/// Divides a role's CPUs on a host among the parts there. A part with a share (above 0, at most 1) gets that share for itself, rounded, and
/// at least one CPU. The other parts share the rest; without any, the CPUs are divided in proportion to the shares, rounded down. If
/// that leaves a part without a CPU, all parts share all CPUs.
pub fn divide(cpus: &[u32], shares: &[Option<f64>]) -> Vec<Vec<u32>> {
    let all: f64 = shares.iter().flatten().sum();
    let count = |share: f64| {
        let cpus = cpus.len() as f64;
        // A third of thirty is ten, whatever its last bit.
        let own = if shares.contains(&None) { (share * cpus).round() } else { (share / all * cpus + 1e-6).floor() };
        (own as usize).max(1)
    };
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
    fn cpus_of_two_machines_are_not_shared() {
        let machines = [(Role::Client, "a"), (Role::Origin, "b"), (Role::Proxy, "a")];
        let machines = machines.map(|(role, machine)| (role, machine.to_owned())).into();
        let placement = Placement { machines, ..automatic(1) };
        assert_eq!(placement.sharing_with_proxy(), [Role::Client]);
        assert!(placement.shared(Role::Client, Role::Origin).is_empty());
        let text = serde_json::to_string(&automatic(2)).expect("JSON");
        assert_eq!(text, r#"{"client":[0],"origin":[0],"proxy":[1],"machines":{}}"#, "one machine needs no name");
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
        // Stores that have a host for themselves, one or three of them, have all of it.
        assert_eq!(divide(&cpus, &[Some(0.2)]), [cpus.to_vec()]);
        assert_eq!(divide(&cpus, &[Some(0.2), Some(0.2)]), [vec![4, 5], vec![6, 7]]);
        let thirty: Vec<u32> = (0..30).collect();
        assert_eq!(divide(&thirty, &[Some(0.2); 3]), thirty.chunks(10).map(<[u32]>::to_vec).collect::<Vec<_>>());
        // Too few for all: all parts share all CPUs.
        assert_eq!(divide(&cpus[..1], &[Some(0.25), None]), [vec![4], vec![4]]);
        assert_eq!(divide(&[], &[Some(0.25), None]), [vec![], vec![]] as [Vec<u32>; 2]);
    }

    #[test]
    fn cpus_need_not_be_contiguous() {
        let p = Placement::automatic(&[3, 7]);
        assert_eq!(p.proxy, [7]);
    }
}
