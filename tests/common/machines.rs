//! Machines for tests of SSH: a network namespace each, with an sshd, a host key, a home and processes of its own.
//!
//! The disk is shared, except for `/run` and, where asked for, the home. weir runs in one more namespace, `control`, in which
//! `ssh m1` finds its configuration. Everything ends with [`Machines`], and also when the test is killed.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_host::netns::{Links, Namespace, Network};
use weir_model::units::CpuList;

use crate::common::shop::names;
use crate::common::{needs_root, processes_touching, scratch, until, weir};

/// How a machine differs from this one.
#[derive(Debug, Default, Clone)]
pub struct Setup {
    /// Size of the disk that its home is on, bytes. 0: on this machine's.
    pub home_bytes: u64,
    /// Seconds by which its monotonic clock is ahead.
    pub clock_ahead_s: i64,
    /// weir's folder there; `None`: one in its home.
    pub weir_home: Option<PathBuf>,
}

/// A machine that `ssh` reaches by its name.
#[derive(Debug)]
pub struct Machine {
    pub name: String,
    pub address: Ipv4Addr,
    pub home: PathBuf,
    namespace: Namespace,
    /// Folder that is first in its PATH.
    programs: PathBuf,
    /// `unshare`, above the first process of its process namespace.
    above: Child,
}

/// Machines m1, m2, .. and the place from which they are reached.
#[derive(Debug)]
pub struct Machines {
    // Fields are dropped in this order.
    machines: Vec<Machine>,
    network: Network,
    folder: tempfile::TempDir,
}

impl Machines {
    /// Starts three alike.
    pub fn three() -> Machines {
        Machines::start(&[const { Setup { home_bytes: 0, clock_ahead_s: 0, weir_home: None } }; 3])
    }

    /// Starts a machine for each setup, and waits until they answer.
    pub fn start(setups: &[Setup]) -> Machines {
        needs_root("start machines in namespaces");
        assert!(Path::new("/usr/sbin/sshd").exists(), "the tests need the package openssh-server");
        let folder = scratch();
        let names: Vec<String> = (1..=setups.len()).map(|number| format!("m{number}")).collect();
        let hosts = names.iter().map(String::as_str).chain(["control"]);
        let network = Network::create(hosts, &Links::default()).unwrap_or_else(|error| panic!("{error}"));
        new_key(&folder.path().join("client"));
        let machines: Vec<Machine> = network
            .hosts()
            .iter()
            .zip(setups)
            .map(|(namespace, setup)| Machine::start(folder.path(), namespace, setup))
            .collect();
        let started = Machines { machines, network, folder };
        started.write_client_side();
        for machine in &started.machines {
            until(&format!("sshd of {}", machine.name), Duration::from_secs(20), || started.responses(machine));
        }
        started
    }

    /// One of them; the first is 0.
    pub fn get(&self, index: usize) -> &Machine {
        &self.machines[index]
    }

    /// A folder that goes with them.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `-F` of ssh.
    pub fn config(&self) -> PathBuf {
        self.folder().join("ssh_config")
    }

    /// A topology of them: the role of each, and the CPUs for it (none: all).
    pub fn topology(&self, roles: &[(&str, &[u32])]) -> String {
        let config = self.config().display().to_string();
        let host = |(machine, (role, cpus)): (&Machine, &(&str, &[u32]))| {
            let (name, address) = (&machine.name, machine.address);
            let cpus = if cpus.is_empty() { String::new() } else { format!("cpus = \"{}\"\n", CpuList::text(cpus)) };
            format!(
                "[[host]]\nname = \"{name}\"\nroles = [\"{role}\"]\nssh = \"{name}\"\nssh_config = \"{config}\"\n\
                 address = \"{address}\"\n{cpus}\n"
            )
        };
        self.machines.iter().zip(roles).map(host).collect()
    }

    /// weir with arguments, in the namespace from which the machines are reached. The `ssh` in its PATH uses [`Machines::config`].
    pub fn weir(&self, args: &[&str]) -> Command {
        let weir = weir(args);
        let mut command = self.control(weir.get_program().to_str().expect("UTF-8"));
        command.args(weir.get_args());
        for (key, value) in weir.get_envs() {
            command.env(key, value.expect("set"));
        }
        command
    }

    /// `ssh machine command`.
    pub fn ssh(&self, machine: &str, line: &str) -> Command {
        let mut command = self.control("ssh");
        command.args([machine, line]);
        command
    }

    /// Takes a machine off the network, or puts it back.
    pub fn link(&self, machine: &Machine, state: &str) {
        ip(&["-n", &self.network.bridge(), "link", "set", &machine.namespace.port, state]);
    }

    /// From now on the machine's host key is not the one that is known.
    pub fn change_host_key(&self, machine: &Machine) {
        let other = self.folder.path().join("other");
        new_key(&other);
        let known = self.folder.path().join("known_hosts");
        let text = fs::read_to_string(&known).expect("read");
        let others: String = text
            .lines()
            .filter(|line| !line.starts_with(&machine.known_as()))
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(&known, others + &machine.known_line(&other)).expect("written");
    }

    /// Calls `work` where the machines are reached; processes that it starts stay there.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let control = self.network.hosts().last().expect("control");
        control.inside(|| Ok(work())).expect("the namespace is there")
    }

    /// A program where the machines are reached. It has no input.
    pub fn control(&self, program: &str) -> Command {
        let enter = self.network.hosts().last().expect("control").enter();
        let mut command = Command::new(&enter[0]);
        let path =
            format!("{}:{}", self.folder.path().join("programs").display(), std::env::var("PATH").expect("a path"));
        command.args(&enter[1..]).arg(program).env("PATH", path).stdin(Stdio::null());
        command
    }

    fn write_client_side(&self) {
        let at = |name: &str| self.folder.path().join(name);
        let keys: String = self.machines.iter().map(|machine| machine.known_line(&machine.host_key())).collect();
        fs::write(at("known_hosts"), keys).expect("written");
        let hosts: String = self
            .machines
            .iter()
            .map(|machine| format!("Host {}\n  HostName {}\n", machine.name, machine.address))
            .collect();
        let (key, known) = (at("client"), at("known_hosts"));
        let all = format!(
            "Host *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {}\n  \
             GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  BatchMode yes\n  ConnectTimeout 10\n",
            key.display(),
            known.display(),
        );
        fs::write(self.config(), hosts + &all).expect("written");
        fs::create_dir(at("programs")).expect("made");
        let ssh = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", self.config().display());
        write_program(&at("programs/ssh"), &ssh);
    }

    /// Whether its sshd greets.
    fn responses(&self, machine: &Machine) -> bool {
        let control = self.network.hosts().last().expect("control");
        let addr = (machine.address, 22).into();
        let greeting = control.inside(|| {
            let mut stream = TcpStream::connect_timeout(&addr, Duration::from_secs(1))?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            let mut greeting = [0; 4];
            stream.read_exact(&mut greeting).map(|()| greeting)
        });
        greeting.is_ok_and(|greeting| &greeting == b"SSH-")
    }
}

impl Machine {
    fn start(folder: &Path, namespace: &Namespace, setup: &Setup) -> Machine {
        let own = folder.join(&namespace.host);
        let (home, programs) = (own.join("home"), own.join("programs"));
        for folder in [&home, &programs] {
            fs::create_dir_all(folder).expect("made");
        }
        new_key(&own.join("key"));
        let weir_home = setup.weir_home.clone().unwrap_or_else(|| home.join("weir"));
        let path = format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", programs.display());
        let config = format!(
            "Port 22\nListenAddress {address}\nHostKey {key}\nAuthorizedKeysFile {client}.pub\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nUseDNS no\nStrictModes no\n\
             PermitRootLogin prohibit-password\nMaxSessions 64\nMaxStartups 100\n\
             SetEnv HOME={home} WEIR_HOME={weir_home} TMPDIR=/run PATH={path}\n",
            address = namespace.address,
            key = own.join("key").display(),
            client = folder.join("client").display(),
            home = home.display(),
            weir_home = weir_home.display(),
        );
        fs::write(own.join("sshd_config"), config).expect("written");
        let disk = match setup.home_bytes {
            0 => String::new(),
            bytes => format!("mount -t tmpfs -o size={bytes} home {}\n", home.display()),
        };
        let start = format!(
            "set -e\nhostname {name}\nmount -t tmpfs run /run\nmkdir /run/sshd\n{disk}cd {home}\n\
             exec /usr/sbin/sshd -D -f {own}/sshd_config -E {own}/log\n",
            name = namespace.host,
            home = home.display(),
            own = own.display(),
        );
        // The kernel kills `unshare` with the test's thread, and with it all that it has started.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(namespace.enter());
        command.args(["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]);
        if setup.clock_ahead_s != 0 {
            let ahead = setup.clock_ahead_s.to_string();
            command.args(["--time", "--monotonic", &ahead, "--boottime", &ahead]);
        }
        command.args(["--", "sh", "-c", &start]).stdin(Stdio::null()).stdout(Stdio::null());
        // Ctrl-C at a terminal is none of its business.
        command.process_group(0);
        let above = command.spawn().expect("setpriv, nsenter and unshare are there");
        let (name, address) = (namespace.host.clone(), namespace.address);
        Machine { name, address, home, namespace: namespace.clone(), programs, above }
    }

    /// Puts a shell script before the program of that name.
    pub fn replace_program(&self, name: &str, script: &str) {
        write_program(&self.programs.join(name), script);
    }

    /// Pids and arguments of its processes, without sshd's own.
    pub fn processes(&self) -> Vec<(u32, String)> {
        weir_host::supervisor::descendants(self.above.id())
            .into_iter()
            .filter_map(|pid: u32| {
                let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
                Some((pid, String::from_utf8_lossy(&arguments).replace('\0', " ").trim().to_owned()))
            })
            .filter(|(_, arguments)| !arguments.starts_with("sshd: ") && !arguments.contains("/sbin/sshd "))
            .collect()
    }

    /// A file of the machine, as this process sees it.
    pub fn file(&self, path: &Path) -> PathBuf {
        let id = self.above.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("it runs");
        Path::new("/proc").join(children.trim()).join("root").join(path.strip_prefix("/").expect("a whole path"))
    }

    fn host_key(&self) -> PathBuf {
        self.programs.with_file_name("key")
    }

    fn known_as(&self) -> String {
        format!("{} ", self.address)
    }

    fn known_line(&self, key: &Path) -> String {
        self.known_as() + &fs::read_to_string(key.with_extension("pub")).expect("read")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.above.kill();
        let _ = self.above.wait();
        // The kernel ends what is in its process namespace a moment later.
        until("the machine's end", Duration::from_secs(20), || processes_touching(&self.home).is_empty());
    }
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, script).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

fn new_key(path: &Path) {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "weir-test", "-f"]).arg(path);
    assert!(keygen.status().expect("ssh-keygen runs").success());
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().expect("ip runs").success(), "ip {arguments:?}");
}

/// The network namespaces that weir has made.
pub fn namespaces() -> Vec<String> {
    let mut all = names(Path::new("/run/netns"));
    all.retain(|name| name.starts_with("weir-"));
    all
}
