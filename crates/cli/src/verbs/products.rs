//! `weir products`: what can be measured, whether it is here, and how it gets here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;
use weir_lab::catalogue::Catalogue;
use weir_lab::home::Home;
use weir_lab::install::{self, Found, Installed};
use weir_model::product::{Product, ProductKind};

use crate::exit::{Done, Exit, Failure};
use crate::library::catalogue;
use crate::words::columns;

/// Flags of `weir products`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir products list
  weir products show nginx
  weir products install nginx haproxy --yes
  $(weir products path haproxy) -vv")]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// A folder whose products/ and suites/ are laid over those built in.
    #[arg(long, value_name = "FOLDER", global = true)]
    library: Vec<PathBuf>,
    /// Print JSON on standard output.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All of them: what each is, and whether it is installed
    #[command(
        after_help = "Examples:\n  weir products list\n  weir products list --json | jq -r '.[] | select(.installed == null) | .name'"
    )]
    List,
    /// Everything weir knows of one: how to get it, its profiles and their reasons
    #[command(after_help = "Examples:\n  weir products show nginx\n  weir products show nginx --json")]
    Show {
        /// The product's name (see `weir products list`)
        product: String,
    },
    /// Install products; says what it will do, and asks
    #[command(after_help = "Examples:\n  weir products install nginx haproxy\n  weir products install --yes")]
    Install {
        /// The products' names; all when none is given
        products: Vec<String>,
        /// Do not ask
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Print the path of one's binary
    #[command(after_help = "Examples:\n  weir products path haproxy\n  $(weir products path haproxy) -vv")]
    Path {
        /// The product's name (see `weir products list`)
        product: String,
    },
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    title: String,
    about: String,
    profiles: Vec<String>,
    installed: Option<String>,
    from: Option<String>,
    binary: Option<PathBuf>,
}

/// Runs it.
pub fn main(args: &Args) -> Done {
    let catalogue = catalogue(&args.library)?;
    let home = Home::from_env().map_err(Failure::missing)?;
    match &args.what {
        What::List => list(&catalogue, &home, args.json),
        What::Show { product } => show(&catalogue, &home, product, args.json),
        What::Install { products, yes } => {
            let names: Vec<String> =
                if products.is_empty() { catalogue.products().keys().cloned().collect() } else { products.clone() };
            let wanted = names
                .iter()
                .map(|name| catalogue.product(name, "weir products install").map_err(Failure::input))
                .collect::<Result<Vec<_>, _>>()?;
            ensure(&wanted, &home, *yes)?;
            list(&catalogue, &home, args.json)
        }
        What::Path { product } => {
            let product = catalogue.product(product, "weir products path").map_err(Failure::input)?;
            if product.kind == ProductKind::Direct {
                return Err(Failure::input(format!(
                    "{} is no proxy and has no binary\n  would be right: one of those in `weir products list` with a version",
                    product.name
                )));
            }
            let installed = found(product, &home)?.ok_or_else(|| {
                Failure::missing(format!(
                    "{} is not installed\n  to mend it: weir products install {}",
                    product.title, product.name
                ))
            })?;
            say!("{}", installed.binary.display());
            Ok(Exit::Ok)
        }
    }
}

fn found(product: &Product, home: &Home) -> Result<Option<Installed>, Failure> {
    if product.kind == ProductKind::Direct {
        return Ok(None);
    }
    match install::find(product, home).map_err(Failure::missing)? {
        Found::Yes(installed) => Ok(Some(installed)),
        Found::No { .. } => Ok(None),
    }
}

fn row(product: &Product, home: &Home) -> Result<Row, Failure> {
    let installed = found(product, home)?;
    Ok(Row {
        name: product.name.clone(),
        title: product.title.clone(),
        about: product.about.clone(),
        profiles: product.profiles.keys().cloned().collect(),
        installed: installed.as_ref().map(|i| i.version.clone()),
        from: installed.as_ref().map(|i| i.from.clone()),
        binary: installed.map(|i| i.binary),
    })
}

fn list(catalogue: &Catalogue, home: &Home, json: bool) -> Done {
    let rows = catalogue.products().values().map(|p| row(p, home)).collect::<Result<Vec<_>, _>>()?;
    if json {
        super::print_json(&rows)?;
        return Ok(Exit::Ok);
    }
    let mut cells = Vec::new();
    for row in rows {
        let state = match (&row.installed, &row.from) {
            (Some(version), Some(from)) => format!("{version} ({from})"),
            _ if row.name == "direct" => "needs nothing".to_owned(),
            _ => "not installed".to_owned(),
        };
        cells.push(vec![row.name, state, row.about]);
    }
    for line in columns(&cells) {
        say!("{line}");
    }
    Ok(Exit::Ok)
}

fn show(catalogue: &Catalogue, home: &Home, name: &str, json: bool) -> Done {
    let product = catalogue.product(name, "weir products show").map_err(Failure::input)?;
    let row = row(product, home)?;
    if json {
        super::print_json(&row)?;
        return Ok(Exit::Ok);
    }
    say!("{}: {}\n{}\n", product.title, product.about, product.home);
    match (&row.installed, &row.binary) {
        (Some(version), Some(binary)) => say!("installed  {version}, {}", binary.display()),
        _ if product.kind == ProductKind::Direct => say!("installed  needs nothing"),
        _ => say!("installed  no; `weir products install {name}` tries:"),
    }
    if let ProductKind::Proxy(program) = &product.kind {
        for way in &program.installs {
            say!("  {}", describe(way));
        }
    }
    for profile in product.profiles.values() {
        say!("\nprofile {}: {}", profile.name, profile.about);
        for reason in &profile.reasons {
            say!("  {}\n      {}\n      {}", reason.setting, reason.why, reason.source);
        }
    }
    Ok(Exit::Ok)
}

fn describe(way: &weir_model::product::Install) -> String {
    use weir_model::product::Install;
    match way {
        Install::System { binary } => format!("{binary} already on the machine"),
        Install::Apt { package, .. } => format!("apt package {package}"),
        Install::Wheel { package, version, .. } => format!("wheel {package} {version}, checked against its SHA-256"),
        Install::Crate { .. } => "a crate, built by cargo".to_owned(),
        Install::Go { .. } => "a Go program, built by go".to_owned(),
        Install::Maven { .. } => "a Java program, built by Maven".to_owned(),
        Install::Npm { .. } => "a JavaScript program, with its packages from npm".to_owned(),
        Install::Release { version, .. } => format!("the vendor's release {version}, checked against its SHA-256"),
        Install::Own { at, about } => format!("a binary that you bring, from {at}: {about}"),
    }
}

/// Sees to it that products are installed: says what is missing and what will be done, asks, does it. What was got, by
/// product name; each product is looked for once, and once more when it had to be installed.
///
/// # Errors
/// When something cannot be installed, is not found afterwards, or the user says no.
pub fn ensure(products: &[&Product], home: &Home, yes: bool) -> Result<BTreeMap<String, Installed>, Failure> {
    let mut here = BTreeMap::new();
    let mut missing = Vec::new();
    for product in products.iter().filter(|p| p.kind != ProductKind::Direct) {
        match found(product, home)? {
            Some(installed) => drop(here.insert(product.name.clone(), installed)),
            None => missing.push(*product),
        }
    }
    if missing.is_empty() {
        return Ok(here);
    }
    let steps = install::plan(&missing, home).map_err(Failure::missing)?;
    let names: Vec<&str> = missing.iter().map(|p| p.title.as_str()).collect();
    remark!("Not installed yet: {}. weir will:", names.join(", "));
    for step in &steps {
        remark!("  - {step}");
    }
    if !yes && !agreed()? {
        return Err(Failure::missing("nothing was installed\n  to go on without asking: --yes"));
    }
    for step in &steps {
        install::carry_out(step, home, &mut |line| remark!("    {line}")).map_err(Failure::missing)?;
    }
    for product in missing {
        match install::find(product, home).map_err(Failure::missing)? {
            Found::Yes(installed) => drop(here.insert(product.name.clone(), installed)),
            Found::No { tried } => {
                return Err(Failure::missing(format!("{} is not installed:\n  {}", product.title, tried.join("\n  "))));
            }
        }
    }
    Ok(here)
}

fn agreed() -> Result<bool, Failure> {
    use std::io::Write;
    if !console::user_attended() || !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return Err(Failure::missing(
            "something has to be installed, and nobody is there to be asked\n  to go on without asking: --yes",
        ));
    }
    eprint!("Go on? [y/N] ");
    std::io::stderr().flush().map_err(Failure::missing)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(Failure::missing)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
