//! Pods on a real Kubernetes, with the rights of `deploy/kubernetes/rbac.yaml` and no others: their nodes, CPUs and addresses,
//! what is said when there are none, and that nothing of them stays, neither of the cluster.

mod common;
#[path = "common/kubernetes.rs"]
mod kubernetes;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{measurements, nothing_left, run_within, scratch, until, weir};
use kubernetes::{Cluster, IMAGE};
use weir_host::kubernetes::{Cluster as Place, KubernetesError, Pod, PodSpec, Pods, remove_leftovers};
use weir_host::transport::{Binary, WEIR_IN_POD, vector};

const LONG: Duration = Duration::from_secs(600);

fn spec(host: &str) -> PodSpec {
    PodSpec { host: host.to_owned(), image: None, cpus: 1, memory_mib: 128 }
}

/// What the kubelet changes.
fn sysctls() -> String {
    let names = ["vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops"];
    String::from_utf8(Command::new("sysctl").args(names).output().expect("sysctl runs").stdout).expect("text")
}

#[test]
fn pods_have_nodes_and_cpus_of_their_own_and_leave_nothing() {
    let before = sysctls();
    let Some(cluster) = Cluster::start() else { return };
    let path = std::env::var("PATH").expect("a path");
    // SAFETY: this is the only test of this program, and it has started no thread.
    unsafe { std::env::set_var("PATH", format!("{}:{path}", cluster.programs().display())) };

    let place = with_least_rights(&cluster);
    pods_are_placed_and_deleted(&cluster, &place);
    what_cannot_start_is_said(&cluster, &place);
    what_a_killed_weir_left_is_deleted(&cluster, &place);
    a_suite_runs(&cluster);
    the_job_is_accepted(&cluster);

    let folder = cluster.folder().to_owned();
    drop(cluster);
    nothing_left(&folder, Duration::from_secs(2));
    assert!(!folder.exists() && !Path::new("/run/weir/kube").exists());
    assert_eq!(sysctls(), before);
    for (of, start) in
        [("/run/netns", "weir-kube"), ("/sys/fs/cgroup/cpuset", "weir-kube"), ("/sys/fs/cgroup/cpu", "weir-kube")]
    {
        let names = std::fs::read_dir(of).expect("read").flatten().map(|entry| entry.file_name());
        let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(start)).collect();
        assert!(left.is_empty(), "{of}: {left:?}");
    }
}

/// A context in which kubectl is the account that `rbac.yaml` makes.
fn with_least_rights(cluster: &Cluster) -> Place {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/rbac.yaml");
    cluster.kubectl(&["create", "namespace", "weir"]);
    cluster.kubectl(&["-n", "weir", "apply", "-f", deploy.to_str().expect("UTF-8")]);
    cluster.kubectl(&["config", "set-context", "least", "--cluster=weir", "--user=least", "--namespace=weir"]);
    let token = cluster.kubectl(&["-n", "weir", "create", "token", "weir"]);
    cluster.kubectl(&["config", "set-credentials", "least", &format!("--token={}", token.trim())]);
    let refused =
        Command::new("kubectl").args(["--context", "least", "get", "secrets"]).output().expect("kubectl runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("forbidden"), "{refused:?}");
    Place { context: Some("least".into()), namespace: "weir".into() }
}

/// Names of all that is labelled as weir's.
fn objects(cluster: &Cluster) -> String {
    cluster.kubectl(&["-n", "weir", "get", "pods,leases", "-l", "weir.run", "-o", "name"])
}

/// What a program in a pod prints, started as an agent is.
fn inside(place: &Place, pod: &Pod, program: &[&str]) -> String {
    let weir = Binary { path: "weir".into(), sha256: String::new(), size: 0, machine: String::new() };
    let vector = vector(&place.reach(pod), &weir);
    let before = vector.len() - 2;
    assert_eq!(vector[before..], [WEIR_IN_POD, "agent"]);
    let mut command = Command::new(&vector[0]);
    command.args(&vector[1..before]).args(program);
    let ended = run_within(&mut command, Duration::from_secs(30));
    assert!(ended.status.success(), "{ended:#?}");
    ended.stdout
}

fn pods_are_placed_and_deleted(cluster: &Cluster, place: &Place) {
    let specs = ["client-1", "proxy", "origin"].map(spec);
    let pods = Pods::create(place, "20261122-quick", IMAGE, &specs, LONG).unwrap_or_else(|error| panic!("{error}"));
    let hosts: Vec<&str> = pods.pods().iter().map(|pod| pod.host.as_str()).collect();
    assert_eq!(hosts, ["client-1", "proxy", "origin"]);
    let nodes: BTreeSet<&str> = pods.pods().iter().map(|pod| pod.node.as_str()).collect();
    assert_eq!(nodes.len(), 3, "{pods:?}");
    let addresses: BTreeSet<_> = pods.pods().iter().map(|pod| pod.address).collect();
    assert_eq!(addresses.len(), 3, "{pods:?}");
    for pod in pods.pods() {
        assert!(inside(place, pod, &[WEIR_IN_POD, "--version"]).starts_with("weir "));
        let status = inside(place, pod, &["/bin/busybox", "cat", "/proc/self/status"]);
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).expect("a line");
        let cpu: u32 = cpus.parse().unwrap_or_else(|_| panic!("{cpus}: not one CPU"));
        pod.has_own(&[cpu]).expect("it asked for one");
        let shared = pod.has_own(&[0, 1]).expect_err("two").to_string();
        assert!(shared.contains("asked for 1 CPUs of its own and may use 2"), "{shared}");
    }
    let ping = ["/bin/busybox", "ping", "-c", "1", "-W", "5", &pods.pods()[1].address.to_string()];
    inside(place, &pods.pods()[0], &ping);
    assert_eq!(objects(cluster).lines().count(), 4);
    drop(pods);
    assert_eq!(objects(cluster), "");
}

fn what_cannot_start_is_said(cluster: &Cluster, place: &Place) {
    let missing = PodSpec { image: Some("weir.test/never-made:1".into()), ..spec("proxy") };
    let error = Pods::create(place, "run", IMAGE, &[spec("client-1"), missing], LONG).expect_err("no such image");
    assert!(matches!(&error, KubernetesError::Pod { pod, .. } if pod.ends_with("-proxy")), "{error}");
    assert!(error.to_string().contains("ImagePull"), "{error}");
    assert_eq!(objects(cluster), "", "nothing stays");

    let nowhere = Place { context: Some("no-such-context".into()), namespace: "weir".into() };
    let error = Pods::create(&nowhere, "run", IMAGE, &[spec("proxy")], LONG).expect_err("refused").to_string();
    let (command, said) = error.split_once("`: ").expect("a command and what it said");
    assert!(command.contains("`kubectl --context no-such-context -n weir get"), "{error}");
    assert!(said.contains("no-such-context"), "{error}");
}

fn what_a_killed_weir_left_is_deleted(cluster: &Cluster, place: &Place) {
    let at_most = Duration::from_secs(8);
    let killed =
        Pods::create(place, "killed", IMAGE, &[spec("proxy")], at_most).unwrap_or_else(|error| panic!("{error}"));
    let lives =
        Pods::create(place, "lives", IMAGE, &[spec("client-1")], LONG).unwrap_or_else(|error| panic!("{error}"));
    let name = killed.pods()[0].name.clone();
    // As a kill does.
    std::mem::forget(killed);
    assert!(objects(cluster).contains(&name));
    let mut removed = Vec::new();
    until("its deadline", Duration::from_secs(30), || {
        removed.extend(remove_leftovers(place).unwrap_or_else(|error| panic!("{error}")));
        !removed.is_empty()
    });
    assert_eq!(removed, [name.split('-').nth(1).expect("an id")]);
    assert_eq!(objects(cluster).lines().count(), 2, "the other lives");
    // Whoever deletes the lease deletes the pods.
    let lease = objects(cluster).lines().find(|name| name.starts_with("lease")).expect("a lease").to_owned();
    cluster.kubectl(&["-n", "weir", "delete", &lease]);
    until("its pods", Duration::from_secs(30), || objects(cluster).is_empty());
    drop(lives);
}

/// A suite with client, product and origin in pods. Its numbers mean nothing, because all nodes share this machine.
fn a_suite_runs(cluster: &Cluster) {
    let folder = scratch();
    let (topology, out) = (folder.path().join("pods.toml"), folder.path().join("run"));
    let text =
        format!("[kubernetes]\nimage = \"{IMAGE}\"\nnamespace = \"weir\"\ncontext = \"least\"\nmemory_mib = 512\n");
    std::fs::write(&topology, text).expect("written");
    let mut command = weir(&["run", "quick", "--scale", "smoke", "--yes", "-q"]);
    command.arg("--topology").arg(&topology).arg("--out").arg(&out);
    run_within(&mut command, Duration::from_secs(180)).expect(0);
    let measured = measurements(&out);
    assert_eq!(measured.len(), 8, "two products, workloads and loads");
    for (at, measurement) in &measured {
        assert!(measurement["error"].is_null(), "{}: {}", at.display(), measurement["error"]);
        assert_eq!(measurement["load"]["total"]["sent"], measurement["origin"]["requests"], "{}", at.display());
        assert!(measurement["load"]["window"]["right"].as_u64() > Some(0), "{}", at.display());
    }
    assert_eq!(objects(cluster), "", "weir deletes its pods");
}

/// The API checks it; there is no volume for it here.
fn the_job_is_accepted(cluster: &Cluster) {
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/job.yaml");
    let said = cluster.kubectl(&["-n", "weir", "apply", "--dry-run=server", "-f", job.to_str().expect("UTF-8")]);
    assert!(said.contains("job.batch/weir created (server dry run)"), "{said}");
}
