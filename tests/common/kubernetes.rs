//! A real Kubernetes for tests: what `tests/kubernetes/cluster` starts, with weir's image on its nodes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::common::{binary, home, not_shown, run_within, scratch, wait_within};

/// weir's image on the nodes. It also has kubectl, `/bin/busybox` and nginx.
pub const IMAGE: &str = "weir.test/weir:1";

/// An image of a product, nginx, as others make them: it has no weir, and its folders are its own.
pub const PRODUCT: &str = "weir.test/product:1";

/// An image without any library: what is in it is static.
pub const STATIC: &str = "weir.test/pause:1";

/// How long a build may take that finds Go's cache warm. A cold one takes 5 1/2 minutes: `make kubernetes`.
const WARM: Duration = Duration::from_secs(60);

/// A cluster of three nodes. Dropping it ends it.
#[derive(Debug)]
pub struct Cluster {
    script: Child,
    stdin: Option<ChildStdin>,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Starts it.
    pub fn start() -> Cluster {
        program()
            .map_or_else(|why| not_shown(format_args!("a real Kubernetes: {why}")), |program| Cluster::with(&program))
    }

    fn with(program: &Path) -> Cluster {
        let folder = scratch();
        let images = ["weir.tar", "product.tar"].map(|name| folder.path().join(name));
        write_images(folder.path(), program, &images);
        let mut script = Command::new(scripts().join("cluster"))
            .arg(program)
            .arg(folder.path().join("cluster"))
            .args(&images)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the script starts");
        let stdin = script.stdin.take();
        let mut line = String::new();
        let _ = BufReader::new(script.stdout.take().expect("piped")).read_line(&mut line);
        let started = Cluster { script, stdin, folder };
        assert_eq!(line, "ready\n", "it says why");
        started
    }

    /// Folder whose `kubectl` speaks to it.
    pub fn programs(&self) -> PathBuf {
        self.folder.path().join("cluster/bin")
    }

    /// All that it keeps.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What kubectl prints; it must succeed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let ended = run_within(Command::new(self.programs().join("kubectl")).args(arguments), Duration::from_secs(60));
        assert!(ended.status.success(), "kubectl {arguments:?}: {ended:#?}");
        ended.stdout
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stdin.take());
        wait_within(&mut self.script, Duration::from_secs(60));
    }
}

/// Kubernetes and etcd as one program, or why there is none.
fn program() -> Result<PathBuf, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("not root".into());
    }
    if !Path::new("/sys/fs/cgroup/cpuset/cpuset.cpus").exists() {
        return Err("no cgroup v1 (its nodes were never tried with v2)".into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = |program: &&str| !std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    let needed = ["containerd", "ctr", "runc", "busybox", "openssl", "setpriv", "go"];
    if let Some(program) = needed.iter().find(|program| missing(program)) {
        return Err(format!("no {program} in PATH"));
    }
    if !Path::new("/usr/lib/cni/bridge").exists() {
        return Err("no /usr/lib/cni/bridge (containernetworking-plugins)".into());
    }
    let folder = home().ancestors().nth(2).expect("the target folder").join("kubernetes");
    let mut build = Command::new("timeout");
    build.arg(WARM.as_secs().to_string()).arg(scripts().join("build")).arg(folder);
    let built = run_within(&mut build, WARM * 2);
    match built.code() {
        Some(0) => Ok(PathBuf::from(built.stdout.trim())),
        Some(124) => Err(format!("it is not built, and not within {WARM:?}; `make kubernetes` builds it")),
        _ => Err(format!("it cannot be built: {}", built.stderr.lines().last().unwrap_or_default())),
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kubernetes")
}

/// weir's image and a product's, by the script of `deploy/`. The nodes keep them in memory, three times: so without symbols.
fn write_images(folder: &Path, kubernetes: &Path, [weir, product]: &[PathBuf; 2]) {
    let stripped = folder.join("weir");
    let done = |command: &mut Command| {
        let ended = run_within(command, Duration::from_secs(60));
        assert!(ended.status.success(), "{ended:#?}");
        ended.stdout
    };
    done(Command::new("strip").arg("-o").arg(&stripped).arg(binary()));
    let image = |file: &Path, name: &str, contents: &[String], entrypoint: &str| {
        let mut command = Command::new(scripts().join("../../deploy/kubernetes/image"));
        // The user that nginx asks for.
        let common = ["/etc/passwd=/etc/passwd", "/etc/group=/etc/group", "/bin/busybox=/bin/busybox"];
        done(command.arg(file).arg(name).args(contents).args(common).args(["--", entrypoint]));
    };
    let own = |path: &Path, there: &str| format!("{there}={}", path.display());
    let of_weir =
        [own(&stripped, "/bin/weir"), own(kubernetes, "/bin/kubectl"), "/usr/sbin/nginx=/usr/sbin/nginx".into()];
    image(weir, IMAGE, &of_weir, "/bin/weir");
    // weir as the tests build it needs libraries of C; a static one needs nothing.
    let libraries = done(Command::new("ldd").arg(&stripped));
    let libraries =
        libraries.split_whitespace().filter(|word| word.starts_with('/')).map(|path| format!("{path}={path}"));
    let of_product: Vec<String> = libraries.chain(["/bin/nginx=/usr/sbin/nginx".to_owned()]).collect();
    image(product, PRODUCT, &of_product, "/bin/nginx");
}
