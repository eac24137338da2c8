//! `weir products use`: chooses the user's own binary, here or on the hosts of a topology. Called by `verbs::products`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_install::home::Home;
use weir_install::{Installed, Installer, RemoteInstaller, quick_find, use_binary, use_no_binary};
use weir_model::Placement;
use weir_model::product::Product;
use weir_model::record::Role;
use weir_model::topology::Topology;
use weir_product::catalogue::Catalogue;

use super::list::Row;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::verbs::topology::{TopologyArgs, reach_each};

/// The name of this verb on a host that is kept to it.
const NAME: &str = "products-use";

/// Flags of `weir products use`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../../help/products-use.txt"))]
#[command(group(clap::ArgGroup::new("choice").required(true).args(["binary", "none"])))]
pub struct Args {
    /// The product's name (see `weir products list`)
    pub(super) product: String,
    /// Measure this binary from now on; with --topology, the one at this path of each host where products run.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Stop using a binary of your own.
    #[arg(long)]
    none: bool,
    #[command(flatten)]
    topology: TopologyArgs,
}

pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, libraries: &[PathBuf], json: bool) -> VerbResult {
    let product = super::with_program(catalogue, &args.product, "weir products use")?;
    let name = product.name.as_str();
    let topology = args.topology.read()?;
    if !topology.is_local() {
        let wanted = "--binary PATH together with a file of hosts, such as hosts.toml";
        let binary = args.binary.as_deref().filter(|_| topology.made().is_none());
        let binary = binary.ok_or_else(|| Failure::wrong("--topology", topology.kind(), wanted))?;
        return on_hosts(args, &topology, product, binary, libraries, json);
    }
    let changed = match &args.binary {
        Some(binary) => use_binary(product, binary, home).map(|_| true).map_err(Failure::input)?,
        None => args.none && use_no_binary(name, home).map_err(Failure::missing)?,
    };
    if !changed {
        remark!("nothing to undo: {name} already is what its file says");
    }
    let row = Row::of(product, Some(quick_find(product, home)));
    if json {
        return out::json(&row);
    }
    match row.installed {
        Some(_) => output!("{name} is {} from now on", row.state()),
        None => output!("{name} is not installed; to fix it: weir products install {name}"),
    }
    Ok(Exit::Ok)
}

/// Has each host where products run take its own binary.
fn on_hosts(
    args: &Args,
    topology: &Topology,
    product: &Product,
    binary: &Path,
    libraries: &[PathBuf],
    json: bool,
) -> VerbResult {
    let weir = args.topology.binary(topology)?;
    let (_reached, results) = reach_each(topology, weir, NAME, &Placement::default(), &BTreeMap::new())?;
    let mut chosen: BTreeMap<&str, Installed> = BTreeMap::new();
    for (host, result) in topology.hosts().iter().zip(results) {
        // A host without a role has parts of products alone.
        if host.roles.contains(&Role::Proxy) || host.roles.is_empty() {
            let reached = result.map_err(Failure::missing)?;
            let installer = RemoteInstaller::new(&reached, &[product], libraries).map_err(Failure::missing)?;
            chosen.insert(&host.name, installer.choose(product, binary).map_err(Failure::missing)?);
        }
    }
    if json {
        return out::json(&chosen);
    }
    for (host, Installed { binary, version, sha256, .. }) in &chosen {
        output!("{} on {host} is {version} from now on: {}, SHA-256 {sha256}", product.name, binary.display());
    }
    Ok(Exit::Ok)
}
