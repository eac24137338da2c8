//! `deploy/terraform/aws`, applied by terraform to a simulated AWS (moto) and destroyed. The providers are stand-ins
//! (`tests/terraform/provider.py`), because their registry may be out of reach.
//!
//! This shows the files' own logic, the calls of EC2 that they lead to, their outputs and their end. It does not show that the real
//! providers accept every attribute. moto has no placement groups.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use weir_model::topology::{Reach, Topology};

use crate::common::{Ended, Running, not_shown, run_within, scratch, text, until, words};

const LONG: Duration = Duration::from_secs(100);

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The documents of `variables.tf`, by name.
fn documents() -> BTreeMap<String, Value> {
    let file = std::fs::read_to_string(repository("deploy/terraform/aws/variables.tf")).expect("read");
    let variables: Value = hcl::from_str(&file).expect("parsed");
    serde_json::from_value(variables["variable"]["documents"]["default"].clone()).expect("documents")
}

/// A Python with moto and what the stand-ins need.
fn python() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terraform-python");
    let python = folder.join("bin/python");
    let requirements = repository("tests/terraform/requirements.txt");
    let new = ["-m", "venv", "--system-site-packages", text(&folder)];
    let install = ["-m", "pip", "install", "--quiet", "--requirement", text(&requirements)];
    for (program, arguments) in [(Path::new("python3"), new.as_slice()), (&python, &install)] {
        let ended = Command::new(program).args(arguments).output();
        match ended {
            Ok(ended) if ended.status.success() => {}
            Ok(ended) => not_shown(format_args!("no Python with moto: {}", String::from_utf8_lossy(&ended.stderr))),
            Err(error) => not_shown(format_args!("{}: {error}", program.display())),
        }
    }
    python
}

/// A simulated AWS, which ends with the test, and a folder with the files, from which terraform reaches it.
struct Cloud {
    _moto: Running,
    folder: tempfile::TempDir,
    python: PathBuf,
    endpoint: String,
}

impl Cloud {
    fn start(python: &Path) -> Cloud {
        let folder = scratch();
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let mut moto = Command::new(python);
        moto.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &address.port().to_string()]);
        moto.env("MOTO_AMIS_PATH", repository("tests/terraform/images.json"));
        let moto = Running(moto.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("moto starts"));
        until("moto answers", Duration::from_secs(30), || TcpStream::connect(address).is_ok());
        for file in ["main.tf", "variables.tf", "outputs.tf"] {
            let from = repository("deploy/terraform/aws").join(file);
            std::fs::copy(from, folder.path().join(file)).expect("copied");
        }
        stand_ins(python, folder.path());
        let key = ["-q", "-t", "ed25519", "-N", "", "-f", text(&folder.path().join("key"))].map(str::to_owned);
        assert!(Command::new("ssh-keygen").args(key).status().expect("ssh-keygen runs").success());
        Cloud { _moto: moto, folder, python: python.to_owned(), endpoint: format!("http://{address}") }
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Ended {
        let folder = self.folder.path();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("CHECKPOINT_DISABLE", "1").env("HOME", folder);
        command.env("TF_CLI_CONFIG_FILE", folder.join("terraform.rc")).env("AWS_ENDPOINT_URL", &self.endpoint);
        command.env("AWS_ACCESS_KEY_ID", "simulated").env("AWS_SECRET_ACCESS_KEY", "simulated");
        run_within(&mut command, LONG)
    }

    fn terraform(&self, line: &str) -> Ended {
        self.command(Path::new("terraform"), &words(line))
    }

    /// A command with the variables.
    fn with_variables(&self, line: &str, document: &str) -> Ended {
        let variables = "-var ssh_from=203.0.113.99/32 -var ssh_public_key=key.pub -var document=";
        self.terraform(&format!("{line} -input=false -no-color {variables}{document}"))
    }

    /// Everything that there is in a region.
    fn left(&self, region: &str) -> BTreeMap<String, Vec<Value>> {
        let ended = self.command(&self.python, &[text(&repository("tests/terraform/provider.py")), "left", region]);
        ended.expect(0);
        serde_json::from_value(ended.json()).expect("lists by kind")
    }
}

/// The providers, and a configuration by which terraform takes them from there.
fn stand_ins(python: &Path, folder: &Path) {
    let script = std::fs::read_to_string(repository("tests/terraform/provider.py")).expect("read");
    let mirror = folder.join("mirror");
    let platform = if cfg!(target_arch = "aarch64") { "linux_arm64" } else { "linux_amd64" };
    for (name, version) in [("aws", "5.0.0"), ("tls", "4.0.0")] {
        let place = mirror.join(format!("registry.terraform.io/hashicorp/{name}/{version}/{platform}"));
        std::fs::create_dir_all(&place).expect("made");
        let program = place.join(format!("terraform-provider-{name}_v{version}"));
        std::fs::write(&program, format!("#!{}\n{script}", python.display())).expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("executable");
    }
    let rc = format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror:?}\n  }}\n}}\n");
    std::fs::write(folder.join("terraform.rc"), rc).expect("written");
}

fn cloud(python: &Path) -> Cloud {
    match Command::new("terraform").arg("version").output() {
        Ok(version) if version.status.success() => {}
        _ => not_shown("no terraform in PATH"),
    }
    let cloud = Cloud::start(python);
    cloud.terraform("init -input=false -no-color").expect(0);
    cloud
}

/// Every document's machines are made as its files say, are a topology that weir reads, and are gone afterwards.
#[test]
fn machines_are_made_and_nothing_is_left() {
    let python = python();
    for (document, about) in documents() {
        let cloud = cloud(&python);
        cloud.with_variables("plan -detailed-exitcode", &document).expect(2);
        cloud.with_variables("apply -auto-approve", &document).expect(0);
        cloud.with_variables("plan -detailed-exitcode", &document).expect(0);
        let hosts = cloud.terraform("output -raw -no-color hosts_toml").stdout;
        let keys = cloud.terraform("output -raw -no-color known_hosts").stdout;
        let topology = Topology::parse("hosts.toml", &hosts).unwrap_or_else(|error| panic!("{document}: {error:?}"));
        let region = about["region"].as_str().unwrap_or("us-east-1");
        let made = cloud.left(region);
        assert_eq!(["vpcs", "gateways", "groups", "keys"].map(|kind| made[kind].len()), [1; 4], "{document}");
        let machines = &made["machines"];
        let wanted: BTreeMap<String, Value> =
            serde_json::from_value(about["machines"].clone()).expect("machines by name");
        assert_eq!((machines.len(), topology.hosts().len()), (wanted.len(), wanted.len()), "{document}");
        for (host, (name, wanted)) in topology.hosts().iter().zip(&wanted) {
            let tag = format!("weir-{name}");
            let machine = machines.iter().find(|machine| machine["tags"]["Name"] == tag.as_str());
            let machine = machine.unwrap_or_else(|| panic!("{document}: no {tag}"));
            let Reach::Ssh { destination, .. } = &host.reach else { panic!("{host:?}") };
            let public = destination.strip_prefix("admin@").expect("Debian's user");
            assert_eq!((host.name.as_str(), public), (name.as_str(), machine["public"].as_str().expect("an address")));
            assert_eq!(host.address.expect("an address").to_string(), machine["private"].as_str().expect("an address"));
            assert_eq!((&machine["type"], &machine["tags"]["Document"]), (&wanted["type"], &Value::from(&*document)));
            let disk = wanted["disk"].as_u64().unwrap_or(30);
            assert_eq!(machine["disks"], Value::from(vec![disk]), "{document} {name}");
            // Neither an older Debian nor somebody else's image of that name.
            assert_eq!(machine["image"], "ami-0debian12000000000");
            let starts = machine["user_data"].as_str().expect("a text");
            let minutes = about["hours"].as_u64().expect("hours") * 60;
            assert!(starts.contains(&format!("\n  - shutdown -h +{minutes}\n")), "{starts}");
            assert_eq!(machine["at_shutdown"], "terminate");
            let key = keys.lines().find_map(|line| line.strip_prefix(&format!("{public} "))).expect("its key");
            assert!(starts.contains(&format!("  ed25519_public: {key}\n")), "{starts}");
        }
        cloud.with_variables("destroy -auto-approve", &document).expect(0);
        let left = cloud.left(region);
        assert!(left.len() == 6 && left.values().all(Vec::is_empty), "{document}: {left:?}");
    }
}

#[test]
fn nobody_else_is_let_in() {
    let cloud = cloud(&python());
    for (from, right) in [("0.0.0.0/0", false), ("here", false), ("203.0.113.7/32", true)] {
        let line = format!(
            "plan -input=false -no-color -var document=easegress -var ssh_public_key=key.pub -var ssh_from={from}"
        );
        let ended = cloud.terraform(&line);
        assert_eq!(ended.status.success(), right, "{from}: {ended:?}");
    }
}
