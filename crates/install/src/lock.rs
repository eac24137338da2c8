//! The lock by which only one weir at a time changes weir's own folder. [`crate::run_step`] takes it.

use std::fs::File;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{InstallError, Notify, Progress};
use crate::home::Home;
use weir_host::stop::Stop;

/// Between two looks whether another weir is done.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Held while an install goes on; the kernel lets go of it however the process ends.
pub(super) struct Lock {
    _file: File,
}

/// Makes weir's folder if need be, and waits until no other weir installs into it.
pub(super) fn take(home: &Home, stop: &Stop, notify: &mut Notify<'_>) -> Result<Lock, InstallError> {
    std::fs::create_dir_all(home.path()).map_err(InstallError::io(home.path()))?;
    let path = home.path().join("install.lock");
    let file = File::create(&path).map_err(InstallError::io(&path))?;
    let mut said = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock { _file: file }),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(error) => return Err(InstallError::io(path)(error.into())),
        }
        if stop.is_requested() {
            return Err(InstallError::Interrupted);
        }
        match said {
            false => notify(Progress::Action("waiting for another weir, which is installing")),
            true => notify(Progress::Tick),
        }
        said = true;
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("new"));
        let first = take(&home, &Stop::new(), &mut |_| panic!("nobody to wait for")).unwrap();
        let (sender, receiver) = mpsc::channel();
        let second = std::thread::spawn(move || {
            let said = sender.clone();
            let mut notify = |progress: Progress<'_>| {
                if let Progress::Action(line) = progress {
                    said.send(line.to_owned()).unwrap();
                }
            };
            let _lock = take(&home, &Stop::new(), &mut notify).unwrap();
            sender.send("got it".to_owned()).unwrap();
        });
        assert!(receiver.recv_timeout(Duration::from_secs(30)).unwrap().starts_with("waiting"));
        assert!(receiver.recv_timeout(Duration::from_millis(250)).is_err(), "the lock is held");
        drop(first);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)).unwrap(), "got it");
        second.join().unwrap();
    }

    #[test]
    fn who_waits_can_be_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let _first = take(&home, &Stop::new(), &mut |_| ()).unwrap();
        let stop = Stop::new();
        stop.set();
        assert!(matches!(take(&home, &stop, &mut |_| ()), Err(InstallError::Interrupted)));
    }
}
