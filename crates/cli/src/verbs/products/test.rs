//! `weir products test`: tests what products do with the protocols that they speak, and prints a matrix. Called by
//! `verbs::products`.

mod matrix;
mod page;
mod progress;
mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_conformance::{self as conformance, CHECKS, Kind, ProductReport, TestSpec, Verdict};
use weir_host::LocalHost;
use weir_install::home::Home;
use weir_model::product::Product;
use weir_model::text::{one_of, suggestion};
use weir_product::catalogue::Catalogue;

use super::proxies;
use crate::args::stop_on_signal;
use crate::ask::Consent;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::progress::minutes_s;
use crate::verbs::topology::end_left_behind;

use record::{Absent, Record};

/// Flags of `weir products test`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../../help/products-test.txt"))]
pub struct Args {
    /// The products' names; without names, all that are installed
    pub(super) products: Vec<String>,
    /// Profiles, separated by commas: stock, tuned, any other of a product, or all.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "tuned")]
    profile: Vec<String>,
    /// Only this check (see --checks). May be repeated.
    #[arg(long, value_name = "CHECK")]
    only: Vec<String>,
    /// List the checks, and start nothing.
    #[arg(long)]
    pub(super) checks: bool,
    /// Write the results as a markdown page.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Keep the rendered configurations and the products' output.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Install what is missing first.
    #[arg(long)]
    install: bool,
    /// Show no progress.
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// Runs it.
pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, consent: Consent, json: bool) -> VerbResult {
    if args.checks {
        return list_checks(json);
    }
    check_names(&args.only)?;
    let wanted = wanted(args, catalogue)?;
    if args.install {
        install(&wanted, home, args, consent)?;
    }
    let (here, absent) = split_installed(&wanted, home, !args.products.is_empty())?;
    let cases = cases(&here, args)?;
    let scratch = tempfile::Builder::new().prefix("weir-test-").tempdir().map_err(Failure::missing)?;
    let folder = folder(args.keep.as_deref(), scratch.path())?;
    end_left_behind();
    weir_net::raise_descriptor_limit();
    let stop = stop_on_signal()?;
    let installed = here.iter().map(|(product, installed)| (product.name.clone(), installed.clone())).collect();
    let host = Arc::new(LocalHost::new(std::env::current_exe().map_err(Failure::missing)?));
    let launcher = conformance::launcher(host, installed).map_err(Failure::missing)?;
    let never_fetched = wanted.iter().map(|product| (product.name.clone(), super::never_fetched(product)));
    let never_fetched = never_fetched.filter(|(_, releases)| !releases.is_empty()).collect();
    let mut record = Record::begin(absent, never_fetched, &args.only);
    let mut progress = progress::TestProgress::new(args.quiet, cases.len());
    for (product, profile) in &cases {
        if stop.is_requested() {
            break;
        }
        let own = folder.join(format!("{}-{profile}", product.name));
        let order = TestSpec { launcher: &launcher, product, profile, only: &args.only, folder: &own };
        progress.begin(product, profile);
        let tested = conformance::test(&order, &stop, &mut |happening| progress.update(&happening));
        progress.end(product, &tested, launcher.installed.get(&product.name));
        record.add(product, launcher.installed.get(&product.name), tested);
    }
    drop(progress);
    record.stopped = stop.is_requested();
    match json {
        true => drop(out::json(&record)?),
        false => show(&record)?,
    }
    if let Some(path) = &args.write {
        write(path, &page::page(&record))?;
    }
    Ok(exit(&record))
}

fn show(record: &Record) -> Result<(), Failure> {
    let width = out::terminal_width(120);
    for page in matrix::pages(&record.tested, width) {
        output!("{page}\n");
    }
    for absent in &record.absent {
        output!("{}: {}", absent.product, absent.why);
    }
    for (product, releases) in &record.never_fetched {
        output!("{product}: never fetched by weir's makers: {}", releases.join(", "));
    }
    let took: f64 = record.tested.iter().map(|tested| tested.tested.took_s).sum();
    if record.stopped {
        output!("Stopped on request; the results so far are above.");
    }
    output!(
        "A star means that there is more to say: most of it is in the notes above, all of it in --json and --write."
    );
    output!("Each figure is a single reading. The test took {}.", minutes_s(took));
    Ok(())
}

fn exit(record: &Record) -> Exit {
    let works = |cell: &weir_conformance::Cell| matches!(cell.verdict, Verdict::Yes | Verdict::Odd);
    let failed = |tested: &ProductReport| {
        let first = tested.kinds.iter().filter_map(|kind: &Kind| tested.cell(kind.first_check()));
        tested.error.is_some() || !first.into_iter().all(works)
    };
    match record.stopped {
        true => Exit::Interrupted,
        false if record.tested.iter().any(|named| failed(&named.tested)) => Exit::Failed,
        false => Exit::Ok,
    }
}

fn list_checks(json: bool) -> VerbResult {
    if json {
        return crate::out::json(&*CHECKS);
    }
    for check in CHECKS.iter() {
        output!("{}: {}", check.name, check.title);
        output!("    {}", weir_model::text::wrapped(&check.asks, 96, 4));
    }
    Ok(Exit::Ok)
}

fn check_names(only: &[String]) -> Result<(), Failure> {
    let names = || CHECKS.iter().map(|check| check.name.as_str());
    match only.iter().find(|name| conformance::check(name).is_none()) {
        None => Ok(()),
        Some(name) => {
            let found = format!("there is no check \"{name}\"{}", suggestion(name, names()));
            Err(Failure::wrong("--only", found, one_of(names())))
        }
    }
}

fn wanted<'a>(args: &Args, catalogue: &'a Catalogue) -> Result<Vec<&'a Product>, Failure> {
    let proxies = proxies(catalogue.products().values());
    if args.products.is_empty() {
        return Ok(proxies);
    }
    let mut products = Vec::new();
    for name in &args.products {
        let product = catalogue.product(name, "weir products test").map_err(Failure::input)?;
        if product.program().is_none() {
            let wanted = one_of(proxies.iter().map(|product| product.name.as_str()));
            return Err(Failure::wrong(
                "weir products test",
                format!("{name} is not a proxy that weir starts"),
                wanted,
            ));
        }
        if !products.iter().any(|other: &&Product| other.name == product.name) {
            products.push(product);
        }
    }
    Ok(products)
}

/// Installs products. Products that were named must be installed afterwards.
fn install(wanted: &[&Product], home: &Home, args: &Args, consent: Consent) -> Result<(), Failure> {
    if !args.products.is_empty() {
        return super::ensure(wanted, home, consent).map(drop);
    }
    for product in wanted {
        if let Err(why) = super::ensure(&[*product], home, consent) {
            remark!("{} is skipped: {why}", product.title);
        }
    }
    Ok(())
}

/// Installed products.
type Here<'a> = Vec<(&'a Product, weir_install::Installed)>;

fn split_installed<'a>(wanted: &[&'a Product], home: &Home, named: bool) -> Result<(Here<'a>, Vec<Absent>), Failure> {
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    for product in wanted {
        match weir_install::find(product, home) {
            Ok(installed) => here.push((*product, installed)),
            Err(error) if !error.is_missing() => return Err(Failure::missing(error)),
            Err(_) if named => {
                let mend = format!("weir products install {}, or --install", product.name);
                return Err(Failure::to_fix(format!("{} is not installed", product.title), mend));
            }
            Err(_) => absent.push(Absent::new(product)),
        }
    }
    if here.is_empty() {
        return Err(Failure::to_fix("no product is installed", "weir products install nginx haproxy, or --install"));
    }
    Ok((here, absent))
}

/// Every product in every profile asked for, in the product's order. A profile that no product has is an error, and so are
/// checks of which none is for any of the products.
fn cases<'a>(here: &Here<'a>, args: &Args) -> Result<Vec<(&'a Product, String)>, Failure> {
    let profiles = &args.profile;
    let known: std::collections::BTreeSet<&str> =
        here.iter().flat_map(|(product, _)| product.proxy_profiles().map(String::as_str)).collect();
    for profile in profiles {
        if profile != "all" && !known.contains(profile.as_str()) {
            let known = || known.iter().copied();
            let found = format!("none of these products has a profile \"{profile}\"{}", suggestion(profile, known()));
            return Err(Failure::wrong("--profile", found, format!("all, {}", one_of(known()))));
        }
    }
    let asked = |name: &str| profiles.iter().any(|profile| profile == "all" || profile == name);
    let mut cases = Vec::new();
    for (product, installed) in here {
        let own: Vec<&String> = product.proxy_profiles().filter(|name| asked(name)).collect();
        let (own, old): (Vec<_>, Vec<_>) = own
            .into_iter()
            .map(|name| (name, product.too_old_for(name, &installed.version)))
            .partition(|(_, why)| why.is_none());
        for (profile, why) in &old {
            remark!("{}:{profile} {}: it is skipped", product.name, why.as_deref().unwrap_or_default());
        }
        let own: Vec<&String> = own.into_iter().map(|(name, _)| name).collect();
        if own.is_empty() && old.is_empty() {
            remark!("{} has no profile {}: it is skipped", product.title, one_of(profiles.iter().map(String::as_str)));
        }
        let is_asked = |profile: &&String| {
            let kinds = conformance::kinds(product, profile);
            conformance::wanted(&args.only).any(|check| kinds.iter().any(|kind| kind.has(check)))
        };
        let (asked, others): (Vec<&String>, Vec<&String>) = own.into_iter().partition(is_asked);
        if !others.is_empty() && !args.products.is_empty() {
            remark!("{} speaks no protocol that these checks are for: it is skipped", product.title);
        }
        cases.extend(asked.into_iter().map(|profile| (*product, profile.clone())));
    }
    if cases.is_empty() && !args.only.is_empty() {
        let wanted = "a check of a protocol that they speak: see weir products test --checks";
        return Err(Failure::wrong("--only", "no such check is for any of these products".to_owned(), wanted));
    }
    if cases.is_empty() {
        return Err(Failure::to_fix(
            "no version that is here fits its profile",
            "another version, or --profile with another",
        ));
    }
    Ok(cases)
}

fn folder(keep: Option<&Path>, scratch: &Path) -> Result<PathBuf, Failure> {
    let Some(keep) = keep else { return Ok(scratch.to_owned()) };
    let failed = |e: std::io::Error| Failure::missing(format!("--keep: {}: {e}", keep.display()));
    if std::fs::read_dir(keep).is_ok_and(|mut entries| entries.next().is_some()) {
        let found = format!("{} is not empty", keep.display());
        return Err(Failure::wrong("--keep", found, "a folder that is empty or does not exist"));
    }
    std::fs::create_dir_all(keep).map_err(failed)?;
    keep.canonicalize().map_err(failed)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::missing(format!("--write: {}: {e}", path.display()));
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)?;
    remark!("written: {}", path.display());
    Ok(())
}
