//! One weir at a time changes weir's own folder.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::InstallError;
use crate::home::Home;

/// Held while an install goes on; the kernel lets go of it however the process ends.
pub(super) struct Lock {
    _file: File,
}

/// Makes weir's folder if need be, and waits until no other weir installs into it.
pub(super) fn take(home: &Home, progress: &mut dyn FnMut(&str)) -> Result<Lock, InstallError> {
    std::fs::create_dir_all(home.path()).map_err(InstallError::io(home.path()))?;
    let path = home.path().join("install.lock");
    let file = File::create(&path).map_err(InstallError::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            progress("waiting for another weir, which is installing");
            wait(&file, &path)?;
        }
        Err(error) => return Err(InstallError::io(path)(error.into())),
    }
    Ok(Lock { _file: file })
}

fn wait(file: &File, path: &Path) -> Result<(), InstallError> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            result => return result.map_err(|error| InstallError::io(path)(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("new"));
        let first = take(&home, &mut |_| panic!("nobody to wait for")).unwrap();
        let (sender, receiver) = mpsc::channel();
        let second = std::thread::spawn(move || {
            let said = sender.clone();
            let _lock = take(&home, &mut |line| said.send(line.to_owned()).unwrap()).unwrap();
            sender.send("got it".to_owned()).unwrap();
        });
        assert!(receiver.recv_timeout(Duration::from_secs(30)).unwrap().starts_with("waiting"));
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "the lock is held");
        drop(first);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)).unwrap(), "got it");
        second.join().unwrap();
    }
}
