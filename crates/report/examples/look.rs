//! Pictures of a page, to look at what a change did: `cargo run -p weir-report --example look -- <report.html> <folder>`
//! writes the first screen and the whole page, light and dark, on a narrow screen, and as it prints.

#[path = "../tests/common/webdriver.rs"]
mod webdriver;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::json;
use webdriver::Browser;

fn main() {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(page), Some(folder)) = (words.next(), words.next()) else {
        eprintln!("which page, and into which folder?");
        std::process::exit(2);
    };
    // Before the browser is there: what exits later leaves it behind.
    if let Err(error) = std::fs::create_dir_all(&folder) {
        eprintln!("{}: {error}", folder.display());
        std::process::exit(1);
    }
    let browser = Browser::start();
    browser.open(&page);
    for (name, width) in [("wide", 1280), ("narrow", 400)] {
        browser.devtools("Emulation.setDeviceMetricsOverride", &size(width, 900));
        for theme in ["light", "dark"] {
            browser.run(&format!(
                "if (document.documentElement.dataset.theme !== '{theme}') document.getElementById('theme').click()"
            ));
            whole(&browser, width, &folder, &format!("{name}-{theme}"));
        }
    }
    // As paper shows it, in pictures and as a file.
    browser.devtools("Emulation.setDeviceMetricsOverride", &size(720, 900));
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    browser.run("window.dispatchEvent(new Event('beforeprint'))");
    std::thread::sleep(std::time::Duration::from_secs(3));
    whole(&browser, 720, &folder, "print");
    browser.run("window.dispatchEvent(new Event('afterprint'))");
    browser.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));
    let printed = browser
        .devtools("Page.printToPDF", &json!({ "printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69 }));
    save(&folder.join("print.pdf"), printed["data"].as_str());
}

fn size(width: u32, height: u64) -> serde_json::Value {
    json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false })
}

/// As many pictures as the page is long.
fn whole(browser: &Browser, width: u32, folder: &Path, name: &str) {
    const SCREEN: u64 = 1_600;
    let height = browser.run("return document.documentElement.scrollHeight").as_u64().unwrap_or(SCREEN);
    browser.devtools("Emulation.setDeviceMetricsOverride", &size(width, SCREEN));
    for screen in 0..height.div_ceil(SCREEN).min(12) {
        browser.run(&format!("scrollTo({{top: {}, behavior: 'instant'}})", screen * SCREEN));
        std::thread::sleep(std::time::Duration::from_millis(700));
        let shot = browser.devtools("Page.captureScreenshot", &json!({ "format": "png" }));
        save(&folder.join(format!("{name}-{screen}.png")), shot["data"].as_str());
    }
}

fn save(file: &Path, encoded: Option<&str>) {
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded.unwrap_or_default()).unwrap_or_default();
    if let Err(error) = std::fs::write(file, bytes) {
        eprintln!("{}: {error}", file.display());
        std::process::exit(1);
    }
}
