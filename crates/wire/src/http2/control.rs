//! Frames that control a connection or a stream and carry no message (RFC 9113 sections 6.3 to 6.10).

use super::body::Output;
use super::conn::{Conn, Event, FrameResult, MAX_WINDOW, todo};
use super::frame::{self, Head, flag, kind};
use super::{Code, ResetCause, StreamError, Violation};

impl Conn {
    #[cold]
    pub(super) fn on_rare_frame<O: Output>(&mut self, head: Head, payload: &[u8], out: &mut O) -> FrameResult {
        if head.kind != kind::RST_STREAM {
            self.on_idle_frame()?;
        }
        match head.kind {
            kind::CONTINUATION => return self.on_continuation(head, payload, out.buffer()),
            kind::RST_STREAM => return self.on_reset(head.stream, Code(frame::number(payload))),
            kind::SETTINGS if head.has(flag::ACK) => self.settings_acked = true,
            kind::SETTINGS => {
                for entry in payload.as_chunks::<6>().0 {
                    let [a, b, value @ ..] = *entry;
                    self.on_setting(u16::from_be_bytes([a, b]), u32::from_be_bytes(value))?;
                }
                self.settings_seen = true;
                frame::put(out.buffer(), kind::SETTINGS, flag::ACK, 0, &[]);
                self.pump(out);
                return Ok(Some(Event::Settings));
            }
            kind::PUSH_PROMISE => return Err(Violation::Push),
            kind::PING if !head.has(flag::ACK) => frame::put(out.buffer(), kind::PING, flag::ACK, 0, payload),
            kind::GOAWAY => {
                let last = frame::number(payload) & MAX_WINDOW;
                if self.goaway.is_some_and(|(before, _)| last > before) {
                    return Err(Violation::BadGoAway);
                }
                let code = Code(frame::number(&payload[4..]));
                self.goaway = Some((last, code));
                if !self.server {
                    self.todo |= todo::GONE;
                }
                return Ok(Some(Event::GoAway { code }));
            }
            // PRIORITY has no meaning any more (section 5.3.2), and no response to a PING is awaited.
            _ => {}
        }
        Ok(None)
    }

    pub(super) fn on_window_update<O: Output>(&mut self, id: u32, payload: u32, out: &mut O) -> FrameResult {
        let increment = (payload & MAX_WINDOW) as i32;
        if id == 0 {
            if increment == 0 {
                return Err(Violation::NoIncrement);
            }
            self.window = self.window.checked_add(increment).ok_or(Violation::BadWindow)?;
        } else if let Some(slot) = self.streams.find(id) {
            let stream = self.streams.at(slot);
            match stream.window.checked_add(increment) {
                _ if increment == 0 => return Ok(Some(self.malformed(slot, StreamError::NoIncrement, out.buffer()))),
                None => return Ok(Some(self.malformed(slot, StreamError::BadWindow, out.buffer()))),
                Some(window) => stream.window = window,
            }
        } else if self.is_idle(id) {
            return Err(Violation::WrongStream);
        }
        if self.pump(out) {
            self.idle_frames = 0;
        } else {
            self.on_idle_frame()?;
        }
        // Sent bodies are reported before the next frame is read.
        Ok(if self.todo & todo::FINISHED != 0 { self.follow_up() } else { None })
    }

    /// Whether a stream was never opened.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id.is_multiple_of(2) || id > self.last
    }

    #[cold]
    fn on_reset(&mut self, id: u32, code: Code) -> FrameResult {
        if let Some(slot) = self.streams.find(id) {
            if self.server {
                self.resets += 1;
                if self.resets > self.own.limits.resets {
                    return Err(Violation::ResetFlood);
                }
            }
            return Ok(Some(self.lose(slot, ResetCause::Peer(code))));
        }
        if self.is_idle(id) {
            return Err(Violation::WrongStream);
        }
        self.on_idle_frame()?;
        Ok(None)
    }

    #[cold]
    fn on_continuation(&mut self, head: Head, payload: &[u8], out: &mut Vec<u8>) -> FrameResult {
        let Some(mut block) = self.block.take() else {
            return Err(Violation::Continuation);
        };
        block.bytes.extend_from_slice(payload);
        let most = self.own.limits.header_list.saturating_mul(2);
        if block.bytes.len() as u64 > u64::from(most) {
            return Err(Violation::BlockTooLarge(most));
        }
        if head.has(flag::END_HEADERS) {
            return self.on_block(block.stream, block.ends, &block.bytes, out);
        }
        self.block = Some(block);
        Ok(None)
    }
}
