//! What one connection knows of its keys: which there are, what was written last, and so what a read may return.
//!
//! A key belongs to one connection and is in one request at a time, so the connection knows the order of all that happened
//! to it. A write gives a key its next version. A request that was not answered, or refused, may have been carried out, now
//! or later: from then on a read of the key may return its version too, or nothing if it was a removal. Times are milliseconds
//! since the load began. A server acts on a request between its sending and its response. So the end of a value's life is known as
//! closely as its write was measured. `keyvalue` calls this module; it knows neither bytes nor servers.

use weir_model::keyvalue::Operation;
use weir_model::load::ErrorKind;

/// What a server said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A write or a removal was carried out.
    Done,
    /// A read found this version; 0: not what was written to this key.
    Found(u32),
    /// There is no such key.
    NotFound,
    /// The key is there already.
    Exists,
    /// It was refused or lost, and may have been carried out all the same.
    Failed,
}

/// A key in a request, until its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// The key's number.
    pub number: u64,
    /// The version that a write writes.
    pub version: u32,
    /// Where it stands among the keys.
    pub index: u32,
    pub operation: Operation,
}

/// How long values live. Times are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lives {
    /// A value lives at least so long after it was written; `u32::MAX`: for ever.
    pub least: u32,
    /// It is gone after that time.
    pub ends: bool,
    /// A read lets it live as long again.
    pub extended_by_reads: bool,
    /// By how much a server may end a life too early, and too late, because its protocol counts no finer.
    pub early: u32,
    pub late: u32,
}

/// When a request was sent, and when its response came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub sent: u32,
    pub received: u32,
}

/// The end of the list of positions without a key.
const END: u32 = u32::MAX;

/// The keys of one connection.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// Positions of keys that are in no request, where any of them will do; picking one is a swap and a pop.
    idle: Vec<u32>,
    /// The first position without a key. What is there has the next one's in `sent`, so that a list takes no room.
    free: Option<u32>,
    /// The number of the next fresh key.
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    number: u64,
    /// The last version that was acknowledged; 0: none.
    acknowledged: u32,
    /// The last version that was sent.
    sent: u32,
    /// Versions from this one on may be read although a later one was acknowledged; `u32::MAX`: none.
    doubtful: u32,
    /// When its time is over at the earliest.
    expires: u32,
    /// How much later that may be, because it is not known when the server carried out the write.
    expires_within: u16,
    /// It may be absent: never written, removed, or a removal may have been carried out.
    may_be_absent: bool,
    /// It may be there.
    may_be_present: bool,
    /// Nothing is known of it yet: another load may have written it.
    unknown: bool,
    /// A removal may be carried out at any time.
    removal_in_doubt: bool,
    /// A write may be carried out at any time, so that its time has no end.
    end_in_doubt: bool,
    /// It is in a request.
    busy: bool,
}

impl Keys {
    /// No keys; the first fresh one gets this number.
    pub(crate) fn fresh(first: u64) -> Keys {
        Keys { next: first, ..Keys::default() }
    }

    /// Adds the keys of a known set, of which nothing is known or which were all written once, with lives that end between these times.
    pub(crate) fn add_known(&mut self, numbers: impl Iterator<Item = u64>, written: Option<(u32, u32)>) {
        self.keys.extend(numbers.map(|number| match written {
            Some((earliest, latest)) => {
                let mut key =
                    Key { acknowledged: 1, sent: 1, may_be_absent: false, may_be_present: true, ..Key::absent(number) };
                key.expire_between(earliest, latest);
                key
            }
            None => Key { may_be_present: true, unknown: true, ..Key::absent(number) },
        }));
    }

    /// The keys so far may live longer than was said.
    pub(crate) fn doubt_ends(&mut self) {
        self.keys.iter_mut().for_each(|key| key.end_in_doubt = true);
    }

    /// Lets all keys be picked as idle ones.
    pub(crate) fn idle_all(&mut self) {
        self.idle.extend(0..self.keys.len() as u32);
    }

    /// How many keys there are in all.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// How many keys can be picked as idle ones.
    pub(crate) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// A fresh key; the next one's number is `step` further.
    #[inline]
    pub(crate) fn make(&mut self, step: u64, operation: Operation) -> InFlight {
        let key = Key::absent(self.next);
        self.next += step;
        let index = match self.free {
            Some(index) => {
                let free = std::mem::replace(&mut self.keys[index as usize], key);
                self.free = (free.sent != END).then_some(free.sent);
                index
            }
            None => {
                if self.keys.len() == self.keys.capacity() {
                    // A vector begins with room for four, and most of very many connections have one.
                    self.keys.reserve_exact(self.keys.len().max(1));
                }
                self.keys.push(key);
                self.keys.len() as u32 - 1
            }
        };
        self.begin(index, operation)
    }

    /// Has the key at this position fetched from memory, which takes as long as the rest of a request.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        if let Some(key) = self.keys.get(index) {
            prefetch(key);
        }
    }

    /// The same of an idle key, by its place among them.
    #[inline]
    pub(crate) fn prefetch_idle(&self, place: usize) {
        if let Some(index) = self.idle.get(place) {
            self.prefetch(*index as usize);
        }
    }

    /// One of the idle keys, by its place among them.
    #[inline]
    pub(crate) fn pick_idle(&mut self, place: usize, operation: Operation) -> InFlight {
        let index = self.idle.swap_remove(place);
        self.begin(index, operation)
    }

    /// The key at this position, or the first behind it that is in no request. There is one.
    #[inline]
    pub(crate) fn pick_at(&mut self, mut index: usize, operation: Operation) -> InFlight {
        while self.keys[index].busy {
            index = if index + 1 == self.keys.len() { 0 } else { index + 1 };
        }
        self.begin(index as u32, operation)
    }

    #[inline]
    fn begin(&mut self, index: u32, operation: Operation) -> InFlight {
        let key = &mut self.keys[index as usize];
        key.busy = true;
        key.sent += u32::from(operation.writes());
        InFlight { number: key.number, version: key.sent, index, operation }
    }

    /// The response came.
    ///
    /// # Errors
    /// What is wrong with it. What was lost, stale or resurrected is so only once: what was seen is believed from then on.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        done: &InFlight,
        outcome: Outcome,
        times: Times,
        lives: &Lives,
    ) -> Result<(), ErrorKind> {
        let key = &mut self.keys[done.index as usize];
        key.busy = false;
        match done.operation {
            Operation::Get => key.read(outcome, times, lives),
            Operation::Destroy => key.removed(outcome, times, lives),
            Operation::Create | Operation::Update | Operation::Set => key.written(done, outcome, times, lives),
        }
    }

    /// The key is in no request any more: it becomes idle if it is there, and is forgotten if it may be absent.
    #[inline]
    pub(crate) fn keep_or_forget(&mut self, done: &InFlight) {
        let key = &mut self.keys[done.index as usize];
        if key.may_be_present && !key.may_be_absent {
            self.idle.push(done.index);
        } else {
            key.sent = self.free.replace(done.index).unwrap_or(END);
        }
    }
}

impl Key {
    fn absent(number: u64) -> Key {
        Key {
            number,
            acknowledged: 0,
            sent: 0,
            doubtful: u32::MAX,
            expires: u32::MAX,
            expires_within: 0,
            may_be_absent: true,
            may_be_present: false,
            unknown: false,
            removal_in_doubt: false,
            end_in_doubt: false,
            busy: false,
        }
    }

    /// Its life ends between these times.
    fn expire_between(&mut self, earliest: u32, latest: u32) {
        self.expires = earliest;
        match u16::try_from(latest - earliest) {
            Ok(within) => self.expires_within = within,
            // A write that took a minute has no end that is known to the second.
            Err(_) => self.end_in_doubt = true,
        }
    }

    /// Its time was certainly over when a request was sent.
    fn is_over(&self, times: Times, lives: &Lives) -> bool {
        let latest = self.expires.saturating_add(u32::from(self.expires_within)).saturating_add(lives.late);
        lives.ends && !self.end_in_doubt && times.sent > latest
    }

    /// Whether its absence would be right.
    fn can_be_absent(&self, times: Times, lives: &Lives) -> bool {
        self.may_be_absent || self.removal_in_doubt || times.received.saturating_add(lives.early) >= self.expires
    }

    /// Whether its presence would be right.
    fn can_be_present(&self, times: Times, lives: &Lives) -> bool {
        self.may_be_present && !self.is_over(times, lives)
    }

    fn read(&mut self, outcome: Outcome, times: Times, lives: &Lives) -> Result<(), ErrorKind> {
        match outcome {
            Outcome::Found(version) => {
                let verdict = self.found(version, times, lives);
                let extended = times.sent.saturating_add(lives.least);
                if lives.extended_by_reads && extended > self.expires {
                    self.expire_between(extended, times.received.saturating_add(lives.least));
                }
                verdict
            }
            Outcome::NotFound => self.not_found(times, lives),
            Outcome::Failed => {
                self.end_in_doubt |= lives.extended_by_reads;
                Ok(())
            }
            Outcome::Done | Outcome::Exists => Ok(()),
        }
    }

    fn found(&mut self, version: u32, times: Times, lives: &Lives) -> Result<(), ErrorKind> {
        if version == 0 {
            return Err(ErrorKind::WrongValue);
        }
        if self.unknown {
            (self.acknowledged, self.sent, self.unknown) = (version, self.sent.max(version), false);
            (self.may_be_absent, self.end_in_doubt) = (false, true);
            return Ok(());
        }
        if version > self.sent {
            return Err(ErrorKind::WrongValue);
        }
        if !self.can_be_present(times, lives) {
            (self.may_be_present, self.end_in_doubt) = (true, true);
            self.doubtful = self.doubtful.min(version);
            return Err(ErrorKind::Resurrected);
        }
        if version < self.acknowledged.min(self.doubtful) {
            self.doubtful = version;
            return Err(ErrorKind::Stale);
        }
        Ok(())
    }

    fn not_found(&mut self, times: Times, lives: &Lives) -> Result<(), ErrorKind> {
        let right = self.can_be_absent(times, lives);
        self.may_be_absent = true;
        if right { Ok(()) } else { Err(ErrorKind::Lost) }
    }

    fn removed(&mut self, outcome: Outcome, times: Times, lives: &Lives) -> Result<(), ErrorKind> {
        let verdict = match outcome {
            Outcome::Done => Ok(()),
            Outcome::NotFound => self.not_found(times, lives),
            Outcome::Found(_) | Outcome::Exists | Outcome::Failed => {
                (self.may_be_absent, self.removal_in_doubt) = (true, true);
                return Ok(());
            }
        };
        // A version that was there before the removal is not to be read again.
        self.sent += 1;
        self.acknowledged = self.sent;
        (self.may_be_absent, self.may_be_present, self.unknown) = (true, self.doubtful != u32::MAX, false);
        verdict
    }

    fn written(&mut self, done: &InFlight, outcome: Outcome, times: Times, lives: &Lives) -> Result<(), ErrorKind> {
        match outcome {
            Outcome::Done => {
                let verdict = match done.operation {
                    Operation::Create if !self.can_be_absent(times, lives) => Err(ErrorKind::Lost),
                    Operation::Update if !self.can_be_present(times, lives) => Err(ErrorKind::Resurrected),
                    _ => Ok(()),
                };
                self.acknowledged = done.version;
                (self.may_be_absent, self.may_be_present) = (self.removal_in_doubt, true);
                (self.unknown, self.end_in_doubt) = (false, self.doubtful != u32::MAX);
                self.expire_between(times.sent.saturating_add(lives.least), times.received.saturating_add(lives.least));
                verdict
            }
            Outcome::Exists => {
                let right = self.can_be_present(times, lives);
                (self.may_be_present, self.may_be_absent) = (true, self.may_be_absent && right);
                self.unknown |= !right;
                if right { Ok(()) } else { Err(ErrorKind::Resurrected) }
            }
            Outcome::NotFound => self.not_found(times, lives),
            Outcome::Failed | Outcome::Found(_) => {
                self.doubtful = self.doubtful.min(done.version);
                (self.may_be_present, self.end_in_doubt) = (true, true);
                Ok(())
            }
        }
    }
}

/// Tells the CPU that a value is needed soon. Nothing waits for it, and nothing but the cache changes.
#[inline]
fn prefetch<T>(value: &T) {
    let address = std::ptr::from_ref(value);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it reads nothing into the program, and x86-64 always has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it reads nothing into the program, and changes neither memory nor flags.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use weir_model::keyvalue::Operation::{self, Create, Destroy, Get, Set, Update};

    use super::*;

    const FOR_EVER: Lives = Lives { least: u32::MAX, ends: false, extended_by_reads: false, early: 0, late: 0 };

    const START: Times = Times { sent: 0, received: 0 };

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        None,
        /// The request is carried out, and the response lost.
        ResponseLost,
        /// The request is lost.
        RequestLost,
        /// The request is carried out some requests later, and not answered.
        Late,
        /// A write is acknowledged and not carried out.
        LoseWrite,
        /// The version before is read.
        Stale,
        /// A removed version is read.
        Resurrect,
    }

    /// A server with one memory, and faults.
    #[derive(Default)]
    struct Server {
        now: HashMap<u64, u32>,
        before: HashMap<u64, u32>,
        removed: HashMap<u64, u32>,
        late: Vec<InFlight>,
    }

    impl Server {
        fn carry_out(&mut self, request: &InFlight) -> Outcome {
            let key = request.number;
            match request.operation {
                Get => self.now.get(&key).map_or(Outcome::NotFound, |version| Outcome::Found(*version)),
                Create if self.now.contains_key(&key) => Outcome::Exists,
                Update if !self.now.contains_key(&key) => Outcome::NotFound,
                Destroy => {
                    self.before.remove(&key);
                    match self.now.remove(&key) {
                        Some(version) => {
                            self.removed.insert(key, version);
                            Outcome::Done
                        }
                        None => Outcome::NotFound,
                    }
                }
                Create | Update | Set => {
                    if let Some(old) = self.now.insert(key, request.version) {
                        self.before.insert(key, old);
                    }
                    Outcome::Done
                }
            }
        }

        fn serve(&mut self, request: &InFlight, fault: Fault) -> Outcome {
            let key = request.number;
            match fault {
                Fault::RequestLost => Outcome::Failed,
                Fault::ResponseLost => {
                    self.carry_out(request);
                    Outcome::Failed
                }
                Fault::Late => {
                    self.late.push(*request);
                    Outcome::Failed
                }
                Fault::LoseWrite if request.operation.writes() => Outcome::Done,
                Fault::Stale if request.operation == Get => {
                    self.before.get(&key).map_or(Outcome::NotFound, |v| Outcome::Found(*v))
                }
                Fault::Resurrect if request.operation == Get => {
                    self.removed.get(&key).map_or(Outcome::NotFound, |v| Outcome::Found(*v))
                }
                _ => self.carry_out(request),
            }
        }
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![Just(Create), Just(Get), Just(Update), Just(Set), Just(Destroy)]
    }

    /// Keys 0 to 7, which nobody has written.
    fn keys() -> Keys {
        let mut keys = Keys::fresh(8);
        keys.add_known(0..8, None);
        (0..8).for_each(|index| keys.keys[index] = Key::absent(index as u64));
        keys
    }

    fn go(
        keys: &mut Keys,
        server: &mut Server,
        at: usize,
        operation: Operation,
        fault: Fault,
    ) -> Result<(), ErrorKind> {
        let request = keys.pick_at(at, operation);
        let outcome = server.serve(&request, fault);
        keys.finish(&request, outcome, START, &FOR_EVER)
    }

    proptest! {
        #[test]
        fn a_right_server_is_never_blamed(
            steps in proptest::collection::vec((operation(), 0usize..8, 0u8..12), 0..300), known in any::<bool>(),
        ) {
            let (mut keys, mut server) = (keys(), Server::default());
            if known {
                // An earlier load wrote some of them.
                keys = Keys::fresh(8);
                keys.add_known(0..8, None);
                server.now.extend([(1, 57), (2, 1), (5, 3)]);
            }
            for (operation, at, fault) in steps {
                let fault = match fault { 0 => Fault::ResponseLost, 1 => Fault::RequestLost, 2 => Fault::Late, _ => Fault::None };
                if fault == Fault::None && operation == Get && !server.late.is_empty() {
                    let late = server.late.remove(0);
                    server.carry_out(&late);
                }
                prop_assert_eq!(go(&mut keys, &mut server, at, operation, fault), Ok(()), "{:?} {:?}", operation, fault);
            }
        }

        #[test]
        fn faults_are_found_whatever_was_before(before in proptest::collection::vec(operation(), 0..60)) {
            for (first, second, fault, wrong) in [
                (Destroy, Set, Fault::LoseWrite, ErrorKind::Lost),
                (Set, Set, Fault::Stale, ErrorKind::Stale),
                (Set, Destroy, Fault::Resurrect, ErrorKind::Resurrected),
            ] {
                let (mut keys, mut server) = (keys(), Server::default());
                for operation in &before {
                    go(&mut keys, &mut server, 0, *operation, Fault::None).unwrap();
                }
                go(&mut keys, &mut server, 0, first, Fault::None).unwrap();
                go(&mut keys, &mut server, 0, second, fault).unwrap();
                prop_assert_eq!(go(&mut keys, &mut server, 0, Get, fault), Err(wrong));
                prop_assert_eq!(go(&mut keys, &mut server, 0, Get, fault), Ok(()), "it is counted once");
            }
        }
    }

    #[test]
    fn answers_to_writes_are_checked_too() {
        for (present, operation, outcome, wrong) in [
            (true, Create, Outcome::Done, ErrorKind::Lost),
            (true, Update, Outcome::NotFound, ErrorKind::Lost),
            (true, Destroy, Outcome::NotFound, ErrorKind::Lost),
            (false, Update, Outcome::Done, ErrorKind::Resurrected),
            (false, Create, Outcome::Exists, ErrorKind::Resurrected),
            (true, Get, Outcome::Found(0), ErrorKind::WrongValue),
            (true, Get, Outcome::Found(9), ErrorKind::WrongValue),
        ] {
            let mut keys = keys();
            if present {
                let set = keys.pick_at(3, Set);
                keys.finish(&set, Outcome::Done, START, &FOR_EVER).unwrap();
            }
            let request = keys.pick_at(3, operation);
            assert_eq!(keys.finish(&request, outcome, START, &FOR_EVER), Err(wrong), "{operation:?} {outcome:?}");
        }
    }

    #[test]
    fn lives_end_as_closely_as_the_write_was_measured() {
        let lives = Lives { least: 10_000, ends: true, extended_by_reads: false, early: 1_000, late: 2_000 };
        let written = |lives: &Lives| {
            let mut keys = keys();
            let set = keys.pick_at(0, Set);
            keys.finish(&set, Outcome::Done, Times { sent: 100, received: 130 }, lives).unwrap();
            keys
        };
        // It ends between 10.1 s and 10.13 s.
        for (sent, received, gone, there) in [
            (300, 310, false, true),
            (9_000, 9_099, false, true),
            (9_000, 9_100, true, true),
            (12_130, 12_500, true, true),
            (12_131, 12_140, true, false),
        ] {
            for (outcome, right, wrong) in
                [(Outcome::NotFound, gone, ErrorKind::Lost), (Outcome::Found(1), there, ErrorKind::Resurrected)]
            {
                let mut keys = written(&lives);
                let get = keys.pick_at(0, Get);
                let expected = if right { Ok(()) } else { Err(wrong) };
                let times = Times { sent, received };
                assert_eq!(keys.finish(&get, outcome, times, &lives), expected, "{times:?} {outcome:?}");
            }
        }
        let extended = Lives { extended_by_reads: true, ..lives };
        let mut keys = written(&extended);
        for (at, outcome, verdict) in
            [(5_000, Outcome::Found(1), Ok(())), (13_999, Outcome::NotFound, Err(ErrorKind::Lost))]
        {
            let get = keys.pick_at(0, Get);
            assert_eq!(keys.finish(&get, outcome, Times { sent: at, received: at }, &extended), verdict);
        }
    }

    #[test]
    fn a_write_of_more_than_a_minute_has_no_known_end() {
        let lives = Lives { least: 10_000, ends: true, extended_by_reads: false, early: 0, late: 0 };
        let mut keys = keys();
        let set = keys.pick_at(0, Set);
        keys.finish(&set, Outcome::Done, Times { sent: 0, received: 70_000 }, &lives).unwrap();
        let get = keys.pick_at(0, Get);
        assert_eq!(keys.finish(&get, Outcome::Found(1), Times { sent: 999_999, received: 999_999 }, &lives), Ok(()));
    }

    #[test]
    fn fresh_keys_are_forgotten_when_they_are_gone() {
        let mut keys = Keys::fresh(100);
        let made = keys.make(7, Create);
        assert_eq!((made.number, made.version, keys.idle()), (100, 1, 0));
        keys.finish(&made, Outcome::Done, START, &FOR_EVER).unwrap();
        keys.keep_or_forget(&made);
        assert_eq!(keys.idle(), 1);
        let gone = keys.pick_idle(0, Destroy);
        keys.finish(&gone, Outcome::Done, START, &FOR_EVER).unwrap();
        keys.keep_or_forget(&gone);
        let next = keys.make(7, Create);
        assert_eq!(
            (next.number, next.index, keys.len(), keys.idle()),
            (107, made.index, 1, 0),
            "its place is used again"
        );
        // Where it is not known whether it was made it is left alone.
        keys.finish(&next, Outcome::Failed, START, &FOR_EVER).unwrap();
        keys.keep_or_forget(&next);
        assert_eq!(keys.idle(), 0);
    }

    #[test]
    fn a_key_in_a_request_is_not_picked() {
        let mut keys = keys();
        let numbers = [7, 7, 7].map(|at| keys.pick_at(at, Get).number);
        assert_eq!(numbers, [7, 0, 1]);
        assert!(size_of::<Key>() <= 32, "{}", size_of::<Key>());
    }
}
