//! What Kubernetes keeps for a run, written and read: a Lease, pods that belong to it, and their states. Pure functions.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::served::{CGROUPS, ON_NODE};
use super::{Pod, PodSpec};
use crate::transport::WEIR_IN_POD;

/// The container in which a host's processes run.
pub(super) const CONTAINER: &str = "host";

/// Where weir is in its image.
const IN_IMAGE: &str = "/bin/weir";

/// Where both containers of a pod have the folder with weir's binary.
const SHARED: &str = "/weir";

/// The label of all that weir makes; its value is the run's id.
pub(super) const RUN: &str = "weir.run";

/// The label of a pod with the host's name in the topology.
const HOST: &str = "weir.host";

/// What is said of a pod that is not there any more, or not for long.
pub(super) const DELETED: &str = "it was deleted";

/// Labels of a pod with its roles, for the selectors of services: `weir.role.origin=true`.
const ROLE: &str = "weir.role";

/// States of a container that do not become better by themselves.
const FINAL: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// How far a pod is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready(Pod),
    Waits { pod: String, why: String },
    Failed { pod: String, why: String },
}

/// The selector of all objects of a run.
pub(super) fn label(id: &str) -> String {
    format!("{RUN}={id}")
}

fn name(id: &str, host: &str) -> String {
    format!("weir-{id}-{host}")
}

/// The owner of a run's pods.
pub(super) fn lease(id: &str, run: &str, at_most: Duration) -> Value {
    let now = Timestamp::now();
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": format!("weir-{id}"), "labels": { RUN: id } },
        "spec": {
            "holderIdentity": run,
            "leaseDurationSeconds": at_most.as_secs().max(1),
            "acquireTime": format!("{now:.6}"),
        },
    })
}

/// Pods of a run, on this node where one is named.
pub(super) fn pods(
    id: &str,
    owner: &Value,
    image: &str,
    specs: &[PodSpec],
    node: Option<&str>,
    at_most: Duration,
) -> Value {
    let on_node = |spec: &PodSpec| {
        let mut pod = pod(id, owner, image, spec, at_most);
        if let Some(node) = spec.watches.as_deref().or(node) {
            // Not `nodeName`, which would pass over the scheduler: a node that is full would end the pod.
            let is = json!([{ "key": "metadata.name", "operator": "In", "values": [node] }]);
            pod["spec"]["affinity"]["nodeAffinity"] = json!({ "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchFields": is }],
            } });
        }
        pod
    };
    let items: Vec<Value> = specs.iter().map(on_node).collect();
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}

fn pod(id: &str, owner: &Value, image: &str, spec: &PodSpec, at_most: Duration) -> Value {
    // Requests that equal the limits, in whole CPUs: only then does a kubelet give CPUs to one pod alone.
    let amounts = json!({ "cpu": spec.cpus.to_string(), "memory": format!("{}Mi", spec.memory_mib) });
    let resources = match spec.cpus {
        0 => json!({ "requests": { "cpu": "20m", "memory": "32Mi" } }),
        _ => json!({ "requests": amounts, "limits": amounts }),
    };
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name(id, &spec.host),
            "labels": { RUN: id, HOST: spec.host },
            "ownerReferences": [{
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": at_most.as_secs().max(1),
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [{
                "labelSelector": { "matchLabels": { RUN: id } },
                "topologyKey": "kubernetes.io/hostname",
            }] } },
            "volumes": [{ "name": "weir", "emptyDir": {} }],
            "initContainers": [{
                "name": "weir",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": [IN_IMAGE, "pod", "copy", WEIR_IN_POD],
                "volumeMounts": [{ "name": "weir", "mountPath": SHARED }],
                "resources": resources,
            }],
            "containers": [{
                "name": CONTAINER,
                "image": spec.image.as_deref().unwrap_or(image),
                "imagePullPolicy": "IfNotPresent",
                "command": [WEIR_IN_POD, "pod", "idle"],
                // A product's image may have no folder that its user can write to.
                "env": [{ "name": "TMPDIR", "value": SHARED }],
                "volumeMounts": [{ "name": "weir", "mountPath": SHARED }],
                "resources": resources,
            }],
        },
    });
    for role in &spec.roles {
        pod["metadata"]["labels"][format!("{ROLE}.{role}")] = "true".into();
    }
    if owner.is_null() {
        pod["metadata"]["ownerReferences"] = Value::Null;
    }
    if spec.watches.is_some() {
        watch(&mut pod["spec"]);
    }
    pod
}

/// Lets a pod onto its node, whatever that refuses, with the node's control groups to read.
fn watch(pod: &mut Value) {
    pod["tolerations"] = json!([{ "operator": "Exists" }]);
    let add = |list: &mut Value, one: Value| list.as_array_mut().into_iter().for_each(|all| all.push(one.clone()));
    add(&mut pod["volumes"], json!({ "name": "cgroup", "hostPath": { "path": ON_NODE, "type": "Directory" } }));
    let mount = json!({ "name": "cgroup", "mountPath": CGROUPS, "readOnly": true });
    add(&mut pod["containers"][0]["volumeMounts"], mount);
}

/// How far the pod of a spec is, among the pods of a run.
pub(super) fn state(found: &Value, id: &str, spec: &PodSpec) -> State {
    let pod = name(id, &spec.host);
    let Some(object) = items(found).find(|object| text(object, "/metadata/name") == pod) else {
        return State::Failed { pod, why: DELETED.into() };
    };
    if let Some(why) = end(object) {
        return State::Failed { pod, why };
    }
    if let Some((reason, message)) = waiting(object) {
        let why = format!("{reason} {message}").trim().to_owned();
        return if FINAL.contains(&reason) { State::Failed { pod, why } } else { State::Waits { pod, why } };
    }
    let phase = text(object, "/status/phase");
    let condition = |kind: &str| {
        let all = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        all.into_iter().find(|condition| condition["type"] == kind)
    };
    if condition("Ready").is_none_or(|ready| ready["status"] != "True") {
        let unscheduled = condition("PodScheduled").filter(|scheduled| scheduled["status"] == "False");
        let why = unscheduled.map_or(phase, |scheduled| text(scheduled, "/message")).to_owned();
        return State::Waits { pod, why };
    }
    match text(object, "/status/podIP").parse() {
        Ok(address) => State::Ready(Pod {
            host: spec.host.clone(),
            name: pod,
            uid: text(object, "/metadata/uid").to_owned(),
            node: text(object, "/spec/nodeName").to_owned(),
            address,
            cpus: spec.cpus,
        }),
        Err(_) => State::Waits { pod, why: "it has no address".into() },
    }
}

/// How a pod ended, if it has.
pub(super) fn end(pod: &Value) -> Option<String> {
    let phase = text(pod, "/status/phase");
    if pod.pointer("/metadata/deletionTimestamp").is_some() {
        return Some(DELETED.into());
    }
    let why = [phase, text(pod, "/status/reason"), text(pod, "/status/message"), &ended(pod)].join(" ");
    let over = matches!(phase, "Failed" | "Succeeded");
    over.then(|| why.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let of = |key: &str| pod.pointer(key).and_then(Value::as_array).into_iter().flatten();
    of("/status/initContainerStatuses").chain(of("/status/containerStatuses"))
}

/// Why a container does not run yet. `PodInitializing` only says that another one comes first.
fn waiting(pod: &Value) -> Option<(&str, &str)> {
    let waiting = containers(pod).filter_map(|container| container.pointer("/state/waiting"));
    let mut said = waiting.map(|waiting| (text(waiting, "/reason"), text(waiting, "/message")));
    said.find(|(reason, _)| *reason != "PodInitializing")
}

/// How its containers ended, where that was wrong.
fn ended(pod: &Value) -> String {
    let ended = containers(pod).filter_map(|container| Some((container, container.pointer("/state/terminated")?)));
    let wrong = ended.filter(|(_, ended)| ended["exitCode"] != 0);
    let said = wrong.map(|(container, ended)| {
        let (name, reason, message) = (text(container, "/name"), text(ended, "/reason"), text(ended, "/message"));
        format!("(container {name}: {reason} {message} exit status {})", ended["exitCode"])
    });
    said.collect::<Vec<_>>().join(" ")
}

/// Ids of runs that are over: those whose pods have all ended, and those whose time is up.
pub(super) fn ended_runs(found: &Value, now: Timestamp) -> Vec<String> {
    let mut runs: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for object in items(found) {
        let id = object.pointer("/metadata/labels").and_then(|labels| labels[RUN].as_str());
        runs.entry(id.unwrap_or_default()).or_default().push(object);
    }
    let over = |objects: &Vec<&Value>| {
        let mut pods = objects.iter().filter(|object| object["kind"] == "Pod").peekable();
        let has_pods = pods.peek().is_some();
        let ended = pods.all(|pod| matches!(text(pod, "/status/phase"), "Succeeded" | "Failed"));
        has_pods && ended || objects.iter().any(|object| is_expired(object, now))
    };
    runs.into_iter().filter(|(id, objects)| !id.is_empty() && over(objects)).map(|(id, _)| id.to_owned()).collect()
}

fn is_expired(lease: &Value, now: Timestamp) -> bool {
    let seconds = lease.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64);
    let since = text(lease, "/spec/acquireTime").parse::<Timestamp>().ok();
    let ends = since.zip(seconds).and_then(|(since, s)| since.checked_add(SignedDuration::from_secs(s)).ok());
    ends.is_some_and(|ends| ends < now)
}

pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> PodSpec {
        PodSpec {
            host: "proxy".into(),
            image: Some("gateway:2".into()),
            cpus: 3,
            memory_mib: 512,
            roles: vec!["proxy"],
            watches: None,
        }
    }

    #[test]
    fn a_pod_that_watches_is_on_its_node_sees_control_groups_and_asks_for_little() {
        let spec = PodSpec { cpus: 0, watches: Some("n7".into()), ..spec() };
        let made = pods("0a", &json!({ "kind": "Lease" }), "weir:1", &[spec], None, Duration::from_secs(900));
        let pod = &made["items"][0];
        assert_eq!(pod["metadata"]["labels"]["weir.role.proxy"], "true");
        let affinity = &pod["spec"]["affinity"];
        let at =
            "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
        assert_eq!(affinity.pointer(at), Some(&"n7".into()));
        assert!(affinity["podAntiAffinity"].is_object(), "no other of weir's is there");
        assert_eq!(pod["spec"]["volumes"][1]["hostPath"]["path"], "/sys/fs/cgroup");
        let mount = &pod["spec"]["containers"][0]["volumeMounts"][1];
        assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&CGROUPS.into(), &true.into()));
        assert!(pod["spec"]["containers"][0]["resources"]["limits"].is_null(), "whole CPUs are for products");
    }

    #[test]
    fn a_pod_has_whole_cpus_an_owner_a_deadline_and_a_node_of_its_own() {
        let mut owner = lease("0a", "20261122-quick of a@b", Duration::from_secs(900));
        assert_eq!(owner["spec"]["leaseDurationSeconds"], 900);
        owner["metadata"]["uid"] = "u-1".into();
        let made = pods("0a", &owner, "weir:1", &[spec()], None, Duration::from_secs(900));
        let pod = &made["items"][0];
        assert_eq!(pod["metadata"]["name"], "weir-0a-proxy");
        let reference = &pod["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&reference["kind"], &reference["name"], &reference["uid"]),
            (&"Lease".into(), &"weir-0a".into(), &"u-1".into())
        );
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], 900);
        let apart = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0";
        assert_eq!(pod.pointer(apart).expect("there")["labelSelector"]["matchLabels"][RUN], "0a");
        // A pod is Guaranteed when each container, also one that ends at once, asks for what it may use.
        for kind in ["initContainers", "containers"] {
            let container = &pod["spec"][kind][0];
            assert_eq!(container["resources"]["requests"], json!({ "cpu": "3", "memory": "512Mi" }));
            assert_eq!(container["resources"]["requests"], container["resources"]["limits"]);
        }
        assert_eq!(pod["spec"]["initContainers"][0]["image"], "weir:1");
        assert_eq!(pod["spec"]["containers"][0]["image"], "gateway:2");
    }

    fn of_status(status: Value) -> State {
        let pod = json!({ "metadata": { "name": "weir-0a-proxy" }, "spec": { "nodeName": "n1" }, "status": status });
        state(&json!({ "items": [pod] }), "0a", &spec())
    }

    fn why(state: State) -> (bool, String) {
        match state {
            State::Ready(pod) => panic!("{pod:?}"),
            State::Waits { why, .. } => (false, why),
            State::Failed { why, .. } => (true, why),
        }
    }

    #[test]
    fn a_pod_that_is_made_anew_comes_to_its_node() {
        let on = |node| pods("0a", &json!({}), "weir:1", &[spec()], node, Duration::from_secs(9))["items"][0].clone();
        let affinity = |pod: Value| pod["spec"]["affinity"].clone();
        assert!(affinity(on(None))["nodeAffinity"].is_null());
        let there = affinity(on(Some("n7")));
        assert!(there["nodeAffinity"].to_string().contains(r#""values":["n7"]"#), "{there}");
        assert!(!there["podAntiAffinity"].is_null());
    }

    #[test]
    fn what_became_of_a_pod_is_said() {
        let of = |metadata: Value, status: Value| end(&json!({ "metadata": metadata, "status": status }));
        assert_eq!(of(json!({}), json!({ "phase": "Running" })), None);
        let going = of(json!({ "deletionTimestamp": "2026-11-22T20:00:00Z" }), json!({ "phase": "Running" }));
        assert_eq!(going.as_deref(), Some("it was deleted"));
        let killed = json!({ "phase": "Failed", "containerStatuses": [
            { "name": "host", "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } },
        ] });
        assert_eq!(of(json!({}), killed).as_deref(), Some("Failed (container host: OOMKilled exit status 137)"));
    }

    #[test]
    fn the_state_of_a_pod_says_why_it_is_not_ready() {
        let ready =
            json!({ "phase": "Running", "podIP": "10.1.0.7", "conditions": [{ "type": "Ready", "status": "True" }] });
        let State::Ready(pod) = of_status(ready) else { panic!("not ready") };
        assert_eq!((pod.node.as_str(), pod.address.to_string().as_str(), pod.cpus), ("n1", "10.1.0.7", 3));

        let full = json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu." },
        ] });
        assert_eq!(why(of_status(full)), (false, "0/3 nodes are available: 3 Insufficient cpu.".into()));

        let container = |reason: &str, message: &str| {
            json!({ "phase": "Pending", "initContainerStatuses": [{ "state": { "waiting": { "reason": reason, "message": message } } }],
                "containerStatuses": [{ "state": { "waiting": { "reason": "PodInitializing" } } }] })
        };
        assert_eq!(why(of_status(container("ContainerCreating", ""))), (false, "ContainerCreating".into()));
        let no_image = why(of_status(container("ErrImageNeverPull", "image weir:1 is not here")));
        assert_eq!(no_image, (true, "ErrImageNeverPull image weir:1 is not here".into()));

        let wrong = json!({ "phase": "Failed", "initContainerStatuses": [
            { "name": "weir", "state": { "terminated": { "exitCode": 3, "reason": "Error" } } },
        ] });
        assert_eq!(why(of_status(wrong)), (true, "Failed (container weir: Error exit status 3)".into()));
        let late = json!({ "phase": "Failed", "reason": "DeadlineExceeded", "message": "too long" });
        assert_eq!(why(of_status(late)), (true, "Failed DeadlineExceeded too long".into()));
        assert_eq!(why(state(&json!({ "items": [] }), "0a", &spec())), (true, "it was deleted".into()));
    }

    #[test]
    fn runs_are_over_when_all_pods_have_ended_or_the_time_is_up() {
        let now: Timestamp = "2026-11-22T20:00:00Z".parse().expect("a time");
        let lease = |id: &str, since: &str| {
            json!({ "kind": "Lease", "metadata": { "labels": { RUN: id } },
                "spec": { "acquireTime": since, "leaseDurationSeconds": 600 } })
        };
        let pod = |id: &str, phase: &str| json!({ "kind": "Pod", "metadata": { "labels": { RUN: id } }, "status": { "phase": phase } });
        let (recent, old) = ("2026-11-22T19:55:00.000000Z", "2026-11-22T19:45:00.000000Z");
        let found = json!({ "items": [
            lease("begins", recent),
            lease("runs", recent), pod("runs", "Running"), pod("runs", "Failed"),
            lease("killed", recent), pod("killed", "Succeeded"), pod("killed", "Failed"),
            lease("late", old), pod("late", "Running"),
            lease("empty", old),
        ] });
        assert_eq!(ended_runs(&found, now), ["empty", "killed", "late"]);
    }
}
