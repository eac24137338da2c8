//! What the documents claim about the source tree, held against the source tree: dependencies, paths, names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a folder, as paths relative to the checkout.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    let mut files = Vec::new();
    collect(&root().join(folder), &mut files);
    files.sort();
    files.into_iter().map(|path| path.strip_prefix(root()).expect("below the checkout").to_owned()).collect()
}

/// Names of the folders below `crates`.
pub fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect()
}

/// The source of a file without comments and without its tests, which stand at its end.
fn code(path: &Path) -> String {
    let text = read(path);
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).fold(String::new(), |all, line| all + line + "\n")
}

fn is_test(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs" | "sample.rs" | "examples")))
}

/// The words of a text: runs of letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Names of the table of crates in docs/architecture.md, from top to bottom.
fn map() -> Vec<String> {
    let page = read("docs/architecture.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let names = rows.filter_map(|row| quoted(row).next().map(str::to_owned));
    names.filter(|name| crates().contains(name)).collect()
}

/// What a crate needs in any case, on every system and on Linux, ascending.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest: toml::Table = read(format!("crates/{name}/Cargo.toml")).parse().expect("a manifest");
    let systems = manifest.get("target").and_then(|target| target.as_table()).into_iter().flat_map(|all| all.values());
    let tables = std::iter::once(&manifest["dependencies"]).chain(systems.map(|system| &system["dependencies"]));
    let is_optional =
        |value: &toml::Value| value.get("optional").is_some_and(|optional| optional.as_bool() == Some(true));
    let needed = tables.flat_map(|table| table.as_table().expect("a table")).filter(|(_, value)| !is_optional(value));
    needed.map(|(key, _)| key.clone()).collect()
}

/// The crates of the workspace that a crate uses, ascending.
pub fn uses(name: &str) -> Vec<String> {
    dependencies(name).iter().filter_map(|key| key.strip_prefix("weir-").map(str::to_owned)).collect()
}

#[test]
fn every_crate_is_on_the_map_and_uses_crates_below_it() {
    let map = map();
    assert_eq!(map.iter().collect::<BTreeSet<_>>(), crates().iter().collect(), "rows of docs/architecture.md");
    for (place, name) in map.iter().enumerate() {
        let above: Vec<String> = uses(name).into_iter().filter(|used| !map[place + 1..].contains(used)).collect();
        assert!(above.is_empty(), "{name} uses {above:?}, which stand above it in docs/architecture.md");
    }
}

/// The fuzz targets are built by `make check` alone, which would be late to find it out.
#[test]
fn fuzz_targets_lock_what_the_crates_need() {
    let lock: toml::Table = read("fuzz/Cargo.lock").parse().expect("a lock file");
    let packages = lock["package"].as_array().expect("packages");
    for krate in crates() {
        let name = format!("weir-{krate}");
        let Some(package) = packages.iter().find(|package| package["name"].as_str() == Some(&name)) else { continue };
        let locked = package.get("dependencies").and_then(|all| all.as_array()).expect("what it needs").iter();
        let locked: BTreeSet<&str> = locked.filter_map(|one| one.as_str()?.split(' ').next()).collect();
        let missing: Vec<String> =
            dependencies(&krate).into_iter().filter(|one| !locked.contains(one.as_str())).collect();
        assert!(missing.is_empty(), "{name}: no {missing:?}; `cargo update --workspace` in fuzz/ adds them");
    }
}

#[test]
fn every_crate_says_what_it_does_not_know() {
    let silent: Vec<String> = crates()
        .into_iter()
        .filter(|name| name != "cli")
        .filter(|name| {
            let text = read(format!("crates/{name}/src/lib.rs"));
            let head: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
            !["not know", "knows no"].iter().any(|words| head.contains(words))
        })
        .collect();
    assert_eq!(silent, Vec::<String>::new(), "crates whose first comment does not say what they do not know");
}

/// Whether a file is a module, whose files are in this folder, or one of these files.
fn is_of_module(file: &Path, folder: &Path) -> bool {
    file.starts_with(folder) || file.with_extension("") == folder
}

#[test]
fn a_module_is_the_file_beside_its_folder() {
    let own = crates().into_iter().map(|name| format!("crates/{name}"));
    let files = own.chain(["bench", "tests"].map(str::to_owned)).flat_map(|folder| rust_files(&folder));
    // Programs of tests share these.
    let others: Vec<PathBuf> =
        files.filter(|file| file.ends_with("mod.rs") && !file.ends_with("common/mod.rs")).collect();
    assert_eq!(others, Vec::<PathBuf>::new(), "modules that are a mod.rs");
}

#[test]
fn every_module_opens_with_what_it_is_for() {
    let own = crates().into_iter().map(|name| format!("crates/{name}/src"));
    let files = own.chain(["bench/src".to_owned(), "tests".to_owned()]).flat_map(|folder| rust_files(&folder));
    let silent: Vec<PathBuf> =
        files.filter(|file| (!is_test(file) || file.starts_with("tests")) && !read(file).starts_with("//!")).collect();
    assert_eq!(silent, Vec::<PathBuf>::new(), "files without a first comment");
}

#[test]
fn products_are_named_only_in_examples_of_the_help_and_of_error_messages() {
    let names: BTreeSet<String> = fs::read_dir(root().join("products"))
        .expect("products")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name != "direct")
        // Some protocols are named as the product that spoke them first.
        .filter(|name| !root().join("crates/wire/src").join(name).is_dir())
        .collect();
    let mut found = Vec::new();
    for name in crates().iter().filter(|name| !["cli", "load-cli"].contains(&name.as_str())) {
        let files = rust_files(&format!("crates/{name}/src"));
        let examples = Path::new("crates/model/src/file");
        for file in files.iter().filter(|file| !is_test(file) && !is_of_module(file, examples)) {
            let code = code(file);
            // What an error message says would be right.
            let code: String = code.lines().filter(|line| !line.contains("x-weir-wanted")).collect();
            let named: BTreeSet<&str> = words(&code).filter(|word| names.contains(*word)).collect();
            found.extend(named.into_iter().map(|product| format!("{}: {product}", file.display())));
        }
    }
    assert_eq!(found, Vec::<String>::new(), "products named in the crates");
}

#[test]
fn formats_of_other_tools_are_in_folders_of_their_own() {
    // One writes them, and the other reads them.
    let folders = ["crates/report/src/formats", "crates/compare/src/outside"];
    let outside = crates().into_iter().flat_map(|name| rust_files(&format!("crates/{name}/src")));
    let writes = |file: &PathBuf| {
        ["Requests/sec:", "Requests per second:", "TotalCount"].iter().any(|line| code(file).contains(line))
    };
    let found: Vec<PathBuf> = outside
        .filter(|file| {
            !is_test(file) && !folders.iter().any(|folder| is_of_module(file, Path::new(folder))) && writes(file)
        })
        .collect();
    assert_eq!(found, Vec::<PathBuf>::new(), "files that print or read as another tool does");
}

#[test]
fn a_check_of_products_is_a_file_and_its_lines_in_the_table() {
    let table = read("crates/conformance/src/table.rs");
    let folder = Path::new("crates/conformance/src/checks");
    let files = rust_files("crates/conformance/src/checks");
    // A folder of checks has its lines as one.
    let tops = files.iter().filter_map(|file| file.strip_prefix(folder).ok()?.iter().next()?.to_str());
    let names = tops.map(|top| top.trim_end_matches(".rs"));
    let missing: Vec<&str> = names.filter(|name| !table.contains(&format!("{name}::"))).collect();
    assert!(missing.is_empty(), "checks without a line in the table: {missing:?}");
}

#[test]
fn every_help_text_belongs_to_a_verb_or_a_topic() {
    for (krate, folder) in [("cli", "help"), ("load-cli", "help"), ("load-cli", "help/topics")] {
        let folder = format!("crates/{krate}/{folder}");
        let sources: String = rust_files(&format!("crates/{krate}/src")).iter().map(|file| code(file)).collect();
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            assert!(!name.ends_with(".txt") || sources.contains(&format!("/{name}\"")), "{folder}/{name} is not used");
        }
    }
}

#[test]
fn pages_that_are_to_be_short_are_short() {
    let lines = |page: &str| read(page).lines().count();
    for (page, most) in [
        ("README.md", 150),
        ("docs/add-a-protocol.md", 60),
        ("docs/add-a-host.md", 60),
        ("docs/add-a-product-of-parts.md", 60),
        ("docs/streams.md", 150),
        ("docs/gateways.md", 150),
        ("docs/http3.md", 120),
    ] {
        assert!(lines(page) <= most, "{page} has {} lines, {most} at most", lines(page));
    }
    let entries = fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let pages = entries.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let lengths: Vec<(PathBuf, usize)> =
        pages.map(|page| (page.clone(), lines(page.to_str().expect("UTF-8")))).collect();
    let long: Vec<&(PathBuf, usize)> = lengths.iter().filter(|(_, length)| *length > 200).collect();
    assert!(long.is_empty(), "more than 200 lines: {long:?}");
    // Pages of features that came after the limit have their own.
    let is_new = |page: &Path| ["streams.md", "gateways.md", "http3.md"].iter().any(|new| page.ends_with(new));
    let all: usize = lengths.iter().filter(|(page, _)| !is_new(page)).map(|(_, length)| length).sum();
    assert!(all <= 2600, "docs/ has {all} lines, 2,600 at most");
}

#[test]
fn paths_that_the_documents_name_exist() {
    let pages =
        ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/add-a-protocol.md", "docs/add-a-host.md"];
    for page in pages {
        let text = read(page);
        let paths = quoted(&text).filter(|path| {
            ["crates/", "docs/", "tests/", "bench/", "scripts/", "suites/", "fuzz/"]
                .iter()
                .any(|top| path.starts_with(top))
                && !path.contains(['<', '*', ' '])
        });
        let missing: Vec<&str> = paths.filter(|path| !root().join(path).exists()).collect();
        assert!(missing.is_empty(), "{page} names {missing:?}, which are not there");
    }
}

#[test]
fn names_that_were_given_up_stay_away() {
    let given_up = [
        "books", "Books", "keeper", "Keeper", "vigil", "Vigil", "left_out", "LeftOut", "seat", "Seat", "SeatId",
        "lane", "LaneId", "Desk", "Talk", "Tongue", "Heard", "Said", "Told", "Yield", "Whom", "Wish", "Meant",
        "shaking", "mood",
    ];
    let mut found = Vec::new();
    for file in crates().iter().flat_map(|name| rust_files(&format!("crates/{name}"))) {
        let text = if is_test(&file) { read(&file) } else { code(&file) };
        // The old keys of records stay readable.
        let lines = text.lines().filter(|line| !line.contains("alias"));
        let back: BTreeSet<&str> = lines.flat_map(words).filter(|word| given_up.contains(word)).collect();
        found.extend(back.into_iter().map(|word| format!("{}: {word}", file.display())));
    }
    assert_eq!(found, Vec::<String>::new(), "names that were given up");
}
