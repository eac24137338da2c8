//! Pods on a real Kubernetes, with the rights of `deploy/kubernetes/rbac.yaml` and no others: their nodes, CPUs and addresses,
//! what is said when there are none, and that nothing of them stays, neither of the cluster.

#[path = "../kubernetes/served.rs"]
mod served;

use crate::common;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::kubernetes::{Cluster, IMAGE, PRODUCT, STATIC};
use crate::common::{
    copy_product, measurements, nothing_left, number, processes_touching, run_within, scratch, signal, suite, until,
    wait_within, weir,
};
use rustix::process::Signal;
use serde_json::Value;
use weir_host::kubernetes::{Cluster as Place, KubernetesError, Pod, PodSpec, Pods, remove_leftovers};
use weir_host::transport::{Binary, WEIR_IN_POD, vector};

const LONG: Duration = Duration::from_secs(600);

fn spec(host: &str) -> PodSpec {
    PodSpec { host: host.to_owned(), image: None, cpus: 1, memory_mib: 128, roles: Vec::new(), watches: None }
}

/// What the kubelet changes.
fn sysctls() -> String {
    let names = ["vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops"];
    String::from_utf8(Command::new("sysctl").args(names).output().expect("sysctl runs").stdout).expect("text")
}

#[test]
fn pods_have_nodes_and_cpus_of_their_own_and_leave_nothing() {
    let before = sysctls();
    let cluster = Cluster::start();
    let path = std::env::var("PATH").expect("a path");
    // SAFETY: this part of `make check` has this test alone, and it has started no thread.
    unsafe { std::env::set_var("PATH", format!("{}:{path}", cluster.programs().display())) };

    let place = with_least_rights(&cluster);
    served::what_serves_in_the_cluster_is_measured(&cluster);
    pods_are_placed_and_deleted(&cluster, &place);
    what_a_killed_weir_left_is_deleted(&cluster, &place);
    hosts_are_checked_and_cleaned(&cluster);
    the_job_runs_a_suite(&cluster);
    what_is_lost_costs_its_trial_and_is_made_anew(&cluster);
    a_killed_run_and_an_interrupted_one_leave_nothing(&cluster);

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

/// Runs that do not begin. Each looks for leftovers first.
/// Pods are made to be checked, and nothing of them stays to be cleaned.
fn hosts_are_checked_and_cleaned(cluster: &Cluster) {
    let hosts = |args: &[&str]| {
        let pods = ["--topology", "kubernetes", "--image", IMAGE, "--namespace", "weir", "--context", "least"];
        run_within(&mut weir(&[&["hosts"], args, &pods].concat()), LONG)
    };
    let ended = hosts(&["check", "--json"]);
    assert!(matches!(ended.code(), Some(0 | 1)), "{ended:#?}");
    let checked = ended.json();
    let pairs = checked["pairs"].as_array().expect("a list");
    assert_eq!(pairs.len(), 3, "{checked}");
    assert!(pairs.iter().all(|pair| number(pair, "/received_bits_per_s") > 1e6), "{pairs:?}");
    for host in checked["hosts"].as_array().expect("a list") {
        assert_eq!(host["cpus"].as_array().map_or(0, Vec::len), 1, "{host}");
    }
    assert_eq!(objects(cluster), "");
    let ended = hosts(&["clean"]);
    ended.expect(0);
    assert!(!ended.stdout.contains("pods"), "{}", ended.stdout);
}

fn what_cannot_start_is_said(place: &Place) {
    let failed = |image: &str| {
        let spec = PodSpec { image: Some(image.to_owned()), ..spec("proxy") };
        Pods::create(place, "run", IMAGE, &[spec], LONG).expect_err("it does not start")
    };
    let error = failed("weir.test/never-made:1");
    assert!(matches!(&error, KubernetesError::Pod { pod, .. } if pod.ends_with("-proxy")), "{error}");
    assert!(error.to_string().contains("ImagePull"), "{error}");
    // weir as the tests build it needs libraries of C.
    let error = failed(STATIC).to_string();
    assert!(error.contains("/weir/weir: no such file or directory"), "{error}");

    let nowhere = Place { context: Some("no-such-context".into()), namespace: "weir".into() };
    let error = Pods::create(&nowhere, "run", IMAGE, &[spec("proxy")], LONG).expect_err("refused").to_string();
    let (command, said) = error.split_once("`: ").expect("a command and what it said");
    assert!(command.contains("`kubectl --context no-such-context -n weir get"), "{error}");
    assert!(said.contains("no-such-context"), "{error}");
    let args = ["run", "quick", "--yes", "--topology", "kubernetes", "--context", "no-such-context", "--out"];
    let folder = scratch();
    let out = folder.path().join("run");
    let refused = run_within(weir(&args).arg(&out), Duration::from_secs(30));
    assert!(refused.expect(3).contains("context \"no-such-context\" does not exist"), "{refused:?}");
    assert!(!out.exists());
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
    // Long enough for its deadline.
    what_cannot_start_is_said(place);
    until("its deadline", Duration::from_secs(30), || {
        remove_leftovers(place).unwrap_or_else(|error| panic!("{error}"));
        !objects(cluster).contains(&name)
    });
    assert_eq!(objects(cluster).lines().count(), 2, "the other lives");
    // Whoever deletes the lease deletes the pods.
    let lease = objects(cluster).lines().find(|name| name.starts_with("lease")).expect("a lease").to_owned();
    cluster.kubectl(&["-n", "weir", "delete", &lease]);
    until("its pods", Duration::from_secs(30), || objects(cluster).is_empty());
    drop(lives);
}

/// `deploy/kubernetes/job.yaml` with the names of this cluster: the whole of `quick` in pods, from within. Its numbers mean nothing,
/// because all nodes share this machine.
fn the_job_runs_a_suite(cluster: &Cluster) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/job.yaml");
    let text = std::fs::read_to_string(file).expect("read");
    // Nodes here have one CPU to give, and all of them are asked for by the pods of the run.
    let changes = [("weir:latest", IMAGE), ("quick, --yes", "quick, --yes, --scale, smoke"), ("cpu: 200m", "cpu: 0")];
    let text = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let runs = cluster.folder().join("runs");
    std::fs::create_dir(&runs).expect("made");
    let volume = format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: runs}}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
         capacity: {{storage: 1Gi}}\n  hostPath: {{path: \"{}\"}}\n---\n",
        runs.display()
    );
    let job = cluster.folder().join("job.yaml");
    std::fs::write(&job, volume + &text).expect("written");
    cluster.kubectl(&["-n", "weir", "apply", "-f", job.to_str().expect("UTF-8")]);
    let done = || cluster.kubectl(&["-n", "weir", "get", "job", "weir", "-o", "jsonpath={.status.conditions[*].type}"]);
    until("the Job's end", Duration::from_secs(180), || {
        std::thread::sleep(Duration::from_millis(300));
        !done().is_empty()
    });
    let said = cluster.kubectl(&["-n", "weir", "logs", "job/weir"]);
    assert!(done().contains("Complete"), "{said}");
    let run = runs.join("quick");
    assert!(run.join("report/report.html").is_file(), "{said}");
    let measured = measurements(&run);
    assert_eq!(measured.len(), 8, "two products, workloads and loads");
    for (at, measurement) in &measured {
        assert!(measurement["error"].is_null(), "{}: {}", at.display(), measurement["error"]);
        assert_eq!(measurement["load"]["total"]["sent"], measurement["origin"]["requests"], "{}", at.display());
        assert!(measurement["load"]["window"]["successful"].as_u64() > Some(0), "{}", at.display());
    }
    assert_eq!(objects(cluster), "", "weir deletes its pods");
    cluster.kubectl(&["-n", "weir", "delete", "job", "weir"]);
}

/// A run in pods that the test interferes with.
struct InPods {
    folder: tempfile::TempDir,
    products: &'static str,
}

impl InPods {
    fn new(products: &'static str) -> InPods {
        let folder = scratch();
        let text =
            format!("[kubernetes]\nimage = \"{IMAGE}\"\nnamespace = \"weir\"\ncontext = \"least\"\nmemory_mib = 512\n");
        std::fs::write(folder.path().join("pods.toml"), text).expect("written");
        let load = "name = \"closed\"\nkind = \"closed\"\nconnections = 8\nwarmup = \"300ms\"\nduration = \"3s\"";
        let head = format!("title = \"In pods\"\nproducts = [{products}]\nprofile = \"tuned\"\nblocks = 2");
        std::fs::write(folder.path().join("suite.toml"), suite(&head, load)).expect("written");
        InPods { folder, products }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = weir(&["run", "--yes", "-q"]);
        command.args(args).stdin(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.products))
    }

    fn begin(&self, more: &[&str]) -> Child {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (suite, topology, out) = (path("suite.toml"), path("pods.toml"), path("run"));
        self.start(&[&[&*suite, "--scale", "full", "--topology", &topology, "--out", &out], more].concat())
    }

    /// Waits until the client of a trial makes its load. Pods' processes are this machine's.
    fn until_load_of(&self, trial: u32) -> String {
        let start = format!("{trial:03}-");
        let mut folder = String::new();
        until(&format!("the load of trial {trial}"), Duration::from_secs(90), || {
            let names = std::fs::read_dir(self.out().join("trials")).into_iter().flatten().flatten();
            let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let Some(name) = names.find(|name| name.starts_with(&start)) else { return false };
            folder = name;
            processes_touching(Path::new(&folder)).iter().any(|(_, argv)| argv.contains(" client "))
        });
        // Into its window, which is 3 s: a pod that is deleted lives for a second more.
        std::thread::sleep(Duration::from_millis(300));
        folder
    }
}

/// `kubectl exec` killed, a pod deleted, and a product in an image of its own, for which the proxy's pod is made anew, too.
fn what_is_lost_costs_its_trial_and_is_made_anew(cluster: &Cluster) {
    let run = InPods::new(r#""nginx", "boxed""#);
    let library = run.folder.path().join("library");
    boxed_nginx(&library.join("products/boxed"));
    let mut child = run.begin(&["--library", library.to_str().expect("UTF-8")]);

    run.until_load_of(1);
    let exec = processes_touching(Path::new("-origin-1 -c host -- /weir/weir agent"));
    assert_eq!(exec.len(), 1, "{exec:?}");
    signal(exec[0].0, Signal::KILL);
    let pod = |host: &str| {
        let label = format!("weir.run,weir.host={host}");
        let what = "jsonpath={.items[*].metadata.name} {.items[*].spec.nodeName} {.items[*].metadata.uid}";
        let said = cluster.kubectl(&["-n", "weir", "get", "pods", "-l", &label, "-o", what]);
        let words: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
        <[String; 3]>::try_from(words).unwrap_or_else(|words| panic!("{host}: {words:?}"))
    };
    run.until_load_of(2);
    let before = ["origin-1", "proxy"].map(pod);
    cluster.kubectl(&["-n", "weir", "delete", "pod", &before[0][0], "--wait=false"]);
    run.until_load_of(3);
    let after = ["origin-1", "proxy"].map(pod);
    for ([name, node, _], [again, there, _]) in before.iter().zip(&after) {
        assert_eq!((name, node), (again, there), "it is made anew on its node");
    }
    assert_ne!(before[0][2], after[0][2]);
    let status = wait_within(&mut child, Duration::from_secs(90));
    let measured = measurements(&run.out());
    assert_eq!((status.code(), measured.len()), (Some(1), 4), "{:?}", common::said(&mut child));
    let what = [("origin-1", "kubectl ended with signal: 9"), ("origin-1", "it was deleted")];
    for ((at, m), (host, why)) in measured.iter().zip(what) {
        let (message, evidence) = (&m["error"]["message"], &m["error"]["evidence"]);
        assert_eq!(message, &format!("the host {host} was lost in mid-trial"), "{}: {m}", at.display());
        assert!(evidence.as_str().is_some_and(|text| text.contains(why)), "{}: {evidence}", at.display());
    }
    for (at, m) in &measured[2..] {
        assert!(m["error"].is_null(), "{}: {}", at.display(), m["error"]);
        let (right, reached) = (number(m, "/load/total/successful"), number(m, "/origin/requests"));
        assert!(right > 100.0 && (right - reached).abs() <= 8.0, "{}: {right}, {reached}", at.display());
    }
    let environment = std::fs::read(run.out().join("environment.json")).expect("there");
    let environment: Value = serde_json::from_slice(&environment).expect("JSON");
    let products = environment["products"].as_array().expect("products").iter();
    let found: BTreeSet<(&str, &str)> =
        products.filter_map(|p| Some((p["name"].as_str()?, p["binary"].as_str()?))).collect();
    assert_eq!(found, BTreeSet::from([("boxed", "/bin/nginx"), ("nginx", "/usr/sbin/nginx")]));
    assert_eq!(objects(cluster), "");
}

/// nginx as a product that comes in an image of its own.
fn boxed_nginx(folder: &Path) {
    copy_product("nginx", folder);
    let file = folder.join("product.toml");
    let text = std::fs::read_to_string(&file).expect("read");
    let boxed = text.replacen("[product]\n", &format!("[product]\nimage = \"{PRODUCT}\"\n"), 1);
    assert_ne!(boxed, text);
    std::fs::write(&file, boxed).expect("written");
}

fn a_killed_run_and_an_interrupted_one_leave_nothing(cluster: &Cluster) {
    let run = InPods::new(r#""direct""#);
    let mut child = run.begin(&[]);
    let trial = run.until_load_of(1);
    signal(child.id(), Signal::KILL);
    wait_within(&mut child, Duration::from_secs(5));
    nothing_left(Path::new(&trial), Duration::from_secs(15));
    let phases = || {
        let what = "jsonpath={.items[*].status.phase}";
        cluster.kubectl(&["-n", "weir", "get", "pods", "-l", "weir.run", "-o", what])
    };
    until("the end of the killed run's pods", Duration::from_secs(60), || {
        std::thread::sleep(Duration::from_millis(300));
        phases() == "Succeeded Succeeded Succeeded"
    });
    let left = objects(cluster);
    assert_eq!(left.lines().count(), 4, "{left}");

    let mut child = run.start(&["--resume", run.out().to_str().expect("UTF-8")]);
    run.until_load_of(1);
    let now = objects(cluster);
    assert_eq!(now.lines().count(), 4, "{now}");
    assert!(now.lines().all(|name| !left.contains(name)), "the next run deletes what the killed one left: {now}");
    signal(child.id(), Signal::INT);
    let status = wait_within(&mut child, Duration::from_secs(30));
    assert_eq!((status.code(), objects(cluster).as_str()), (Some(130), ""), "{:?}", common::said(&mut child));
    nothing_left(Path::new(&trial), Duration::from_secs(5));
}
