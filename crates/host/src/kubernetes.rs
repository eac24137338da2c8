//! Pods for the hosts of a run, by `kubectl`: whole CPUs, each pod on a node of its own, weir beside what its image brings.
//! `objects` writes and reads what Kubernetes keeps, `inside` is what a pod's first processes do.
//!
//! All pods of a run belong to a Lease object: deleting that deletes them. They are deleted when [`Pods`] is dropped. After a
//! kill of weir each ends by itself (its first process when agents are gone, and a deadline), and [`remove_leftovers`], which each
//! new run calls, deletes what has ended. A pod that is gone, or that shall have another image, is made anew on the same node. This
//! module does not know roles, and does not speak to agents: [`crate::transport`] does.

mod inside;
mod objects;
mod served;

use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use weir_model::topology::Reach;

use self::objects::{CONTAINER, State};

pub use self::inside::{copy_weir, idle};
pub use self::served::{CGROUPS, Served};

/// How long pods may take to be ready: an image has to be fetched the first time.
const START: Duration = Duration::from_secs(180);

/// The same for a pod that is made anew from an image that its node has.
const AGAIN: Duration = Duration::from_secs(60);

/// How long the pods of a run are deleted and waited for.
const END: &str = "30s";

/// How often the pods are looked at until they are ready.
const POLL: Duration = Duration::from_millis(300);

/// Creates what standard input says.
const CREATE: [&str; 3] = ["create", "-f", "-"];

/// Why there are no pods.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// There is no `kubectl`.
    #[error("pods: there is no kubectl in PATH\n  expected: kubectl, with a configuration that reaches the cluster")]
    NoKubectl,
    /// `kubectl` refused.
    #[error("pods: `{command}`: {said}")]
    Refused {
        /// Its argument vector, joined with blanks.
        command: String,
        /// The end of its standard error.
        said: String,
    },
    /// A pod does not become ready.
    #[error("pod {pod} does not start: {why}")]
    Pod {
        /// Its name.
        pod: String,
        /// What Kubernetes says of it.
        why: String,
    },
    /// The pods of a product that is served already are not as they have to be.
    #[error(
        "[served]: namespace {namespace}, labels {selector}: {found}\n  \
         expected: its pods on one node, whose control groups weir reads from a pod beside them"
    )]
    Served {
        /// Their namespace.
        namespace: String,
        /// The selector of their labels.
        selector: String,
        /// What was found.
        found: String,
    },
    /// A pod may use other CPUs than its own.
    #[error(
        "pod {pod} asked for {asked} CPUs of its own and may use {found}\n  \
         expected: nodes whose kubelet has cpuManagerPolicy: static"
    )]
    Shared {
        /// Its name.
        pod: String,
        /// How many it asked for.
        asked: u32,
        /// How many it may use.
        found: usize,
    },
}

/// The cluster and namespace in which pods are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Context of kubectl's configuration; `None`: the current one.
    pub context: Option<String>,
    /// Namespace.
    pub namespace: String,
}

/// A pod to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSpec {
    /// The host's name in the topology: lower-case letters, digits and hyphens.
    pub host: String,
    /// Image with the product; `None`: weir's own.
    pub image: Option<String>,
    /// CPUs, which no other pod may use; 0: it runs no product, and asks for nearly nothing.
    pub cpus: u32,
    /// Memory, MiB.
    pub memory_mib: u64,
    /// Its roles, as a label that selectors can name: `weir.role.origin`.
    pub roles: Vec<&'static str>,
    /// The node on which it watches pods of others.
    pub watches: Option<String>,
}

/// A pod that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// The host's name in the topology.
    pub host: String,
    /// The pod's name.
    pub name: String,
    /// What no other pod has, not even a later one of this name.
    pub uid: String,
    /// Its node.
    pub node: String,
    /// Its address for traffic.
    pub address: IpAddr,
    /// CPUs that it asked for; 0: none of its own.
    pub cpus: u32,
}

impl Pod {
    /// Checks that the CPUs that it may use, as its agent reads them, are its own.
    ///
    /// # Errors
    /// When there are more, or fewer: then its node shares them among all pods.
    pub fn has_own(&self, cpus: &[u32]) -> Result<(), KubernetesError> {
        if self.cpus == 0 || cpus.len() == self.cpus as usize {
            return Ok(());
        }
        Err(KubernetesError::Shared { pod: self.name.clone(), asked: self.cpus, found: cpus.len() })
    }
}

/// The pods of a run. Dropping it deletes them.
#[derive(Debug)]
pub struct Pods {
    cluster: Cluster,
    id: String,
    /// The Lease object.
    owner: Value,
    /// weir's image.
    image: String,
    /// When their time is up.
    ends: Instant,
    specs: Vec<PodSpec>,
    pods: Vec<Pod>,
}

impl Pods {
    /// Makes pods, each on another node, and waits until they are ready. `image` is weir's, `run` the run's name, `at_most` how
    /// long the run may take.
    ///
    /// # Errors
    /// See [`KubernetesError`]. No pod stays then.
    pub fn create(
        cluster: &Cluster,
        run: &str,
        image: &str,
        specs: &[PodSpec],
        at_most: Duration,
    ) -> Result<Pods, KubernetesError> {
        remove_leftovers(cluster)?;
        let id = format!("{:08x}", rand::random::<u32>());
        let owner = cluster.json(&CREATE, &objects::lease(&id, run, at_most).to_string())?;
        let (cluster, image, specs) = (cluster.clone(), image.to_owned(), specs.to_vec());
        let mut made = Pods { cluster, id, owner, image, ends: Instant::now() + at_most, specs, pods: Vec::new() };
        made.apply(&made.specs, None)?;
        made.pods = made.wait_ready(&made.specs, START)?;
        Ok(made)
    }

    /// Whether the cluster lets a pod watch others: nothing is made.
    ///
    /// # Errors
    /// What `kubectl` says.
    pub fn try_watching(cluster: &Cluster, image: &str, spec: &PodSpec) -> Result<(), KubernetesError> {
        let object = objects::pods("try", &Value::Null, image, std::slice::from_ref(spec), None, START);
        cluster.kubectl(&[&CREATE[..], &["--dry-run=server"]].concat(), &object.to_string()).map(drop)
    }

    /// They, in the order in which they were asked for.
    pub fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// The image that a host's pod has; `None`: weir's own, or no such host.
    pub fn image(&self, host: &str) -> Option<&str> {
        self.specs.iter().find(|spec| spec.host == host)?.image.as_deref()
    }

    /// Where they are.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Sees that a host has a pod that runs, with this image (`None`: weir's own). Where it has not, the pod is made anew, on the
    /// same node, so that trials before and after it can be compared: it has another address then, and nothing of what was written
    /// into the old one. Says whether it was.
    ///
    /// # Errors
    /// See [`KubernetesError`].
    pub fn ensure(&mut self, host: &str, image: Option<&str>) -> Result<bool, KubernetesError> {
        let Some(at) = self.pods.iter().position(|pod| pod.host == host) else { return Ok(false) };
        let spec = PodSpec { image: image.map(str::to_owned), ..self.specs[at].clone() };
        let same = spec == self.specs[at];
        if same && let State::Ready(now) = self.state(&self.found()?, &spec) {
            let other = now != self.pods[at];
            self.pods[at] = now;
            return Ok(other);
        }
        let (Pod { name, node, .. }, among) = (self.pods[at].clone(), std::slice::from_ref(&spec));
        // Before the pod is there, because one that comes too late is looked at the next time.
        self.specs[at] = spec.clone();
        self.cluster.kubectl(&["delete", "pod", &name, "--ignore-not-found", "--wait=true", &wait()], "")?;
        self.apply(among, Some(&node))?;
        let made = self.wait_ready(among, if same { AGAIN } else { START })?;
        self.pods.splice(at..=at, made);
        Ok(true)
    }

    /// Makes pods, on this node where one is named.
    fn apply(&self, specs: &[PodSpec], node: Option<&str>) -> Result<(), KubernetesError> {
        let left = self.ends.saturating_duration_since(Instant::now());
        let pods = objects::pods(&self.id, &self.owner, &self.image, specs, node, left);
        self.cluster.kubectl(&CREATE, &pods.to_string()).map(drop)
    }

    fn found(&self) -> Result<Value, KubernetesError> {
        self.cluster.json(&["get", "pods", "-l", &objects::label(&self.id)], "")
    }

    fn state(&self, found: &Value, spec: &PodSpec) -> State {
        objects::state(found, &self.id, spec)
    }

    fn wait_ready(&self, specs: &[PodSpec], within: Duration) -> Result<Vec<Pod>, KubernetesError> {
        let deadline = Instant::now() + within;
        loop {
            let found = self.found()?;
            let late = Instant::now() > deadline;
            let states = specs.iter().map(|spec| self.state(&found, spec));
            let states = states.map(|state| match state {
                State::Waits { pod, why } if late => {
                    State::Failed { pod, why: format!("{why}, after {} s", within.as_secs()) }
                }
                other => other,
            });
            let ready: Option<Vec<Pod>> = states
                .map(|state| match state {
                    State::Ready(pod) => Ok(Some(pod)),
                    State::Waits { .. } => Ok(None),
                    State::Failed { pod, why } => {
                        let said = self.cluster.log(&pod);
                        Err(KubernetesError::Pod { pod, why: why + &said })
                    }
                })
                .collect::<Result<_, _>>()?;
            match ready {
                Some(pods) => return Ok(pods),
                None => std::thread::sleep(POLL),
            }
        }
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        // What cannot be deleted now ends by itself, and is deleted as a leftover.
        let _ = self.cluster.delete(&self.id);
    }
}

/// Deletes the pods and leases of runs that are over: all their pods have ended, or their time is up. Ids of those runs.
///
/// # Errors
/// What `kubectl` says.
pub fn remove_leftovers(cluster: &Cluster) -> Result<Vec<String>, KubernetesError> {
    let found = cluster.json(&["get", "leases.coordination.k8s.io,pods", "-l", objects::RUN], "")?;
    let ended = objects::ended_runs(&found, jiff::Timestamp::now());
    for id in &ended {
        cluster.delete(id)?;
    }
    Ok(ended)
}

/// The cluster and the name of a host that is a pod.
pub fn pod(reach: &Reach) -> Option<(Cluster, String)> {
    let Reach::Pod { name, namespace, context, .. } = reach else { return None };
    Some((Cluster { context: context.clone(), namespace: namespace.clone() }, name.clone()))
}

/// What became of a pod whose agent is gone, as Kubernetes says it: `it was deleted`, or how it ended. `None` where it runs, or where
/// nobody says.
pub fn fate(cluster: &Cluster, pod: &str) -> Option<String> {
    let said =
        cluster.kubectl(&["get", "pod", pod, "--ignore-not-found", "-o", "json", "--request-timeout=5s"], "").ok()?;
    match said.trim() {
        "" => Some(objects::DELETED.to_owned()),
        object => objects::end(&serde_json::from_str(object).ok()?),
    }
}

/// An option of `kubectl delete`: how long it waits.
fn wait() -> String {
    format!("--timeout={END}")
}

impl Cluster {
    /// How an agent in a pod is reached.
    pub fn reach(&self, pod: &Pod) -> Reach {
        Reach::Pod {
            name: pod.name.clone(),
            namespace: self.namespace.clone(),
            container: Some(CONTAINER.to_owned()),
            context: self.context.clone(),
        }
    }

    /// Calls `kubectl`: its standard output.
    fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String, KubernetesError> {
        let mut argv: Vec<&str> = vec!["kubectl"];
        argv.extend(self.context.iter().flat_map(|context| ["--context", context]));
        argv.extend(["-n", &self.namespace]);
        argv.extend(arguments);
        let refused = |said: String| KubernetesError::Refused { command: argv.join(" "), said };
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => KubernetesError::NoKubectl,
            _ => refused(error.to_string()),
        })?;
        let mut stdin = child.stdin.take().expect("piped");
        // It reads all of its input before it writes. One that ends early says why.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let ended = child.wait_with_output().map_err(|error| refused(error.to_string()))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
            return Err(refused(if said.is_empty() { ended.status.to_string() } else { said }));
        }
        String::from_utf8(ended.stdout).map_err(|error| refused(error.to_string()))
    }

    fn json(&self, arguments: &[&str], input: &str) -> Result<Value, KubernetesError> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat(), input)?;
        let refused = |error: serde_json::Error| KubernetesError::Refused {
            command: format!("kubectl {}", arguments.join(" ")),
            said: error.to_string(),
        };
        serde_json::from_str(&text).map_err(refused)
    }

    /// The end of what a pod's containers said: it is deleted, and nobody could look later.
    fn log(&self, pod: &str) -> String {
        let said = self.kubectl(&["logs", pod, "--all-containers", "--tail=5", "--request-timeout=5s"], "");
        let said = said.unwrap_or_default();
        if said.trim().is_empty() { String::new() } else { format!("; its log ends:\n{}", said.trim_end()) }
    }

    fn delete(&self, id: &str) -> Result<(), KubernetesError> {
        let what = ["delete", "pods,leases.coordination.k8s.io", "-l"];
        self.kubectl(&[&what[..], &[&objects::label(id), "--wait=true", &wait()]].concat(), "").map(drop)
    }
}
