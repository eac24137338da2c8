//! Pods that others run, such as those of an ingress: found by their labels, and watched from a pod of weir's on their node, which sees
//! the node's control groups. Nothing is started in them.

use serde_json::Value;

use super::objects::{items, text};
use super::{Cluster, KubernetesError};

/// Where a watching pod sees its node's control groups.
pub const CGROUPS: &str = "/node/cgroup";

/// Where the node has them.
pub(super) const ON_NODE: &str = "/sys/fs/cgroup";

/// Running pods of others, all on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Their node.
    pub node: String,
    /// Their UIDs, ascending, of which the names of their control groups are made.
    pub uids: Vec<String>,
}

impl Cluster {
    /// The running pods of a namespace that have these labels.
    ///
    /// # Errors
    /// When there are none, when they are on several nodes, or what `kubectl` says.
    pub fn served(&self, namespace: &str, selector: &str) -> Result<Served, KubernetesError> {
        let there = Cluster { namespace: namespace.to_owned(), ..self.clone() };
        served(&there.json(&["get", "pods", "-l", selector], "")?, namespace, selector)
    }
}

fn served(found: &Value, namespace: &str, selector: &str) -> Result<Served, KubernetesError> {
    let runs =
        |pod: &&Value| text(pod, "/status/phase") == "Running" && pod.pointer("/metadata/deletionTimestamp").is_none();
    let mut pods: Vec<(&str, &str)> =
        items(found).filter(runs).map(|pod| (text(pod, "/metadata/uid"), text(pod, "/spec/nodeName"))).collect();
    pods.sort_unstable();
    let mut nodes: Vec<&str> = pods.iter().map(|(_, node)| *node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let found = match nodes.as_slice() {
        [node] => {
            return Ok(Served {
                node: (*node).to_owned(),
                uids: pods.iter().map(|(uid, _)| (*uid).to_owned()).collect(),
            });
        }
        [] => "no pod runs".to_owned(),
        several => format!("{} pods run on several nodes ({})", pods.len(), several.join(", ")),
    };
    Err(KubernetesError::Served { namespace: namespace.to_owned(), selector: selector.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, node: &str, phase: &str) -> Value {
        json!({ "metadata": { "uid": uid }, "spec": { "nodeName": node }, "status": { "phase": phase } })
    }

    #[test]
    fn running_pods_of_one_node_are_found_and_others_are_said() {
        let of = |pods: &[Value]| served(&json!({ "items": pods }), "ingress", "app=gateway");
        let both = of(&[pod("b-2", "n1", "Running"), pod("a-1", "n1", "Running"), pod("c-3", "n2", "Failed")]);
        assert_eq!(both.expect("found"), Served { node: "n1".into(), uids: vec!["a-1".into(), "b-2".into()] });
        let none = of(&[pod("c-3", "n2", "Pending")]).expect_err("none").to_string();
        assert!(none.contains("namespace ingress, labels app=gateway: no pod runs"), "{none}");
        let several = of(&[pod("b-2", "n2", "Running"), pod("a-1", "n1", "Running")]).expect_err("two").to_string();
        assert!(several.contains("2 pods run on several nodes (n1, n2)"), "{several}");
        let mut ends = pod("a-1", "n1", "Running");
        ends["metadata"]["deletionTimestamp"] = "2026-11-22T20:00:00Z".into();
        assert!(of(&[ends]).is_err(), "it is being deleted");
    }
}
