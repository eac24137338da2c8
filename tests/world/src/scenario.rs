//! A run of a suite in the world: its hosts, its products and its folder. Tests make one, disturb it, and look at what was recorded.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_host::stop::Stop;
use weir_host::{Host, LocalStorage, Storage};
use weir_lab::hosts::{Hosts, PartHost};
use weir_lab::journal::{Journal, JournalError};
use weir_lab::run::{Outcome, Run, Setup};
use weir_model::load::DriverChoice;
use weir_model::product::Product;
use weir_model::record::Measurement;
use weir_net::sim::Link;
use weir_product::catalogue::Catalogue;
use weir_product::launch::Installed;
use weir_product::tls::RunTls;

use crate::host::{Realm, SimHost, SimReach};

const DIRECT: &str = include_str!("../../../products/direct/product.toml");

/// The file of a product of the world: the number of the change that it shows, and its origins.
const ROUTE: &str = "{{ change }}{% for one in origins %} {{ one.host }}:{{ one.port }}{% endfor %}";

/// A suite with one small workload. `head` are further keys of `[suite]`, `workload` of the workload; `load` are those of the load.
pub fn suite(head: &str, workload: &str, load: &str) -> String {
    format!(
        "[suite]\nquestion = \"Does it work?\"\n{head}\n\n[[workload]]\nname = \"tiny\"\npath = \"/bytes/128\"\n\
         expect = {{ status = 200, size = 128 }}\n{workload}\n\n[[load]]\nname = \"load\"\n{load}\n"
    )
}

/// A product of the world: its misbehaviour, the CPU time of a request in microseconds, and its workers. It spreads over all origins.
pub fn product(fault: &str, service_us: u64, workers: usize) -> String {
    let origins = "{% for one in origins %}{{ one.host }}:{{ one.port }},{% endfor %}";
    program(
        "speaks = [\"http/1.1\"]\nfeatures = [\"pool\", \"routes\", \"key-auth\", \"compression\", \"reload\"]",
        &format!(r#""{origins}", "{fault}", "{service_us}", "{workers}""#),
    )
}

/// A store of the world: it has the keys in its memory, and nothing else. `faults` are those of weir's origin.
pub fn store(protocol: &str, faults: &str) -> String {
    program(&format!("speaks = [{protocol:?}]\nstore = true"), &format!("{protocol:?}, {faults:?}"))
}

/// A program of the world with these keys of `[product]`, and these arguments after where it listens.
fn program(keys: &str, arguments: &str) -> String {
    format!(
        r#"
[product]
title = "Simulated"
about = "A product of the simulated world"
home = "https://example.org/"
{keys}
[[install]]
method = "system"
binary = "simulated"
[version]
command = ["{{{{ binary }}}}", "--version"]
pattern = '(\d+)'
[process]
command = ["{{{{ binary }}}}", "{{{{ listen_host }}}}:{{{{ listen_port }}}}", {arguments}]
reload = {{ signal = "HUP" }}
ready_within = "5s"
stop_within = "1s"
[profile.tuned]
about = "As it is"
codings = ["gzip"]
files = {{ "route" = "route.j2" }}
"#
    )
}

/// Which steps that change the run's folder succeed.
#[derive(Debug, Default)]
pub struct Disk {
    steps: AtomicU64,
    /// From this step on the process is gone; 0: never.
    crash_at: AtomicU64,
    /// From this step on the disk is full; 0: never.
    full_at: AtomicU64,
}

impl Disk {
    /// A disk on which all steps succeed.
    pub fn sound() -> Arc<Disk> {
        Arc::default()
    }

    /// A disk on which nothing is done any more from this step on, the first of which is 1.
    pub fn crashing_at(step: u64) -> Arc<Disk> {
        Arc::new(Disk { crash_at: AtomicU64::new(step), ..Disk::default() })
    }

    /// A disk that is full from this step on.
    pub fn full_at(step: u64) -> Arc<Disk> {
        Arc::new(Disk { full_at: AtomicU64::new(step), ..Disk::default() })
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// All steps succeed from now on.
    pub fn mend(&self) {
        self.crash_at.store(0, Ordering::Relaxed);
        self.full_at.store(0, Ordering::Relaxed);
    }
}

/// The lab's way to a [`Disk`].
#[derive(Debug)]
struct DiskStorage(Arc<Disk>);

impl Storage for DiskStorage {
    fn admit(&self, _path: &Path, bytes: usize) -> io::Result<usize> {
        let step = self.0.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let from = |at: &AtomicU64| Some(at.load(Ordering::Relaxed)).filter(|at| *at > 0 && step >= *at);
        if from(&self.0.crash_at).is_some() {
            return Err(io::Error::other("the process is gone"));
        }
        if from(&self.0.full_at).is_some() {
            return Ok(bytes / 2);
        }
        Ok(bytes)
    }

    fn sync(&self, _: &std::fs::File) -> io::Result<()> {
        Ok(())
    }
}

/// A run in a world. The folder is its owner's.
#[derive(Debug)]
pub struct Scenario {
    /// The world with its processes.
    pub realm: Arc<Realm>,
    /// Where clients, products and origins run.
    pub hosts: Vec<SimHost>,
    /// See [`Disk`].
    pub disk: Arc<Disk>,
    folder: PathBuf,
    products: Vec<String>,
}

impl Scenario {
    /// A world with this seed and so many hosts: one for all roles, or one for each of client, product and origin, with clocks of their
    /// own. `products` are definitions by name.
    pub fn new(seed: u64, hosts: usize, folder: &Path, products: &[(&str, String)], disk: Arc<Disk>) -> Scenario {
        let names: &[&str] = if hosts == 1 { &[] } else { &["client", "proxy", "origin"] };
        Scenario::on(seed, names, folder, products, disk)
    }

    /// The same on hosts whose names begin with their role, or are those of parts behind `part-`; without names on one for all roles.
    pub fn on(seed: u64, names: &[&str], folder: &Path, products: &[(&str, String)], disk: Arc<Disk>) -> Scenario {
        let realm = Realm::new(seed, Arc::new(DiskStorage(Arc::clone(&disk))));
        let mut hosts: Vec<SimHost> =
            names.iter().map(|name| SimHost::new(&realm, name, realm.world.random(1 << 40))).collect();
        if hosts.is_empty() {
            hosts.push(SimHost::new(&realm, "here", 0));
        }
        write_library(folder, products);
        let products = products.iter().map(|(name, _)| (*name).to_owned()).collect();
        Scenario { realm, hosts, disk, folder: folder.to_owned(), products }
    }

    /// The same with ways that take so long, nanoseconds.
    #[must_use]
    pub fn with_latency(self, latency: u64) -> Scenario {
        self.realm.world.set_default_link(Link { latency, ..Link::default() });
        self
    }

    /// Kills the processes with this name at a time of the world.
    pub fn kill_at(&self, name: &'static str, at: u64) {
        let realm = Arc::downgrade(&self.realm);
        self.realm.world.at(at, move |_| {
            if let Some(realm) = realm.upgrade() {
                realm.running(name).into_iter().for_each(|pid| realm.kill(pid));
            }
        });
    }

    /// The folder of a trial.
    pub fn trial_folder(&self, m: &Measurement) -> PathBuf {
        self.run_folder().join(format!("trials/{:03}-{}", m.trial, m.case.slug()))
    }

    /// Draws the report. Returns its folder.
    ///
    /// # Errors
    /// Why it cannot be drawn.
    pub fn draw(&self) -> Result<PathBuf, String> {
        let files = weir_report::ChartFiles::Pictures;
        weir_report::make(&self.run_folder(), files).map_err(|error| format!("the report: {error}"))?;
        Ok(self.run_folder().join("report"))
    }

    /// The run's folder.
    pub fn run_folder(&self) -> PathBuf {
        self.folder.join("run")
    }

    fn hosts(&self) -> Hosts {
        let has = |host: &&SimHost, role: &str| host.facts().name.starts_with(role) || self.hosts.len() == 1;
        let of = |role: &str| -> Vec<Arc<dyn Host>> {
            self.hosts
                .iter()
                .filter(|host| has(host, role))
                .map(|host| Arc::new(host.clone()) as Arc<dyn Host>)
                .collect()
        };
        let named = self.hosts.iter().filter_map(|host| Some((host.facts().name.strip_prefix("part-")?, host)));
        let parts = named.map(|(part, host)| {
            let host: Arc<dyn Host> = Arc::new(host.clone());
            (part.to_owned(), PartHost { host, installed: None })
        });
        Hosts { clients: of("client"), proxy: of("proxy").remove(0), parts: parts.collect(), origins: of("origin") }
    }

    /// What a run of the suite in a file needs.
    pub fn setup(&self, suite: &Path) -> Setup {
        let mut catalogue = Catalogue::default();
        catalogue.overlay(&self.folder.join("library")).unwrap_or_else(|error| panic!("{error}"));
        catalogue.agree(|_| true);
        let name = suite.to_str().expect("UTF-8");
        let suite = catalogue.suite(name).unwrap_or_else(|error| panic!("{error}"));
        let installed = |name: &String| {
            let binary = format!("/opt/{name}").into();
            let (version, from) = ("1".to_owned(), "system".to_owned());
            (name.clone(), Installed { binary, version, sha256: "0".repeat(64), from })
        };
        let installed: BTreeMap<String, Installed> = self.products.iter().map(installed).collect();
        let used = |(name, _): &(&String, &Product)| suite.entries.iter().any(|entry| entry.product == **name);
        let products = catalogue.products().iter().filter(used).map(|(name, product)| (name.clone(), product.clone()));
        let hosts = self.hosts();
        Setup {
            products: products.collect(),
            scaled: Vec::new(),
            skipped: Vec::new(),
            tls: RunTls::new(suite.tls).expect("a certificate"),
            installed: installed.clone(),
            origin_installed: installed,
            placement: hosts.placement(),
            topology: "# the world\n".to_owned(),
            reach: Box::new(SimReach(self.hosts.clone())),
            driver: DriverChoice::Epoll,
            weir_sha256: "0".repeat(64),
            weir_version: "0.0.0".to_owned(),
            doctor: Vec::new(),
            hosts,
            suite,
        }
    }

    /// Prepares a run of a suite in an empty folder.
    ///
    /// # Errors
    /// Those of the run.
    pub fn create(&self, suite: &str) -> Result<Run, JournalError> {
        let file = self.folder.join("suite.toml");
        std::fs::write(&file, suite).expect("written");
        Run::create(&self.run_folder(), self.setup(&file))
    }

    /// Runs a suite.
    ///
    /// # Errors
    /// Those of the run.
    pub fn run(&self, suite: &str) -> Result<Outcome, JournalError> {
        self.create(suite)?.execute(&Stop::new(), &mut ())
    }

    /// Goes on with the run that is in the folder.
    ///
    /// # Errors
    /// Those of the run.
    pub fn resume(&self) -> Result<Outcome, JournalError> {
        let setup = self.setup(&self.run_folder().join("run.toml"));
        Run::resume(&self.run_folder(), setup, false)?.execute(&Stop::new(), &mut ())
    }

    /// The measurements so far, by trial. `weir report` has to read the same: no record that weir writes may look damaged to it.
    pub fn measured(&self) -> Vec<Measurement> {
        let storage: Arc<dyn Storage> = Arc::new(LocalStorage);
        let journal = Journal::open(&self.run_folder(), false, storage).unwrap_or_else(|error| panic!("{error}"));
        let finished = journal.finished().unwrap_or_else(|error| panic!("{error}"));
        let finished: Vec<Measurement> = finished.into_values().collect();
        if !finished.is_empty() {
            let run = weir_report::load_run(&self.run_folder()).unwrap_or_else(|error| panic!("{error}"));
            assert!(run.broken.is_empty(), "weir calls its own record damaged: {:?}", run.broken);
            let read: Vec<Measurement> = run.trials.into_iter().map(|trial| trial.measurement).collect();
            assert_eq!(read, finished);
        }
        finished
    }
}

fn write_library(folder: &Path, products: &[(&str, String)]) {
    let direct = [("direct", DIRECT.to_owned())];
    for (name, text) in direct.iter().chain(products) {
        let folder = folder.join("library/products").join(name);
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join("product.toml"), text).expect("written");
        if text.contains("route.j2") {
            std::fs::write(folder.join("route.j2"), ROUTE).expect("written");
        }
    }
}
