//! Roles whose CPU time a control group limits.

use weir_model::owners::CpuQuota;
use weir_model::record::{Finding, Severity};
use weir_model::text::list;

use super::{Check, Evidence, Kind, percent, role_name};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["cpu-quota"],
    sees: "a limit of CPU time (`cpu.max`, `cpu.cfs_quota_us`) of a control group that stopped client, product or \
         origin in the window. The rate is then that of the limit",
    threshold: "1 % of the window, all CPUs of the group together",
    source: "a stop of 1 % of the window begins to shape the 99th percentile; products are compared to a few per cent",
    remedy: "raise the limit of that group or take it away (`docker --cpus`, `resources.limits.cpu`, `CPUQuota=`), or give each product \
             the same",
    blind: "groups outside of weir's own container. A limit that never stopped anybody has no finding (`weir doctor` \
         names it)",
    provoked: false,
    run: Some(check),
};

/// Per cent of the window.
const SUSPECT: f64 = 1.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let quotas =
        e.owners.iter().flat_map(|machine| machine.quotas.iter().map(move |quota| (machine.host.as_str(), quota)));
    let (host, most) = quotas.max_by(|a, b| a.1.throttled_s.total_cmp(&b.1.throttled_s))?;
    let share = percent(most.throttled_s, e.load.window_s);
    if share < SUSPECT {
        return None;
    }
    let roles: Vec<&str> = most.roles.iter().map(|role| role_name(*role)).collect();
    let at = if host.is_empty() { String::new() } else { format!(" of {host}") };
    let message = format!(
        "the control group {}{at} stopped the {} in {} periods, for {:.2} s in all ({share:.0} % of the window): {}",
        most.group,
        list(&roles),
        most.throttled_periods,
        most.throttled_s,
        limit(most)
    );
    CHECK.finding(Severity::Warning, message)
}

fn limit(quota: &CpuQuota) -> String {
    match quota.cpus {
        Some(cpus) => format!("its limit is {cpus:.2} CPUs"),
        None => "its limit was lifted meanwhile".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use weir_model::owners::Owners;
    use weir_model::record::Role;

    use super::*;
    use crate::fixture::good;

    /// A group with half a CPU for the product, which was stopped for so long.
    pub fn held(throttled_s: f64) -> Vec<Owners> {
        let quota = CpuQuota {
            group: "/limited".into(),
            roles: vec![Role::Proxy],
            cpus: Some(0.5),
            throttled_periods: 10,
            throttled_s,
        };
        vec![Owners { quotas: vec![quota], ..Owners::default() }]
    }

    #[test]
    fn a_limit_that_stopped_somebody_is_named() {
        let mut trial = good();
        trial.owners = held(0.009);
        assert_eq!(trial.check(check), None, "it never mattered");
        trial.owners = held(0.5);
        let message = trial.check(check).expect("fires").message;
        assert_eq!(
            message,
            "the control group /limited stopped the product in 10 periods, for 0.50 s in all (50 % of the window): its limit is 0.50 CPUs"
        );
    }
}
