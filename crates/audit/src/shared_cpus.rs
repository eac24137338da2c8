//! A product that shares its CPUs with client or origin.

use weir_model::record::{Finding, Severity};
use weir_model::text::list;
use weir_model::units::CpuList;

use super::{Check, Evidence, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["shared-cpus"],
    sees: "a product whose CPUs the client or the origin may use, too. Their work takes time from the product, and \
         every number is that of all of them together",
    threshold: "any CPU",
    source: "",
    remedy: "give each role CPUs of its own (`--cpus`), or another host",
    blind: "two CPUs of one core (`weir doctor` names these)",
    provoked: false,
    run: Some(check),
};

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let roles = e.placement.sharing_with_proxy();
    if !e.proxied || roles.is_empty() {
        return None;
    }
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    let message = format!(
        "the {} may run on CPUs of the product ({}), so every number includes their work",
        list(&names),
        CpuList::text(&e.placement.proxy)
    );
    CHECK.finding(Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use crate::fixture::good;

    #[test]
    fn fires_when_the_product_has_no_cpu_of_its_own() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.placement.proxy = vec![0];
        let message = trial.check(super::check).expect("fires").message;
        assert!(message.starts_with("the client and origin may run on CPUs of the product (0)"), "{message}");
        trial.proxied = false;
        assert_eq!(trial.check(super::check), None, "there is no product");
    }
}
