//! The hosts of products' parts: the one that names a part, else that of the role proxy. It does not know how parts are started.

use std::collections::BTreeMap;

use super::{HostSpec, Topology};
use crate::product::{Product, Program};
use crate::record::Role;
use crate::text::{list, unique};

/// The part that clients talk to, whatever its product calls it.
pub const FRONT: &str = "front";

/// The hosts of the parts of products, by their index in [`Topology::hosts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartHosts {
    /// The host of the parts that clients talk to.
    pub front: usize,
    /// The hosts of other parts, by the part's name, as far as they are not on that one.
    pub others: BTreeMap<String, usize>,
}

/// Why the parts of products cannot run on a topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartError {
    /// Index of the host whose roles are wrong; `None`: that of no host alone.
    pub host: Option<usize>,
    /// What was found.
    pub found: String,
    /// What would be right.
    pub wanted: String,
}

impl PartError {
    fn new(host: Option<usize>, found: String, wanted: impl Into<String>) -> PartError {
        PartError { host, found, wanted: wanted.into() }
    }
}

impl Topology {
    /// True if it names parts of products.
    pub fn names_parts(&self) -> bool {
        self.hosts.iter().any(|host| !host.parts.is_empty())
    }

    /// Checks that each part that it names is one of these products', which are all that are known.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_part_names<'p>(&self, known: impl Iterator<Item = &'p Product> + Clone) -> Result<(), PartError> {
        let exists = |name: &str| name == FRONT || known.clone().any(|product| parts(product).any(|part| part == name));
        for (index, host) in self.hosts.iter().enumerate() {
            if let Some(name) = host.parts.iter().find(|name| !exists(name)) {
                let wanted = "proxy, proxy:front, or a part of a product (`weir products show NAME` lists them)";
                return Err(PartError::new(Some(index), format!("no product has a part {name}"), wanted));
            }
        }
        Ok(())
    }

    /// Finds the host of each part of a run's products.
    ///
    /// # Errors
    /// A part has no host or two, or the products' fronts are on several. Hosts name parts, and none of a product of several parts. A host
    /// names parts, and none of these products'. An origin is missing.
    pub fn part_hosts<'p>(&self, products: impl Iterator<Item = &'p Product> + Clone) -> Result<PartHosts, PartError> {
        let mut front: Option<(usize, &str)> = None;
        let mut others = BTreeMap::new();
        for product in products.clone() {
            let Some(program) = product.program() else { continue };
            for (index, part) in program.parts.iter().enumerate() {
                let host = self.host_of_part(product, program, index)?;
                if index + 1 < program.parts.len() {
                    others.insert(part.name.clone(), host);
                    continue;
                }
                match front {
                    Some((at, other)) if at != host => {
                        let (here, there) = (&self.hosts[host].name, &self.hosts[at].name);
                        let found = format!("clients reach {} on {here}, and {other} on {there}", product.name);
                        return Err(PartError::new(Some(host), found, "the fronts of all products on one host"));
                    }
                    _ => front = Some((host, &product.name)),
                }
            }
        }
        let front = front.map_or_else(|| self.front(products.clone()), |(host, _)| host);
        self.check_use(products)?;
        others.retain(|_, host| *host != front);
        Ok(PartHosts { front, others })
    }

    /// Index of the host on which clients reach products, as far as roles alone tell. It is that of the role proxy, else the first that
    /// has the front of one of these products, else the first with a part.
    pub fn front<'p>(&self, products: impl Iterator<Item = &'p Product> + Clone) -> usize {
        let with = |has: &dyn Fn(&HostSpec) -> bool| self.hosts.iter().position(has);
        let fronts = || products.clone().filter_map(Product::program).map(|program| program.front().name.as_str());
        let is_front = |name: &String| name == FRONT || fronts().any(|front| front == name);
        let proxy = with(&|host| host.roles.contains(&Role::Proxy));
        let named = proxy.or_else(|| with(&|host| host.parts.iter().any(is_front)));
        named.or_else(|| with(&|host| !host.parts.is_empty())).unwrap_or(0)
    }

    fn host_of_part(&self, product: &Product, program: &Program, index: usize) -> Result<usize, PartError> {
        let name = &program.parts[index].name;
        let is_front = index + 1 == program.parts.len();
        let names_it = |part: &String| part == name || is_front && part == FRONT;
        let with = |has: &dyn Fn(&HostSpec) -> bool| {
            self.hosts.iter().enumerate().filter(|(_, host)| has(host)).map(|(index, _)| index).collect::<Vec<_>>()
        };
        match with(&|host| host.parts.iter().any(names_it)).as_slice() {
            [host] => return Ok(*host),
            [first, second, ..] => {
                let found = format!("the front of {} is {name}, which {} has", product.name, self.hosts[*first].name);
                return Err(PartError::new(Some(*second), found, "each part at one host"));
            }
            [] => {}
        }
        with(&|host| host.roles.contains(&Role::Proxy)).first().copied().ok_or_else(|| {
            let part = if program.has_parts() { format!("part {name}") } else { FRONT.to_owned() };
            let role = if program.has_parts() { name.as_str() } else { FRONT };
            let wanted = format!(
                "roles = [\"proxy:{role}\"] at a host, or [\"proxy\"] at one for all parts that no other names"
            );
            PartError::new(None, format!("no host has the {part} of {}", product.name), wanted)
        })
    }

    /// Checks that no product of several parts and no host is left out by mistake.
    fn check_use<'p>(&self, products: impl Iterator<Item = &'p Product> + Clone) -> Result<(), PartError> {
        if self.of(Role::Origin).next().is_none()
            && let Some(product) = products.clone().find(|product| !product.store)
        {
            let found = format!("no host has the role origin, and {} needs one", product.name);
            return Err(PartError::new(
                None,
                found,
                "roles = [\"origin\"] at one host, or products that hold the data themselves",
            ));
        }
        let spread = || products.clone().filter(|product| product.program().is_some_and(Program::has_parts));
        if !self.names_parts() || spread().next().is_none() {
            return Ok(());
        }
        let has_part = |host: &HostSpec, product: &Product| {
            host.parts.iter().any(|name| name == FRONT || parts(product).any(|part| part == name))
        };
        if let Some(product) = spread().find(|product| !self.hosts.iter().any(|host| has_part(host, product))) {
            let found = format!("no host names a part of {}, and other parts are named", product.name);
            let wanted = format!("one of {}, or a run without it", proxy_roles(parts(product)));
            return Err(PartError::new(None, found, wanted));
        }
        let is_idle = |host: &HostSpec| host.roles.is_empty() && !spread().any(|product| has_part(host, product));
        let Some(idle) = self.hosts.iter().position(is_idle) else { return Ok(()) };
        let names: Vec<&str> = spread().map(|product| product.name.as_str()).collect();
        let found = format!("{} has no part {}", list(&names), self.hosts[idle].parts.join(" or "));
        Err(PartError::new(Some(idle), found, format!("one of {}", proxy_roles(spread().flat_map(parts)))))
    }
}

/// The names of a product's parts.
fn parts(product: &Product) -> impl Iterator<Item = &str> {
    product.program().into_iter().flat_map(|program| &program.parts).map(|part| part.name.as_str())
}

fn proxy_roles<'n>(parts: impl Iterator<Item = &'n str>) -> String {
    unique(parts.map(|part| format!("proxy:{part}"))).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A product of these parts; the last is its front.
    fn product(name: &str, store: bool, parts: &[&str]) -> Product {
        let process = "command = [\"x\"]\nready_within = \"1s\"\nstop_within = \"1s\"\n";
        let part = |part: &&str| format!("[[part]]\nname = \"{part}\"\n[part.process]\n{process}");
        let parts: String = match parts {
            [] => format!("[process]\n{process}"),
            parts => parts.iter().map(part).collect(),
        };
        let text = format!(
            "[product]\ntitle = \"x\"\nabout = \"x\"\nhome = \"https://x.test/\"\nspeaks = [\"redis\"]\nstore = {store}\n\
             [[install]]\nmethod = \"system\"\nbinary = \"x\"\n[version]\ncommand = [\"x\"]\npattern = '(1)'\n{parts}\
             [profile.tuned]\nabout = \"x\"\n"
        );
        Product::parse(name, name, &text, BTreeMap::new(), BTreeMap::new()).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
    }

    /// Hosts with these roles, a bar between two, named by their place.
    fn topology(roles: &str) -> Topology {
        let host = |(k, roles): (usize, &str)| {
            let roles: Vec<String> = roles.split_whitespace().map(|role| format!("{role:?}")).collect();
            let roles = roles.join(", ");
            format!("[[host]]\nname = \"h{k}\"\nroles = [{roles}]\nssh = \"h{k}\"\naddress = \"10.0.0.{k}\"\n")
        };
        let text: String = roles.split('|').enumerate().map(host).collect();
        Topology::parse("hosts.toml", &text).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    fn quorum() -> Product {
        product("quorum", true, &["store-1", "store-2", "proxy"])
    }

    #[test]
    fn a_part_runs_where_it_is_named_and_else_where_the_proxy_is() {
        let (quorum, single) = (quorum(), product("redis", true, &[]));
        let places = |roles: &str, products: &[&Product]| {
            let found = topology(roles).part_hosts(products.iter().copied());
            let PartHosts { front, others } = found.unwrap_or_else(|error| panic!("{roles}: {error:?}"));
            let others: Vec<String> = others.into_iter().map(|(name, host)| format!("{name} {host}")).collect();
            (front, others.join(", "))
        };
        let both = [&quorum, &single];
        assert_eq!(places("client origin | proxy", &both), (1, String::new()));
        assert_eq!(places("client | proxy | proxy:store-2", &both), (1, "store-2 2".to_owned()));
        let by_front = "client | proxy:store-1 | proxy:front | proxy:store-2";
        assert_eq!(places(by_front, &both), (2, "store-1 1, store-2 3".to_owned()));
        assert_eq!(places("client | proxy:store-1 proxy:store-2 | proxy:proxy", &[&quorum]).0, 2);
        // The role proxy may have the stores, and another host the front.
        assert_eq!(places("client | proxy:front | proxy", &[&quorum]), (1, "store-1 2, store-2 2".to_owned()));
        // A host of stores is idle while a product of one part is measured.
        assert_eq!(places("client | proxy | proxy:store-1", &[&single]), (1, String::new()));
        let unnamed = topology("client | proxy:store-1 | proxy:proxy");
        assert_eq!((unnamed.front([&quorum].into_iter()), unnamed.front(std::iter::empty())), (2, 1));
    }

    #[test]
    fn each_mistake_names_host_part_and_product() {
        let (quorum, single) = (quorum(), product("nginx", false, &[]));
        let other = product("replicated", true, &["replica-1", "primary"]);
        let cases = [
            (
                "client | proxy:store-1 | proxy:front",
                vec![&quorum],
                None,
                "no host has the part store-2 of quorum; roles = [",
            ),
            ("client origin | proxy:store-1", vec![&single], None, "no host has the front of nginx; roles = ["),
            (
                "client | proxy | proxy:front | proxy:proxy",
                vec![&quorum],
                Some(3),
                "the front of quorum is proxy, which h2 has",
            ),
            (
                "client | proxy | proxy:proxy",
                vec![&quorum, &other],
                Some(1),
                "clients reach replicated on h1, and quorum on h2; the fronts",
            ),
            (
                "client | proxy | proxy:store-1",
                vec![&quorum, &other],
                None,
                "no host names a part of replicated, and other parts are named; one of proxy:replica-1, proxy:primary, or",
            ),
            (
                "client | proxy | proxy:store-1 | proxy:replica-1",
                vec![&quorum],
                Some(3),
                "quorum has no part replica-1; one of proxy:store-1, proxy:store-2, proxy:proxy",
            ),
            (
                "client | proxy | proxy:store-1",
                vec![&quorum, &single],
                None,
                "no host has the role origin, and nginx needs one; roles = [",
            ),
        ];
        for (roles, products, host, text) in cases {
            let error = topology(roles).part_hosts(products.iter().copied()).expect_err(roles);
            let found = format!("{}; {}", error.found, error.wanted);
            assert!(error.host == host && found.contains(text), "{roles}: {:?} {found}", error.host);
        }
        let names = |roles: &str| topology(roles).check_part_names([&quorum].into_iter());
        let error = names("client | proxy | proxy:front proxy:store-9").expect_err("no product has it");
        assert_eq!((error.host, error.found.as_str()), (Some(2), "no product has a part store-9"));
        assert_eq!(names("client | proxy:front | proxy:store-1"), Ok(()));
    }
}
