use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_host::LocalStorage;

use super::*;
use crate::fixture::{failed, measured};

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary folder"))
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("run")
    }

    fn create(&self) -> Journal {
        self.create_on(Arc::new(LocalStorage)).expect("created")
    }

    fn create_on(&self, storage: Arc<dyn Storage>) -> Result<Journal, JournalError> {
        Journal::create(&self.dir(), &[("plan.json", b"[]".to_vec()), ("run.toml", b"x".to_vec())], storage)
    }

    fn open(&self, retry_errors: bool) -> Result<Journal, JournalError> {
        Journal::open(&self.dir(), retry_errors, Arc::new(LocalStorage))
    }

    fn csv(&self) -> String {
        std::fs::read_to_string(self.dir().join(CSV)).expect("read")
    }

    fn names(&self) -> Vec<String> {
        names_in(&self.dir())
    }
}

fn finish(journal: &Journal, measurement: &Measurement) {
    let folder = journal.trial_folder(&format!("{:03}-x", measurement.trial)).expect("a folder");
    journal.finish(&folder, measurement).expect("finished");
}

/// The trials of the rows, in the second column.
fn trials(csv: &str) -> Vec<u32> {
    let second = |line: &str| line.split(',').nth(1).expect("a cell").parse().expect("a number");
    csv.lines().skip(1).map(second).collect()
}

#[test]
fn a_folder_that_holds_something_is_refused_and_left_as_it_was() {
    for thing in ["thesis.txt", "trials"] {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.dir().join(thing)).expect("made");
        let refused = Journal::create(&scratch.dir(), &[], Arc::new(LocalStorage)).expect_err("holds something");
        assert!(matches!(refused, JournalError::Exists(_)), "{refused}");
        assert!(refused.to_string().contains("weir run --resume"), "{refused}");
        assert_eq!(scratch.names(), [thing]);
    }
}

#[test]
fn an_empty_folder_is_taken() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.dir()).expect("made");
    drop(scratch.create());
    assert_eq!(scratch.names(), [".lock", "SHA256SUMS", "measurements.csv", "plan.json", "run.toml", "trials"]);
}

#[test]
fn a_folder_that_cannot_be_filled_is_not_left_half_made() {
    let scratch = Scratch::new();
    let files = [("environment.json", b"{}".to_vec()), ("no/such/folder/run.toml", b"x".to_vec())];
    let error = Journal::create(&scratch.dir(), &files, Arc::new(LocalStorage)).expect_err("cannot be written");
    assert!(matches!(error, JournalError::Io(_)), "{error}");
    assert!(!scratch.dir().exists(), "{:?}", scratch.names());
    // One that was there before stays, empty, and can be used.
    std::fs::create_dir(scratch.dir()).expect("made");
    Journal::create(&scratch.dir(), &files, Arc::new(LocalStorage)).expect_err("cannot be written");
    assert_eq!(scratch.names(), [""; 0]);
    scratch.create();
}

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone() {
    let scratch = Scratch::new();
    let first = scratch.create();
    let refused = scratch.open(false).expect_err("in use");
    assert!(matches!(refused, JournalError::Busy(_)), "{refused}");
    drop(first);
    scratch.open(false).expect("free again");
}

#[test]
fn only_a_run_folder_is_opened() {
    let scratch = Scratch::new();
    let refused = Journal::open(scratch.0.path(), false, Arc::new(LocalStorage)).expect_err("no run.toml");
    assert!(matches!(refused, JournalError::NotARun(_)), "{refused}");
    assert!(!scratch.0.path().join(LOCK).exists(), "nothing is written where no run is");
}

#[test]
fn write_once_never_overwrites_and_leaves_no_neighbour() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    journal.write_once("rates-half.json", b"[1]").expect("written");
    let refused = journal.write_once("rates-half.json", b"[2]").expect_err("exists");
    assert!(refused.to_string().contains("rates-half.json"), "{refused}");
    assert_eq!(journal.read_json::<Vec<u8>>("rates-half.json").expect("read"), Some(vec![1]));
    assert_eq!(journal.read_json::<Vec<u8>>("rates-full.json").expect("read"), None);
    assert!(scratch.names().iter().all(|name| !name.ends_with("partial")), "{:?}", scratch.names());
    journal.write_once("odd.json", b"{").expect("written");
    let broken = journal.read_json::<Vec<u8>>("odd.json").expect_err("half a document");
    assert!(matches!(broken, JournalError::Broken { .. }), "{broken}");
}

#[test]
fn what_is_finished_is_read_back_as_it_was() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    let all = [measured(2, "a", "w", 12_345.678), failed(1, "b", "w", "start", "no\nbinary")];
    for one in &all {
        finish(&journal, one);
    }
    let back = journal.finished().expect("read");
    assert_eq!(back.values().cloned().collect::<Vec<_>>(), [all[1].clone(), all[0].clone()], "by number");
    drop(journal);
    assert_eq!(scratch.open(false).expect("opened").finished().expect("read"), back);
}

#[test]
fn the_header_is_written_once_also_over_several_openings() {
    let scratch = Scratch::new();
    finish(&scratch.create(), &measured(1, "a", "w", 1.0));
    for trial in 2..4 {
        let journal = scratch.open(false).expect("opened");
        finish(&journal, &failed(trial, "a", "w", "verify", "line one\n  line two, \"quoted\""));
    }
    let csv = scratch.csv();
    assert_eq!(csv.lines().filter(|line| line.starts_with("schema,")).count(), 1);
    assert_eq!(csv.lines().count(), 4, "a row is a line:\n{csv}");
    assert_eq!(trials(&csv), [1, 2, 3]);
}

/// Wherever the file was torn, opening yields each finished trial exactly once.
#[test]
fn a_torn_file_of_rows_is_repaired() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    finish(&journal, &measured(1, "a", "w", 1.0));
    finish(&journal, &failed(2, "a", "w", "verify", "one\ntwo, \"three\"\nfour"));
    drop(journal);
    let whole = scratch.csv();
    for length in 0..=whole.len() {
        std::fs::write(scratch.dir().join(CSV), &whole[..length]).expect("torn");
        drop(scratch.open(false).expect("opened"));
        assert_eq!(scratch.csv(), whole, "torn after {length} bytes");
    }
}

#[test]
fn a_finished_trial_without_a_row_gets_it() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    finish(&journal, &measured(1, "a", "w", 1.0));
    let before = scratch.csv();
    finish(&journal, &measured(2, "a", "w", 2.0));
    std::fs::write(scratch.dir().join(CSV), before).expect("as before");
    journal.trial_folder("003-x").expect("begun and not finished");
    drop(journal);
    assert_eq!(trials(&scratch.csv()), [1]);
    drop(scratch.open(false).expect("opened"));
    assert_eq!(trials(&scratch.csv()), [1, 2]);
}

#[test]
fn rows_that_were_edited_are_made_anew() {
    let scratch = Scratch::new();
    finish(&scratch.create(), &measured(1, "a", "w", 1.0));
    let whole = scratch.csv();
    for edited in [whole.replace(",1,", ",one,"), whole.replace("a,", "b,"), format!("{whole}{whole}")] {
        std::fs::write(scratch.dir().join(CSV), edited).expect("written");
        drop(scratch.open(false).expect("opened"));
        assert_eq!(scratch.csv(), whole);
    }
}

/// The names in a folder of the run.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_trial_that_is_not_as_it_was_is_set_aside_and_kept() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    let finish_with_log = |journal: &Journal, trial| {
        let folder = journal.trial_folder(&format!("{trial:03}-x")).expect("a folder");
        std::fs::create_dir(folder.join("product")).expect("made");
        std::fs::write(folder.join("product/proxy.conf"), "listen").expect("written");
        journal.finish(&folder, &measured(trial, "a", "w", 1.0)).expect("finished");
    };
    (1..=5).for_each(|trial| finish_with_log(&journal, trial));
    drop(journal);
    let trials_folder = scratch.dir().join(TRIALS);
    let edit = |file: &str, with: &str| std::fs::write(trials_folder.join(file), with).expect("written");
    let faster = std::fs::read_to_string(trials_folder.join("001-x").join(MEASUREMENT)).expect("read");
    edit("001-x/measurement.json", &faster.replacen("\"rate\": 1.0", "\"rate\": 912345.0", 1));
    edit("002-x/measurement.json", "{");
    edit("003-x/product/proxy.conf", "tuned");
    std::fs::remove_file(trials_folder.join("004-x").join(seal::FILE)).expect("removed");
    let journal = scratch.open(false).expect("opened");
    assert_eq!(journal.finished().expect("read").into_keys().collect::<Vec<_>>(), [5]);
    assert_eq!(trials(&scratch.csv()), [5]);
    assert_eq!(names_in(&scratch.dir().join(ASIDE)), ["001-x", "002-x", "003-x", "004-x"]);
    let mut said: Vec<String> =
        journal.was_set_aside().iter().map(|aside| format!("{}: {}", aside.folder, aside.why)).collect();
    said.sort();
    for (said, wanted) in said.iter().zip([
        "measurement.json: it is not",
        "measurement.json: it is not",
        "product/proxy.conf: it is not",
        "it has no",
    ]) {
        assert!(said.contains(wanted), "{said}");
    }
    drop(journal);
    // What was set aside once stays when it happens again.
    let journal = scratch.open(false).expect("opened");
    finish_with_log(&journal, 1);
    drop(journal);
    edit("001-x/measurement.json", "[]");
    drop(scratch.open(false).expect("opened"));
    assert_eq!(names_in(&scratch.dir().join(ASIDE)), ["001-x", "001-x.2", "002-x", "003-x", "004-x"]);
}

#[test]
fn trials_that_failed_are_run_again_where_it_is_asked() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    finish(&journal, &measured(1, "a", "w", 1.0));
    finish(&journal, &failed(2, "a", "w", "start", "no binary"));
    drop(journal);
    drop(scratch.open(false).expect("opened"));
    assert_eq!(trials(&scratch.csv()), [1, 2]);
    let journal = scratch.open(true).expect("opened");
    assert_eq!(trials(&scratch.csv()), [1]);
    let [aside] = journal.was_set_aside() else { panic!("{:?}", journal.was_set_aside()) };
    assert!(aside.folder == "set-aside/002-x" && aside.why.starts_with("it failed: "), "{aside:?}");
}

#[test]
fn what_a_kept_product_goes_on_writing_is_not_sealed() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    let kept = weir_model::record::Kept { since: 1, place: 1, of: 2 };
    for (trial, kept) in [(1, Some(kept)), (2, None)] {
        let folder = journal.trial_folder(&format!("{trial:03}-x")).expect("a folder");
        std::fs::create_dir(folder.join("product")).expect("made");
        for file in ["product/output.log", "origin.log", "load.csv"] {
            std::fs::write(folder.join(file), "a").expect("written");
        }
        journal.finish(&folder, &Measurement { kept, ..measured(trial, "a", "w", 1.0) }).expect("finished");
        let sealed = std::fs::read_to_string(folder.join(seal::FILE)).expect("sealed");
        assert!(sealed.contains("  load.csv\n") && sealed.contains("  findings.json\n"), "{sealed}");
        assert_eq!(sealed.contains(".log"), kept.is_none(), "{sealed}");
    }
}

#[test]
fn a_run_whose_own_files_were_changed_does_not_go_on() {
    for (file, with) in [("plan.json", Some("[1]")), ("plan.json", None), (seal::FILE, None), (seal::FILE, Some("x"))] {
        let scratch = Scratch::new();
        drop(scratch.create());
        match with {
            Some(text) => std::fs::write(scratch.dir().join(file), text).expect("written"),
            None => std::fs::remove_file(scratch.dir().join(file)).expect("removed"),
        }
        let refused = scratch.open(false).expect_err("changed");
        assert!(refused.to_string().contains(file), "{refused}");
    }
}

#[test]
fn a_run_that_somebody_removed_takes_no_trials() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    let folder = journal.trial_folder("001-x").expect("a folder");
    std::fs::remove_dir_all(scratch.dir()).expect("removed");
    journal.finish(&folder, &measured(1, "a", "w", 1.0)).expect_err("nowhere");
    journal.trial_folder("002-x").expect_err("nowhere");
    assert!(!scratch.dir().exists(), "and nothing is made again");
}

#[test]
fn an_unfinished_trial_is_begun_anew_and_a_finished_one_refused() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    let folder = journal.trial_folder("001-x").expect("a folder");
    std::fs::create_dir(folder.join("product")).expect("made");
    std::fs::write(folder.join("product/output.log"), "half").expect("written");
    assert_eq!(journal.trial_folder("001-x").expect("again"), folder);
    assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 0, "emptied");
    journal.forget(&folder);
    assert!(!folder.exists());
    finish(&journal, &measured(1, "a", "w", 1.0));
    let refused = journal.trial_folder("001-x").expect_err("finished");
    assert!(refused.to_string().contains("is finished"), "{refused}");
    journal.forget(&folder);
    assert!(folder.join(MEASUREMENT).is_file(), "what is finished is not forgotten");
}

/// Every column of a full measurement and of an error row. The text is what `docs/records.md` describes; a column that
/// is added, renamed or moved needs a new version of the row.
#[test]
fn rows_look_as_reviewed() {
    let scratch = Scratch::new();
    let journal = scratch.create();
    finish(&journal, &full());
    finish(&journal, &failed(2, "b", "w", "start", "no \"binary\",\n  sorry"));
    let csv = scratch.csv();
    let rows = csv::ReaderBuilder::new().has_headers(false).from_reader(csv.as_bytes()).into_deserialize();
    let rows: Vec<Vec<String>> = rows.map(|row| row.expect("CSV")).collect();
    let [header, full, error] = rows.as_slice() else { panic!("three lines: {csv}") };
    let columns = header.iter().zip(full.iter().zip(error));
    let table: String = columns.map(|(name, (full, error))| format!("{name} = {full} | {error}\n")).collect();
    assert_eq!(table, include_str!("../../tests/golden/journal/rows.txt"));
}

/// Every number another, so that a cell in the wrong column shows.
fn full() -> Measurement {
    use weir_model::counters::OriginCounters;
    use weir_model::load::{Counts, ErrorKind, Quantiles, TlsResult};
    use weir_model::record::{Finding, Role, RoleUsage, Severity, Verdict};
    use weir_model::suite::Protocol;
    let quantiles = |base: f64| Quantiles {
        p50_us: base + 0.5,
        p90_us: base + 0.9,
        p99_us: base + 0.99,
        p999_us: base + 0.999,
        max_us: base + 1.0,
        ..Quantiles::default()
    };
    let mut load = crate::fixture::load_result(1_000.0);
    load.window_s = 2.0;
    load.offered_rate = Some(1_100.0);
    load.body_bytes_per_s = 128_000.0;
    load.streams = 4;
    load.tls = Some(TlsResult {
        versions: [("TLS 1.2".to_owned(), 1), ("TLS 1.3".to_owned(), 63)].into(),
        suites: [("TLS_AES_128_GCM_SHA256".to_owned(), 64)].into(),
        ..TlsResult::default()
    });
    load.window = Counts {
        due: 2_210,
        sent: 2_206,
        unsent: 4,
        successful: 2_203,
        errors: [(ErrorKind::Reset, 2), (ErrorKind::Timeout, 1)].into(),
        ..Counts::default()
    };
    (load.latency, load.service, load.lag) = (quantiles(100.0), quantiles(200.0), quantiles(300.0));
    let usage = |role, cpu_user_us, cores_busy| RoleUsage {
        role,
        cpu_user_us,
        cpu_system_us: 1_000,
        cores_busy,
        rss_max_bytes: 4_096,
        pss_max_bytes: Some(2_048),
        threads_max: Some(1),
        processes_max: Some(1),
        switches: Some((0, 0)),
        ..RoleUsage::default()
    };
    let finding = |check: &str| Finding {
        check: check.into(),
        severity: Severity::Warning,
        message: "seen".into(),
        remedy: "mend".into(),
    };
    Measurement {
        verdict: Verdict::Suspect,
        protocol: Protocol::H2,
        load: Some(load),
        origin: Some(OriginCounters { requests: 3_001, connections_accepted: 65, ..OriginCounters::default() }),
        usage: vec![
            usage(Role::Client, 9_000, 0.25),
            usage(Role::Proxy, 19_000, 0.75),
            usage(Role::Origin, 3_000, 0.125),
        ],
        owners: Vec::new(),
        findings: vec![finding("client-lag"), finding("steal")],
        ..measured(1, "a", "w", 0.0)
    }
}

/// A disk that does so many steps. The one after them leaves half of its bytes behind.
#[derive(Debug)]
struct Failing {
    left: AtomicUsize,
    /// It is full, and what needs no room is still done. Otherwise the run was cut off.
    full: bool,
}

impl Storage for Failing {
    fn admit(&self, _path: &Path, bytes: usize) -> io::Result<usize> {
        if self.full && bytes == 0 {
            return Ok(0);
        }
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Ok(bytes),
            Err(_) if bytes > 1 => Ok(bytes / 2),
            Err(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// Three trials on a disk that fails after so many steps: how many of them finished, and whether all did.
fn three_trials(scratch: &Scratch, steps: usize, full: bool) -> (u32, bool) {
    let Ok(journal) = scratch.create_on(Arc::new(Failing { left: AtomicUsize::new(steps), full })) else {
        return (0, false);
    };
    let run = |trial| {
        let folder = journal.trial_folder(&format!("{trial:03}-x"))?;
        journal.finish(&folder, &measured(trial, "a", "w", 9.0))
    };
    let error = (1..=3).find_map(|trial| Some((trial - 1, run(trial).err()?)));
    assert!(error.iter().all(|(_, error)| error.to_string().contains("disk is full")), "{error:?}");
    error.map_or((3, true), |(finished, _)| (finished, false))
}

#[test]
fn a_run_goes_on_after_a_disk_that_was_full_and_after_a_crash_at_any_step() {
    for full in [true, false] {
        for steps in 0.. {
            let scratch = Scratch::new();
            let (finished, all) = three_trials(&scratch, steps, full);
            match scratch.open(false) {
                Ok(journal) => {
                    let kept: Vec<u32> = journal.finished().expect("read").into_keys().collect();
                    // A trial's last step adds its row: one that failed there is finished, and its run did not learn it.
                    let learned = kept.len() as u32 - finished;
                    assert!(learned == 0 || learned == 1 && !all, "step {steps}: {finished}, {kept:?}");
                    assert_eq!(
                        (trials(&scratch.csv()), journal.was_set_aside()),
                        (kept.clone(), &[][..]),
                        "step {steps}"
                    );
                    (kept.len() as u32 + 1..=3).for_each(|trial| finish(&journal, &measured(trial, "a", "w", 9.0)));
                }
                Err(refused) => {
                    assert!(finished == 0 && matches!(refused, JournalError::NotARun(_)), "step {steps}: {refused}");
                    assert!(!full || !scratch.dir().exists(), "step {steps}: {:?}", scratch.names());
                }
            }
            if all {
                assert!(steps > 12, "{steps} steps are not all");
                break;
            }
        }
    }
}
