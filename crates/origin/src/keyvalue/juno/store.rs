//! What a proxy asks of its stores. A write has two phases: *prepare* locks the key for the request, keeps the value and
//! says what there is; *commit* writes, *abort* and the lock's end do not. A read is one phase, and so is *repair*, by
//! which a proxy brings a store up to date that missed a write.

use hashbrown::hash_table::Entry;
use weir_wire::juno::{Message, Meta, Opcode, Payload, Status};
use xxhash_rust::xxh3::xxh3_64;

use super::client::conflicts;
use super::{
    About, Answered, Context, Id, Juno, Now, One, Record, WrongReply, after, expires_s, payload, refuse, stored_key,
    ttl, write_response,
};

/// How long a prepared write is kept, ns.
const LOCKED: u64 = 600_000_000;
/// The flag of a repair that writes a mark of deletion.
const MARKED: u8 = 2;

/// Statuses that only stores answer.
const INSERTING: Status = Status(15);
const ALREADY_FULFILLED: Status = Status(17);
const NOT_EXTENDED: Status = Status(23);
const SERVICE_DENIED: Status = Status(2);

/// A prepared write.
#[derive(Debug)]
pub(crate) struct Lock {
    key: Box<[u8]>,
    request: Id,
    until: Now,
    opcode: Opcode,
    value: Vec<u8>,
    kind: u8,
    /// There was no record.
    inserts: bool,
}

/// Answers a request of a proxy.
pub(super) fn respond(request: &Message<'_>, context: Context<'_, Juno>, out: &mut Vec<u8>) -> Answered {
    let Context { store, now, key, wrong_reply } = context;
    let Some(id) = request.meta.request_id.filter(|_| !request.namespace.is_empty() && !request.key.is_empty()) else {
        return refuse(request, Status::BAD_PARAMETER, out);
    };
    let key = stored_key(request, key);
    let (mut shard, hash) = store.lock(key);
    let mut one = One { request, id, shard: &mut shard, hash, key, now, wrong_reply };
    match request.opcode {
        Opcode::READ => one.read(wrong_reply == Some(WrongReply::Stale), out),
        Opcode::PREPARE_CREATE | Opcode::PREPARE_UPDATE | Opcode::PREPARE_SET | Opcode::PREPARE_DELETE => {
            one.prepare(out)
        }
        Opcode::COMMIT => one.commit(out),
        Opcode::ABORT => match one.take_lock() {
            Some(_) => refuse(request, Status::OK, out),
            None => refuse(request, Status::NO_UNCOMMITTED, out),
        },
        Opcode::REPAIR => one.repair(out),
        Opcode::DELETE => one.delete(out),
        Opcode::MARK_DELETE => one.mark_delete(out),
        _ => refuse(request, SERVICE_DENIED, out),
    }
}

impl One<'_> {
    fn record(&mut self) -> Option<&mut Record<About>> {
        self.shard.get(self.hash, self.key, self.now)
    }

    /// The request that holds the key, if one does.
    fn holder(&self) -> Option<Id> {
        let lock = self.shard.extra.find(self.hash, |lock| *lock.key == *self.key)?;
        (lock.until > self.now).then_some(lock.request)
    }

    /// Ends the lock that this request holds.
    fn take_lock(&mut self) -> Option<Lock> {
        self.holder().filter(|holder| holder == self.id)?;
        let found = self.shard.extra.find_entry(self.hash, |lock| *lock.key == *self.key).ok()?;
        Some(found.remove().0)
    }

    fn lock(&mut self, inserts: bool) {
        let One { request, id, hash, key, now, .. } = *self;
        let (until, opcode, kind) = (Now(now.0 + LOCKED), request.opcode, request.payload.kind);
        match self.shard.extra.entry(hash, |lock| *lock.key == *key, |lock| xxh3_64(&lock.key)) {
            Entry::Occupied(found) => {
                // It is over, or this request's own.
                let lock = found.into_mut();
                lock.value.clear();
                lock.value.extend_from_slice(request.payload.data);
                (lock.request, lock.until, lock.opcode, lock.kind, lock.inserts) = (*id, until, opcode, kind, inserts);
            }
            Entry::Vacant(place) => {
                let value = request.payload.data.to_vec();
                place.insert(Lock { key: key.into(), request: *id, until, opcode, value, kind, inserts });
            }
        }
    }

    fn prepare(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, id, now, .. } = *self;
        match self.holder() {
            Some(holder) if holder != *id => return refuse(request, Status::RECORD_LOCKED, out),
            Some(_) => return refuse(request, ALREADY_FULFILLED, out),
            None => {}
        }
        if request.opcode == Opcode::PREPARE_CREATE && request.meta.ttl == 0 {
            return refuse(request, Status::BAD_PARAMETER, out);
        }
        let conditional = request.opcode == Opcode::PREPARE_UPDATE && request.meta.version > 0;
        // What is said of the record that is there, if anything.
        let (status, inserts) = match self.record() {
            Some(record) if record.meta.request == *id => {
                say(request, ALREADY_FULFILLED, record, Says::Record, now, out);
                return self.locked(false);
            }
            Some(record) if record.meta.deleted && request.opcode != Opcode::PREPARE_DELETE => {
                if request.opcode == Opcode::PREPARE_CREATE || conditional {
                    (INSERTING, true)
                } else {
                    say(request, INSERTING, record, Says::All, now, out);
                    return self.locked(true);
                }
            }
            Some(record) if request.opcode == Opcode::PREPARE_CREATE => {
                say(request, Status::DUPLICATE_KEY, record, Says::Originator, now, out);
                return Answered::default();
            }
            Some(record) if conditional && conflicts(request, record) => {
                say(request, Status::VERSION_CONFLICT, record, Says::Value, now, out);
                return Answered::default();
            }
            Some(record) => {
                say(request, Status::OK, record, Says::All, now, out);
                return self.locked(false);
            }
            None if request.opcode == Opcode::PREPARE_DELETE => {
                refuse(request, Status::NO_KEY, out);
                return self.locked(true);
            }
            None if request.opcode == Opcode::PREPARE_CREATE => (Status::OK, true),
            None => (INSERTING, true),
        };
        let meta = Meta {
            request_id: request.meta.request_id,
            ttl: request.meta.ttl,
            created: if status == INSERTING { request.meta.created } else { 0 },
            expires: expires_s(after(now, request.meta.ttl)),
            ..Meta::default()
        };
        write_response(request, status, meta, Payload::default(), out);
        self.locked(inserts)
    }

    fn locked(&mut self, inserts: bool) -> Answered {
        self.lock(inserts);
        Answered::default()
    }

    fn commit(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, id, now, .. } = *self;
        let Some(lock) = self.take_lock() else {
            if let Some(record) = self.record()
                && record.meta.request == *id
            {
                say(request, ALREADY_FULFILLED, record, Says::Record, now, out);
                return Answered::default();
            }
            return refuse(request, Status::NO_UNCOMMITTED, out);
        };
        if lock.opcode == Opcode::PREPARE_DELETE {
            return match self.shard.remove_unless(self.loses(), self.hash, self.key, now) {
                Some(record) => {
                    say(request, Status::OK, &record, Says::All, now, out);
                    Answered { lied: self.loses(), ..Answered::default() }
                }
                None => refuse(request, Status::OK, out),
            };
        }
        let expires = asked_expiry(request, now);
        if request.meta.created == 0 || lock.inserts && expires <= now.ms() {
            return refuse(request, Status::BAD_PARAMETER, out);
        }
        let old = self.record().filter(|_| !lock.inserts);
        let former = old.map_or((0, *id), |old| (old.expires, old.meta.originator));
        let about = About { kind: lock.kind, ..about(request, former.1, false) };
        let expires = expires.max(former.0);
        let written = Record::new(expires, about.clone());
        if !self.loses() {
            self.shard.put(self.hash, self.key, &lock.value, expires, about, now);
        }
        say(request, Status::OK, &written, Says::All, now, out);
        Answered { lied: self.loses(), ..Answered::default() }
    }

    fn read(&mut self, stale: bool, out: &mut Vec<u8>) -> Answered {
        let One { request, now, .. } = *self;
        let mut status = Status::OK;
        if stale && let Some(former) = self.shard.former(self.hash, self.key, now) {
            let answered = match former {
                Some(record) => read_out(request, record, Status::OK, now, out),
                None => missed(request, out),
            };
            return Answered { lied: true, ..answered };
        }
        let locked = self.holder().is_some();
        let Some(record) = self.record() else { return missed(request, out) };
        let expires = asked_expiry(request, now);
        if record.meta.deleted {
            status = Status::MARKED_DELETE;
        } else if expires > record.expires {
            if locked {
                status = NOT_EXTENDED;
            } else {
                record.expires = expires;
            }
        }
        read_out(request, record, status, now, out)
    }

    /// Writes what the request says, whatever is there.
    fn repair(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, id, now, .. } = *self;
        if self.holder().is_some() {
            return refuse(request, Status::RECORD_LOCKED, out);
        }
        if !self.loses() {
            let about = about(request, *id, request.flags & MARKED != 0);
            self.shard.put(self.hash, self.key, request.payload.data, asked_expiry(request, now), about, now);
        }
        Answered { lied: self.loses(), ..refuse(request, Status::OK, out) }
    }

    fn delete(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, now, .. } = *self;
        if self.holder().is_some() {
            return refuse(request, Status::RECORD_LOCKED, out);
        }
        let Some(record) = self.shard.remove_unless(self.loses(), self.hash, self.key, now) else {
            return refuse(request, Status::NO_KEY, out);
        };
        say(request, Status::OK, &record, Says::Record, now, out);
        Answered { lied: self.loses(), ..Answered::default() }
    }

    /// Leaves a mark where a record is deleted while not every store can be asked.
    fn mark_delete(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, id, now, .. } = *self;
        let second_phase = self.take_lock().is_some();
        if !second_phase && self.holder().is_some() {
            return refuse(request, Status::RECORD_LOCKED, out);
        }
        let old = self.record().map(|record| (record.expires, record.meta.clone()));
        let (expires, about) = match old {
            Some((_, old)) if !second_phase && old.deleted && old.request == *id => {
                return refuse(request, ALREADY_FULFILLED, out);
            }
            Some((expires, old)) => {
                let asked = if second_phase { 0 } else { request.meta.version };
                let version = if asked == 0 { old.version.wrapping_add(1) } else { asked };
                (expires, About { version, ..old })
            }
            // There is nothing to mark.
            None if second_phase => return refuse(request, Status::OK, out),
            None if request.meta.originator.is_none() => return refuse(request, Status::BAD_PARAMETER, out),
            None => {
                let about = about(request, *id, true);
                (after(now, request.meta.ttl), About { version: about.version.max(1), ..about })
            }
        };
        let about = About { modified: now.0, request: *id, deleted: true, ..about };
        let marked = Record::new(expires, about.clone());
        if !self.loses() {
            self.shard.put(self.hash, self.key, &[], expires, about, now);
        }
        say(request, Status::OK, &marked, Says::All, now, out);
        Answered { lied: self.loses(), ..Answered::default() }
    }
}

/// When a record is to expire, as the request says it, ms since 1970.
fn asked_expiry(request: &Message<'_>, now: Now) -> u64 {
    match request.meta {
        Meta { expires: 0, ttl: 0, .. } => 0,
        Meta { expires: 0, ttl, .. } => after(now, ttl),
        Meta { expires, .. } => u64::from(expires) * 1000,
    }
}

/// What a request says of the record that it writes.
fn about(request: &Message<'_>, originator: Id, deleted: bool) -> About {
    About {
        created: request.meta.created,
        version: request.meta.version,
        modified: request.meta.modified,
        request: request.meta.request_id.copied().unwrap_or_default(),
        originator: request.meta.originator.copied().unwrap_or(originator),
        kind: request.payload.kind,
        deleted,
    }
}

fn read_out(request: &Message<'_>, record: &Record<About>, status: Status, now: Now, out: &mut Vec<u8>) -> Answered {
    say(request, status, record, Says::Read, now, out);
    Answered { hit: Some(!record.meta.deleted), value_out: record.value.len(), ..Answered::default() }
}

fn missed(request: &Message<'_>, out: &mut Vec<u8>) -> Answered {
    Answered { hit: Some(false), ..refuse(request, Status::NO_KEY, out) }
}

/// How much is said of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Version and times.
    Record,
    /// Also who wrote it first.
    Originator,
    /// Also when it was written last.
    All,
    /// Version, times and value.
    Value,
    /// Everything.
    Read,
}

fn say(request: &Message<'_>, status: Status, record: &Record<About>, says: Says, now: Now, out: &mut Vec<u8>) {
    let left = ttl(record.expires, now);
    let ttl = match request.opcode {
        Opcode::PREPARE_UPDATE | Opcode::PREPARE_SET => request.meta.ttl.max(left),
        Opcode::READ => left,
        _ => request.meta.ttl,
    };
    let whole = matches!(says, Says::All | Says::Read);
    let meta = Meta {
        request_id: request.meta.request_id,
        ttl,
        version: record.meta.version,
        created: record.meta.created,
        expires: if whole { expires_s(record.expires) } else { expires_s(after(now, ttl)) },
        modified: if whole { record.meta.modified } else { 0 },
        originator: (whole || says == Says::Originator).then_some(&record.meta.originator),
        ..Meta::default()
    };
    let payload = if matches!(says, Says::Value | Says::Read) { payload(record) } else { Payload::default() };
    write_response(request, status, meta, payload, out);
}
