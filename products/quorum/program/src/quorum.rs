//! One request, carried out on a quorum of the stores.
//!
//! A key's stores stand in an order of its own, by its hash. A write prepares and commits at the first two that can; a
//! read asks two, takes the newest record, and repairs the other. A write is acknowledged only when two stores have it.
//! Two of three that are read meet two of three that were written in at least one store, so that a read finds what was
//! acknowledged, whichever store is away or has been.

use std::hash::Hasher;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::link::Store;
use crate::message::{FLAG_MARK_DELETE, Message, Meta, op, status};
use crate::record;

/// Largest value, bytes; with its byte for the encoding one more.
const VALUE: usize = 204_800;
/// Longest time to live, s.
const TTL: u32 = 259_200;
/// Time to live where a request gives none, s.
const DEFAULT_TTL: u32 = 1_800;

/// The stores, and how many of them are a quorum.
#[derive(Debug)]
pub struct Quorum {
    stores: Vec<Arc<Store>>,
    needed: usize,
}

/// A store's answer, if there was one in time.
type Answer = (Arc<Store>, Option<Message>);

/// The answers to one request.
struct Answers {
    /// Of stores that did what they were asked.
    good: Vec<Answer>,
    bad: Vec<Answer>,
}

impl Answers {
    /// The newest record of which any store told.
    fn newest(&self) -> Option<&Message> {
        let told = self.good.iter().chain(&self.bad).filter_map(|(_, answer)| answer.as_ref());
        told.filter(|answer| answer.meta.version != 0).max_by_key(|answer| answer.meta.modified)
    }
}

impl Quorum {
    /// More than half of the stores are a quorum.
    pub fn new(stores: Vec<Store>) -> Quorum {
        let needed = stores.len() / 2 + 1;
        Quorum { stores: stores.into_iter().map(Arc::new).collect(), needed }
    }

    /// Carries out a client's request.
    pub async fn carry_out(&self, request: Message) -> Message {
        if request.opcode == op::NOP {
            return request.answer(status::OK);
        }
        let fits = (1..=64).contains(&request.namespace.len())
            && (1..=256).contains(&request.key.len())
            && request.payload.len() <= VALUE + 1
            && request.meta.ttl <= TTL
            && request.meta.request.is_some();
        let mut answer = match request.opcode {
            op::CREATE..=op::DESTROY if !fits => request.answer(status::BAD_PARAMETER),
            op::GET => self.get(&request).await,
            op::CREATE => self.write(&request, op::PREPARE_CREATE).await,
            op::UPDATE => self.write(&request, op::PREPARE_UPDATE).await,
            op::SET => self.write(&request, op::PREPARE_SET).await,
            op::DESTROY => self.destroy(&request).await,
            _ => request.answer(status::NOT_SUPPORTED),
        };
        answer.meta.kept = 0;
        Message { opcode: request.opcode, opaque: request.opaque, ..answer }
    }

    /// A key's stores, first choice first.
    fn order(&self, key: &[u8]) -> impl Iterator<Item = &Arc<Store>> {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(key);
        let first = (hasher.finish() % self.stores.len() as u64) as usize;
        self.stores[first..].iter().chain(&self.stores[..first])
    }

    /// Asks as many stores as are needed, and for each that does not answer well another one.
    async fn ask(&self, request: &Message, is_good: fn(u8) -> bool) -> Answers {
        let mut answers = Answers { good: Vec::new(), bad: Vec::new() };
        let mut stores = self.order(&request.key);
        while answers.good.len() < self.needed {
            let asked: Vec<_> = stores.by_ref().take(self.needed - answers.good.len()).cloned().collect();
            if asked.is_empty() {
                break;
            }
            for answer in tell(asked, request).await {
                let good = answer.1.as_ref().and_then(|answer| answer.status).is_some_and(is_good);
                if good { &mut answers.good } else { &mut answers.bad }.push(answer);
            }
        }
        answers
    }

    async fn write(&self, request: &Message, prepare: u8) -> Message {
        let prepare = Message { opcode: prepare, ..request.clone() };
        let good = |status| matches!(status, status::OK | status::INSERTING | status::ALREADY_FULFILLED);
        let mut prepared = self.ask(&prepare, good).await;
        let newest = prepared.newest().cloned();
        let newest_status = newest.as_ref().and_then(|newest| newest.status);
        let live = newest.as_ref().filter(|_| newest_status != Some(status::INSERTING));
        let enough = prepared.good.len() >= self.needed;
        let refusal = match newest_status {
            Some(status::DUPLICATE_KEY) => Some(request.answer(status::DUPLICATE_KEY)),
            Some(status::VERSION_CONFLICT) => newest.clone(),
            _ if !enough => Some(refusal(request, &prepared.bad)),
            _ if live.is_none() && prepare.opcode == op::PREPARE_UPDATE => Some(request.answer(status::NO_KEY)),
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.abort(request, &prepared, newest.as_ref()).await;
            return refusal;
        }
        let mut commit = phase_two(request, op::COMMIT);
        commit.meta = next(request, newest.as_ref(), live);
        if let Some(written) = live.filter(|live| live.status == Some(status::ALREADY_FULFILLED)) {
            // The same request came before, and may have reached one store only.
            commit.meta = Meta { request: request.meta.request, ..written.meta.clone() };
            prepared.good.retain(|(_, answer)| {
                answer.as_ref().and_then(|answer| answer.status) != Some(status::ALREADY_FULFILLED)
            });
        }
        self.settle(request, commit, prepared.good).await
    }

    async fn get(&self, request: &Message) -> Message {
        let mut read = Message { opcode: op::READ, ..request.clone() };
        if read.meta.ttl != 0 {
            read.meta.expires = record::now().saturating_add(read.meta.ttl);
        }
        let good = |status| matches!(status, status::OK | status::NO_KEY | status::MARKED_DELETE);
        let answers = self.ask(&read, good).await;
        if answers.good.len() < self.needed {
            return refusal(request, &answers.bad);
        }
        let Some(found) = answers.newest() else { return request.answer(status::NO_KEY) };
        let stale = answers
            .good
            .iter()
            .filter(|(_, answer)| answer.as_ref().is_some_and(|answer| answer.meta.modified < found.meta.modified));
        // Before the answer: what a client has seen must not vanish with the one store that had it.
        tell(stale.map(|(store, _)| Arc::clone(store)).collect(), &repair(found)).await;
        if found.status == Some(status::MARKED_DELETE) { request.answer(status::NO_KEY) } else { found.clone() }
    }

    /// Marks a record as deleted, at all stores that are there. The mark is a record like any other.
    async fn destroy(&self, request: &Message) -> Message {
        let prepare = Message { opcode: op::PREPARE_DELETE, ..request.clone() };
        let good =
            |answer: &Message| matches!(answer.status, Some(status::OK | status::NO_KEY | status::ALREADY_FULFILLED));
        let (good, bad) = tell(self.order(&request.key).cloned().collect(), &prepare)
            .await
            .into_iter()
            .partition(|(_, answer)| answer.as_ref().is_some_and(good));
        let prepared = Answers { good, bad };
        let newest = prepared.newest().cloned();
        let Some(newest) = newest.filter(|_| prepared.good.len() >= self.needed) else {
            let enough = prepared.good.len() >= self.needed;
            self.abort(request, &prepared, None).await;
            return if enough { request.answer(status::OK) } else { refusal(request, &prepared.bad) };
        };
        let mut mark = phase_two(request, op::MARK_DELETE);
        mark.flags = FLAG_MARK_DELETE;
        mark.meta = Meta { modified: after(&newest), request: request.meta.request, ..newest.meta };
        let answer = self.settle(request, mark, prepared.good).await;
        Message { meta: Meta { ttl: 0, created: 0, modified: 0, ..answer.meta.clone() }, ..answer }
    }

    /// The second phase: at the stores that prepared; where one of them fails, every other takes the record whole. The
    /// write is acknowledged when enough of them have it, and has failed otherwise, though one of them may have it.
    async fn settle(&self, request: &Message, second: Message, prepared: Vec<Answer>) -> Message {
        let answers = tell(prepared.into_iter().map(|(store, _)| store).collect(), &second).await;
        let mut done: Vec<_> = succeeded(answers).collect();
        if done.len() < self.needed {
            let missing = self.order(&request.key).filter(|store| !done.iter().any(|other| Arc::ptr_eq(store, other)));
            let payload = if second.opcode == op::COMMIT { request.payload.clone() } else { bytes::Bytes::new() };
            let repair = Message { opcode: op::REPAIR, payload, ..second.clone() };
            let missing = missing.cloned().collect();
            done.extend(succeeded(tell(missing, &repair).await));
        }
        if done.len() < self.needed {
            return request.answer(status::COMMIT_FAILURE);
        }
        Message { meta: second.meta, ..request.answer(status::OK) }
    }

    /// Unlocks what was prepared. A store that refused for a record which is deleted elsewhere is told of that.
    async fn abort(&self, request: &Message, prepared: &Answers, newest: Option<&Message>) {
        tell(prepared.good.iter().map(|(store, _)| Arc::clone(store)).collect(), &phase_two(request, op::ABORT)).await;
        let deleted = newest.filter(|newest| newest.status == Some(status::INSERTING));
        let stale =
            prepared.bad.iter().filter(|(_, answer)| answer.as_ref().is_some_and(|answer| answer.meta.version != 0));
        if let Some(deleted) = deleted {
            tell(stale.map(|(store, _)| Arc::clone(store)).collect(), &repair(deleted)).await;
        }
    }
}

/// Tells each of the stores the same, and waits for all.
async fn tell(stores: Vec<Arc<Store>>, request: &Message) -> Vec<Answer> {
    join_all(stores.into_iter().map(|store| async {
        let answer = store.ask(request.clone()).await;
        (store, answer)
    }))
    .await
}

/// The stores that did as they were told.
fn succeeded(answers: Vec<Answer>) -> impl Iterator<Item = Arc<Store>> {
    let ok = |answer: Option<Message>| answer.is_some_and(|answer| answer.status == Some(status::OK));
    answers.into_iter().filter_map(move |(store, answer)| ok(answer).then_some(store))
}

/// A request of the second phase, without a value.
fn phase_two(request: &Message, opcode: u8) -> Message {
    Message { opcode, payload: bytes::Bytes::new(), ..request.clone() }
}

/// Writes a record that was found to a store that has an older one or none.
fn repair(found: &Message) -> Message {
    let deleted = matches!(found.status, Some(status::MARKED_DELETE | status::INSERTING));
    Message {
        opcode: op::REPAIR,
        status: None,
        flags: if deleted { FLAG_MARK_DELETE } else { 0 },
        meta: Meta { request: found.meta.originator, ..found.meta.clone() },
        ..found.clone()
    }
}

/// A time after that of a record, whatever the clock does, ns since 1970.
fn after(newest: &Message) -> u64 {
    record::now_ns().max(newest.meta.modified + 1)
}

/// What is committed: a new record, or the next version of the one that is there.
fn next(request: &Message, newest: Option<&Message>, live: Option<&Message>) -> Meta {
    let now = record::now();
    let ttl = match (request.meta.ttl, live) {
        (0, None) => DEFAULT_TTL,
        (ttl, None) => ttl,
        (ttl, Some(live)) => ttl.max(live.meta.expires.saturating_sub(now)),
    };
    Meta {
        ttl,
        version: live.map_or(1, |live| live.meta.version + 1),
        created: live.map_or(now, |live| live.meta.created),
        expires: now.saturating_add(ttl),
        modified: newest.map_or_else(record::now_ns, after),
        kept: newest.map_or(0, |newest| newest.meta.kept),
        handling: 0,
        request: request.meta.request,
        originator: live.and_then(|live| live.meta.originator).or(request.meta.request),
    }
}

/// What a client is told when too few stores did as they were asked.
fn refusal(request: &Message, bad: &[Answer]) -> Message {
    let told: Vec<u8> = bad.iter().filter_map(|(_, answer)| answer.as_ref()?.status).collect();
    let status = [status::RECORD_LOCKED, status::BAD_PARAMETER, status::OUT_OF_RESOURCE, status::STORE_ERROR]
        .into_iter()
        .find(|status| told.contains(status));
    request.answer(status.unwrap_or(if told.is_empty() { status::NO_STORE } else { status::BUSY }))
}
