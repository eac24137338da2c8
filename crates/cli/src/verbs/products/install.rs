//! `weir products install`, and the offer to install what is missing. `weir run` and `weir products test` use the
//! latter.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_host::LocalHost;
use weir_host::stop::Stop;
use weir_install::home::Home;
use weir_install::{self as install, Found, InstallContext, InstallError, Installed, Progress, Step};
use weir_model::product::Product;
use weir_product::catalogue::Catalogue;

use super::attempt::{Attempt, attempt};
use super::proxies;
use crate::args::stop_on_signal;
use crate::ask;
use crate::exit::{Exit, Failure, VerbResult};
use crate::progress::{Status, minutes, template};
use crate::verbs::topology::end_left_behind;

/// Flags of `weir products install`.
#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../../../help/products-install.txt"))]
pub struct Args {
    /// The products' names; without names, all that can be installed here
    #[arg(required_if_eq("latest", "true"))]
    pub(super) products: Vec<String>,
    /// The newest version instead of the pinned one; there is no hash to verify it, and records say so.
    #[arg(long)]
    latest: bool,
}

pub fn main(args: &Args, catalogue: &Catalogue, home: &Home, yes: bool, json: bool) -> VerbResult {
    if args.products.is_empty() {
        return all(catalogue, home, yes, json);
    }
    let product = |name: &String| catalogue.product(name, "weir products install").map_err(Failure::input);
    let wanted = args.products.iter().map(product).collect::<Result<Vec<_>, _>>()?;
    match args.latest {
        true => newest(&wanted, home, yes)?,
        false => newer(&wanted, home, yes)?,
    }
    super::list::show(&wanted, home, json)
}

/// Installs all that can be installed here, in the newest version that the products' files name; names the others, and then
/// ends with status 1.
fn all(catalogue: &Catalogue, home: &Home, yes: bool, json: bool) -> VerbResult {
    let Attempt { here, failed } = attempt(&catalogue.products().values().collect::<Vec<_>>(), home, yes)?;
    let here: Vec<&Product> = catalogue.products().values().filter(|p| here.contains_key(&p.name)).collect();
    let mut remarks: Vec<String> = failed.iter().map(|(name, why)| format!("not installed: {name}: {why}")).collect();
    remarks.extend(bring_up_to_date(&here, home, yes)?);
    super::list::main(catalogue, home, json)?;
    for line in &remarks {
        remark!("weir: {line}");
    }
    Ok(if remarks.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Replaces old versions one by one. Returns a line for each step that failed: the old version is still there.
fn bring_up_to_date(products: &[&Product], home: &Home, yes: bool) -> Result<Vec<String>, Failure> {
    let steps = newer_steps(products, home, yes)?;
    let context = Context::new()?;
    let mut failed = Vec::new();
    for step in &steps {
        match context.run(std::slice::from_ref(step), home) {
            Ok(()) => {}
            Err(error @ InstallError::Interrupted) => return Err(failure(error)),
            Err(error) => failed.push(format!("still in an old version: {}", one_line(&error))),
        }
    }
    Ok(failed)
}

fn newest(products: &[&Product], home: &Home, yes: bool) -> Result<(), Failure> {
    let steps = install::plan_latest(products, home).map_err(failure)?;
    remark!("weir will take the newest version instead of the pinned one:");
    carry_out(&steps, home, yes)?;
    find_all(products, home).map(drop)
}

/// Makes sure that products are installed, in the newest version that their files name: prints what will be done, asks, installs.
fn newer(products: &[&Product], home: &Home, yes: bool) -> Result<(), Failure> {
    ensure(products, home, yes)?;
    let steps = newer_steps(products, home, yes)?;
    Context::new()?.run(&steps, home).map_err(failure)?;
    find_all(products, home).map(drop)
}

/// The steps from installed versions to the newest that the products' files name, shown and agreed to.
fn newer_steps(products: &[&Product], home: &Home, yes: bool) -> Result<Vec<Step>, Failure> {
    let steps = install::plan_newer(products, home).map_err(failure)?;
    if !steps.is_empty() {
        remark!("What is installed is older than the version that the product's file names. weir will:");
        confirm(&steps, yes)?;
    }
    Ok(steps)
}

/// Makes sure that products are installed: prints what is missing and what will be done, asks, installs. Returns what is
/// installed, by product name.
///
/// # Errors
/// When something cannot be installed, is not found afterwards, or the user says no.
pub fn ensure(products: &[&Product], home: &Home, yes: bool) -> Result<BTreeMap<String, Installed>, Failure> {
    let (mut here, missing) = look(products, home);
    if missing.is_empty() {
        return Ok(here);
    }
    let missing: Vec<&Product> = missing.into_iter().map(|(product, _)| product).collect();
    let steps = install::plan(&missing, home).map_err(failure)?;
    let names: Vec<&str> = missing.iter().map(|product| product.title.as_str()).collect();
    remark!("Not installed yet: {}. weir will:", names.join(", "));
    carry_out(&steps, home, yes)?;
    here.extend(find_all(&missing, home)?);
    Ok(here)
}

/// What is installed, by product name, and products that are not, with the reason. Where a file is wrong, a plan for them says the same.
pub(super) type Looked<'p> = (BTreeMap<String, Installed>, Vec<(&'p Product, InstallError)>);

/// Looks for each, several at once.
pub(super) fn look<'p>(products: &[&'p Product], home: &Home) -> Looked<'p> {
    let proxies = proxies(products.iter().copied());
    let (mut here, mut missing) = (BTreeMap::new(), Vec::new());
    for (product, found) in proxies.iter().zip(install::find_all(&proxies, home)) {
        match found.and_then(|found| usable(product, found)) {
            Ok(installed) => drop(here.insert(product.name.clone(), installed)),
            Err(why) => missing.push((*product, why)),
        }
    }
    (here, missing)
}

/// All of them, or an error for the first that is not installed.
fn find_all(products: &[&Product], home: &Home) -> Result<BTreeMap<String, Installed>, Failure> {
    let (here, missing) = look(products, home);
    missing.into_iter().next().map_or(Ok(here), |(_, why)| Err(failure(why)))
}

/// What was found, or that it cannot be used.
pub(super) fn usable(product: &Product, found: Found) -> Result<Installed, InstallError> {
    match found {
        Found::Yes(installed) => Ok(installed),
        Found::No { tried } => Err(InstallError::Unusable { product: product.name.clone(), tried }),
    }
}

/// An error as a reason in one line.
pub(super) fn one_line(error: &InstallError) -> String {
    let text = error.to_string();
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ").replace(":; ", ": ")
}

/// Shows the steps, asks, and does them.
fn carry_out(steps: &[Step], home: &Home, yes: bool) -> Result<(), Failure> {
    confirm(steps, yes)?;
    Context::new()?.run(steps, home).map_err(failure)
}

/// Shows the steps and asks.
///
/// # Errors
/// When the user says no, or cannot be asked.
pub fn confirm(steps: &[impl std::fmt::Display], yes: bool) -> Result<(), Failure> {
    for step in steps {
        remark!("  - {step}");
    }
    ask::agreed("Go on?", "something has to be installed", "nothing was installed", yes)
}

/// What installing needs besides a folder: this machine, and the flag that Ctrl-C sets.
pub(super) struct Context {
    host: LocalHost,
    stop: Stop,
}

impl Context {
    pub(super) fn new() -> Result<Context, Failure> {
        end_left_behind();
        let host = LocalHost::new(std::env::current_exe().map_err(Failure::missing)?);
        Ok(Context { host, stop: stop_on_signal()? })
    }

    pub(super) fn run(&self, steps: &[Step], home: &Home) -> Result<(), InstallError> {
        let context = InstallContext { home, host: &self.host, stop: &self.stop };
        for step in steps {
            let mut shown = InstallProgress::new();
            install::run_step(step, context, &mut |progress| shown.update(progress))?;
        }
        Ok(())
    }
}

pub(super) fn failure(error: InstallError) -> Failure {
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
}

impl InstallProgress {
    fn new() -> InstallProgress {
        let status = Status::new(false, template("    {spinner} {elapsed} {wide_msg}"), None);
        let now = Instant::now();
        InstallProgress { status, began: now, last_line: now, now: String::new() }
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
        self.status.line(&format!("    {line}"));
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
