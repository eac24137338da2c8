//! A site in a real browser: on a wide screen and on a telephone, light and dark, without a violation of what axe-core checks.

use crate::common;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::webdriver::Browser;
use serde_json::{Value, json};
use weir_report::extra::Extra;
use weir_report::{SiteOptions, site};

/// Every kind of page.
const PAGES: &str = "index.html runs/index.html products/alder.html suites/trees.html \
    runs/20260102-030405-trees/index.html runs/20260105-030405-bushes/index.html";

/// The checks of axe-core, as npm installs the version of the lock file, once.
fn axe() -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/axe");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let script = folder.join("node_modules/axe-core/axe.min.js");
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::read(own.join("package-lock.json")).unwrap();
    if !script.is_file() || fs::read(folder.join("package-lock.json")).ok().as_ref() != Some(&lock) {
        fs::copy(own.join("package.json"), folder.join("package.json")).unwrap();
        let _ = fs::remove_file(folder.join("package-lock.json"));
        fs::write(folder.join("package-lock.json"), &lock).unwrap();
        let help = "axe-core is needed to check the pages: apt-get install -y npm, and let `npm ci` reach a registry (npm config set registry ...)";
        let npm = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder)
            .output();
        let npm = npm.unwrap_or_else(|error| panic!("npm does not start ({error}). {help}"));
        let said = String::from_utf8_lossy(&npm.stderr);
        if !npm.status.success() {
            let _ = fs::remove_file(folder.join("package-lock.json"));
            panic!("npm ci: {}: {said}\n{help}", npm.status);
        }
    }
    fs::read_to_string(&script).unwrap()
}

/// What axe-core finds wrong with the page that is open.
fn violations(browser: &Browser, axe: &str) -> Value {
    browser.run(axe);
    browser.run(
        "return axe.run(document, { resultTypes: ['violations'], preload: false }).then(found => found.violations.map(one => \
         [one.id, one.help, one.nodes.length, one.nodes[0].html.slice(0, 300), one.nodes[0].failureSummary]))",
    )
}

fn screen(browser: &Browser, width: u32) {
    let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
    browser.devtools("Emulation.setDeviceMetricsOverride", &size);
}

#[test]
#[ignore = "make check PART=browser: make test opens one page"]
fn every_page_works_for_everybody() {
    let axe = axe();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("public");
    let extra = |_: &weir_report::Run, _: &weir_report::Summary| Extra::default();
    site(&[common::write_several(folder.path())], &out, &SiteOptions { extra: &extra, whole: 2 }).unwrap();
    let browser = Browser::start();
    for page in PAGES.split(' ') {
        for (width, theme) in [(1280, "light"), (360, "dark"), (1280, "dark"), (360, "light")] {
            screen(&browser, width);
            browser.open(&out.join(page));
            browser.run(&format!(
                "if (document.documentElement.dataset.theme !== '{theme}') document.getElementById('theme').click()"
            ));
            assert_eq!(
                browser.run("return document.documentElement.dataset.theme"),
                json!(theme),
                "{page}: the script runs"
            );
            browser.run("document.querySelectorAll('details').forEach(part => { part.open = true; })");
            browser
                .run("window.dispatchEvent(new Event('beforeprint')); window.dispatchEvent(new Event('afterprint'))");
            browser.wait(
                "charts are fitted",
                "return [...document.querySelectorAll('.plot')].every(plot => plot.dataset.fitted)",
            );
            let wide = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]";
            let sizes: [u32; 2] = serde_json::from_value(browser.run(wide)).unwrap();
            assert!(sizes[0] <= sizes[1], "{page} at {width}, {theme}: {sizes:?}: it scrolls sideways");
            if (width, theme) == (1280, "dark") || (width, theme) == (360, "light") {
                // Colours do not depend on the width, nor sizes on the colours.
                continue;
            }
            let found = violations(&browser, &axe);
            assert_eq!(found, json!([]), "{page} at {width}, {theme}: {found:#}");
        }
    }
    assert_eq!(browser.console(), Vec::<String>::new(), "the console is not silent");
    nothing_comes_from_elsewhere(&browser, &out);
    a_reader_finds_the_way(&browser, &out);
}

/// axe-core sees what is wrong: otherwise its silence would say nothing.
#[test]
#[ignore = "make check PART=browser: make test opens one page"]
fn axe_sees_what_is_wrong() {
    let axe = axe();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    fs::write(&page, "<!doctype html><html><head><title>x</title></head><body><main><img src=x><button></button></main></body></html>").unwrap();
    let browser = Browser::start();
    browser.open(&page);
    let found = violations(&browser, &axe);
    let ids: Vec<&str> = found.as_array().unwrap().iter().filter_map(|one| one[0].as_str()).collect();
    assert!(["image-alt", "button-name", "html-has-lang"].iter().all(|id| ids.contains(id)), "{ids:?}");
}

fn nothing_comes_from_elsewhere(browser: &Browser, out: &Path) {
    for page in PAGES.split(' ') {
        browser.open(&out.join(page));
        let fetched = browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)");
        let own = format!("file://{}/assets/weir.", out.canonicalize().unwrap().display());
        for name in fetched.as_array().unwrap() {
            assert!(name.as_str().unwrap().starts_with(&own), "{page} loads {name}");
        }
    }
}

fn a_reader_finds_the_way(browser: &Browser, out: &Path) {
    screen(browser, 1280);
    browser.open(&out.join("index.html"));
    // By the words of the question to its row, and from there to the run's section.
    browser.run(
        "[...document.querySelectorAll('#answers-table-table tbody tr')].find(row => ['10KiB', 'as much as', 'small:']\
         .every(words => row.textContent.includes(words))).querySelector('a').click()",
    );
    browser.wait(
        "the run's page is there",
        "return location.href.endsWith('runs/20260105-030405-bushes/index.html#json-max')",
    );
    browser.wait("it is the section", "return document.querySelector('#json-max h2') !== null");
    // Back by the first line.
    browser.run("document.querySelector('.brand a').click()");
    browser.wait("the overview is there", "return document.querySelector('#answers-table') !== null");
    browser.run("document.querySelector('#products-table a').click()");
    browser.wait("a product is there", "return location.href.includes('/products/') && document.querySelector('.plot .grid path, .plot .points') !== null");
}
