//! Finds, plans and installs products by the same calls on this machine and on another one, whose agent carries them out by [`serve`].
//!
//! Both sides are the same program, so that a name is the same product. Products of a user's library are brought to the other machine
//! first. This module does not know the user's consent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_host::files::FileError;
use weir_host::stop::Stop;
use weir_host::{Host, HostError, LocalHost};
use weir_model::product::Product;
use weir_product::catalogue::Catalogue;

use crate::home::Home;
use crate::{
    InstallContext, InstallError, Installed, Notify, Progress, Step, Want, at_once, find, plan, quick_find, run_step,
    use_binary,
};

/// The products on a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Installed products by name.
    pub here: BTreeMap<String, Installed>,
    /// Missing products by name, each with the reason in one line.
    pub missing: BTreeMap<String, String>,
}

impl Inventory {
    /// Makes an inventory from one result for each product.
    fn of(products: &[&Product], results: impl IntoIterator<Item = Result<Installed, InstallError>>) -> Inventory {
        let mut inventory = Inventory::default();
        products.iter().zip(results).for_each(|(product, result)| inventory.add(product, result));
        inventory
    }

    /// Adds what came of a product.
    pub fn add(&mut self, product: &Product, result: Result<Installed, InstallError>) {
        let name = product.name.clone();
        self.missing.remove(&name);
        match result {
            Ok(installed) => drop(self.here.insert(name, installed)),
            Err(error) => drop(self.missing.insert(name, error.one_line())),
        }
    }

    /// Returns the installed products, if none is missing.
    ///
    /// # Errors
    /// The first product that is missing, and why.
    pub fn complete(self) -> Result<BTreeMap<String, Installed>, InstallError> {
        match self.missing.into_iter().next() {
            None => Ok(self.here),
            Some((name, why)) => Err(InstallError::Message(format!("{name}: {why}"))),
        }
    }
}

/// A step as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The action, in a line.
    pub text: String,
    /// Packages of the distribution that it installs.
    pub packages: Vec<String>,
}

impl From<&Step> for PlannedStep {
    fn from(step: &Step) -> PlannedStep {
        let packages = if let Step::Apt(step) = step { step.packages.clone() } else { Vec::new() };
        PlannedStep { text: step.to_string(), packages }
    }
}

/// Finds, plans and installs products on one machine.
pub trait Installer {
    /// The machine's name, if it is another one.
    fn host(&self) -> Option<&str>;

    /// Looks for products that have a program.
    ///
    /// # Errors
    /// When the host is lost.
    fn find(&self, products: &[&Product]) -> Result<Inventory, InstallError>;

    /// The steps until a product is as wanted.
    ///
    /// # Errors
    /// As [`plan`].
    fn plan(&self, product: &Product, want: Want) -> Result<Vec<PlannedStep>, InstallError>;

    /// Carries these steps out. Here, a step ends when `stop` is requested.
    ///
    /// # Errors
    /// As [`plan`], [`run_step`] and [`find`].
    fn install(
        &self,
        product: &Product,
        want: Want,
        stop: &Stop,
        notify: &mut Notify<'_>,
    ) -> Result<Installed, InstallError>;

    /// Takes the user's binary, which is on that machine, for a product from now on.
    ///
    /// # Errors
    /// As [`use_binary`].
    fn choose(&self, product: &Product, binary: &Path) -> Result<Installed, InstallError>;
}

/// This machine.
#[derive(Debug)]
pub struct LocalInstaller {
    home: Home,
    host: LocalHost,
}

impl LocalInstaller {
    /// Installs into `home`.
    ///
    /// # Errors
    /// When weir's own program cannot be found: it is the supervisor of builds.
    pub fn new(home: Home) -> std::io::Result<LocalInstaller> {
        Ok(LocalInstaller { home, host: LocalHost::new(std::env::current_exe()?) })
    }
}

impl Installer for LocalInstaller {
    fn host(&self) -> Option<&str> {
        None
    }

    fn find(&self, products: &[&Product]) -> Result<Inventory, InstallError> {
        Ok(Inventory::of(products, at_once(products, |product| find(product, &self.home))))
    }

    fn plan(&self, product: &Product, want: Want) -> Result<Vec<PlannedStep>, InstallError> {
        Ok(plan(&[product], &self.home, want)?.iter().map(PlannedStep::from).collect())
    }

    fn install(
        &self,
        product: &Product,
        want: Want,
        stop: &Stop,
        notify: &mut Notify<'_>,
    ) -> Result<Installed, InstallError> {
        let context = InstallContext { home: &self.home, host: &self.host, stop };
        for step in plan(&[product], &self.home, want)? {
            run_step(&step, context, notify)?;
        }
        find(product, &self.home)
    }

    fn choose(&self, product: &Product, binary: &Path) -> Result<Installed, InstallError> {
        use_binary(product, binary, &self.home)
    }
}

/// A machine that an agent stands for.
#[derive(Debug)]
pub struct RemoteInstaller<'h> {
    host: &'h Arc<dyn Host>,
    /// Folders there that are laid over what is built in.
    libraries: Vec<PathBuf>,
}

impl<'h> RemoteInstaller<'h> {
    /// Brings those of the products there that come from these libraries of the user's.
    ///
    /// # Errors
    /// When a file cannot be read here or written there.
    pub fn new(
        host: &'h Arc<dyn Host>,
        products: &[&Product],
        libraries: &[PathBuf],
    ) -> Result<RemoteInstaller<'h>, FileError> {
        let Some(work) = &host.facts().work else {
            return Ok(RemoteInstaller { host, libraries: libraries.to_vec() });
        };
        let (there, mut brought) = (work.join("library"), false);
        for product in products {
            let file = |library: &PathBuf| library.join("products").join(&product.name).join("product.toml");
            let Some(file) = libraries.iter().rev().map(file).find(|file| file.is_file()) else { continue };
            let toml = std::fs::read(&file).map_err(FileError::at(&file))?;
            let templates = product.templates.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
            let files = product.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
            for (name, bytes) in templates.chain(files).chain([("product.toml", toml.as_slice())]) {
                let path = there.join("products").join(&product.name).join(name);
                host.create_dir(path.parent().unwrap_or(&there))?;
                host.write(&path, bytes, false)?;
            }
            brought = true;
        }
        Ok(RemoteInstaller { host, libraries: if brought { vec![there] } else { Vec::new() } })
    }

    fn call<T: DeserializeOwned>(
        &self,
        name: &str,
        products: &[&Product],
        more: Value,
        notify: &mut Notify<'_>,
    ) -> Result<T, InstallError> {
        let names: Vec<&str> = products.iter().map(|product| product.name.as_str()).collect();
        let mut request = json!({ "products": names, "libraries": self.libraries });
        if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
            request.extend(more);
        }
        let failed = |why: &str| InstallError::Message(format!("the host {}: {why}", self.host.facts().name));
        let result = self.host.call(name, request, &mut |line| {
            notify(Progress::Action(line.as_str().unwrap_or_default()));
        });
        let result = result.map_err(|error| match error {
            HostError::Failed(why) => failed(&why),
            lost => lost.into(),
        })?;
        serde_json::from_value(result).map_err(|error| failed(&error.to_string()))
    }

    /// The same of one product, of which the host says what it has then.
    fn call_one(
        &self,
        name: &str,
        product: &Product,
        more: Value,
        notify: &mut Notify<'_>,
    ) -> Result<Installed, InstallError> {
        let Inventory { mut here, missing } = self.call(name, &[product], more, notify)?;
        let why = || missing.into_values().next().unwrap_or_else(|| "it is not there".to_owned());
        here.remove(&product.name).ok_or_else(|| InstallError::Message(why()))
    }
}

impl Installer for RemoteInstaller<'_> {
    fn host(&self) -> Option<&str> {
        Some(&self.host.facts().name)
    }

    fn find(&self, products: &[&Product]) -> Result<Inventory, InstallError> {
        self.call("find", products, Value::Null, &mut |_| {})
    }

    fn plan(&self, product: &Product, want: Want) -> Result<Vec<PlannedStep>, InstallError> {
        self.call("plan", &[product], json!({ "want": want }), &mut |_| {})
    }

    fn install(
        &self,
        product: &Product,
        want: Want,
        _stop: &Stop,
        notify: &mut Notify<'_>,
    ) -> Result<Installed, InstallError> {
        self.call_one("install", product, json!({ "want": want }), notify)
    }

    fn choose(&self, product: &Product, binary: &Path) -> Result<Installed, InstallError> {
        self.call_one("use", product, json!({ "binary": binary }), &mut |_| {})
    }
}

/// The products and options of a call.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Names of products.
    products: Vec<String>,
    /// Folders on the host, as `--library` has them.
    #[serde(default)]
    pub libraries: Vec<PathBuf>,
    /// For `use`: the user's own binary.
    #[serde(default)]
    binary: PathBuf,
    /// Of `plan` and `install`.
    #[serde(default)]
    want: Want,
}

/// Carries out a call on its machine:
///
/// - `list` returns versions by product name, and looks no further.
/// - `find` returns the inventory.
/// - `plan` returns the steps.
/// - `install` takes them, reports each, and returns the inventory.
/// - `use` takes a binary of the user's on this machine.
///
/// # Errors
/// What is wrong with the request or with weir's own folder.
pub fn serve(
    call: &str,
    request: &Request,
    catalogue: &Catalogue,
    progress: &mut dyn FnMut(Value),
) -> Result<Value, String> {
    let product = |name: &String| catalogue.product(name, "weir agent");
    let products = request.products.iter().map(product).collect::<Result<Vec<_>, _>>().map_err(text)?;
    let products: Vec<&Product> = products.into_iter().filter(|product| product.program().is_some()).collect();
    let home = Home::from_env().map_err(text)?;
    let here = LocalInstaller::new(home).map_err(text)?;
    match call {
        "list" => serde_json::to_value(versions(&products, &here.home)),
        "find" => serde_json::to_value(here.find(&products).map_err(text)?),
        "plan" => {
            let steps = products.iter().map(|product| here.plan(product, request.want)).collect::<Result<Vec<_>, _>>();
            serde_json::to_value(steps.map_err(text)?.concat())
        }
        "use" => {
            let chosen = products.iter().map(|product| here.choose(product, &request.binary));
            serde_json::to_value(Inventory::of(&products, chosen))
        }
        _ => {
            let mut notify = |news: Progress<'_>| {
                if let Progress::Action(line) = news {
                    progress(line.into());
                }
            };
            // An agent that is to stop ends as a process, and what a build started with it.
            let stop = Stop::new();
            let installed = products.iter().map(|product| here.install(product, request.want, &stop, &mut notify));
            serde_json::to_value(Inventory::of(&products, installed))
        }
    }
    .map_err(text)
}

/// The versions of the products that are there, by name.
pub fn versions(products: &[&Product], home: &Home) -> BTreeMap<String, String> {
    let found = at_once(products, |product| quick_find(product, home));
    let versions = products.iter().zip(found).filter_map(|(product, found)| Some((product, found.ok()?)));
    versions.map(|(product, found)| (product.name.clone(), found.version)).collect()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
