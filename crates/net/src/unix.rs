//! Listens on a Unix stream socket: abstract, or at a path that is free or was left behind by a dead server.
//!
//! It does not know drivers.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily};

use crate::socket::{is_abstract, stream_socket, unix_addr};

/// Why a Unix socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum UnixError {
    /// Another server listens there.
    #[error("a server listens on {} already; stop it, or take another path", .0.display())]
    Taken(PathBuf),
    /// The path is something other than a socket.
    #[error("{} exists and is no socket; remove it, or take another path", .0.display())]
    NoSocket(PathBuf),
    /// The kernel's form of an address has room for 107 bytes.
    #[error("the path of a Unix socket has at most 107 bytes, and none of them is zero; {} is no such path", .0.display())]
    Path(PathBuf),
    /// Anything else.
    #[error("cannot listen on the Unix socket {}", .path.display())]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

/// A listening Unix stream socket. Dropping it removes the socket's file, unless another socket has replaced it.
/// Listeners taken from it stay open.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file, to recognise it; an abstract socket has none.
    file: Option<(u64, u64)>,
}

impl UnixSocket {
    /// Returns a listener for one driver. All listeners share one queue, so several drivers may each have one.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// The path of the socket's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if self.file.is_some_and(|own| identity(&self.path).is_ok_and(|file| file == own)) {
            // It may be gone already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on the Unix stream socket `path`, or, where that begins with `@`, on the abstract socket of that name. A file left by a
/// dead server is replaced. `backlog` is the requested length of the accept queue, in connections; the kernel caps it at
/// `net.core.somaxconn`.
///
/// # Errors
/// When a server listens there, when the path is something other than a socket, and when the kernel refuses.
pub fn listen_unix(path: &Path, backlog: u32) -> Result<UnixSocket, UnixError> {
    let failed = |source| UnixError::Io { path: path.to_owned(), source };
    let addr = unix_addr(path).map_err(|_| UnixError::Path(path.to_owned()))?;
    let has_file = !is_abstract(path.as_os_str().as_bytes());
    if has_file {
        remove_stale(path)?;
    }
    let fd = stream_socket(AddressFamily::UNIX, true).map_err(failed)?;
    net::bind(&fd, &addr).map_err(|error| match error {
        // Another process was faster.
        Errno::ADDRINUSE => UnixError::Taken(path.to_owned()),
        error => failed(error.into()),
    })?;
    let file = has_file.then(|| identity(path)).transpose().map_err(failed)?;
    // From here on the file is removed if anything fails.
    let socket = UnixSocket { listener: UnixListener::from(fd), path: path.to_owned(), file };
    net::listen(&socket.listener, i32::try_from(backlog).unwrap_or(i32::MAX)).map_err(|error| failed(error.into()))?;
    Ok(socket)
}

/// Removes a socket file that no server listens on.
fn remove_stale(path: &Path) -> Result<(), UnixError> {
    let failed = |source| UnixError::Io { path: path.to_owned(), source };
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !meta.file_type().is_socket() {
        return Err(UnixError::NoSocket(path.to_owned()));
    }
    match try_connect(path) {
        // The server is dead.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A full queue (would block) belongs to a living server, and so does a socket of another type.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(failed(error)),
        Ok(()) | Err(_) => Err(UnixError::Taken(path.to_owned())),
    }
}

/// Connects, without waiting for room in the queue.
fn try_connect(path: &Path) -> io::Result<()> {
    let fd = stream_socket(AddressFamily::UNIX, true)?;
    Ok(net::connect(fd, &unix_addr(path)?)?)
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()))
}
