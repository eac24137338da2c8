//! What a client asks for: the operations of a single store, each done at once.

use weir_wire::juno::{Message, Meta, Opcode, Payload, Status};

use super::{
    About, Answered, Context, DEFAULT_TTL, HANDLING, Id, Juno, Now, One, Record, WrongReply, after, expires_s,
    is_valid, payload, refuse, stored_key, ttl, write_response,
};

/// Answers a request of a client.
pub(super) fn respond(request: &Message<'_>, context: Context<'_, Juno>, out: &mut Vec<u8>) -> Answered {
    let Context { store, now, key, wrong_reply } = context;
    let Some(id) = request.meta.request_id.filter(|_| is_valid(request)) else {
        return refuse(request, Status::BAD_PARAMETER, out);
    };
    let key = stored_key(request, key);
    let (mut shard, hash) = store.lock(key);
    let mut one = One { request, id, shard: &mut shard, hash, key, now, wrong_reply };
    match request.opcode {
        Opcode::GET => one.get(out),
        Opcode::CREATE | Opcode::UPDATE | Opcode::SET => one.write(out),
        Opcode::DESTROY => one.destroy(out),
        _ => refuse(request, Status::NOT_SUPPORTED, out),
    }
}

impl One<'_> {
    fn get(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, now, .. } = *self;
        let former = match self.wrong_reply {
            Some(WrongReply::Stale) => self.shard.former(self.hash, self.key, now),
            _ => None,
        };
        if let Some(former) = former {
            let answered = match former {
                Some(record) => found(request, record, self.id, now, out),
                None => absent(request, out),
            };
            return Answered { lied: true, ..answered };
        }
        let Some(record) = self.shard.get(self.hash, self.key, now).filter(|record| !record.meta.deleted) else {
            return absent(request, out);
        };
        if request.meta.ttl > 0 {
            record.expires = record.expires.max(after(now, request.meta.ttl));
        }
        found(request, record, self.id, now, out)
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, id, now, .. } = *self;
        let asked = request.meta.ttl;
        let old = self.shard.get(self.hash, self.key, now).filter(|record| !record.meta.deleted);
        let about = |version, created, originator| About {
            created,
            version,
            modified: now.0,
            request: *id,
            originator,
            kind: request.payload.kind,
            deleted: false,
        };
        let (about, expires) = match (request.opcode, old) {
            (Opcode::CREATE, Some(old)) if old.meta.request != *id => {
                return refuse(request, Status::DUPLICATE_KEY, out);
            }
            (Opcode::UPDATE, None) => return refuse(request, Status::NO_KEY, out),
            (Opcode::UPDATE, Some(old)) if conflicts(request, old) => {
                let meta = Meta { handling: HANDLING, ..meta(old, old.expires, id, now) };
                let meta = Meta { originator: None, modified: 0, ..meta };
                write_response(request, Status::VERSION_CONFLICT, meta, payload(old), out);
                return Answered::default();
            }
            (_, Some(old)) => {
                let expires = if asked == 0 { old.expires } else { old.expires.max(after(now, asked)) };
                (about(old.meta.version.wrapping_add(1), old.meta.created, old.meta.originator), expires)
            }
            (_, None) => (about(1, now.s(), *id), after(now, if asked == 0 { DEFAULT_TTL } else { asked })),
        };
        let written = Record::new(expires, about.clone());
        let lose = self.loses();
        let ends = WrongReply::expires(self.wrong_reply, expires, now);
        if !lose {
            self.shard.put(self.hash, self.key, request.payload.data, ends, about, now);
        }
        let lied = lose || ends != expires;
        write_response(request, Status::OK, meta(&written, expires, id, now), Payload::default(), out);
        Answered { lied, ..Answered::default() }
    }

    fn destroy(&mut self, out: &mut Vec<u8>) -> Answered {
        let One { request, id, now, .. } = *self;
        let lose = self.loses();
        let there = self.shard.remove_unless(lose, self.hash, self.key, now).map(|record| record.expires);
        let meta = Meta {
            handling: HANDLING,
            request_id: Some(id),
            originator: Some(id),
            version: 1,
            expires: there.map_or(0, expires_s),
            ..Meta::default()
        };
        write_response(request, Status::OK, meta, Payload::default(), out);
        Answered { lied: lose && there.is_some(), ..Answered::default() }
    }
}

/// An update that is conditional on a version, and the record has a newer one.
pub(super) fn conflicts(request: &Message<'_>, record: &Record<About>) -> bool {
    let Meta { version, created, originator, .. } = request.meta;
    version != 0
        && (version < record.meta.version
            || created != 0 && created != record.meta.created
            || originator.is_some_and(|originator| *originator != record.meta.originator))
}

fn found(request: &Message<'_>, record: &Record<About>, id: &Id, now: Now, out: &mut Vec<u8>) -> Answered {
    write_response(request, Status::OK, meta(record, record.expires, id, now), payload(record), out);
    Answered { hit: Some(true), value_out: record.value.len(), ..Answered::default() }
}

fn absent(request: &Message<'_>, out: &mut Vec<u8>) -> Answered {
    Answered { hit: Some(false), ..refuse(request, Status::NO_KEY, out) }
}

/// All that is said of a record.
fn meta<'a>(record: &'a Record<About>, expires: u64, id: &'a Id, now: Now) -> Meta<'a> {
    Meta {
        handling: HANDLING,
        request_id: Some(id),
        originator: Some(&record.meta.originator),
        modified: record.meta.modified,
        ttl: ttl(expires, now),
        version: record.meta.version,
        created: record.meta.created,
        expires: expires_s(expires),
    }
}
