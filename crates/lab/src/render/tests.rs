//! Rendering of made-up products (every error), and of the real ones against golden files.

use std::time::Duration;

use tempfile::TempDir;
use weir_model::product::{ProcessSpec, VersionProbe};

use super::*;

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn program(command: &[&str]) -> Program {
    Program {
        installs: Vec::new(),
        version: VersionProbe { command: strings(&["{{ binary }}", "-v"]), pattern: "(.*)".to_owned(), at_least: None },
        process: ProcessSpec {
            command: strings(command),
            check: Vec::new(),
            env: BTreeMap::new(),
            ready_within: Duration::from_secs(1),
            stop_within: Duration::from_secs(1),
        },
    }
}

/// A product with one profile `p` that renders `text` into `file`.
fn product(file: &str, text: &str, command: &[&str]) -> Product {
    let profile = Profile {
        name: "p".to_owned(),
        about: String::new(),
        files: vec![("t.j2".to_owned(), file.to_owned())],
        reasons: Vec::new(),
    };
    Product {
        name: "thing".to_owned(),
        title: "Thing".to_owned(),
        about: String::new(),
        home: String::new(),
        speaks: Vec::new(),
        kind: ProductKind::Proxy(Box::new(program(command))),
        profiles: BTreeMap::from([("p".to_owned(), profile)]),
        templates: BTreeMap::from([("t.j2".to_owned(), text.to_owned())]),
    }
}

fn vars() -> Vars {
    Vars {
        binary: PathBuf::from("/opt/the thing"),
        listen_host: "127.0.0.1".to_owned(),
        listen_port: 8001,
        origin_host: "127.0.0.2".to_owned(),
        origin_port: 9002,
        cores: 2,
        connections: 64,
    }
}

fn error_of(product: &Product) -> String {
    let dir = TempDir::new().unwrap();
    let error = render(product, "p", &vars(), dir.path()).expect_err("must be refused");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "an error leaves no file");
    error.to_string()
}

#[test]
fn files_arguments_and_environment_are_rendered() {
    let mut product = product(
        "conf/a.conf",
        "listen {{ listen_host }}:{{ listen_port }}\npool {{ connections * 2 + 1 }}\n",
        &["{{ binary }}", "-c", "{{ dir }}/conf/a.conf", "{{ cores }}"],
    );
    if let ProductKind::Proxy(program) = &mut product.kind {
        program.process.check = strings(&["{{ binary }}", "-t"]);
        program.process.env.insert("THREADS".to_owned(), "{{ cores }}".to_owned());
    }
    let dir = TempDir::new().unwrap();
    let rendered = render(&product, "p", &vars(), dir.path()).unwrap();

    let file = dir.path().join("conf/a.conf");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "listen 127.0.0.1:8001\npool 129\n");
    let file_argument = file.to_str().unwrap();
    assert_eq!(rendered.command, ["/opt/the thing", "-c", file_argument, "2"], "a space does not split an argument");
    assert_eq!(rendered.check, Some(strings(&["/opt/the thing", "-t"])));
    assert_eq!(rendered.env, BTreeMap::from([("THREADS".to_owned(), "2".to_owned())]));
    assert_eq!(rendered.files, [file]);
}

#[test]
fn an_empty_check_is_no_check() {
    let dir = TempDir::new().unwrap();
    let rendered = render(&product("a", "", &["{{ binary }}"]), "p", &vars(), dir.path()).unwrap();
    assert_eq!(rendered.check, None);
}

#[test]
fn an_unknown_variable_is_named_with_its_line() {
    let text = "one conections\n{{ connections }}\nthree {{ conections * 2 }}\n";
    assert_eq!(
        error_of(&product("a", text, &["{{ binary }}"])),
        "thing, profile p, t.j2:3: unknown variable `conections`\n  would be right: \
         binary, connections, cores, dir, listen_host, listen_port, origin_host, origin_port"
    );
}

#[test]
fn an_unknown_variable_is_found_in_a_branch_not_taken() {
    let text = "{% if cores > 99 %}\n{{ kores }}\n{% endif %}";
    assert!(
        error_of(&product("a", text, &["{{ binary }}"]))
            .starts_with("thing, profile p, t.j2:2: unknown variable `kores`")
    );
}

#[test]
fn an_unknown_variable_of_the_command_names_its_key() {
    let message = error_of(&product("a", "", &["{{ binary }}", "{{ folder }}"]));
    assert!(
        message.starts_with("thing, profile p, product.toml: process.command[1]: unknown variable `folder`"),
        "{message}"
    );
}

#[test]
fn a_broken_template_names_its_line() {
    let message = error_of(&product("a", "fine\n{{ cores\n", &["{{ binary }}"]));
    assert!(message.starts_with("thing, profile p, t.j2:"), "{message}");
    let message = error_of(&product("a", "fine\nfine\n{{ cores / listen_host }}\n", &["{{ binary }}"]));
    assert!(message.starts_with("thing, profile p, t.j2:3: "), "{message}");
}

#[test]
fn an_unknown_profile_lists_those_there_are() {
    let error = render(&product("a", "", &["{{ binary }}"]), "q", &vars(), Path::new("/nowhere")).unwrap_err();
    assert_eq!(error.to_string(), "thing has no profile `q`\n  would be right: p");
}

#[test]
fn a_missing_template_lists_those_there_are() {
    let mut product = product("a", "", &["{{ binary }}"]);
    product.templates = BTreeMap::from([("other.j2".to_owned(), String::new())]);
    assert_eq!(error_of(&product), "thing, profile p: there is no template `t.j2`\n  would be right: other.j2");
}

#[test]
fn files_stay_inside_the_folder() {
    for name in ["../a", "/etc/a", "a/../../b", ".", ""] {
        let message = error_of(&product(name, "", &["{{ binary }}"]));
        assert!(message.contains("leaves the trial's folder"), "{name}: {message}");
    }
}

#[test]
fn a_folder_that_would_break_a_configuration_is_refused() {
    let product = product("a", "", &["{{ binary }}"]);
    for dir in ["relative", "/tmp/a\"b", "/tmp/a$b", "/tmp/a{b}", "/tmp/a\nb", "/tmp/a#b"] {
        let error = render(&product, "p", &vars(), Path::new(dir)).expect_err(dir);
        assert!(matches!(error, RenderError::Folder { .. }), "{dir}: {error}");
    }
}

#[test]
fn direct_has_nothing_to_render() {
    let mut direct = product("a", "", &["x"]);
    direct.kind = ProductKind::Direct;
    assert!(matches!(render(&direct, "p", &vars(), Path::new("/x")), Err(RenderError::NoProgram { .. })));
}

#[test]
fn the_version_command_knows_the_binary_alone() {
    let mut product = product("a", "", &["{{ binary }}"]);
    assert_eq!(version_command(&product, Path::new("/b")).unwrap(), ["/b", "-v"]);
    if let ProductKind::Proxy(program) = &mut product.kind {
        program.version.command = strings(&["{{ dir }}/x"]);
    }
    let message = version_command(&product, Path::new("/b")).unwrap_err().to_string();
    assert_eq!(message, "thing, product.toml: version.command[0]: unknown variable `dir`\n  would be right: binary");
}

/// Every product and profile of the repository, with fixed variables, against files that people review.
/// `WEIR_BLESS=1` writes them anew.
#[test]
fn every_profile_renders_as_reviewed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = root.join("tests/golden/render");
    let mut seen = Vec::new();
    for product in repository_products(&root.join("../../products")) {
        if product.kind == ProductKind::Direct {
            continue;
        }
        for profile in product.profiles.keys() {
            let dir = TempDir::new().unwrap();
            let rendered = render(&product, profile, &vars(), dir.path()).unwrap();
            let in_trial = |text: &str| text.replace(dir.path().to_str().unwrap(), "/trial");
            let mut texts: Vec<(String, String)> = rendered
                .files
                .iter()
                .map(|file| {
                    let name = file.strip_prefix(dir.path()).unwrap().to_str().unwrap().replace('/', "_");
                    (name, in_trial(&std::fs::read_to_string(file).unwrap()))
                })
                .collect();
            let process =
                format!("command {:#?}\ncheck {:#?}\nenv {:#?}\n", rendered.command, rendered.check, rendered.env);
            texts.push(("process.txt".to_owned(), in_trial(&process)));
            for (name, text) in texts {
                let name = format!("{}-{profile}-{name}", product.name);
                compare(&golden.join(&name), &text);
                seen.push(name);
            }
        }
    }
    let mut kept: Vec<String> =
        std::fs::read_dir(&golden).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    kept.sort();
    seen.sort();
    assert_eq!(kept, seen, "golden files of profiles that no longer exist");
}

fn compare(golden: &Path, text: &str) {
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(golden, text).unwrap();
    }
    let wanted = std::fs::read_to_string(golden).unwrap_or_default();
    assert_eq!(wanted, text, "{} (WEIR_BLESS=1 writes it anew)", golden.display());
}

fn repository_products(folder: &Path) -> Vec<Product> {
    let mut products = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for file in std::fs::read_dir(entry.path()).unwrap() {
            let file = file.unwrap();
            texts.insert(file.file_name().into_string().unwrap(), std::fs::read_to_string(file.path()).unwrap());
        }
        let toml = texts.remove("product.toml").unwrap_or_else(|| panic!("{name} has no product.toml"));
        let source = format!("products/{name}/product.toml");
        products.push(Product::parse(&name, &source, &toml, texts).unwrap_or_else(|errors| panic!("{errors:?}")));
    }
    assert!(!products.is_empty());
    products
}
