//! A run in which everything that people or products wrote is hostile.

use std::fs;
use std::path::Path;

use weir_model::record::{Environment, Measurement, TrialError, Verdict};
use weir_model::suite::Suite;

/// Markup, templates, an escape sequence and a NUL.
const HOSTILE: &str = "<script>window.pwned=1</script>\"'><img src=x onerror=window.pwned=2>%{x}`|*\u{1b}[31m\u{0}";

/// Writes it.
pub fn write_hostile(run: &Path) {
    super::write_blocks(run, 1, 12);
    let file = run.join("environment.json");
    let mut environment: Environment = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for facts in &mut environment.products {
        facts.title = format!("{}{HOSTILE}", facts.name);
        facts.version = HOSTILE.to_string();
    }
    environment.cpu_model = HOSTILE.to_string();
    environment.scaled = vec![HOSTILE.to_string()];
    super::write_json(&file, &environment);
    let in_toml = HOSTILE.replace(['\u{1b}', '\u{0}'], "");
    let suite = Suite { title: in_toml.clone(), question: in_toml, ..super::suite() };
    fs::write(run.join("run.toml"), suite.to_toml()).unwrap();
    for entry in fs::read_dir(run.join("trials")).unwrap() {
        spoil(&entry.unwrap().path());
    }
}

fn spoil(folder: &Path) {
    let file = folder.join("measurement.json");
    let mut measurement: Measurement = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    measurement.product_version = Some(HOSTILE.to_string());
    for finding in &mut measurement.findings {
        finding.message = HOSTILE.to_string();
    }
    if measurement.trial == 6 {
        // Names become paths and anchors.
        measurement.case.workload = "../../../outside\"<b>".to_string();
    }
    if measurement.trial == 3 {
        measurement.verdict = Verdict::Error;
        measurement.error = Some(TrialError {
            stage: HOSTILE.to_string(),
            message: HOSTILE.to_string(),
            evidence: format!("</pre>{HOSTILE}"),
            remedy: HOSTILE.to_string(),
        });
    }
    super::write_json(&file, &measurement);
    fs::write(folder.join("product/proxy.conf"), format!("</pre>{}", HOSTILE.replace('\u{0}', ""))).unwrap();
}
