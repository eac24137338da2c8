//! A library folder with one product that is a script and fails, and the suite that runs it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::common::{add_product, measurements, nothing_left, run_within, scratch, suite, weir};

const HEAD: &str = r#"title = "Bad products"
blocks = 1
products = ["PRODUCT", "direct"]
profile = "stock"
seed = 1"#;

const LOAD: &str = r#"name = "capacity"
kind = "closed"
connections = 4
warmup = "100ms"
duration = "DURATION"
timeout = "2s""#;

/// A library folder with one product that is a script, and the suite that runs it.
pub struct Library {
    pub scratch: tempfile::TempDir,
}

impl Library {
    pub fn new(name: &str, script: &str, check: &str, duration: &str) -> Library {
        let scratch = scratch();
        std::fs::create_dir_all(scratch.path().join("library/suites")).expect("made");
        let binary = scratch.path().join(format!("bin-{name}"));
        let version = r#"if [ "$1" = --version ]; then echo "bad 1.2.3"; exit 0; fi"#;
        std::fs::write(&binary, format!("#!/bin/bash\n{version}\n{script}\n")).expect("written");
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let toml = include_str!("library.toml").replace("NAME", name).replace("CHECK", check);
        add_product(scratch.path(), name, &toml, ("bad.conf.j2", "port {{ listen_port }}\n"));
        let suite = suite(HEAD, LOAD).replace("PRODUCT", name).replace("DURATION", duration);
        std::fs::write(scratch.path().join("library/suites/bad.toml"), suite).expect("written");
        Library { scratch }
    }

    pub fn out(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    pub fn command(&self) -> std::process::Command {
        let mut command = weir(&["run", "bad", "--yes"]);
        command.env("PATH", self.path());
        command.arg("--library").arg(self.scratch.path().join("library")).arg("--out").arg(self.out());
        command
    }

    /// The search path with the product's folder in front.
    pub fn path(&self) -> String {
        format!("{}:{}", self.scratch.path().display(), std::env::var("PATH").unwrap_or_default())
    }

    /// Runs the suite; the bad product's error row, after looking that `direct` was measured all the same.
    pub fn error(&self) -> Value {
        let ended = run_within(&mut self.command(), Duration::from_secs(60));
        ended.expect(1);
        nothing_left(self.scratch.path(), Duration::from_secs(3));
        self.error_row()
    }

    pub fn error_row(&self) -> Value {
        let all = measurements(&self.out());
        let of = |direct: bool| all.iter().find(|(_, m)| (m["case"]["product"] == "direct") == direct).expect("a row");
        assert!(of(true).1["load"]["rate"].as_f64().expect("direct was measured") > 0.0);
        let error = of(false).1["error"].clone();
        assert!(error.is_object(), "{error}");
        assert!(!error["remedy"].as_str().expect("a remedy").is_empty());
        error
    }
}

pub fn assert_says(error: &Value, stage: &str, words: &[&str]) {
    assert_eq!(error["stage"], stage, "{error:#}");
    let text = format!("{} {}", error["message"], error["evidence"]);
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}
