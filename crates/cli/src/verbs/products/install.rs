//! `weir products install`, and the offer to install what is missing, here or on another host. Verbs that start products use the latter.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_install::home::Home;
use weir_install::{InstallError, Installed, Installer, Inventory, LocalInstaller, PlannedStep, Progress, Want};
use weir_model::product::Product;
use weir_model::text::{unique, wrapped};
use weir_product::catalogue::Catalogue;

use super::proxies;
use crate::args::stop_on_signal;
use crate::ask::{self, Consent};
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::progress::{Status, minutes, template};
use crate::verbs::topology::end_left_behind;

/// Flags of `weir products install`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../../help/products-install.txt"))]
pub struct Args {
    /// The products' names; without names, all that can be installed here
    pub(super) products: Vec<String>,
}

pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, consent: Consent, json: bool) -> VerbResult {
    if args.products.is_empty() {
        return all(catalogue, home, consent, json);
    }
    let product = |name: &String| catalogue.product(name, "weir products install").map_err(Failure::input);
    let products = args.products.iter().map(product).collect::<Result<Vec<_>, _>>()?;
    let order = Order { libraries: &[], demand: Demand::All, consent };
    for want in [Want::Present, Want::Newer] {
        provide(&local(home)?, &products, want, order)?.complete().map_err(failure)?;
    }
    super::list::show(&products, home, json)
}

/// Installs all that can be installed here, in the newest version that the products' files name; names the others, and then
/// ends with status 1.
fn all(catalogue: &Catalogue, home: &Home, consent: Consent, json: bool) -> VerbResult {
    let products: Vec<&Product> = catalogue.products().values().collect();
    let order = Order { libraries: &[], demand: Demand::Possible, consent };
    let Inventory { here, missing } = provide(&local(home)?, &products, Want::Present, order)?;
    let here: Vec<&Product> = products.into_iter().filter(|product| here.contains_key(&product.name)).collect();
    let old = provide(&local(home)?, &here, Want::Newer, order)?.missing;
    super::list::main(catalogue, home, json)?;
    missing.iter().for_each(|(name, why)| remark!("weir: not installed: {name}: {why}"));
    old.iter().for_each(|(name, why)| remark!("weir: still in an old version: {name}: {why}"));
    Ok(if missing.is_empty() && old.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Which of the products have to be there in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// All: a product that cannot be installed is an error.
    All,
    /// Only products that can be installed.
    Possible,
    /// The same, without a question where only weir's own folder changes. Packages of the system need a yes. Without it, products come in
    /// ways that need none, and those that have no such way are not installed.
    ForRun,
}

/// Names the products, the versions of them, and the actions that weir may take.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The user's folders of products.
    pub libraries: &'a [PathBuf],
    pub demand: Demand,
    pub consent: Consent,
}

impl Order<'_> {
    /// The same of products that all have to be there.
    pub fn of_all(self) -> Self {
        Order { demand: Demand::All, ..self }
    }
}

/// This machine.
///
/// # Errors
/// When weir's own program cannot be found.
pub fn local(home: &Home) -> Result<LocalInstaller, Failure> {
    LocalInstaller::new(home.clone()).map_err(Failure::missing)
}

/// Products that all have to be installed here, by name.
///
/// # Errors
/// As [`provide`].
pub fn ensure(products: &[&Product], home: &Home, consent: Consent) -> Result<BTreeMap<String, Installed>, Failure> {
    let order = Order { libraries: &[], demand: Demand::All, consent };
    provide(&local(home)?, products, Want::Present, order)?.complete().map_err(failure)
}

/// Looks what a machine has of products, plans what is wanted of them beyond that, shows it, asks, and installs one product after another.
/// Returns what is there then, and why the others are not.
///
/// # Errors
/// When the user says no or stops it, when the host is lost, and when a product cannot be installed that is demanded.
pub fn provide(
    installer: &dyn Installer,
    products: &[&Product],
    mut want: Want,
    Order { demand, consent, .. }: Order<'_>,
) -> Result<Inventory, Failure> {
    let products = proxies(products.iter().copied());
    let mut inventory = installer.find(&products).map_err(failure)?;
    let wanted: Vec<&Product> =
        products.into_iter().filter(|one| want != Want::Present || !inventory.here.contains_key(&one.name)).collect();
    let ends_it = |error: &InstallError| {
        demand == Demand::All || matches!(error, InstallError::Interrupted | InstallError::Host(_))
    };
    let mut packages = BTreeMap::new();
    if demand == Demand::ForRun && consent == Consent::Asked {
        packages = packages_for(installer, &wanted);
        if !packages.is_empty() && !may_install_packages(&packages)? {
            want = Want::WithoutPackages;
        }
    }
    let (mut possible, mut steps) = (Vec::new(), Vec::new());
    for product in wanted {
        match installer.plan(product, want) {
            Ok(more) if more.is_empty() => {}
            Ok(more) => {
                steps.extend(more.into_iter().map(|step| step.text));
                possible.push(product);
            }
            Err(error) if ends_it(&error) => return Err(failure(error)),
            Err(error) => {
                let why = packages.get(&product.name).map(|packages| {
                    format!("it needs packages of the system ({packages}), which weir installs only if it may: --yes")
                });
                inventory.missing.insert(product.name.clone(), why.unwrap_or_else(|| error.one_line()));
            }
        }
    }
    if possible.is_empty() {
        return Ok(inventory);
    }
    announce(installer.host(), want, &possible);
    unique(steps).iter().for_each(|step| remark!("  - {step}"));
    if demand != Demand::ForRun {
        ask::agreed("Go on?", "something has to be installed", "nothing was installed", consent)?;
    }
    end_left_behind();
    let stop = stop_on_signal()?;
    for product in possible {
        let mut shown = InstallProgress::new(installer.host());
        let installed = installer.install(product, want, &stop, &mut |progress| shown.update(progress));
        drop(shown);
        match installed {
            Err(error) if ends_it(&error) => return Err(failure(error)),
            Err(error) => {
                remark!("  {}: {}", product.title, error.one_line());
                inventory.add(product, Err(error));
            }
            Ok(installed) => inventory.add(product, Ok(installed)),
        }
    }
    Ok(inventory)
}

/// Says for which products something will be done.
fn announce(host: Option<&str>, want: Want, products: &[&Product]) {
    let on = host.map(|host| format!(" on {host}")).unwrap_or_default();
    let titles: Vec<&str> = products.iter().map(|product| product.title.as_str()).collect();
    match want {
        Want::Present | Want::WithoutPackages => remark!("Not installed yet{on}: {}. weir will:", titles.join(", ")),
        Want::Newer => {
            remark!("What is installed{on} is older than the version that the product's file names. weir will:");
        }
    }
}

/// Products whose first way needs packages of the system, each with these.
fn packages_for(installer: &dyn Installer, products: &[&Product]) -> BTreeMap<String, String> {
    let packages = |product: &&Product| {
        let steps: Vec<PlannedStep> = installer.plan(product, Want::Present).ok()?;
        let packages: Vec<String> = steps.into_iter().flat_map(|step| step.packages).collect();
        (!packages.is_empty()).then(|| (product.name.clone(), packages.join(" ")))
    };
    products.iter().filter_map(packages).collect()
}

/// Asks whether packages may be installed. Without a terminal they may not, and standard error says so.
fn may_install_packages(wanting: &BTreeMap<String, String>) -> Result<bool, Failure> {
    let names: Vec<&str> = wanting.keys().map(String::as_str).collect();
    let packages = unique(wanting.values().flat_map(|packages| packages.split(' ')));
    let what = format!("packages of the system for {} ({})", names.join(", "), packages.join(" "));
    if ask::can_be_asked() {
        return ask::asked(&format!("Install {what}, too?"));
    }
    remark!("{}", wrapped(&format!("Without {what}: --yes would install them."), out::WIDTH, 2));
    Ok(false)
}

/// The exit status of an install that failed.
pub fn failure(error: InstallError) -> Failure {
    match error {
        InstallError::Interrupted => Failure::interrupted(error),
        other => Failure::missing(other),
    }
}

/// Time between two lines without a terminal.
const PAUSE: Duration = Duration::from_secs(30);

/// Shows one step on standard error: a status line on a terminal, otherwise a line every half minute, so that a long build
/// does not look like a hang.
struct InstallProgress {
    status: Status,
    began: Instant,
    last_line: Instant,
    now: String,
    /// Before each line.
    prefix: String,
}

impl InstallProgress {
    fn new(host: Option<&str>) -> InstallProgress {
        let status = Status::new(false, template("    {spinner} {elapsed} {wide_msg}"), None);
        let now = Instant::now();
        let prefix = host.map(|host| format!("{host}: ")).unwrap_or_default();
        InstallProgress { status, began: now, last_line: now, now: String::new(), prefix }
    }

    fn update(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Action(line) => {
                self.now = line.to_owned();
                self.line(line);
            }
            Progress::Line(line) => line.trim().clone_into(&mut self.now),
            Progress::Bytes { done, of } => self.now = bytes(done, of),
            Progress::Tick => {}
        }
        self.status.show(plain(&self.now));
        if !self.status.live && self.last_line.elapsed() >= PAUSE {
            self.line(&format!("{}: {}", minutes(self.began.elapsed()), plain(&self.now)));
        }
    }

    fn line(&mut self, line: &str) {
        self.status.line(&format!("    {}{line}", self.prefix));
        self.last_line = Instant::now();
    }
}

fn bytes(done: u64, of: Option<u64>) -> String {
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let of = of.map(|of| format!(" of {}", mb(of))).unwrap_or_default();
    format!("{}{of} MB", mb(done))
}

/// Without the colours that programs print, which would spill over the status line.
fn plain(line: &str) -> String {
    console::strip_ansi_codes(line).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_with_what_is_known() {
        assert_eq!(bytes(1_250_000, Some(50_000_000)), "1.2 of 50.0 MB");
        assert_eq!(bytes(1_250_000, None), "1.2 MB");
    }

    #[test]
    fn colours_and_control_characters_are_skipped() {
        assert_eq!(plain("\u{1b}[32m   Compiling\u{1b}[0m x\u{7}"), "   Compiling x");
    }
}
