//! Downloads one file from the vendor's server into a folder of weir. The release source calls it.
//!
//! It uses HTTPS with the machine's certificate authorities, through the proxy that the environment names. Plain `http://` is
//! allowed only for this machine, where nobody can intercept it. The caller compares the hash in any case.
//!
//! A separate thread reads, so that weir reacts to Ctrl-C even when the server sends nothing.

mod follow;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::http::Uri;

use super::{InstallError, Notify, Progress};
use weir_host::stop::Stop;

pub(super) use follow::{Route, allowed};

/// Most that one download may have. The largest release known today has 190 MB.
const MOST_BYTES: u64 = 2 << 30;
/// Between two looks whether the user wants to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const PIECE: usize = 1 << 16;

/// How a download came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) sha256: String,
    pub(super) bytes: u64,
}

enum Piece {
    Begins(Option<u64>),
    Bytes(Vec<u8>),
    Ends,
    Fails(String),
}

/// Fetches `url` into the file `into`, which must not exist. `remedy` says what else the user can do.
pub(super) fn fetch(
    url: &str,
    into: &Path,
    route: Route,
    remedy: &str,
    stop: &Stop,
    notify: &mut Notify<'_>,
) -> Result<Fetched, InstallError> {
    let fails = |why: String| InstallError::Download { url: url.to_owned(), why, remedy: remedy.to_owned() };
    let uri = allowed(url).map_err(fails)?;
    let mut file = File::create_new(into).map_err(InstallError::io(into))?;
    let pieces = read(uri, route);
    let mut hasher = Sha256::new();
    let (mut done, mut of) = (0u64, None);
    loop {
        if stop.is_requested() {
            return Err(InstallError::Interrupted);
        }
        match pieces.recv_timeout(POLL_INTERVAL) {
            Ok(Piece::Begins(length)) => of = length,
            Ok(Piece::Bytes(bytes)) => {
                done = done.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                if done.max(of.unwrap_or(0)) > MOST_BYTES {
                    return Err(fails(format!("it has more than {MOST_BYTES} bytes, which no release has")));
                }
                hasher.update(&bytes);
                file.write_all(&bytes).map_err(InstallError::io(into))?;
                notify(Progress::Bytes { done, of });
            }
            Ok(Piece::Ends) => break,
            Ok(Piece::Fails(why)) => {
                let came = if done > 0 { format!(" (after {done} bytes)") } else { String::new() };
                return Err(fails(format!("{why}{came}")));
            }
            Err(RecvTimeoutError::Timeout) => notify(Progress::Tick),
            Err(RecvTimeoutError::Disconnected) => return Err(fails("the download broke off".to_owned())),
        }
    }
    let sha256 = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Fetched { sha256, bytes: done })
}

/// Reads in a thread of its own, which ends with the download, or soon after nobody takes what it reads.
fn read(uri: Uri, route: Route) -> Receiver<Piece> {
    let (sender, receiver) = sync_channel(4);
    std::thread::spawn(move || {
        let last = match pass_on(&uri, route, &sender) {
            Ok(()) => Piece::Ends,
            Err(why) => Piece::Fails(why),
        };
        // Nobody listens any more when the user wanted to stop.
        let _ = sender.send(last);
    });
    receiver
}

fn pass_on(uri: &Uri, route: Route, sender: &SyncSender<Piece>) -> Result<(), String> {
    let mut response = follow::follow(uri, &route)?;
    let length = response.body().content_length();
    let mut body = response.body_mut().with_config().limit(MOST_BYTES + 1).reader();
    if sender.send(Piece::Begins(length)).is_err() {
        return Ok(());
    }
    let mut buffer = vec![0; PIECE];
    loop {
        match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                if sender.send(Piece::Bytes(buffer[..n].to_vec())).is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let of = length.map(|bytes| format!(" of {bytes} bytes")).unwrap_or_default();
                return Err(format!("the server broke off{of}: {error}"));
            }
        }
    }
}
