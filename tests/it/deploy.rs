//! `deploy/kubernetes`: what its files say of each other and of weir. No builder is asked: the image of `tests/check/kubernetes.rs` is made
//! by `deploy/kubernetes/image`.

use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(top().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The instructions of the Dockerfile, each with its words; continued lines are joined.
fn instructions() -> Vec<(String, Vec<String>)> {
    let text = read("deploy/kubernetes/Dockerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    lines.map(words).map(|words| (words[0].clone(), words[1..].to_vec())).collect()
}

#[test]
fn the_dockerfile_has_a_base_and_copies_what_make_builds() {
    let instructions = instructions();
    let known = ["FROM", "RUN", "COPY", "ENTRYPOINT"];
    assert!(instructions.iter().all(|(name, _)| known.contains(&name.as_str())), "{instructions:?}");
    assert_eq!(instructions[0].0, "FROM", "a base comes first");
    let copies: Vec<&Vec<String>> =
        instructions.iter().filter(|(name, _)| name == "COPY").map(|(_, words)| words).collect();
    let (others, own): (Vec<_>, Vec<_>) = copies.into_iter().partition(|words| words[0].starts_with("--from="));

    // kubectl as old as the Kubernetes of the tests.
    let go = read("tests/kubernetes/go.mod");
    let version = go.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes ")).expect("a version");
    let image = format!("--from=registry.k8s.io/kubectl:{version}");
    assert_eq!(others, [&[image, "/bin/kubectl".into(), "/bin/kubectl".into()]]);

    let [words] = own.as_slice() else { panic!("one file comes from here: {own:?}") };
    assert_eq!(words.as_slice(), ["weir", "/bin/weir"]);
}

#[test]
fn weir_is_where_its_pods_and_its_job_look_for_it() {
    let (_, entrypoint) = instructions().into_iter().find(|(name, _)| name == "ENTRYPOINT").expect("there");
    assert_eq!(entrypoint, ["[\"/bin/weir\"]"]);
    assert!(read("deploy/kubernetes/job.yaml").contains("command: [/bin/weir, run, "));
    assert!(read("crates/host/src/kubernetes/objects.rs").contains("const IN_IMAGE: &str = \"/bin/weir\";"));
}
