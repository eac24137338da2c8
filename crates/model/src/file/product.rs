//! Turns the wire structs of `product.toml` into a valid [`Product`].
//! The catalogue in `weir-product` calls [`Product::parse`].

use std::collections::BTreeMap;
use std::path::{Component, Path};

use super::errors::Errors;
use super::install::{self, Files};
use super::locate::{child, item};
use super::product_wire::{Kind, PartTable, ProcessTable, ProductFile, ProfileTable, ReloadTable, VersionTable};
use super::{NAME_WANTED, is_name, schema};
use crate::InputError;
use crate::product::{Part, ProcessSpec, Product, ProductKind, Profile, Program, Reason, Reload, VersionProbe};
use crate::suite::Protocol;
use crate::text::{one_of, suggestion};

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
        super::read(source_name, text, &schema::PRODUCT, |file, errors| read(name, file, templates, files, errors))
    }
}

fn read(
    name: &str,
    mut file: ProductFile,
    templates: BTreeMap<String, String>,
    files: Files,
    errors: &mut Errors<'_>,
) -> Option<Product> {
    if !is_name(name) {
        errors.add_about_file(format!("a product's folder is named {name:?}"), NAME_WANTED);
    }
    let profiles = profiles(std::mem::take(&mut file.profile), &templates, errors);
    let head = &file.product;
    speaks("product.speaks", &head.speaks, errors);
    for profile in profiles.values() {
        speaks_less(profile, &head.speaks, errors);
    }
    let kind = match head.kind {
        Kind::Direct => direct(&file, &profiles, errors),
        Kind::Proxy => proxy(name, &mut file, &files, errors),
    };
    let head = file.product;
    Some(Product {
        name: name.to_owned(),
        title: head.title,
        about: head.about,
        home: head.home,
        speaks: head.speaks,
        caches: head.caches,
        notes: head.notes,
        kind: kind?,
        profiles,
        templates,
        files,
    })
}

/// Each protocol once, and one of them such that it can be measured.
fn speaks(path: &str, protocols: &[Protocol], errors: &mut Errors<'_>) {
    for (index, protocol) in protocols.iter().enumerate() {
        if protocols[..index].contains(protocol) {
            let found = format!("{:?} stands here twice", protocol.as_str());
            errors.add(&item(path, index), found, "each protocol once");
        }
    }
    if !protocols.iter().any(|protocol| protocol.is_measured()) {
        let measured = Protocol::measured().map(Protocol::as_str);
        errors.add(path, "none of these is a protocol that weir measures", format!("at least {}", one_of(measured)));
    }
}

/// A profile speaks what the product can, or less.
fn speaks_less(profile: &Profile, product: &[Protocol], errors: &mut Errors<'_>) {
    let path = child(&child("profile", &profile.name), "speaks");
    let Some(own) = &profile.speaks else { return };
    speaks(&path, own, errors);
    for (index, protocol) in own.iter().enumerate().filter(|(_, protocol)| !product.contains(protocol)) {
        let found = format!("{:?} is not among what the product speaks", protocol.as_str());
        errors.add(&item(&path, index), found, one_of(product.iter().map(|protocol| protocol.as_str())));
    }
}

/// `direct` runs nothing, so its file may not say how to run it.
fn direct(file: &ProductFile, profiles: &BTreeMap<String, Profile>, errors: &mut Errors<'_>) -> Option<ProductKind> {
    let sections = [
        ("install", !file.install.is_empty()),
        ("version", file.version.is_some()),
        ("process", file.process.is_some()),
        ("part", !file.part.is_empty()),
    ];
    for (section, given) in sections {
        if given {
            let found = format!("a product of kind \"direct\" has no {section}: the client talks to the origin");
            errors.add(section, found, format!("kind = \"proxy\" in [product], or no {section}"));
        }
    }
    for profile in profiles.values().filter(|profile| !profile.files.is_empty()) {
        let path = child(&child("profile", &profile.name), "files");
        errors.add(&path, "a product of kind \"direct\" has no files", "no files");
    }
    Some(ProductKind::Direct)
}

fn proxy(name: &str, file: &mut ProductFile, files: &Files, errors: &mut Errors<'_>) -> Option<ProductKind> {
    if file.install.is_empty() {
        errors.add(
            "install",
            "missing: there is no way to get the product",
            format!("at least one [[install]] with a method: {}", one_of(install::METHODS)),
        );
    }
    if file.version.is_none() {
        errors.add(
            "version",
            "missing: a product whose version cannot be read is not measured",
            "[version] with command and pattern",
        );
    }
    let installs = install::installs(std::mem::take(&mut file.install), files, errors);
    let version = file.version.take().map(|table| version_probe(table, errors));
    let parts = match (file.process.take(), std::mem::take(&mut file.part)) {
        (Some(_), parts) if !parts.is_empty() => {
            errors.add(
                "process",
                "there is a [process] and a [[part]]",
                "one of the two: [process] for a single process",
            );
            return None;
        }
        (Some(table), _) => {
            let process = process_spec("process", table, errors);
            vec![Part { name: name.to_owned(), ports: Vec::new(), cpu_share: None, process }]
        }
        (None, parts) if parts.is_empty() => {
            errors.add(
                "process",
                "missing: nothing says how the product is run",
                "[process] with command, or a [[part]] for each of its processes",
            );
            return None;
        }
        (None, tables) => parts(tables, errors),
    };
    Some(ProductKind::Proxy(Box::new(Program { installs, version: version?, parts })))
}

fn parts(tables: Vec<PartTable>, errors: &mut Errors<'_>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::with_capacity(tables.len());
    for (index, table) in tables.into_iter().enumerate() {
        let path = item("part", index);
        let name_path = child(&path, "name");
        if !is_name(&table.name) {
            errors.add(&name_path, format!("a part is named {:?}", table.name), NAME_WANTED);
        } else if parts.iter().any(|part| part.name == table.name) {
            errors.add(&name_path, format!("another part is named {:?}", table.name), "a name for each part");
        }
        for (at, port) in table.ports.iter().enumerate() {
            let port_path = item(&child(&path, "ports"), at);
            let others = parts.iter().flat_map(|part| &part.ports).chain(&table.ports[..at]);
            if !is_port_name(port) {
                let wanted = "lower-case letters, digits and _, a letter first: it is used as {{ ports.<name> }}";
                errors.add(&port_path, format!("a port is named {port:?}"), wanted);
            } else if others.into_iter().any(|other| other == port) {
                errors.add(&port_path, format!("another port is named {port:?}"), "a name for each port");
            }
        }
        if table.cpus == Some(0.0) {
            errors.add(&child(&path, "cpus"), "found 0", "a number above 0 and at most 1, such as 0.25");
        }
        let process = process_spec(&child(&path, "process"), table.process, errors);
        parts.push(Part { name: table.name, ports: table.ports, cpu_share: table.cpus, process });
    }
    let shares: f64 = parts.iter().filter_map(|part| part.cpu_share).sum();
    if shares > 1.0 {
        let found = format!("the parts' cpus are {shares} together");
        errors.add("part", found, "at most 1: shares of the CPUs that the proxy has");
    }
    parts
}

fn is_port_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn version_probe(table: VersionTable, errors: &mut Errors<'_>) -> VersionProbe {
    let wanted = "a regular expression with one group, such as 'nginx/(\\d+\\.\\d+\\.\\d+)'";
    match regex::Regex::new(&table.pattern) {
        Err(error) => {
            // The message draws the pattern with a mark below it, over several lines; its last line says what is wrong.
            let message = error.to_string();
            let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let found = format!("'{}' is no regular expression: {reason}", table.pattern);
            errors.add("version.pattern", found, wanted);
        }
        // The whole match counts as a group of its own.
        Ok(pattern) if pattern.captures_len() != 2 => {
            let found = format!("'{}' has {} groups", table.pattern, pattern.captures_len() - 1);
            errors.add("version.pattern", found, wanted);
        }
        Ok(_) => {}
    }
    check_command("version.command", &table.command, errors);
    VersionProbe { command: table.command, pattern: table.pattern, at_least: table.at_least }
}

fn process_spec(path: &str, table: ProcessTable, errors: &mut Errors<'_>) -> ProcessSpec {
    check_command(&child(path, "command"), &table.command, errors);
    check_command(&child(path, "check"), &table.check, errors);
    for name in table.env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            let path = child(&child(path, "env"), name);
            errors.add(&path, format!("{name:?} cannot be a variable's name"), "a name without =, such as GOMAXPROCS");
        }
    }
    for (i, name) in table.scratch.iter().enumerate() {
        // What is removed stays inside the folder, and is not the folder.
        if name.is_empty() || !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            let path = item(&child(path, "scratch"), i);
            errors.add(
                &path,
                format!("found {name:?}"),
                "a name below the product's folder in a trial, such as \"data\"",
            );
        }
    }
    ProcessSpec {
        command: table.command,
        check: table.check,
        env: table.env,
        ready_within: table.ready_within.into(),
        stop_within: table.stop_within.into(),
        graceful: table.graceful,
        reload: table.reload.and_then(|table| reload(&child(path, "reload"), table, errors)),
        scratch: table.scratch,
    }
}

fn reload(path: &str, table: ReloadTable, errors: &mut Errors<'_>) -> Option<Reload> {
    let wanted = "{ signal = \"HUP\" }, or { command = [\"{{ binary }}\", …] }";
    match (table.signal, table.command) {
        (Some(signal), None) => Some(Reload::Signal(signal)),
        (None, Some(command)) => {
            check_command(&child(path, "command"), &command, errors);
            Some(Reload::Command(command))
        }
        (Some(_), Some(_)) => {
            errors.add(path, "there is a signal and a command", format!("one of the two: {wanted}"));
            None
        }
        (None, None) => {
            errors.add(path, "there is neither a signal nor a command", wanted);
            None
        }
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

fn profiles(
    tables: BTreeMap<String, ProfileTable>,
    templates: &BTreeMap<String, String>,
    errors: &mut Errors<'_>,
) -> BTreeMap<String, Profile> {
    if tables.is_empty() {
        errors.add("profile", "there is no profile", "at least [profile.stock]");
    }
    let before = errors.count();
    let mut profiles = BTreeMap::new();
    for (name, table) in tables {
        let path = child("profile", &name);
        if !is_name(&name) {
            errors.add(&path, format!("a profile is named {name:?}"), NAME_WANTED);
        }
        for (file, template) in &table.files {
            check_file(&child(&child(&path, "files"), file), file, template, templates, errors);
        }
        let reasons = table.reason.into_iter();
        let profile = Profile {
            name: name.clone(),
            about: table.about,
            files: table.files.into_iter().map(|(file, template)| (template, file)).collect(),
            reasons: reasons.map(|r| Reason { setting: r.setting, why: r.why, source: r.source }).collect(),
            speaks: table.speaks,
            nice: table.nice,
        };
        profiles.insert(name, profile);
    }
    // A profile with a wrong template name already has its message; the template that it meant counts as used.
    let meant = profiles.is_empty() || errors.count() > before;
    for unused in unused_templates(&profiles, templates).into_iter().filter(|_| !meant) {
        let found = format!("the template {unused:?} is used by no profile");
        errors.add_about_file(
            found,
            "[profile.<name>] with files = { \"<file>\" = \"<template>\" }, or no such template",
        );
    }
    profiles
}

fn check_file(path: &str, file: &str, template: &str, templates: &BTreeMap<String, String>, errors: &mut Errors<'_>) {
    if file.is_empty() || file == "." || file.contains(['/', '\\', '\0']) || file.contains("..") {
        let found = format!("{file:?} is no plain file name");
        errors.add(path, found, "a name without / and .., in the trial's folder");
    }
    if !templates.contains_key(template) {
        let names = || templates.keys().map(String::as_str);
        let found = format!("the product's folder has no template {template:?}{}", suggestion(template, names()));
        errors.add(path, found, one_of(names()));
    }
}

/// Templates that neither a profile nor another template names.
fn unused_templates<'t>(profiles: &BTreeMap<String, Profile>, templates: &'t BTreeMap<String, String>) -> Vec<&'t str> {
    let rendered =
        |name: &str| profiles.values().flat_map(|profile| &profile.files).any(|(template, _)| template == name);
    // An include or an import names the other template in quotes.
    let included = |name: &str| {
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        let others = templates.iter().filter(|(other, _)| *other != name);
        others.into_iter().any(|(_, text)| quoted.iter().any(|quoted| text.contains(quoted)))
    };
    templates.keys().map(String::as_str).filter(|name| !rendered(name) && !included(name)).collect()
}
