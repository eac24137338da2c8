//! A gateway that serves in the cluster before weir comes: nginx in a pod of its own, whose route leads to the service that selects
//! weir's origin. The cluster has neither DNS nor kube-proxy, so the test is the gateway's controller: it follows the service's
//! endpoints and reloads nginx, as ingress controllers do.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::common::kubernetes::{Cluster, IMAGE};
use crate::common::{Ended, measurements, run_within, scratch, until, weir};

const PORT: u16 = 8080;

const CONFIGURATION: &str = "user root; pid /gateway/pid; error_log stderr; worker_processes 1; events {} http { access_log off; \
     client_body_temp_path /gateway/b; proxy_temp_path /gateway/p; fastcgi_temp_path /gateway/f; uwsgi_temp_path /gateway/u; \
     scgi_temp_path /gateway/s; upstream origin { include /gateway/origin.conf; keepalive 64; } server { listen 8080; \
     location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; } } }";

fn objects() -> String {
    let start = format!(
        "echo 'server 127.0.0.1:9;' >/gateway/origin.conf; echo '{CONFIGURATION}' >/gateway/nginx.conf; \
         exec nginx -e stderr -c /gateway/nginx.conf -g 'daemon off;'"
    );
    let gateway = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "gateway", "namespace": "ingress", "labels": { "app": "gateway" } },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "volumes": [{ "name": "own", "emptyDir": {} }],
            "containers": [{
                "name": "gateway", "image": IMAGE, "imagePullPolicy": "Never",
                "command": ["/bin/busybox", "sh", "-c", start],
                "env": [{ "name": "PATH", "value": "/usr/sbin:/bin" }],
                "volumeMounts": [{ "name": "own", "mountPath": "/gateway" }],
                "resources": { "requests": { "cpu": "50m", "memory": "64Mi" } },
            }],
        },
    });
    let service = serde_json::json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "origin", "namespace": "weir" },
        "spec": { "clusterIP": "None", "selector": { "weir.role.origin": "true" }, "ports": [{ "port": PORT }] },
    });
    serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [gateway, service] }).to_string()
}

/// Sends nginx to the service's endpoints until it is told to end.
fn control(cluster: &Cluster, ends: &AtomicBool) {
    let mut routed = String::new();
    while !ends.load(Ordering::Relaxed) {
        let path = "jsonpath={.subsets[*].addresses[*].ip}";
        let found = cluster.kubectl(&["-n", "weir", "get", "endpoints", "origin", "-o", path]);
        if !found.is_empty() && found != routed {
            let reload = format!(
                "echo 'server {found}:{PORT};' >/gateway/origin.conf; exec nginx -e stderr -c /gateway/nginx.conf -s reload"
            );
            cluster.kubectl(&["-n", "ingress", "exec", "gateway", "--", "/bin/busybox", "sh", "-c", &reload]);
            routed = found;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Of the gateway's pod, by this test's own look at the kernel's files: CPU time so far, ns.
fn used(uid: &str) -> u64 {
    fn group(below: &Path, uid: &str) -> Option<PathBuf> {
        let entries = std::fs::read_dir(below).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        let mut entries: Vec<PathBuf> = entries.collect();
        let own = entries.iter().position(|path| path.ends_with(format!("pod{uid}")));
        own.map(|at| entries.swap_remove(at)).or_else(|| entries.iter().find_map(|path| group(path, uid)))
    }
    let folder = group(Path::new("/sys/fs/cgroup/cpuacct"), uid).expect("the pod's control group");
    let text = std::fs::read_to_string(folder.join("cpuacct.usage")).expect("read");
    text.trim().parse().expect("a number")
}

fn library(folder: &Path, address: &str, selector: &str) -> PathBuf {
    let product = folder.join("library/products/ours");
    std::fs::create_dir_all(&product).expect("made");
    let toml = format!(
        "product = {{ title = \"our gateway\", about = \"It serves.\", home = \"https://example.org/\", speaks = [\"http/1.1\"] }}\n\
         profile = {{ stock = {{ about = \"As it stands.\" }} }}\n\
         [served]\naddress = \"{address}\"\norigin_port = {PORT}\nnamespace = \"ingress\"\nselector = \"{selector}\"\n"
    );
    std::fs::write(product.join("product.toml"), toml).expect("written");
    folder.join("library")
}

fn run(library: &Path, out: &Path, more: &[&str]) -> Ended {
    let topology = out.with_extension("toml");
    let text =
        format!("[kubernetes]\nimage = \"{IMAGE}\"\nnamespace = \"weir\"\ncontext = \"least\"\nmemory_mib = 512\n");
    std::fs::write(&topology, text).expect("written");
    let mut command = weir(&["run", "quick", "--scale", "smoke", "--yes", "-q", "--products", "direct,ours:stock"]);
    command.arg("--topology").arg(&topology).arg("--library").arg(library).arg("--out").arg(out).args(more);
    run_within(&mut command, Duration::from_secs(180))
}

/// The proxy's usage of each trial of the gateway.
fn usages(out: &Path) -> Vec<Option<Value>> {
    let mut usages = Vec::new();
    for (at, trial) in measurements(out) {
        assert!(trial["error"].is_null(), "{}: {}", at.display(), trial["error"]);
        assert_eq!(trial["load"]["total"]["sent"], trial["origin"]["requests"], "{}", at.display());
        assert!(trial["load"]["window"]["successful"].as_u64() > Some(0), "{}", at.display());
        let usage = trial["usage"].as_array().expect("a list").iter().find(|usage| usage["role"] == "proxy").cloned();
        match trial["case"]["product"].as_str() {
            Some("ours") => usages.push(usage),
            _ => assert_eq!(usage, None, "no proxy"),
        }
    }
    usages
}

pub fn what_serves_in_the_cluster_is_measured(cluster: &Cluster) {
    let scratch = scratch();
    let of = |path: &str| {
        cluster.kubectl(&["-n", "ingress", "get", "pod", "gateway", "-o", &format!("jsonpath={{{path}}}")])
    };
    let (rights, made) = ("../../deploy/kubernetes/served.yaml", scratch.path().join("objects.json"));
    std::fs::write(&made, objects()).expect("written");
    cluster.kubectl(&["create", "namespace", "ingress"]);
    let rights = Path::new(env!("CARGO_MANIFEST_DIR")).join(rights);
    cluster.kubectl(&["-n", "ingress", "apply", "-f", rights.to_str().expect("UTF-8")]);
    cluster.kubectl(&["apply", "-f", made.to_str().expect("UTF-8")]);
    until("the gateway runs", Duration::from_secs(60), || of(".status.containerStatuses[0].ready") == "true");
    let (uid, address) = (of(".metadata.uid"), format!("{}:{PORT}", of(".status.podIP")));

    let ends = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| control(cluster, &ends));
        let all = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            it_is_measured_with_its_control_group(
                &library(scratch.path(), &address, "app=gateway"),
                scratch.path(),
                &uid,
            );
            a_forbidden_mount_is_refused(cluster, &library(scratch.path(), &address, "app=gateway"), scratch.path());
            pods_that_are_not_there_are_said(&library(scratch.path(), &address, "app=none"), scratch.path());
        }));
        ends.store(true, Ordering::Relaxed);
        all.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert_eq!(of(".status.containerStatuses[0].restartCount"), "0", "weir leaves it alone");
    cluster.kubectl(&["delete", "namespace", "ingress"]);
}

fn it_is_measured_with_its_control_group(library: &Path, folder: &Path, uid: &str) {
    let (before, out) = (used(uid), folder.join("run"));
    run(library, &out, &[]).expect(0);
    let all_us = (used(uid) - before) / 1000;
    let usages = usages(&out);
    assert_eq!(usages.len(), 4, "two workloads, two loads");
    let mut sum_us = 0;
    for usage in usages.into_iter().map(|usage| usage.expect("it was read")) {
        let cpu_us =
            usage["cpu_user_us"].as_u64().expect("a number") + usage["cpu_system_us"].as_u64().expect("a number");
        assert!(cpu_us > 0, "{usage}");
        assert!(usage["rss_max_bytes"].as_u64() > Some(1 << 20), "{usage}");
        assert!(usage["processes_max"].is_null() && usage["switches"].is_null(), "not known: {usage}");
        sum_us += cpu_us;
    }
    // The windows are a part of the loads, and most of what the gateway did.
    assert!(sum_us <= all_us && sum_us * 4 > all_us, "{sum_us} us in windows, {all_us} us in all");
    eprintln!("the gateway used {sum_us} us in the windows of four trials, {all_us} us in all");
}

fn a_forbidden_mount_is_refused(cluster: &Cluster, library: &Path, folder: &Path) {
    let enforce = |level: &str| {
        cluster.kubectl(&["label", "namespace", "weir", &format!("pod-security.kubernetes.io/enforce{level}")]);
    };
    enforce("=baseline");
    let ended = run(library, &folder.join("forbidden"), &[]);
    enforce("-");
    let said = ended.expect(3);
    assert!(said.contains("hostPath") && said.contains("a file of ours without `namespace` and `selector`"), "{said}");
    assert!(!folder.join("forbidden").exists(), "nothing was begun");
}

fn pods_that_are_not_there_are_said(library: &Path, folder: &Path) {
    let ended = run(library, &folder.join("none"), &[]);
    let said = ended.expect(3);
    assert!(said.contains("[served]: namespace ingress, labels app=none: no pod runs"), "{said}");
}
