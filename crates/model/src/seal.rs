//! Seals a folder of records: `SHA256SUMS` has the hash of each file, as `sha256sum -c` reads it. The lab seals a run's files and each
//! trial when they are final; whoever reads them checks. It does not know what the files say.
//!
//! A seal shows a file that was edited, damaged or lost. It does not stop somebody who also writes the seal anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// Name of the seal in its folder.
pub const FILE: &str = "SHA256SUMS";

/// The hashes of files by their paths in the folder, with `/` between their parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seal(BTreeMap<String, String>);

/// What is wrong with a sealed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Its path in the folder.
    pub file: String,
    /// What is wrong, in words.
    pub why: String,
}

impl Seal {
    /// The seal of all regular files below a folder, but those of which `leave_out` says so by their path in it, private keys (a folder is
    /// sealed, and published without them), and the seal itself. Links are not followed.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of_folder(folder: &Path, leave_out: &dyn Fn(&str) -> bool) -> io::Result<Seal> {
        let mut seal = Seal::default();
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            for entry in std::fs::read_dir(folder.join(&below))? {
                let entry = entry?;
                let path = below.join(entry.file_name());
                let (kind, name) = (entry.file_type()?, in_words(&path));
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() && name != FILE && !name.ends_with(".pem") && !leave_out(&name) {
                    seal.0.insert(name, hash_of(File::open(entry.path())?)?);
                }
            }
        }
        Ok(seal)
    }

    /// Adds a file that is not there yet.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        self.0.insert(name.to_owned(), format!("{:x}", Sha256::digest(bytes)));
    }

    /// As in the file: a line for each, sorted.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect()
    }

    /// Reads what [`Seal::to_text`] wrote.
    ///
    /// # Errors
    /// The first line that is none, in words.
    pub fn parse(text: &str) -> Result<Seal, String> {
        let line = |(at, line): (usize, &str)| {
            let found = line.split_once("  ").filter(|(hash, name)| {
                let inside = !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
                hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && inside
            });
            let (hash, name) = found.ok_or_else(|| format!("line {}: not a hash and a file's name", at + 1))?;
            Ok((name.to_owned(), hash.to_ascii_lowercase()))
        };
        text.lines().enumerate().map(line).collect::<Result<_, _>>().map(Seal)
    }

    /// The seal of a folder; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read, in words.
    pub fn read(folder: &Path) -> Result<Option<Seal>, String> {
        match crate::regular::read_text(&folder.join(FILE)) {
            Ok(text) => Seal::parse(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Leaves out the files of which `keep` does not say so.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| keep(name));
    }

    /// Whether the seal has this file.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The sealed files that are not as they were.
    pub fn flaws(&self, folder: &Path) -> Vec<Flaw> {
        let flaw = |(name, hash): (&String, &String)| {
            let now = crate::regular::open_of_any_size(&folder.join(name)).and_then(hash_of);
            let why = match now {
                Ok(now) if now == *hash => return None,
                Ok(_) => "it is not as weir wrote it: its SHA-256 is another one".to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => "it is missing, and was there".to_owned(),
                Err(error) => error.to_string(),
            };
            Some(Flaw { file: name.clone(), why })
        };
        self.0.iter().filter_map(flaw).collect()
    }
}

/// A path with `/` between its parts.
pub fn in_words(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// SHA-256 of a file, in lower-case hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn hash_of(mut file: File) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// SHA-256 over names, lengths and contents of files, in lower-case hexadecimal digits. The files come in the order of their names.
pub fn hash_of_files<'f>(files: impl IntoIterator<Item = (&'f str, &'f [u8])>) -> String {
    let mut hash = Sha256::new();
    for part in files.into_iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes]) {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    format!("{:x}", hash.finalize())
}

/// What is wrong in a folder that was sealed with the file `needed` in it, such as a trial with its record. A folder without a seal is
/// taken as it is where it need not be `sealed`.
pub fn flaws_in(folder: &Path, needed: &str, sealed: bool) -> Vec<Flaw> {
    let flaw = |file: &str, why: String| vec![Flaw { file: file.to_owned(), why }];
    match Seal::read(folder) {
        Ok(Some(seal)) if seal.has(needed) => seal.flaws(folder),
        Ok(Some(seal)) => [seal.flaws(folder), flaw(needed, format!("{FILE} does not have it"))].concat(),
        Ok(None) if sealed => {
            flaw(FILE, "it is missing: nothing shows that the rest is as weir wrote it, for it has no seal".to_owned())
        }
        Ok(None) => Vec::new(),
        Err(why) => flaw(FILE, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with two files, one of them below, a key, and a link out of it.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-seal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("product")).expect("made");
        std::fs::write(folder.join("measurement.json"), "{}").expect("written");
        std::fs::write(folder.join("product/proxy.conf"), "listen").expect("written");
        std::fs::write(folder.join("product/key.pem"), "secret").expect("written");
        std::fs::write(folder.join("growing.log"), "a").expect("written");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/dev/zero", folder.join("link")).expect("linked");
        folder
    }

    #[test]
    fn an_edit_a_loss_and_nothing_else_is_a_flaw() {
        let folder = folder("flaws");
        let mut seal = Seal::of_folder(&folder, &|name| name == "growing.log").expect("sealed");
        seal.add("later.json", b"[1]");
        let text = seal.to_text();
        let names: Vec<&str> = text.lines().map(|line| &line[66..]).collect();
        assert_eq!(names, ["later.json", "measurement.json", "product/proxy.conf"]);
        assert!(text.contains("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a  measurement.json"));
        std::fs::write(folder.join(FILE), &text).expect("written");
        std::fs::write(folder.join("later.json"), "[1]").expect("written");
        std::fs::write(folder.join("growing.log"), "ab").expect("grown");
        std::fs::remove_file(folder.join("product/key.pem")).expect("removed");
        let read = Seal::read(&folder).expect("a seal").expect("there");
        assert_eq!((&read, read.flaws(&folder)), (&seal, vec![]));
        std::fs::write(folder.join("measurement.json"), "{ }").expect("edited");
        std::fs::remove_file(folder.join("product/proxy.conf")).expect("removed");
        let flaws = read.flaws(&folder);
        assert_eq!(
            flaws.iter().map(|flaw| flaw.file.as_str()).collect::<Vec<_>>(),
            ["measurement.json", "product/proxy.conf"]
        );
        assert!(flaws[0].why.contains("not as weir wrote it") && flaws[1].why.contains("missing"), "{flaws:?}");
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn names_and_contents_of_files_do_not_run_together() {
        let hash = |files: &[(&str, &str)]| hash_of_files(files.iter().map(|(name, text)| (*name, text.as_bytes())));
        let all =
            [hash(&[("a", "b")]), hash(&[("ab", "")]), hash(&[("", "ab")]), hash(&[("a", ""), ("", "b")]), hash(&[])];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }

    #[test]
    fn a_seal_names_files_inside_its_folder_alone() {
        let hash = "0".repeat(64);
        assert!(Seal::parse(&format!("{hash}  a/b.json\n")).is_ok_and(|seal| seal.has("a/b.json")));
        for name in ["/etc/passwd", "../x", "a/../../x", "", "a//b", "."] {
            let said = Seal::parse(&format!("{hash}  fine\n{hash}  {name}\n")).expect_err(name);
            assert!(said.contains("line 2"), "{said}");
        }
        for line in ["x", "abc  file", &format!("{}  file", "g".repeat(64))] {
            Seal::parse(line).expect_err(line);
        }
        assert_eq!(Seal::read(Path::new("/no/such/folder")), Ok(None));
    }
}
