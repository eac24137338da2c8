//! Transports: how an agent on another host is started. A transport is an argument vector and nothing else; what runs it (a
//! shell, OpenSSH, kubectl, srun) is the user's, with the user's configuration. [`Reach`] says which one a host has.
//!
//! A host that does not share this machine's disk has no weir yet: there the vector ends in a small shell script, the
//! *bootstrap*, which takes weir's binary from its standard input unless it has it from before, and becomes the agent.
//! [`crate::agent`] speaks to what was started. This module does not know what is said.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use weir_model::topology::Reach;

use crate::files::FileError;
use crate::netns;

/// Where weir lies in a pod; an init container puts it there.
pub const WEIR_IN_POD: &str = "/weir/weir";

/// weir's binary, as it is to be on the other host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The file on this machine.
    pub path: PathBuf,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// What it runs on, as `uname -sm` says it: `Linux x86_64`.
    pub machine: String,
}

impl Binary {
    /// Reads a binary.
    ///
    /// # Errors
    /// When it cannot be read, or is no program for a machine that weir knows.
    pub fn of(path: &Path) -> Result<Binary, FileError> {
        let at = || FileError::at(path);
        let bytes = std::fs::read(path).map_err(at())?;
        let unknown = || at()(std::io::Error::other("it is no Linux program for x86_64 or aarch64"));
        let machine = machine(&bytes).ok_or_else(unknown)?;
        let sha256 = format!("{:x}", Sha256::digest(&bytes));
        Ok(Binary { path: path.to_owned(), sha256, size: bytes.len() as u64, machine: format!("Linux {machine}") })
    }
}

/// The machine in the header of an ELF file (elf(5)), little endian, 64 bits.
fn machine(bytes: &[u8]) -> Option<&'static str> {
    match (bytes.get(..6)?, bytes.get(18..20)?) {
        (b"\x7fELF\x02\x01", [0x3e, 0]) => Some("x86_64"),
        (b"\x7fELF\x02\x01", [0xb7, 0]) => Some("aarch64"),
        _ => None,
    }
}

/// Whether files of this machine are there, too.
pub fn shares_disk(reach: &Reach) -> bool {
    matches!(reach, Reach::Local | Reach::Namespace(_))
}

/// Whether weir's binary has to be taken there: the vector then runs the bootstrap.
pub fn copies(reach: &Reach) -> bool {
    matches!(reach, Reach::Ssh { .. } | Reach::Command(_))
}

/// The argument vector that starts `weir agent` on a host. Empty for one that is not made yet.
pub fn vector(reach: &Reach, weir: &Binary) -> Vec<String> {
    let own = weir.path.display().to_string();
    let (sha256, size) = (weir.sha256.as_str(), weir.size.to_string());
    let bootstrap = || ["sh", "-c", BOOTSTRAP, "weir", sha256, &size].map(str::to_owned);
    let option =
        |flag: &str, value: &Option<String>| value.iter().flat_map(|value| words(&[flag, value])).collect::<Vec<_>>();
    match reach {
        Reach::Made => Vec::new(),
        Reach::Local => words(&[&own, "agent"]),
        Reach::Namespace(name) => [netns::enter(name), words(&[&own, "agent"])].concat(),
        Reach::Ssh { destination, config } => {
            let mut vector = words(&["ssh", "-T"]);
            vector.extend(SSH_OPTIONS.iter().flat_map(|option| words(&["-o", option])));
            vector.extend(option("-F", &config.as_ref().map(|file| file.display().to_string())));
            // The login shell over there reads what ssh joins with blanks; so it gets one word for one word.
            vector.extend(words(&["--", destination, &command_line(&bootstrap())]));
            vector
        }
        Reach::Pod { name, namespace, container, context } => [
            words(&["kubectl"]),
            option("--context", context),
            words(&["-n", namespace, "exec", "-i", name]),
            option("-c", container),
            words(&["--", WEIR_IN_POD, "agent"]),
        ]
        .concat(),
        Reach::Command(command) => command.iter().cloned().chain(bootstrap()).collect(),
    }
}

/// No questions, no unknown host keys, and an end when the network is gone.
const SSH_OPTIONS: [&str; 4] =
    ["BatchMode=yes", "StrictHostKeyChecking=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3"];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// An argument vector as one line that a shell reads back as the same words, and that a person can paste.
pub fn command_line(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    let word = |argument: &String| match argument.chars().all(plain) && !argument.is_empty() {
        true => argument.clone(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// First word of the lines that the bootstrap writes. A login shell may write others before them.
pub const BOOTSTRAP_WORD: &str = "weir-bootstrap";

/// The bootstrap. `$1` is the SHA-256 of weir's binary and `$2` its size. It says `weir-bootstrap have Linux x86_64`, or
/// `want` and then reads the binary; `weir-bootstrap ready`; and becomes the agent. Nothing may be sent to it before that word
/// but the binary, because what reads it may read ahead.
///
/// The name of what is being copied is nobody else's: machines of a cluster may have one home, and equal process numbers. A copy that
/// another of them was quicker with stays: agents run from it, and start supervisors by its path.
///
/// One line without single quotes and exclamation marks, because the login shell that hands it to `sh` may be csh or fish.
pub const BOOTSTRAP: &str = concat!(
    r#"d=${WEIR_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}/bin; f=$d/weir-$1; t=; "#,
    r#"same() { test "$(sha256sum <"$1" 2>/dev/null | cut -c1-64)" = "$2"; }; "#,
    r#"if test -x "$f" && same "$f" "$1"; then echo "weir-bootstrap have $(uname -sm)"; else "#,
    r#"echo "weir-bootstrap want $(uname -sm)"; u=$(umask); umask 077; "#,
    r#"mkdir -p "$d" && t=$(mktemp "$f.XXXXXX") && head -c "$2" >"$t" && same "$t" "$1" && chmod 700 "$t" && "#,
    r#"{ { ln "$t" "$f" 2>/dev/null || same "$f" "$1"; } && rm -f "$t" || mv "$t" "$f"; } || "#,
    r#"{ rm -f "$t"; echo "weir was not copied whole to $f" >&2; exit 3; }; umask "$u"; fi; "#,
    r#""$f" --version </dev/null >/dev/null || { echo "weir does not run there. Where its C library is missing or too "#,
    r#"old, one runs that make dist has built" >&2; exit 3; }; "#,
    r#"echo "weir-bootstrap ready"; exec "$f" agent"#
);

/// Where the bootstrap puts weir on this machine, for this user.
pub fn bin_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable("WEIR_HOME").or_else(|| Some(cache()?.join("weir"))).map(|home| home.join("bin"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Output, Stdio};

    use proptest::prelude::*;

    use super::*;

    fn binary() -> Binary {
        Binary { path: "/opt/weir".into(), sha256: "ab12".into(), size: 7, machine: "Linux x86_64".into() }
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let argv = ["nginx", "-g", "daemon off;", "it's"].map(String::from);
        assert_eq!(command_line(&argv), r"nginx -g 'daemon off;' 'it'\''s'");
    }

    #[test]
    fn each_transport_is_its_vector() {
        let vector = |reach: Reach| super::vector(&reach, &binary()).join(" ");
        assert_eq!(vector(Reach::Local), "/opt/weir agent");
        assert_eq!(vector(Reach::Namespace("n1".into())), "nsenter --net=/run/netns/n1 -- /opt/weir agent");
        let ssh = vector(Reach::Ssh { destination: "bench@h".into(), config: Some("/c".into()) });
        let before = "ssh -T -o BatchMode=yes -o StrictHostKeyChecking=yes -o ServerAliveInterval=5 \
                      -o ServerAliveCountMax=3 -F /c -- bench@h sh -c 'd=";
        assert!(ssh.starts_with(before), "{ssh}");
        assert!(ssh.ends_with("agent' weir ab12 7"), "{ssh}");
        let pod = Reach::Pod {
            name: "p".into(),
            container: Some("c".into()),
            namespace: "n".into(),
            context: Some("k".into()),
        };
        assert_eq!(vector(pod), "kubectl --context k -n n exec -i p -c c -- /weir/weir agent");
        let any = super::vector(&Reach::Command(words(&["srun", "-u"])), &binary());
        assert_eq!(super::vector(&Reach::Made, &binary()), [] as [String; 0]);
        assert_eq!(any[..4], ["srun", "-u", "sh", "-c"]);
        assert_eq!(any[4..], [BOOTSTRAP, "weir", "ab12", "7"]);
    }

    #[test]
    fn a_binary_is_read_with_its_machine() {
        let own = Binary::of(&std::env::current_exe().expect("a test")).expect("a program");
        assert_eq!((own.machine, own.sha256.len()), (uname(), 64));
        let refused = Binary::of(Path::new("/etc/passwd")).expect_err("a text").to_string();
        assert_eq!(refused, "/etc/passwd: it is no Linux program for x86_64 or aarch64");
        let mut other = b"\x7fELF\x02\x01".to_vec();
        other.resize(18, 0);
        assert_eq!(machine(&other), None);
        other.extend([0xb7, 0]);
        assert_eq!(machine(&other), Some("aarch64"));
    }

    #[test]
    fn the_bootstrap_is_one_word_for_any_shell() {
        assert!(!BOOTSTRAP.contains(['\'', '!', '\n']), "{BOOTSTRAP}");
        assert!(BOOTSTRAP.contains(BOOTSTRAP_WORD));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_reads_the_words_that_were_quoted(argv in proptest::collection::vec("[^\0]{0,20}", 1..5)) {
            let line = format!("printf '%s\\0' {}", command_line(&argv));
            let output = Command::new("sh").args(["-c", &line]).output().expect("sh runs");
            let read = String::from_utf8(output.stdout).expect("text");
            let read: Vec<&str> = read.split_terminator('\0').collect();
            prop_assert_eq!(read, argv);
        }
    }

    /// Runs the bootstrap as a transport of commands does, with these bytes as its input.
    fn bootstrap(home: &Path, weir: &Binary, input: &[u8], env: &[(&str, &str)]) -> Output {
        let vector = super::vector(&Reach::Command(Vec::new()), weir);
        let mut command = Command::new(&vector[0]);
        command.args(&vector[1..]).env("WEIR_HOME", home).envs(env.iter().copied());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
        let mut stdin = child.stdin.take().expect("a pipe");
        // It may have refused and gone.
        let _ = stdin.write_all(input);
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// A program in weir's place, which says how it was called and what came behind it.
    fn program() -> (Vec<u8>, Binary) {
        program_of("echo \"called: $*, umask $(umask)\"; cat")
    }

    fn program_of(script: &str) -> (Vec<u8>, Binary) {
        let text = format!("#!/bin/sh\n{script}\n").into_bytes();
        let mut sha256 = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there");
        sha256.stdin.take().expect("a pipe").write_all(&text).expect("written");
        let said = sha256.wait_with_output().expect("it ends").stdout;
        let sha256 = String::from_utf8_lossy(&said[..64]).into_owned();
        let size = text.len() as u64;
        (text, Binary { path: "/opt/weir".into(), sha256, size, machine: uname() })
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn own_umask() -> String {
        text(&Command::new("sh").args(["-c", "umask"]).output().expect("sh").stdout).trim().to_owned()
    }

    fn uname() -> String {
        text(&Command::new("uname").arg("-sm").output().expect("there").stdout).trim().to_owned()
    }

    #[test]
    fn a_binary_is_copied_once_and_used_from_then_on() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (bytes, weir) = program();
        let first = bootstrap(home.path(), &weir, &bytes, &[]);
        let uname = uname();
        // What an agent writes has the same rights, whether its binary was copied just before or not.
        let called = format!("called: agent, umask {}", own_umask());
        let said = format!("weir-bootstrap want {uname}\nweir-bootstrap ready\n{called}\n");
        assert_eq!(text(&first.stdout), said, "{}", text(&first.stderr));
        let file = home.path().join(format!("bin/weir-{}", weir.sha256));
        assert_eq!(std::fs::read(&file).expect("copied"), bytes);
        let again = bootstrap(home.path(), &weir, b"for the agent\n", &[]);
        let said = format!("weir-bootstrap have {uname}\nweir-bootstrap ready\n{called}\nfor the agent\n");
        assert_eq!(text(&again.stdout), said);
        // One that somebody changed is copied again.
        std::fs::write(&file, "#!/bin/sh\necho mallory\n").expect("written");
        let third = bootstrap(home.path(), &weir, &bytes, &[]);
        assert_eq!(text(&third.stdout), text(&first.stdout));
    }

    #[test]
    fn a_copy_that_another_machine_with_this_home_was_quicker_with_stays() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let home = tempfile::tempdir().expect("a temporary folder");
        let (bytes, weir) = program();
        let (programs, quicker) = (home.path().join("programs"), home.path().join("quicker"));
        std::fs::create_dir(&programs).expect("made");
        std::fs::write(&quicker, &bytes).expect("written");
        // Between the question whether it is there and its own copy, the other's appears.
        let script = format!("#!/bin/sh\nmv {} \"${{1%.XXXXXX}}\"\nexec /usr/bin/mktemp \"$1\"\n", quicker.display());
        std::fs::write(programs.join("mktemp"), script).expect("written");
        std::fs::set_permissions(programs.join("mktemp"), PermissionsExt::from_mode(0o755)).expect("set");
        std::fs::set_permissions(&quicker, PermissionsExt::from_mode(0o700)).expect("set");
        let inode = std::fs::metadata(&quicker).expect("there").ino();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
        let output = bootstrap(home.path(), &weir, &bytes, &[("PATH", &path)]);
        assert!(text(&output.stdout).contains("weir-bootstrap ready"), "{}", text(&output.stderr));
        let files: Vec<_> = std::fs::read_dir(home.path().join("bin")).expect("made").flatten().collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(file.metadata().expect("there").ino(), inode);
    }

    #[test]
    fn a_binary_that_does_not_arrive_whole_is_not_kept() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (mut bytes, weir) = program();
        bytes[20] ^= 1;
        for sent in [&bytes[..], &bytes[..10]] {
            let output = bootstrap(home.path(), &weir, sent, &[]);
            assert_eq!(output.status.code(), Some(3));
            let said = text(&output.stderr);
            assert!(said.contains("weir was not copied whole to") && said.contains(&weir.sha256), "{said}");
            assert!(!text(&output.stdout).contains("ready"));
        }
        assert_eq!(std::fs::read_dir(home.path().join("bin")).expect("made").count(), 0, "nothing is left");
    }

    #[test]
    fn a_binary_that_does_not_run_there_is_said() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (bytes, weir) = program_of("echo \"version GLIBC_2.99 not found\" >&2; exit 1");
        let output = bootstrap(home.path(), &weir, &bytes, &[]);
        assert_eq!((output.status.code(), text(&output.stdout).contains("ready")), (Some(3), false));
        let said = text(&output.stderr);
        assert!(said.starts_with("version GLIBC_2.99 not found\nweir does not run there."), "{said}");
        assert!(said.contains("make dist"), "{said}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_said() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let file = home.path().join("file");
        std::fs::write(&file, "").expect("written");
        let (bytes, weir) = program();
        let output = bootstrap(&file, &weir, &bytes, &[]);
        assert!(text(&output.stderr).contains("Not a directory"), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(3));
        // Without a name for it, weir goes into the user's cache.
        let home = home.path().display().to_string();
        let output = bootstrap(Path::new(""), &weir, &bytes, &[("HOME", &home), ("XDG_CACHE_HOME", "")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(Path::new(&home).join(format!(".cache/weir/bin/weir-{}", weir.sha256)).exists());
    }
}
