//! The run folder: a finished trial stays, whatever happens next. [`crate::run`] calls it.
//!
//! A trial is finished when its `measurement.json` exists; that file appears by rename, complete and on the disk, after the
//! seal (`SHA256SUMS`) of it and of the trial's other files. Nothing measured is ever rewritten or removed: a trial that is measured again,
//! because its files are not as they were or because it failed, is moved to `set-aside/` first. `measurements.csv` is made from the trials.
//!
//! This module does not know what a measurement means.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use weir_host::Storage;
use weir_host::files::{FileError, pretty};
use weir_model::record::{Measurement, Verdict};
use weir_model::regular;
use weir_model::row::{COLUMNS, FILE as CSV, row};
use weir_model::seal::{self, Seal};

/// A run folder, locked against a second weir.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    storage: Arc<dyn Storage>,
    set_aside: Vec<SetAside>,
    /// Held for as long as the run executes.
    lock: File,
}

/// A finished trial that will be measured again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it is now, from the run's folder.
    pub folder: String,
    /// Why, in words.
    pub why: String,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or folder cannot be read or written.
    #[error(transparent)]
    Io(#[from] FileError),
    /// The folder is not empty.
    #[error(
        "{0} exists and is not empty\n  expected: a new folder, or `weir run --resume {0}` to go on with what is there"
    )]
    Exists(String),
    /// The folder is not a run folder.
    #[error("{0} is not a run folder: there is no run.toml in it")]
    NotARun(String),
    /// Another weir holds the lock.
    #[error("another weir is carrying out the run in {0}")]
    Busy(String),
    /// The conditions have changed since the run began.
    #[error("{folder}: this run cannot go on: {why}", folder = .folder.display())]
    Changed {
        /// Its folder.
        folder: PathBuf,
        /// What is different, and what would be right.
        why: String,
    },
    /// A file that does not say what it should.
    #[error("{path}: {why}", path = .path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

const MEASUREMENT: &str = "measurement.json";
const TRIALS: &str = "trials";
const ASIDE: &str = "set-aside";
const LOCK: &str = ".lock";

impl Journal {
    /// Makes a new run folder with its fixed files, or leaves nothing behind.
    ///
    /// # Errors
    /// When the folder is not empty or cannot be written.
    pub fn create(dir: &Path, files: &[(&str, Vec<u8>)], storage: Arc<dyn Storage>) -> Result<Journal, JournalError> {
        let made = !dir.exists();
        if !made && std::fs::read_dir(dir).map_err(|e| io(dir, e))?.next().is_some() {
            return Err(JournalError::Exists(dir.display().to_string()));
        }
        storage.create_dir(dir).map_err(|e| io(dir, e))?;
        let lock = locked(dir, storage.as_ref())?;
        // Between the look above and the lock another weir may have been here, and done.
        if std::fs::read_dir(dir).map_err(|e| io(dir, e))?.flatten().any(|e| e.file_name() != LOCK) {
            return Err(JournalError::Exists(dir.display().to_string()));
        }
        Journal::write_files(dir, lock, files, Arc::clone(&storage)).inspect_err(|_| {
            for name in files.iter().map(|(name, _)| *name).chain([CSV, LOCK, seal::FILE, TRIALS]) {
                let _ = storage.remove(&dir.join(name));
            }
            // Others may have put something there meanwhile.
            if made && std::fs::read_dir(dir).is_ok_and(|mut left| left.next().is_none()) {
                let _ = storage.remove(dir);
            }
        })
    }

    fn write_files(
        dir: &Path,
        lock: File,
        files: &[(&str, Vec<u8>)],
        storage: Arc<dyn Storage>,
    ) -> Result<Journal, JournalError> {
        storage.create_dir(&dir.join(TRIALS)).map_err(|e| io(dir, e))?;
        let journal = Journal::with_lock(dir, lock, storage)?;
        let mut seal = Seal::default();
        files.iter().for_each(|(name, bytes)| seal.add(name, bytes));
        journal.write_once(seal::FILE, seal.to_text().as_bytes())?;
        for (name, bytes) in files {
            journal.write_once(name, bytes)?;
        }
        Ok(journal)
    }

    /// Opens the folder of a run that was cut off. Trials whose files are not as weir wrote them, and with `retry_errors` those that failed,
    /// are set aside.
    ///
    /// # Errors
    /// When it is none, is in use, or cannot be read, and when the run's own files are not as they were.
    pub fn open(dir: &Path, retry_errors: bool, storage: Arc<dyn Storage>) -> Result<Journal, JournalError> {
        if !dir.join("run.toml").is_file() {
            return Err(JournalError::NotARun(dir.display().to_string()));
        }
        let mut journal = Journal::with_lock(dir, locked(dir, storage.as_ref())?, storage)?;
        journal.check_run()?;
        journal.set_aside(retry_errors)?;
        journal.write_rows()?;
        Ok(journal)
    }

    fn with_lock(dir: &Path, lock: File, storage: Arc<dyn Storage>) -> Result<Journal, JournalError> {
        // Canonical, so that what is rendered for a product holds wherever it is started.
        let dir = dir.canonicalize().map_err(|e| io(dir, e))?;
        let csv = dir.join(CSV);
        storage.append(&csv, &[]).map_err(|e| io(&csv, e))?;
        Ok(Journal { dir, storage, set_aside: Vec::new(), lock })
    }

    /// The run's own files must be as they were when it began.
    fn check_run(&self) -> Result<(), JournalError> {
        let path = self.dir.join(seal::FILE);
        let seal = match Seal::read(&self.dir) {
            Ok(Some(seal)) => seal,
            Ok(None) => return Err(JournalError::Broken { path, why: "it is missing".to_owned() }),
            Err(why) => return Err(JournalError::Broken { path, why }),
        };
        let Some(flaw) = seal.flaws(&self.dir).into_iter().next() else { return Ok(()) };
        let why = format!(
            "{}: {}\n  expected: undo the change, or begin a new run with `weir run <folder>/run.toml`",
            flaw.file, flaw.why
        );
        Err(JournalError::Changed { folder: self.dir.clone(), why })
    }

    /// Moves finished trials that have to be measured again out of the way.
    fn set_aside(&mut self, retry_errors: bool) -> Result<(), JournalError> {
        for folder in self.folders_of_finished()? {
            let why = match intact(&folder) {
                Err(why) => why,
                Ok(measurement) if retry_errors && measurement.verdict == Verdict::Error => {
                    let message = measurement.error.map(|error| error.message).unwrap_or_default();
                    format!("it failed: {message}")
                }
                Ok(_) => continue,
            };
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let aside = self.dir.join(ASIDE);
            self.storage.create_dir(&aside).map_err(|e| io(&aside, e))?;
            let to = (1..)
                .map(|nth| aside.join(if nth == 1 { name.clone() } else { format!("{name}.{nth}") }))
                .find(|to| !to.exists())
                .unwrap_or_else(|| aside.join(&name));
            self.storage.rename(&folder, &to).map_err(|e| io(&to, e))?;
            let to = to.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.set_aside.push(SetAside { folder: format!("{ASIDE}/{to}"), why });
        }
        Ok(())
    }

    /// What was set aside when the folder was opened.
    pub fn was_set_aside(&self) -> &[SetAside] {
        &self.set_aside
    }

    /// The disk that it is on.
    pub fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    /// The folder, absolute.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a file that must not exist yet; complete or absent, never half.
    ///
    /// # Errors
    /// When it exists or the system refuses.
    pub fn write_once(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        self.write_whole(&self.dir.join(name), bytes)
    }

    /// Reads one of the run's JSON files; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read or is not what it should be.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, JournalError> {
        let path = self.dir.join(name);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = regular::read(&path).map_err(|e| io(&path, e))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|e| JournalError::Broken { path, why: e.to_string() })
    }

    /// An empty folder for a trial. What an unfinished attempt left there is removed.
    ///
    /// # Errors
    /// When the trial is finished already, or the system refuses.
    pub fn trial_folder(&self, name: &str) -> Result<PathBuf, JournalError> {
        let path = self.dir.join(TRIALS).join(name);
        if path.join(MEASUREMENT).exists() {
            return Err(JournalError::Broken { path, why: "this trial is finished and is never run again".to_owned() });
        }
        if path.exists() {
            self.storage.remove(&path).map_err(|e| io(&path, e))?;
        }
        self.is_there()?;
        self.storage.create_dir(&path).map_err(|e| io(&path, e))?;
        Ok(path)
    }

    /// Whether the run's folder is still the one that was locked. Somebody may have removed it, and a trial that was under way have made
    /// folders of the same names again.
    fn is_there(&self) -> Result<(), JournalError> {
        let path = self.dir.join(LOCK);
        let now = path.metadata().map_err(|e| io(&path, e))?;
        let own = self.lock.metadata().map_err(|e| io(&path, e))?;
        match (now.dev(), now.ino()) == (own.dev(), own.ino()) {
            true => Ok(()),
            false => Err(JournalError::Broken { path, why: "somebody has replaced the folder in mid-run".to_owned() }),
        }
    }

    /// Removes the folder of a trial that was given up.
    pub fn forget(&self, folder: &Path) {
        if !folder.join(MEASUREMENT).exists() {
            // What stays behind after a failed removal is unfinished and will be removed when the run is resumed.
            let _ = self.storage.remove(folder);
        }
    }

    /// Makes a trial final: its seal and its measurement on the disk, then its row.
    ///
    /// # Errors
    /// When the system refuses; the trial then counts as not run.
    pub fn finish(&self, folder: &Path, measurement: &Measurement) -> Result<(), JournalError> {
        self.is_there()?;
        self.write_whole(&folder.join("findings.json"), &pretty(&measurement.findings)?)?;
        let text = pretty(measurement)?;
        // What a product that is kept over several trials writes goes on.
        let goes_on = |name: &str| {
            let ongoing = ["product/", "product-", "origin/"].iter().any(|folder| name.starts_with(folder))
                || name.ends_with(".log");
            measurement.kept.is_some() && ongoing
        };
        let mut seal = Seal::of_folder(folder, &goes_on).map_err(|e| io(folder, e))?;
        seal.add(MEASUREMENT, &text);
        self.write_whole(&folder.join(seal::FILE), seal.to_text().as_bytes())?;
        self.write_whole(&folder.join(MEASUREMENT), &text)?;
        self.append(measurement)
    }

    /// Measurements of the finished trials by number.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn finished(&self) -> Result<BTreeMap<u32, Measurement>, JournalError> {
        let read = |folder: PathBuf| {
            let path = folder.join(MEASUREMENT);
            let measurement = measurement(&path).map_err(|why| JournalError::Broken { path, why })?;
            Ok((measurement.trial, measurement))
        };
        self.folders_of_finished()?.into_iter().map(read).collect()
    }

    fn folders_of_finished(&self) -> Result<Vec<PathBuf>, JournalError> {
        let trials = self.dir.join(TRIALS);
        let entries = std::fs::read_dir(&trials).map_err(|e| io(&trials, e))?;
        let folders = entries.flatten().map(|entry| entry.path());
        let mut finished: Vec<PathBuf> = folders.filter(|folder| folder.join(MEASUREMENT).exists()).collect();
        finished.sort();
        Ok(finished)
    }

    fn append(&self, measurement: &Measurement) -> Result<(), JournalError> {
        let path = self.dir.join(CSV);
        let length = path.metadata().map_err(|e| io(&path, e))?.len();
        let bytes = rows(std::iter::once(measurement), length == 0)
            .map_err(|why| JournalError::Broken { path: path.clone(), why })?;
        self.storage.append(&path, &bytes).map_err(|e| io(&path, e))
    }

    /// Writes the rows of all finished trials, where the file does not have exactly these: after a crash, an edit, or when a trial was set
    /// aside.
    fn write_rows(&self) -> Result<(), JournalError> {
        let path = self.dir.join(CSV);
        let all = self.finished()?;
        let wanted = rows(all.values(), true).map_err(|why| JournalError::Broken { path: path.clone(), why })?;
        let now = regular::read(&path).map_err(|e| io(&path, e))?;
        if sorted_lines(&now) == sorted_lines(&wanted) {
            return Ok(());
        }
        self.storage.write(&path, &wanted).map_err(|e| io(&path, e))
    }

    /// Writes to a neighbour and renames: the name never stands for half a file.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
        if path.exists() {
            return Err(io(path, ErrorKind::AlreadyExists.into()));
        }
        let neighbour = path.with_extension("partial");
        let written = self.storage.write(&neighbour, bytes).and_then(|()| self.storage.rename(&neighbour, path));
        written.map_err(|e| {
            let _ = self.storage.remove(&neighbour);
            io(path, e)
        })
    }
}

/// A trial's record, if its files are as they were; else why not.
fn intact(folder: &Path) -> Result<Measurement, String> {
    if let Some(flaw) = seal::flaws_in(folder, MEASUREMENT, true).into_iter().next() {
        return Err(format!("{}: {}", flaw.file, flaw.why));
    }
    measurement(&folder.join(MEASUREMENT)).map_err(|why| format!("{MEASUREMENT}: {why}"))
}

fn measurement(path: &Path) -> Result<Measurement, String> {
    let bytes = regular::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Rows of the CSV file, under their header if there is none before them.
fn rows<'m>(all: impl ExactSizeIterator<Item = &'m Measurement>, header: bool) -> Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if header && all.len() > 0 {
        writer.write_record(COLUMNS.iter().map(|(name, _)| name)).map_err(|e| e.to_string())?;
    }
    for measurement in all {
        writer.write_record(row(measurement)).map_err(|e| e.to_string())?;
    }
    writer.into_inner().map_err(|e| e.to_string())
}

/// A row has no line breaks in its cells, and the order of rows says nothing.
fn sorted_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// The lock of a run folder.
fn locked(dir: &Path, storage: &dyn Storage) -> Result<File, JournalError> {
    let path = dir.join(LOCK);
    let lock = storage.lock(&path).map_err(|e| io(&path, e))?;
    lock.ok_or_else(|| JournalError::Busy(dir.display().to_string()))
}

fn io(path: &Path, error: std::io::Error) -> JournalError {
    FileError::at(path)(error).into()
}
