//! A run as it was recorded: a trial of nothing and one of nginx, in `tests/recorded`. They were measured once, so that what reads runs
//! is tested on every machine in the same way.
//!
//! `weir run quick --scale smoke --products direct,nginx --only workload=tiny --only load=capacity` makes such a run anew; its findings,
//! and what it says of the machine, were taken out.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded")
}

/// Writes the run as if it had so many blocks, all alike.
pub fn write(run: &Path, blocks: u64) {
    fs::create_dir_all(run).expect("made");
    fs::copy(folder().join("environment.json"), run.join("environment.json")).expect("copied");
    let toml = fs::read_to_string(folder().join("run.toml")).expect("read");
    fs::write(run.join("run.toml"), toml.replace("blocks = 1", &format!("blocks = {blocks}"))).expect("written");
    for trial in 0..2 * blocks {
        let product = if trial % 2 == 0 { "nginx" } else { "direct" };
        let text = fs::read_to_string(folder().join(format!("{product}.json"))).expect("read");
        let mut measurement: Value = serde_json::from_str(&text).expect("JSON");
        (measurement["trial"], measurement["block"]) = ((trial + 1).into(), (trial / 2 + 1).into());
        let own = run.join(format!("trials/{:03}-{product}", trial + 1));
        fs::create_dir_all(&own).expect("made");
        fs::write(own.join("measurement.json"), measurement.to_string()).expect("written");
    }
}
