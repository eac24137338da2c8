//! The run folder: a finished trial stays, whatever happens next. [`crate::run`] calls it.
//!
//! A trial is finished when its `measurement.json` exists; that file appears by rename, complete and on the disk.
//! `measurements.csv` gets its row after that; should weir die between the two, the row is added when the run is
//! resumed. Nothing is ever rewritten: files appear once, or grow.
//!
//! This module does not know what a measurement means.

mod row;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use weir_host::files::{FileError, pretty};
use weir_model::record::Measurement;
use weir_model::regular;

use row::{COLUMNS, TRIAL, row};

/// A run folder, locked against a second weir.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    csv: File,
    /// Held for as long as the run executes.
    _lock: File,
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
const CSV: &str = "measurements.csv";
const TRIALS: &str = "trials";
const LOCK: &str = ".lock";

impl Journal {
    /// Makes a new run folder with its fixed files, or leaves nothing behind.
    ///
    /// # Errors
    /// When the folder is not empty or cannot be written.
    pub fn create(dir: &Path, files: &[(&str, Vec<u8>)]) -> Result<Journal, JournalError> {
        let made = !dir.exists();
        if !made && std::fs::read_dir(dir).map_err(|e| io(dir, e))?.next().is_some() {
            return Err(JournalError::Exists(dir.display().to_string()));
        }
        std::fs::create_dir_all(dir).map_err(|e| io(dir, e))?;
        let lock = locked(dir)?;
        // Between the look above and the lock another weir may have been here, and done.
        if std::fs::read_dir(dir).map_err(|e| io(dir, e))?.flatten().any(|e| e.file_name() != LOCK) {
            return Err(JournalError::Exists(dir.display().to_string()));
        }
        Journal::write_files(dir, lock, files).inspect_err(|_| {
            for name in files.iter().map(|(name, _)| *name).chain([CSV, LOCK]) {
                let _ = std::fs::remove_file(dir.join(name));
            }
            let _ = std::fs::remove_dir(dir.join(TRIALS));
            if made {
                let _ = std::fs::remove_dir(dir);
            }
        })
    }

    fn write_files(dir: &Path, lock: File, files: &[(&str, Vec<u8>)]) -> Result<Journal, JournalError> {
        std::fs::create_dir(dir.join(TRIALS)).map_err(|e| io(dir, e))?;
        let journal = Journal::with_lock(dir, lock)?;
        for (name, bytes) in files {
            journal.write_once(name, bytes)?;
        }
        Ok(journal)
    }

    /// Opens the folder of a run that was cut off.
    ///
    /// # Errors
    /// When it is none, is in use, or cannot be read.
    pub fn open(dir: &Path) -> Result<Journal, JournalError> {
        if !dir.join("run.toml").is_file() {
            return Err(JournalError::NotARun(dir.display().to_string()));
        }
        let mut journal = Journal::with_lock(dir, locked(dir)?)?;
        journal.repair()?;
        Ok(journal)
    }

    fn with_lock(dir: &Path, lock: File) -> Result<Journal, JournalError> {
        // Canonical, so that what is rendered for a product holds wherever it is started.
        let dir = dir.canonicalize().map_err(|e| io(dir, e))?;
        let csv_path = dir.join(CSV);
        let csv = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&csv_path)
            .map_err(|e| io(&csv_path, e))?;
        Ok(Journal { dir, csv, _lock: lock })
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
        write_whole(&self.dir.join(name), bytes)
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
            std::fs::remove_dir_all(&path).map_err(|e| io(&path, e))?;
        }
        std::fs::create_dir_all(&path).map_err(|e| io(&path, e))?;
        Ok(path)
    }

    /// Removes the folder of a trial that was given up.
    pub fn forget(&self, folder: &Path) {
        if !folder.join(MEASUREMENT).exists() {
            // What stays behind after a failed removal is unfinished and will be removed when the run is resumed.
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    /// Makes a trial final: its measurement on the disk, then its row.
    ///
    /// # Errors
    /// When the system refuses; the trial then counts as not run.
    pub fn finish(&mut self, folder: &Path, measurement: &Measurement) -> Result<(), JournalError> {
        write_whole(&folder.join("findings.json"), &pretty(&measurement.findings)?)?;
        write_whole(&folder.join(MEASUREMENT), &pretty(measurement)?)?;
        self.append(measurement)
    }

    /// Measurements of the finished trials by number.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn finished(&self) -> Result<BTreeMap<u32, Measurement>, JournalError> {
        let trials = self.dir.join(TRIALS);
        let mut finished = BTreeMap::new();
        for entry in std::fs::read_dir(&trials).map_err(|e| io(&trials, e))?.flatten() {
            let path = entry.path().join(MEASUREMENT);
            if !path.is_file() {
                continue;
            }
            let bytes = regular::read(&path).map_err(|e| io(&path, e))?;
            let measurement: Measurement = serde_json::from_slice(&bytes)
                .map_err(|e| JournalError::Broken { path: path.clone(), why: e.to_string() })?;
            finished.insert(measurement.trial, measurement);
        }
        Ok(finished)
    }

    fn append(&mut self, measurement: &Measurement) -> Result<(), JournalError> {
        let path = self.dir.join(CSV);
        let length = self.csv.seek(SeekFrom::End(0)).map_err(|e| io(&path, e))?;
        let broken = |why: String| JournalError::Broken { path: path.clone(), why };
        let mut writer = csv::Writer::from_writer(Vec::new());
        let header = if length == 0 { writer.write_record(COLUMNS.iter().map(|(name, _)| name)) } else { Ok(()) };
        header.and_then(|()| writer.write_record(row(measurement))).map_err(|e| broken(e.to_string()))?;
        let bytes = writer.into_inner().map_err(|e| broken(e.to_string()))?;
        self.csv.write_all(&bytes).and_then(|()| self.csv.sync_data()).map_err(|e| io(&path, e))
    }

    /// After a crash: drops a torn last line (a row has no line breaks in its cells), and adds the rows of finished trials that have none.
    fn repair(&mut self) -> Result<(), JournalError> {
        let path = self.dir.join(CSV);
        let mut text = Vec::new();
        self.csv.seek(SeekFrom::Start(0)).and_then(|_| self.csv.read_to_end(&mut text)).map_err(|e| io(&path, e))?;
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        self.csv.set_len(whole as u64).map_err(|e| io(&path, e))?;
        let known = trials(&text[..whole]).map_err(|why| JournalError::Broken { path, why })?;
        for (trial, measurement) in self.finished()? {
            if !known.contains(&trial) {
                self.append(&measurement)?;
            }
        }
        Ok(())
    }
}

/// The trials of the rows of a CSV file.
fn trials(csv: &[u8]) -> Result<Vec<u32>, String> {
    let mut reader = csv::Reader::from_reader(csv);
    let column = reader.headers().map_err(|e| e.to_string())?.iter().position(|name| name == TRIAL);
    let trial = |record: csv::StringRecord| {
        let cell = column.and_then(|column| record.get(column)).unwrap_or_default();
        cell.parse().map_err(|_| format!("{cell:?} is not the number of a trial"))
    };
    reader.into_records().map(|record| record.map_err(|e| e.to_string()).and_then(trial)).collect()
}

/// The lock of a run folder. The kernel lets go of it when weir ends, however it ends.
fn locked(dir: &Path) -> Result<File, JournalError> {
    let path = dir.join(LOCK);
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(|e| io(&path, e))?;
    // Between fork and exec, a child of the weir that held the lock still has it: retry for a short time.
    let deadline = Instant::now() + Duration::from_millis(500);
    loop {
        match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::Busy(dir.display().to_string())),
            Err(error) => return Err(io(&path, error.into())),
        }
    }
}

fn io(path: &Path, error: std::io::Error) -> JournalError {
    FileError::at(path)(error).into()
}

/// Writes to a neighbour, flushes it to the disk, and renames: the name never stands for half a file.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    if path.exists() {
        return Err(io(path, std::io::Error::from(std::io::ErrorKind::AlreadyExists)));
    }
    let neighbour = path.with_extension("partial");
    let written = File::create(&neighbour)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&neighbour, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&neighbour);
        io(path, e)
    })?;
    if let Some(parent) = path.parent() {
        File::open(parent).and_then(|dir| dir.sync_all()).map_err(|e| io(parent, e))?;
    }
    Ok(())
}
