//! `product.toml` as a whole: its sections, and what a schema cannot say of them.
//! The catalogue in `weir-product` calls [`Product::parse`].

use std::collections::BTreeMap;
use std::path::{Component, Path};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::errors::Errors;
use super::install::{self, Files, InstallTable};
use super::locate::{child, item};
use super::{NAME_WANTED, is_name, schema};
use crate::InputError;
use crate::gateway::Feature;
use crate::product::{Part, ProcessSpec, Product, ProductKind, Profile, Program, Reload, Served, VersionProbe};
use crate::release::Releases;
use crate::suite::Protocol;
use crate::text::{one_of, suggestion};

/// A product of weir: a program under test, as data.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "weir product")]
pub(super) struct ProductFile {
    /// What it is.
    product: Head,
    /// Ways to get it, tried in order; one `[[install]]` each.
    #[serde(default)]
    install: Vec<InstallTable>,
    /// How its version is read from the binary itself.
    version: Option<VersionProbe>,
    /// How it is run, when it is one process.
    process: Option<ProcessSpec>,
    /// How it is run, when it is several: one `[[part]]` each, in the order in which they start. Clients talk to the last.
    #[serde(default)]
    part: Vec<Part>,
    /// Where it is served already, in place of all that says how to get and run it.
    served: Option<Served>,
    /// When versions of it were released, such as `"1.31.3" = "2026-07-15"`: the newest that is known, and those that are installed.
    #[serde(default)]
    #[schemars(schema_with = "dates")]
    released: BTreeMap<String, String>,
    /// Named configurations: `[profile.stock]` is what its documentation shows first, `[profile.tuned]` what its own
    /// experts would run.
    #[schemars(extend("x-weir-wanted" = "at least [profile.stock]"))]
    profile: BTreeMap<String, Profile>,
}

fn dates(_: &mut SchemaGenerator) -> Schema {
    let date = json_schema!({
        "type": "string",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
        "x-weir-wanted": "the day of the release, such as \"2026-07-15\"",
    });
    json_schema!({
        "description": "When versions of it were released, such as `\"1.31.3\" = \"2026-07-15\"`: the newest that is known, and those \
                        that are installed.",
        "type": "object",
        "additionalProperties": date,
        "x-weir-wanted": "\"1.31.3\" = \"2026-07-15\" for each version",
    })
}

/// What it is.
#[derive(Deserialize, JsonSchema)]
struct Head {
    /// Name as its makers write it.
    #[schemars(length(min = 1))]
    title: String,
    /// One line: what it is.
    #[schemars(length(min = 1))]
    about: String,
    /// Home page.
    #[schemars(regex(pattern = "^https?://[!-~]+$"), extend("x-weir-wanted" = "an address that begins with https://"))]
    home: String,
    /// What it can speak with clients, with weir's files.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    speaks: Vec<Protocol>,
    /// It answers from a cache of its own: the audit then says so instead of calling requests lost.
    #[serde(default)]
    caches: bool,
    /// It holds the data itself, so that there is no origin behind it.
    #[serde(default)]
    store: bool,
    /// It asks several origins for one request, as a proxy that keeps copies does: the audit then tells how many instead of
    /// calling them retries.
    #[serde(default)]
    replicates: bool,
    /// What its files can do beyond sending each request on to one origin. Workloads that need more are not asked of it.
    #[serde(default)]
    #[schemars(extend("uniqueItems" = true))]
    features: Vec<Feature>,
    /// The container image that it comes in, such as `nginx:1.27`. With `--topology kubernetes` it then runs in a pod of that image,
    /// where a way to get it has to find it. Left out, it is installed in weir's image.
    #[schemars(
        regex(pattern = r"^[a-z0-9][!-~]*$"),
        extend("x-weir-wanted" = "the name of a container image, such as \"nginx:1.27\"")
    )]
    image: Option<String>,
    /// Traps, one a line, for people.
    #[serde(default)]
    notes: Vec<String>,
    /// A proxy, or no proxy at all.
    #[serde(default)]
    kind: Kind,
}

/// A proxy, or no proxy at all.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A program that weir starts.
    #[default]
    Proxy,
    /// No program: the client talks to the origin.
    Direct,
}

impl Product {
    /// Reads a product. `name` is its folder's, `source_name` the file as the user named it, `templates` the text of
    /// every template in the folder by name, `files` every file in the folders below it by path.
    ///
    /// # Errors
    /// Everything that is wrong with the file, by line: syntax errors alone if there are any; else all wrong keys,
    /// types and units, and, where the rest can be read at all, everything that a type cannot tell.
    pub fn parse(
        name: &str,
        source_name: &str,
        text: &str,
        templates: BTreeMap<String, String>,
        files: Files,
    ) -> Result<Product, Vec<InputError>> {
        super::read(source_name, text, &schema::PRODUCT, |file: ProductFile, errors| {
            if !is_name(name) {
                errors.add_about_file(format!("a product's folder is named {name:?}"), NAME_WANTED);
            }
            let ProductFile { product: head, install, version, process, part, served, released, profile: mut profiles } =
                file;
            let released = releases(&released, errors);
            check_profiles(&mut profiles, &templates, errors);
            check_speaks(&head.speaks, &profiles, errors);
            let sections = [
                ("install", !install.is_empty()),
                ("version", version.is_some()),
                ("process", process.is_some()),
                ("part", !part.is_empty()),
                ("product.store", head.store),
                ("product.image", head.image.is_some()),
                ("product.replicates", head.replicates),
                ("served", served.is_some()),
            ];
            let kind = match (head.kind, served) {
                (Kind::Direct, _) => {
                    check_no_program(&NoProgram::DIRECT, &sections, &profiles, errors);
                    ProductKind::Direct
                }
                (Kind::Proxy, Some(served)) => {
                    check_no_program(&NoProgram::SERVED, &sections[..7], &profiles, errors);
                    check_served(&served, &head.speaks, errors);
                    ProductKind::Served(Box::new(served))
                }
                (Kind::Proxy, None) => {
                    let installs = installs(install, &files, errors);
                    let version = version_probe(version, errors);
                    let parts = parts(name, process, part, errors)?;
                    ProductKind::Proxy(Box::new(Program { installs, version: version?, parts }))
                }
            };
            let Head { title, about, home, speaks, caches, store, replicates, features, image, notes, .. } = head;
            let name = name.to_owned();
            Some(Product {
                name,
                title,
                about,
                home,
                speaks,
                caches,
                store,
                replicates,
                features,
                image,
                notes,
                released,
                kind,
                profiles,
                templates,
                files,
                unagreed: None,
            })
        })
    }
}

/// The days are those of a calendar.
fn releases(dates: &BTreeMap<String, String>, errors: &mut Errors<'_>) -> Releases {
    Releases::parse(dates).unwrap_or_else(|(version, date)| {
        let found = format!("found {date:?}, which is no day");
        errors.add(&child("released", version), found, "the day of the release, such as \"2026-07-15\"");
        Releases::default()
    })
}

/// A profile speaks what the product can, or less.
fn check_speaks(product: &[Protocol], profiles: &BTreeMap<String, Profile>, errors: &mut Errors<'_>) {
    for (name, profile) in profiles {
        let path = child(&child("profile", name), "speaks");
        let foreign = |(_, protocol): &(usize, &Protocol)| !product.contains(protocol);
        for (index, protocol) in profile.speaks.iter().flatten().enumerate().filter(foreign) {
            let found = format!("{:?} is not among what the product speaks", protocol.as_str());
            errors.add(&item(&path, index), found, one_of(product.iter().map(|protocol| protocol.as_str())));
        }
    }
}

/// What a product without a program is, for messages.
struct NoProgram {
    what: &'static str,
    why: &'static str,
    instead: &'static str,
}

impl NoProgram {
    const DIRECT: NoProgram = NoProgram {
        what: "a product of kind \"direct\"",
        why: "the client talks to the origin",
        instead: "kind = \"proxy\" in [product]",
    };
    const SERVED: NoProgram =
        NoProgram { what: "a product that is served already", why: "weir does not start it", instead: "no [served]" };
}

/// weir runs nothing for it, so its file may not say how to run it.
fn check_no_program(
    of: &NoProgram,
    sections: &[(&str, bool)],
    profiles: &BTreeMap<String, Profile>,
    errors: &mut Errors<'_>,
) {
    let NoProgram { what, why, instead } = of;
    for (section, _) in sections.iter().filter(|(_, given)| *given) {
        errors.add(section, format!("{what} has no {section}: {why}"), format!("{instead}, or no {section}"));
    }
    for (name, _) in profiles.iter().filter(|(_, profile)| !profile.files.is_empty()) {
        let path = child(&child("profile", name), "files");
        errors.add(&path, format!("{what} has no files"), "no files");
    }
}

fn check_served(served: &Served, speaks: &[Protocol], errors: &mut Errors<'_>) {
    let port = served.address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if port.is_none_or(|port| port == 0) {
        let found = format!("found {:?}", served.address);
        errors.add("served.address", found, "a port from 1 to 65535, as in \"gateway.ingress.svc:80\"");
    }
    if served.namespace.is_some() != served.selector.is_some() {
        let (given, missing) =
            if served.selector.is_some() { ("selector", "namespace") } else { ("namespace", "selector") };
        let found = format!("there is a {given} and no {missing}");
        errors.add(&child("served", given), found, "both, to find its pods, or neither");
    }
    // Its certificates are its own, and the client trusts the run's alone.
    for (index, protocol) in speaks.iter().enumerate().filter(|(_, protocol)| protocol.is_tls()) {
        let found = format!(
            "{:?} needs a certificate of the run, which a product that is served does not have",
            protocol.as_str()
        );
        errors.add(&item("product.speaks", index), found, "protocols without TLS");
    }
}

fn installs(tables: Vec<InstallTable>, files: &Files, errors: &mut Errors<'_>) -> Vec<crate::product::Install> {
    if tables.is_empty() {
        let wanted = format!("at least one [[install]] with a method: {}", one_of(install::METHODS));
        errors.add("install", "missing: there is no way to get the product", wanted);
    }
    install::installs(tables, files, errors)
}

fn version_probe(probe: Option<VersionProbe>, errors: &mut Errors<'_>) -> Option<VersionProbe> {
    let Some(probe) = probe else {
        let found = "missing: a product whose version cannot be read is not measured";
        errors.add("version", found, "[version] with command and pattern");
        return None;
    };
    let wanted = "a regular expression with one group, such as 'nginx/(\\d+\\.\\d+\\.\\d+)'";
    match regex::Regex::new(&probe.pattern) {
        Err(error) => {
            // The message draws the pattern with a mark below it, over several lines; its last line says what is wrong.
            let message = error.to_string();
            let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
            errors.add("version.pattern", format!("'{}' is no regular expression: {reason}", probe.pattern), wanted);
        }
        // The whole match counts as a group of its own.
        Ok(pattern) if pattern.captures_len() != 2 => {
            let found = format!("'{}' has {} groups", probe.pattern, pattern.captures_len() - 1);
            errors.add("version.pattern", found, wanted);
        }
        Ok(_) => {}
    }
    check_command("version.command", &probe.command, errors);
    Some(probe)
}

/// A product of one process is one part that has the product's name.
fn parts(name: &str, process: Option<ProcessSpec>, parts: Vec<Part>, errors: &mut Errors<'_>) -> Option<Vec<Part>> {
    match (process, parts.as_slice()) {
        (Some(process), []) => {
            check_process("process", &process, errors);
            Some(vec![Part { name: name.to_owned(), ports: Vec::new(), cpu_share: None, monitor: None, process }])
        }
        (None, [_, ..]) => {
            check_parts(&parts, errors);
            Some(parts)
        }
        (Some(_), _) => {
            let wanted = "one of the two: [process] for a single process";
            errors.add("process", "there is a [process] and a [[part]]", wanted);
            None
        }
        (None, []) => {
            let wanted = "[process] with command, or a [[part]] for each of its processes";
            errors.add("process", "missing: nothing says how the product is run", wanted);
            None
        }
    }
}

fn check_parts(parts: &[Part], errors: &mut Errors<'_>) {
    for (index, part) in parts.iter().enumerate() {
        let (path, before) = (item("part", index), &parts[..index]);
        if before.iter().any(|other| other.name == part.name) {
            let found = format!("another part is named {:?}", part.name);
            errors.add(&child(&path, "name"), found, "a name for each part");
        }
        for (at, port) in part.ports.iter().enumerate() {
            let path = item(&child(&path, "ports"), at);
            if !is_port_name(port) {
                let wanted = "lower-case letters, digits and _, a letter first: it is used as {{ ports.<name> }}";
                errors.add(&path, format!("a port is named {port:?}"), wanted);
            } else if before.iter().flat_map(|other| &other.ports).chain(&part.ports[..at]).any(|other| other == port) {
                errors.add(&path, format!("another port is named {port:?}"), "a name for each port");
            }
        }
        check_process(&child(&path, "process"), &part.process, errors);
    }
    let shares: f64 = parts.iter().filter_map(|part| part.cpu_share).sum();
    if shares > 1.0 {
        let found = format!("the parts' cpus are {shares} together");
        errors.add("part", found, "at most 1: shares of the CPUs that the proxy has");
    }
}

fn is_port_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn check_process(path: &str, process: &ProcessSpec, errors: &mut Errors<'_>) {
    check_command(&child(path, "command"), &process.command, errors);
    check_command(&child(path, "check"), &process.check, errors);
    if let Some(Reload::Command(command)) = &process.reload {
        check_command(&child(&child(path, "reload"), "command"), command, errors);
    }
    for name in process.env.keys().filter(|name| name.is_empty() || name.contains(['=', '\0'])) {
        let path = child(&child(path, "env"), name);
        errors.add(&path, format!("{name:?} cannot be a variable's name"), "a name without =, such as GOMAXPROCS");
    }
    // What is removed stays inside the folder, and is not the folder.
    let inside = |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    for (i, name) in process.scratch.iter().enumerate().filter(|(_, name)| name.is_empty() || !inside(name)) {
        let wanted = "a name below the product's folder in a trial, such as \"data\"";
        errors.add(&item(&child(path, "scratch"), i), format!("found {name:?}"), wanted);
    }
}

fn check_command(path: &str, command: &[String], errors: &mut Errors<'_>) {
    if command.first().is_some_and(|program| program.trim().is_empty()) {
        errors.add(&item(path, 0), "the name of the program is empty", "\"{{ binary }}\"");
    }
    for (index, _) in command.iter().enumerate().filter(|(_, argument)| argument.contains('\0')) {
        errors.add(&item(path, index), "the argument contains a NUL, which ends it", "an argument without NUL");
    }
}

/// Checks the profiles and gives them their names.
fn check_profiles(
    profiles: &mut BTreeMap<String, Profile>,
    templates: &BTreeMap<String, String>,
    errors: &mut Errors<'_>,
) {
    if profiles.is_empty() {
        errors.add("profile", "there is no profile", "at least [profile.stock]");
    }
    let before = errors.count();
    for (name, profile) in profiles.iter_mut() {
        let path = child("profile", name);
        if !is_name(name) {
            errors.add(&path, format!("a profile is named {name:?}"), NAME_WANTED);
        }
        for (file, template) in &profile.files {
            check_file(&child(&child(&path, "files"), file), file, template, templates, errors);
        }
        profile.name.clone_from(name);
    }
    // A profile with a wrong template name already has its message; the template that it meant counts as used.
    let meant = profiles.is_empty() || errors.count() > before;
    for unused in unused_templates(profiles, templates).into_iter().filter(|_| !meant) {
        let wanted = "[profile.<name>] with files = { \"<file>\" = \"<template>\" }, or no such template";
        errors.add_about_file(format!("the template {unused:?} is used by no profile"), wanted);
    }
}

fn check_file(path: &str, file: &str, template: &str, templates: &BTreeMap<String, String>, errors: &mut Errors<'_>) {
    if file.is_empty() || file == "." || file.contains(['/', '\\', '\0']) || file.contains("..") {
        let found = format!("{file:?} is no plain file name");
        errors.add(path, found, "a name without / and .., in the trial's folder");
    }
    if !templates.contains_key(template) {
        let near = suggestion(template, templates.keys());
        errors.add(path, format!("the product's folder has no template {template:?}{near}"), one_of(templates.keys()));
    }
}

/// Templates that neither a profile nor another template names.
fn unused_templates<'t>(profiles: &BTreeMap<String, Profile>, templates: &'t BTreeMap<String, String>) -> Vec<&'t str> {
    let rendered =
        |name: &str| profiles.values().flat_map(|profile| &profile.files).any(|(_, template)| template == name);
    // An include or an import names the other template in quotes.
    let included = |name: &str| {
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        let others = templates.iter().filter(|(other, _)| *other != name);
        others.into_iter().any(|(_, text)| quoted.iter().any(|quoted| text.contains(quoted)))
    };
    templates.keys().map(String::as_str).filter(|name| !rendered(name) && !included(name)).collect()
}
