//! Follows the messages of a broadcast: each goes from one connection to all, and is complete at the last. [`super`] hands over what comes.
//! This module does not know frames, nor when a message was sent.

use std::collections::{HashMap, VecDeque};

use weir_wire::stamp::{self, Message};

use crate::error::Violation;
use crate::protocol::Event;

/// Complete messages that are remembered, to find one that comes twice.
const REMEMBERED: usize = 1_024;

/// A message: the number of the connection that sent it, and its own.
type Key = (u32, u32);

/// The messages of one worker, which has all connections.
#[derive(Debug, Clone)]
pub(super) struct Broadcasts {
    /// The number in the stamps of this load.
    id: u64,
    connections: u32,
    arrivals: HashMap<Key, Arrivals>,
    /// The complete ones, oldest first.
    complete: VecDeque<Key>,
}

/// The connections that have one message.
#[derive(Debug, Clone)]
struct Arrivals {
    /// A bit for each connection.
    came: Vec<u64>,
    /// How many it has not come to.
    left: u32,
}

impl Broadcasts {
    pub(super) fn new(id: u64, connections: u32) -> Broadcasts {
        Broadcasts { id, connections, arrivals: HashMap::new(), complete: VecDeque::new() }
    }

    /// The number in the stamps of this load.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// A message came to this connection.
    ///
    /// # Errors
    /// One that was altered, that came to it before, or that another client sent.
    pub(super) fn on_message(&mut self, connection: u32, data: &[u8]) -> Result<Option<Event>, Violation> {
        let Message::Whole(stamp) = stamp::read(data) else { return Err("a message was altered".into()) };
        if stamp.stream != self.id || stamp.of >= self.connections {
            return Err("a message of another client".into());
        }
        let key = (stamp.of, stamp.number);
        let arrivals = self.arrivals.entry(key).or_insert_with(|| Arrivals {
            came: vec![0; self.connections.div_ceil(u64::BITS) as usize],
            left: self.connections,
        });
        let word = &mut arrivals.came[(connection / u64::BITS) as usize];
        let bit = 1 << (connection % u64::BITS);
        if *word & bit != 0 {
            return Err("a message that came twice".into());
        }
        *word |= bit;
        arrivals.left -= 1;
        if arrivals.left > 0 {
            return Ok(None);
        }
        self.complete.push_back(key);
        if self.complete.len() > REMEMBERED
            && let Some(oldest) = self.complete.pop_front()
        {
            self.arrivals.remove(&oldest);
        }
        Ok(Some(Event::Delivered { connection: stamp.of, message: stamp.number, bytes: data.len() as u32 }))
    }
}

#[cfg(test)]
mod tests {
    use weir_wire::stamp::Stamp;

    use super::*;

    fn message(id: u64, sender: u32, number: u32) -> Vec<u8> {
        let mut data = Vec::new();
        Stamp { stream: id, number, of: sender, due: 0, sent: 0 }.write(100, &mut data);
        data
    }

    #[test]
    fn a_message_is_complete_at_the_last_connection() {
        let mut broadcasts = Broadcasts::new(7, 130);
        for number in 0..3_000 {
            let data = message(7, 65, number);
            for connection in (0..130).rev() {
                let event = broadcasts.on_message(connection, &data).expect("right");
                let last = Event::Delivered { connection: 65, message: number, bytes: 100 };
                assert_eq!(event, (connection == 0).then_some(last));
            }
            let again = broadcasts.on_message(64, &data).expect_err("it came before");
            assert_eq!(again.to_string(), "a message that came twice");
        }
        assert_eq!(broadcasts.arrivals.len(), REMEMBERED, "what is remembered does not grow");
    }

    #[test]
    fn messages_of_others_and_altered_ones_are_refused() {
        let mut broadcasts = Broadcasts::new(7, 2);
        let mut altered = message(7, 0, 0);
        altered[50] ^= 1;
        for (data, wrong) in [
            (message(8, 0, 0), "a message of another client"),
            (message(7, 2, 0), "a message of another client"),
            (altered, "a message was altered"),
        ] {
            assert_eq!(broadcasts.on_message(0, &data).expect_err(wrong).to_string(), wrong);
        }
    }
}
