//! What has to be true of the records of every run that measured something.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Nothing failed, client and origin counted alike, and every file is there.
pub fn are_whole(measured: &[(PathBuf, Value)]) {
    for (folder, m) in measured {
        let at = folder.display();
        assert_eq!(m["schema"], 1, "{at}");
        assert!(m["error"].is_null(), "{at}: {}", m["error"]);
        assert!(m["load"]["rate"].as_f64().expect("a rate") > 10.0, "{at}");
        assert_eq!(m["load"]["window"]["errors"], serde_json::json!({}), "{at}");
        assert_eq!(m["load"]["total"]["sent"], m["origin"]["requests"], "{at}: requests are conserved");
        assert_eq!(m["load"]["total"]["body_bytes"], m["origin"]["body_bytes_out"], "{at}: bytes are conserved");
        for file in ["latency.hlog", "load.csv", "resources.csv", "findings.json", "load-order.json"] {
            assert!(folder.join(file).metadata().is_ok_and(|f| f.len() > 0), "{at}: {file}");
        }
        let roles: Vec<&str> =
            m["usage"].as_array().expect("usage").iter().filter_map(|u| u["role"].as_str()).collect();
        let direct = m["case"]["product"] == "direct";
        assert_eq!(roles.contains(&"proxy"), !direct, "{at}: {roles:?}");
        assert_eq!(m["product_version"].is_null(), direct, "{at}");
    }
}

/// docs/records.md and docs/results.md name every file of the run and of a trial, and every key of the records.
pub fn are_described(out: &Path, trial: &Path) {
    let page = concat!(include_str!("../../docs/records.md"), include_str!("../../docs/results.md"));
    let named = |name: &str| page.contains(name);
    for folder in [out, trial] {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let name = entry.file_name().to_string_lossy().replace("rates-latency", "rates-<load>");
            assert!(named(&name), "no page on records names {name}");
        }
    }
    let record: Value =
        serde_json::from_slice(&std::fs::read(trial.join("measurement.json")).expect("read")).expect("JSON");
    let load = &record["load"];
    for object in [&record, load, &load["window"], &load["latency"], &load["series"][0], &record["origin"]] {
        for key in object.as_object().expect("an object").keys() {
            assert!(
                named(&format!("`{key}`")) || named(&format!("{key},")) || named(&format!(" {key}`")),
                "no page on records names {key}"
            );
        }
    }
    for key in record["usage"][0].as_object().expect("usage").keys().filter(|key| *key != "role") {
        assert!(named(&format!("`{key}`")), "no page on records names {key}");
    }
    let header = std::fs::read_to_string(trial.join("resources.csv")).expect("read");
    for column in header.lines().next().expect("a header").split(',') {
        assert!(named(&format!("`{column}`")), "no page on records names {column}");
    }
}
