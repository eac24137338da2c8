//! Products of a weir that is root: an account of their own, without rights, wherever the run and the product are.

use crate::common;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{nginx_of, not_shown, run_within, scratch, until, wait_within, weir};
use weir_host::supervisor::account::{ACCOUNT, possible};

const HEAD: &str = r#"title = "As an account of its own"
blocks = 1
products = ["nginx"]
profile = "tuned""#;

const LOAD: &str = r#"name = "capacity"
kind = "closed"
connections = 16
warmup = "200ms"
duration = "6s""#;

#[test]
fn a_product_of_root_has_no_rights_in_a_folder_of_roots() {
    if let Err(why) = possible() {
        not_shown(why);
    }
    let ended = run_within(&mut weir(&["doctor"]), Duration::from_secs(30));
    let account = format!("user {ACCOUNT}, which nobody else is, without capabilities");
    assert!(ended.stdout.contains(&account), "{}", ended.stdout);

    let scratch = scratch();
    let closed = scratch.path().join("closed");
    std::fs::create_dir(&closed).expect("made");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("closed");
    let (suite, out) = (closed.join("suite.toml"), closed.join("run"));
    std::fs::write(&suite, common::suite(HEAD, LOAD)).expect("written");
    let mut run = weir(&["run", "--yes", "-q"]);
    run.arg(&suite).arg("--out").arg(&out);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts");
    until("a master with a worker", Duration::from_secs(60), || nginx_of(&out).len() >= 2);
    for pid in nginx_of(&out) {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
        let id = format!("{ACCOUNT}\t{ACCOUNT}\t{ACCOUNT}\t{ACCOUNT}");
        for wanted in [format!("Uid:\t{id}"), format!("Gid:\t{id}"), "Groups:\t \n".into(), "NoNewPrivs:\t1".into()] {
            assert!(status.contains(&wanted), "{wanted:?}: {status}");
        }
        assert!(
            status.contains("CapPrm:\t0000000000000000") && status.contains("CapEff:\t0000000000000000"),
            "{status}"
        );
    }
    wait_within(&mut child, Duration::from_secs(60));
    let measured = common::measurements(&out);
    let (folder, measurement) = measured.first().expect("a trial");
    assert_ne!(measurement["verdict"], "error", "{measurement:#}");
    let owner = |path: &Path| std::fs::metadata(path).expect("there").uid();
    assert_eq!(owner(&folder.join("product/nginx.conf")), ACCOUNT, "the product's folder is the product's");
    assert_eq!((owner(folder), owner(&closed)), (0, 0), "and nothing else is");
    assert_eq!(std::fs::metadata(&closed).expect("there").mode() & 0o777, 0o700, "what is closed stays so");
    let text = std::fs::read_to_string(out.join("environment.json")).expect("read");
    assert!(text.contains(&account), "{text}");
}
