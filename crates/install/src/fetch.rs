//! Downloads one file from the vendor's server into a folder of weir. Release downloads call it.
//!
//! It uses HTTPS with the machine's certificate authorities (those of browsers where it has none), through the proxy that the
//! environment names. Plain `http://` is allowed only for this machine, where nobody can intercept it. The caller compares the hash in
//! any case.
//!
//! A separate thread reads, so that weir reacts to Ctrl-C even when the server sends nothing.

mod follow;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ureq::http::Uri;
use weir_host::stop::Stop;

use super::{InstallError, Notify, Progress};

pub(super) use follow::{Route, allowed, joined};

/// Most that one download may have. The largest release known today has 190 MB.
const MOST_BYTES: u64 = 2 << 30;
/// Between two looks whether the user wants to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const PIECE: usize = 1 << 16;

/// How far a download is.
#[derive(Default)]
struct Transfer {
    done: AtomicU64,
    /// Bytes there will be, where the server says so.
    of: OnceLock<u64>,
}

enum FetchError {
    /// The server, or the way to it.
    Server(String),
    /// The file cannot be written.
    File(io::Error),
}

/// Fetches `url` into the file `into`, which must not exist. `remedy` says what else the user can do.
pub(super) fn fetch(
    url: &str,
    into: &Path,
    route: &Route,
    remedy: &str,
    stop: &Stop,
    notify: &mut Notify<'_>,
) -> Result<(), InstallError> {
    let fails = |why: String| InstallError::Message(format!("{url}: not downloaded: {why}\n  expected: {remedy}"));
    let uri = allowed(url).map_err(fails)?;
    let file = File::create_new(into).map_err(InstallError::io(into))?;
    let transfer = Arc::new(Transfer::default());
    let (sender, result) = channel();
    let (reading, told_to_stop, route) = (transfer.clone(), stop.clone(), route.clone());
    // It ends with the download, or soon after a request to stop.
    let transfers = move || sender.send(read(&uri, &route, file, &reading, &told_to_stop));
    std::thread::Builder::new().spawn(transfers).map_err(|error| fails(error.to_string()))?;
    let mut shown = 0;
    loop {
        let result = result.recv_timeout(POLL_INTERVAL);
        let done = transfer.done.load(Ordering::Relaxed);
        match done > shown {
            true => notify(Progress::Bytes { done, of: transfer.of.get().copied() }),
            false => notify(Progress::Tick),
        }
        shown = done;
        if stop.is_requested() {
            return Err(InstallError::Interrupted);
        }
        match result {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(FetchError::File(error))) => return Err(InstallError::io(into)(error)),
            Ok(Err(FetchError::Server(why))) => {
                let came = if done > 0 { format!(" (after {done} bytes)") } else { String::new() };
                return Err(fails(format!("{why}{came}")));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(fails("the download broke off".to_owned())),
        }
    }
}

fn read(uri: &Uri, route: &Route, mut file: File, transfer: &Transfer, stop: &Stop) -> Result<(), FetchError> {
    let too_much = || FetchError::Server(format!("it has more than {MOST_BYTES} bytes, which no release has"));
    let mut response = follow::follow(uri, route).map_err(FetchError::Server)?;
    let length = response.body().content_length();
    if let Some(length) = length {
        let _ = transfer.of.set(length);
    }
    if length.is_some_and(|length| length > MOST_BYTES) {
        return Err(too_much());
    }
    let mut body = response.body_mut().with_config().limit(MOST_BYTES + 1).reader();
    let mut buffer = vec![0; PIECE];
    while !stop.is_requested() {
        let piece = match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => &buffer[..n],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let of = length.map(|bytes| format!(" of {bytes} bytes")).unwrap_or_default();
                return Err(FetchError::Server(format!("the server broke off{of}: {error}")));
            }
        };
        file.write_all(piece).map_err(FetchError::File)?;
        if transfer.done.fetch_add(piece.len() as u64, Ordering::Relaxed) + piece.len() as u64 > MOST_BYTES {
            return Err(too_much());
        }
    }
    Ok(())
}
