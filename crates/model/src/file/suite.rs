//! Turns the wire structs of `suite.toml` into a valid [`Suite`], and checks names and references.
//! The catalogue in `weir-product` calls [`Suite::parse`]; reports and comparisons call `Suite::read_run`.

use std::collections::BTreeMap;
use std::path::Path;

use super::errors::Errors;
use super::http::{is_field_value, is_token};
use super::locate::{self, Lines, child, item};
use super::suite_wire::{EntryName, ExpectTable, ScaleTable, ScaleTables, Seed, SuiteFile, TlsTable, WorkloadTable};
use super::{Catalogue, NAME_WANTED, is_name, schema, shape, suite_load};
use crate::InputError;
use crate::product::ORIGIN_PROFILE;
use crate::suite::{Entry, EntryPattern, Expect, Protocol, Request, Scale, ScaleOverride, Suite, Tls, Workload};
use crate::text::{one_of, suggestion};

/// Largest generated body: it is held in memory, once a connection.
const LARGEST_BODY: u64 = 64 << 20;

impl Suite {
    /// Reads a suite. `source_name` is the file as the user named it; it stands in messages, and its stem is the
    /// suite's name unless the file gives one. `catalogue` says which products and profiles exist.
    ///
    /// # Errors
    /// Everything that is wrong with the file, by line: syntax errors alone if there are any; else all wrong keys,
    /// types, units and ranges, and, where the rest can be read at all, wrong names and references too.
    pub fn parse(source_name: &str, text: &str, catalogue: &dyn Catalogue) -> Result<Suite, Vec<InputError>> {
        let root = locate::parse(source_name, text)?;
        let lines = Lines::of(&root);
        let mut errors = Errors::new(source_name, &lines);
        let value = shape::check(&root, &schema::SUITE, "", &mut errors);
        let suite = value.and_then(|value| match serde_json::from_value::<SuiteFile>(value) {
            Ok(file) => Some(Reader { catalogue, errors: &mut errors }.suite(source_name, file)),
            Err(error) => {
                // The schema is generated from the same structs, so what passed it fits them.
                errors.add_about_file(format!("cannot be read: {error}"), "what the schema describes");
                None
            }
        });
        errors.into_result(suite)
    }

    /// Reads the suite that a run wrote down ([`Suite::to_toml`]), whatever products there are today.
    ///
    /// # Errors
    /// What is wrong with the file, the first thing alone.
    pub fn read_run(file: &Path) -> Result<Suite, String> {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        Suite::parse("run.toml", &text, &own_catalogue(&text)?)
            .map_err(|errors| errors.first().map_or("is not a suite".to_owned(), ToString::to_string))
    }
}

/// The products and profiles that the file of a run names. The catalogue may no longer have them.
fn own_catalogue(text: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let head = table.get("suite");
    let products = head.and_then(|suite| suite.get("products")).and_then(|products| products.as_array());
    let mut catalogue: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in products.into_iter().flatten().filter_map(|entry| entry.as_str()) {
        let (product, profile) = entry.split_once(':').unwrap_or((entry, "stock"));
        catalogue.entry(product.to_owned()).or_default().push(profile.to_owned());
    }
    if let Some(origin) = head.and_then(|suite| suite.get("origin")).and_then(|origin| origin.as_str()) {
        catalogue.entry(origin.to_owned()).or_default().push(ORIGIN_PROFILE.to_owned());
    }
    Ok(catalogue)
}

/// Turns wire structs into valid types. Errors go to `errors`, and a harmless value replaces what is wrong.
struct Reader<'a, 'e> {
    catalogue: &'a dyn Catalogue,
    errors: &'a mut Errors<'e>,
}

impl Reader<'_, '_> {
    fn suite(&mut self, source_name: &str, file: SuiteFile) -> Suite {
        let head = file.suite;
        self.unique("workload", file.workload.iter().map(|table| table.name.as_str()));
        self.unique("load", file.load.iter().map(|table| table.name.as_str()));
        let before = self.errors.count();
        let entries = self.entries(&head.products, head.profile.as_deref());
        let entries_are_whole = self.errors.count() == before;
        let load_names: Vec<String> = file.load.iter().map(|table| table.name.clone()).collect();
        let workloads: Vec<Workload> = (file.workload.into_iter().enumerate())
            .map(|(index, table)| self.workload(index, table, &load_names, entries_are_whole.then_some(&entries)))
            .collect();
        let loads = suite_load::loads(file.load, &workloads, self.errors);
        let scales = self.scales(file.scale, &entries, entries_are_whole, &workloads, &load_names);
        Suite {
            name: head.name.unwrap_or_else(|| self.name_of_file(source_name)),
            title: head.title,
            question: head.question,
            blocks: head.blocks,
            seed: head.seed.and_then(|seed| self.seed(&seed)),
            origin: head.origin.filter(|name| self.can_be_origin(name)),
            entries,
            tls: self.tls(&file.tls),
            workloads,
            loads,
            scales,
        }
    }

    fn tls(&mut self, table: &TlsTable) -> Tls {
        for (index, version) in table.versions.iter().enumerate() {
            if table.versions[..index].contains(version) {
                let found = format!("{:?} stands here twice", version.as_str());
                self.errors.add(&item("tls.versions", index), found, "each version once");
            }
        }
        let (oldest, newest) = (table.versions.iter().min(), table.versions.iter().max());
        let versions = oldest.zip(newest).map_or(Tls::default().versions, |(oldest, newest)| (*oldest, *newest));
        Tls { key: table.key, versions, resumption: table.resumption }
    }

    fn name_of_file(&mut self, source_name: &str) -> String {
        let stem = Path::new(source_name).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        if !is_name(&stem) {
            let wanted = format!("{NAME_WANTED}; or name = \"…\" in [suite]");
            self.errors.add("suite.name", format!("the file's name makes {stem:?} the suite's"), wanted);
        }
        stem.into_owned()
    }

    fn seed(&mut self, seed: &Seed) -> Option<u64> {
        let read = match seed {
            Seed::Number(number) => u64::try_from(*number).ok(),
            Seed::Text(digits) => digits.parse().ok(),
        };
        if read.is_none() {
            self.errors.add("suite.seed", "the number is too large", "a whole number of at most 18446744073709551615");
        }
        read
    }

    fn can_be_origin(&mut self, name: &str) -> bool {
        let known = self.catalogue.origins();
        let can = known.iter().any(|origin| origin == name);
        if !can {
            let names = || known.iter().map(String::as_str);
            let found = format!("{name:?} is no product that can be the origin{}", suggestion(name, names()));
            self.errors.add("suite.origin", found, format!("{}, or no such key for weir's own", one_of(names())));
        }
        can
    }

    /// Names of the `what` tables must differ: cases, folders and references go by them.
    fn unique<'n>(&mut self, what: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, name) in names.enumerate() {
            if let Some(first) = seen.get(name) {
                let found = format!("a second {what} named {name:?}; the first is {what}[{first}]");
                self.errors.add(&child(&item(what, index), "name"), found, "a name that no other has");
            } else {
                seen.insert(name, index);
            }
        }
    }

    fn entries(&mut self, products: &[EntryName], default: Option<&str>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for (index, EntryName(text)) in products.iter().enumerate() {
            let path = item("suite.products", index);
            let (product, own) = match text.split_once(':') {
                Some((product, profile)) => (product, Some(profile)),
                None => (text.as_str(), None),
            };
            let known = self.catalogue.products();
            let Some(profiles) = self.catalogue.profiles(product) else {
                let names = || known.iter().map(String::as_str);
                let near = suggestion(product, names());
                self.errors.add(&path, format!("there is no product {product:?}{near}"), one_of(names()));
                continue;
            };
            let Some(profile) = own.or(default) else {
                let wanted = format!("\"{product}:<profile>\", or profile = \"…\" in [suite], for all without one");
                self.errors.add(&path, format!("{product:?} is named without a profile"), wanted);
                continue;
            };
            if !profiles.iter().any(|known| known == profile) {
                let names = || profiles.iter().map(String::as_str);
                let near = suggestion(profile, names());
                let found = format!("product {product:?} has no profile {profile:?}{near}");
                self.errors.add(&path, found, one_of(names()));
                continue;
            }
            let entry = Entry { product: product.to_owned(), profile: profile.to_owned() };
            if entries.contains(&entry) {
                self.errors.add(
                    &path,
                    format!("{product}:{profile} stands here twice"),
                    "each product and profile once",
                );
            } else {
                entries.push(entry);
            }
        }
        entries
    }

    fn workload(
        &mut self,
        index: usize,
        table: WorkloadTable,
        loads: &[String],
        entries: Option<&Vec<Entry>>,
    ) -> Workload {
        let path = item("workload", index);
        let known: Vec<&str> = loads.iter().map(String::as_str).collect();
        self.known(&child(&path, "loads"), "load", table.loads.as_deref(), &known);
        let products: Option<Vec<EntryPattern>> =
            table.products.as_ref().map(|some| some.iter().map(|EntryName(text)| EntryPattern::of(text)).collect());
        if let Some(entries) = entries {
            self.known_entries(&child(&path, "products"), products.as_deref(), entries);
        }
        for (name, values) in &table.headers.0 {
            let path = child(&child(&path, "headers"), name);
            if !is_token(name) {
                let wanted = "a header's name: letters, digits and !#$%&'*+-.^_`|~";
                self.errors.add(&path, format!("{name:?} cannot be a header's name"), wanted);
            }
            if let Some(value) = values.as_slice().iter().find(|value| !is_field_value(value)) {
                let wanted = "one line without control characters, and no blanks at its ends";
                self.errors.add(&path, format!("{value:?} cannot be a header's value"), wanted);
            }
        }
        if !table.protocol.is_measured() {
            let found = format!("{:?} is a protocol that weir knows of and does not measure", table.protocol.as_str());
            self.errors.add(&child(&path, "protocol"), found, one_of(Protocol::measured().map(Protocol::as_str)));
        }
        let headers = table.headers.to_flat();
        let request = Request {
            method: table.method.as_str().to_owned(),
            path: table.path.clone(),
            headers,
            body: self.body(&path, &table),
        };
        Workload {
            title: table.title.unwrap_or_else(|| table.name.clone()),
            name: table.name,
            protocol: table.protocol,
            request,
            expect: expect(&table.expect),
            loads: table.loads,
            products,
            by_product: table.by_product,
        }
    }

    fn known_entries(&mut self, path: &str, found: Option<&[EntryPattern]>, entries: &[Entry]) {
        for (index, pattern) in found.into_iter().flatten().enumerate() {
            if !entries.iter().any(|entry| pattern.fits(&entry.product, &entry.profile)) {
                let names: Vec<String> =
                    entries.iter().map(|entry| format!("{}:{}", entry.product, entry.profile)).collect();
                let found = format!("the suite has no product {:?}", pattern.to_string());
                self.errors.add(&item(path, index), found, one_of(names.iter().map(String::as_str)));
            }
        }
    }

    fn body(&mut self, path: &str, table: &WorkloadTable) -> Vec<u8> {
        let given: Vec<&str> = [
            ("body", table.body.is_some()),
            ("body_bytes", table.body_bytes.is_some()),
            ("body_hex", table.body_hex.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, given)| given.then_some(key))
        .collect();
        if let [_, second, ..] = given.as_slice() {
            let found = format!("the request has {} bodies: {}", given.len(), given.join(", "));
            self.errors.add(&child(path, second), found, "only one of body, body_bytes, body_hex");
        }
        if let Some(size) = table.body_bytes {
            if size.0 > LARGEST_BODY {
                let path = child(path, "body_bytes");
                self.errors.add(&path, format!("found a body of {size}"), "at most 64MiB: it is held in memory");
                return Vec::new();
            }
            return generated_body(size.0);
        }
        match (&table.body, &table.body_hex) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(hex)) => from_hex(hex),
            (None, None) => Vec::new(),
        }
    }

    fn scales(
        &mut self,
        tables: ScaleTables,
        entries: &[Entry],
        entries_are_whole: bool,
        workloads: &[Workload],
        loads: &[String],
    ) -> BTreeMap<Scale, ScaleOverride> {
        let mut scales = BTreeMap::new();
        for (scale, table) in [(Scale::Smoke, tables.smoke), (Scale::Fit, tables.fit), (Scale::Full, tables.full)] {
            let Some(table) = table else { continue };
            let path = child("scale", scale.as_str());
            // Entries that were refused are reported where they stand; here they would only be noise.
            if entries_are_whole {
                let mut products: Vec<&str> = entries.iter().map(|entry| entry.product.as_str()).collect();
                products.dedup();
                self.known(&child(&path, "products"), "product", table.products.as_deref(), &products);
            }
            let names: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
            self.known(&child(&path, "workloads"), "workload", table.workloads.as_deref(), &names);
            let names: Vec<&str> = loads.iter().map(String::as_str).collect();
            self.known(&child(&path, "loads"), "load", table.loads.as_deref(), &names);
            scales.insert(scale, scale_override(table));
        }
        scales
    }

    fn known(&mut self, path: &str, what: &str, found: Option<&[String]>, known: &[&str]) {
        for (index, name) in found.into_iter().flatten().enumerate() {
            if !known.contains(&name.as_str()) {
                let near = suggestion(name, known.iter().copied());
                let found = format!("the suite has no {what} {name:?}{near}");
                self.errors.add(&item(path, index), found, one_of(known.iter().copied()));
            }
        }
    }
}

fn scale_override(table: ScaleTable) -> ScaleOverride {
    ScaleOverride {
        blocks: table.blocks,
        products: table.products,
        workloads: table.workloads,
        loads: table.loads,
        requests: table.requests,
        warmup: table.warmup.map(Into::into),
        duration: table.duration.map(Into::into),
    }
}

fn expect(table: &ExpectTable) -> Expect {
    Expect {
        status: table.status,
        size: table.size.map(|size| size.0),
        // The schema's pattern lets only 16 hexadecimal digits through.
        hash: table.hash.as_deref().and_then(|hex| u64::from_str_radix(hex, 16).ok()),
        headers: Vec::new(),
    }
}

/// The body that `body_bytes` asks for: the letters a to z, over and over.
pub(super) fn generated_body(size: u64) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(usize::try_from(size).unwrap_or(usize::MAX)).collect()
}

/// The schema's pattern lets only pairs of hexadecimal digits through.
fn from_hex(hex: &str) -> Vec<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).unwrap_or(0) as u8;
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
