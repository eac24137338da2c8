//! What both sides of a connection do alike: messages in and out of frames, a heartbeat each second, and a silence that ends.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::frame::{Frame, FrameError, FrameReader, FrameWriter};
use super::watchdog::{BEAT, Ears};

/// Where messages to the other side are put. Nobody waits here for a full pipe.
#[derive(Debug)]
pub(super) struct Outbox<M>(Sender<Outgoing<M>>);

/// A message and the raw bytes behind it; `None`: nothing follows.
type Outgoing<M> = Option<(M, Vec<u8>)>;

impl<M> Clone for Outbox<M> {
    fn clone(&self) -> Outbox<M> {
        Outbox(self.0.clone())
    }
}

impl<M: Serialize + Send + 'static> Outbox<M> {
    /// Starts the thread that writes. It ends when an outbox is closed, or when a write fails; the silence that follows is
    /// noticed. `beat` makes the message that goes out each second, also between others.
    pub(super) fn start(
        output: impl Write + Send + 'static,
        beat: impl FnMut() -> M + Send + 'static,
    ) -> std::io::Result<(Outbox<M>, JoinHandle<()>)> {
        let (sender, messages) = channel();
        let writer = FrameWriter::new(output);
        let write = move || drop(write_all(writer, &messages, beat));
        let thread = std::thread::Builder::new().name("weir-frames-out".into()).spawn(write)?;
        Ok((Outbox(sender), thread))
    }

    pub(super) fn send(&self, message: M) {
        self.send_with(message, Vec::new());
    }

    /// Sends a message with raw bytes behind it.
    pub(super) fn send_with(&self, message: M, bytes: Vec<u8>) {
        // Fails when the writer has failed: the connection is lost, and its reader says so.
        let _ = self.0.send(Some((message, bytes)));
    }

    /// Nothing follows.
    pub(super) fn close(&self) {
        let _ = self.0.send(None);
    }
}

fn write_all<W: Write, M: Serialize>(
    mut writer: FrameWriter<W>,
    messages: &Receiver<Outgoing<M>>,
    mut beat: impl FnMut() -> M,
) -> Result<(), FrameError> {
    let mut due = Instant::now() + BEAT;
    loop {
        match messages.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(Some((message, bytes))) => write(&mut writer, &message, &bytes)?,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if Instant::now() >= due {
            write(&mut writer, &beat(), &[])?;
            due = Instant::now() + BEAT;
        }
    }
}

fn write<W: Write>(writer: &mut FrameWriter<W>, message: &impl Serialize, bytes: &[u8]) -> Result<(), FrameError> {
    let text = serde_json::to_vec(message).map_err(|error| FrameError::Broken(error.into()))?;
    writer.write(&Frame::new(text, bytes))
}

/// Reads messages.
pub(super) struct Inbox<R>(FrameReader<R>);

impl<R: Read> Inbox<R> {
    pub(super) fn new(input: R) -> Inbox<R> {
        Inbox(FrameReader::new(input))
    }

    /// The next message and the raw bytes behind it.
    pub(super) fn receive<M: DeserializeOwned>(&mut self) -> Result<(M, Vec<u8>), FrameError> {
        let frame = self.0.read()?;
        let message = serde_json::from_slice(frame.text()).map_err(|error| FrameError::Broken(error.into()))?;
        Ok((message, frame.bytes().to_vec()))
    }
}

/// An input of which each byte counts as a sign of life.
pub(super) struct SignsOfLife<R> {
    pub(super) input: R,
    pub(super) ears: Ears,
}

impl<R: Read> Read for SignsOfLife<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.ears.hear();
        Ok(read)
    }
}
