//! SETTINGS, ours and the peer's (RFC 9113 section 6.5).

use super::Violation;
use super::conn::{Conn, FIRST_MAX_FRAME, FIRST_WINDOW};
use super::frame::{self, kind};

/// Settings (section 6.5.2).
mod setting {
    pub(super) const HEADER_TABLE_SIZE: u16 = 1;
    pub(super) const ENABLE_PUSH: u16 = 2;
    pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(super) const MAX_FRAME_SIZE: u16 = 5;
    pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

impl Conn {
    /// Writes SETTINGS, and the connection's window if it is not the default.
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        let own = &self.own;
        let mut payload = Vec::with_capacity(24);
        let mut put = |id: u16, value: u32| {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        };
        if self.server {
            put(setting::MAX_CONCURRENT_STREAMS, own.max_streams);
        } else {
            put(setting::ENABLE_PUSH, 0);
        }
        put(setting::INITIAL_WINDOW_SIZE, own.stream_window);
        if own.max_frame != FIRST_MAX_FRAME {
            put(setting::MAX_FRAME_SIZE, own.max_frame);
        }
        put(setting::MAX_HEADER_LIST_SIZE, own.limits.header_list);
        frame::put(out, kind::SETTINGS, 0, 0, &payload);
        if own.connection_window > FIRST_WINDOW {
            frame::put_number(out, kind::WINDOW_UPDATE, 0, own.connection_window - FIRST_WINDOW);
        }
    }

    /// One setting of the peer.
    pub(super) fn on_setting(&mut self, id: u16, value: u32) -> Result<(), Violation> {
        match id {
            setting::HEADER_TABLE_SIZE => self.encoder.set_peer_limit(value),
            // Only a client may enable it.
            setting::ENABLE_PUSH if value > u32::from(self.server) => return Err(Violation::BadSetting),
            setting::MAX_CONCURRENT_STREAMS => self.peer.max_streams = value,
            setting::INITIAL_WINDOW_SIZE => {
                let window = i32::try_from(value).map_err(|_| Violation::BadWindow)?;
                let change = i64::from(window) - i64::from(self.peer.stream_window);
                for stream in self.streams.each() {
                    let new = i64::from(stream.window) + change;
                    stream.window = i32::try_from(new).map_err(|_| Violation::BadWindow)?;
                }
                self.peer.stream_window = window;
            }
            setting::MAX_FRAME_SIZE if !(FIRST_MAX_FRAME..1 << 24).contains(&value) => {
                return Err(Violation::BadSetting);
            }
            setting::MAX_FRAME_SIZE => self.peer.max_frame = value,
            // The size of header lists is advisory, and unknown settings are ignored (section 6.5.2).
            _ => {}
        }
        Ok(())
    }
}
