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

/// A store's response, if there was one in time.
type Response = (Arc<Store>, Option<Message>);

/// The responses to one request.
struct Responses {
    /// Of stores that did what they were asked.
    good: Vec<Response>,
    bad: Vec<Response>,
}

impl Responses {
    /// The newest record of which any store told.
    fn newest(&self) -> Option<&Message> {
        let told = self.good.iter().chain(&self.bad).filter_map(|(_, response)| response.as_ref());
        told.filter(|response| response.meta.version != 0).max_by_key(|response| response.meta.modified)
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
            return request.response(status::OK);
        }
        let fits = (1..=64).contains(&request.namespace.len())
            && (1..=256).contains(&request.key.len())
            && request.payload.len() <= VALUE + 1
            && request.meta.ttl <= TTL
            && request.meta.request.is_some();
        let mut response = match request.opcode {
            op::CREATE..=op::DESTROY if !fits => request.response(status::BAD_PARAMETER),
            op::GET => self.get(&request).await,
            op::CREATE => self.write(&request, op::PREPARE_CREATE).await,
            op::UPDATE => self.write(&request, op::PREPARE_UPDATE).await,
            op::SET => self.write(&request, op::PREPARE_SET).await,
            op::DESTROY => self.destroy(&request).await,
            _ => request.response(status::NOT_SUPPORTED),
        };
        response.meta.kept = 0;
        Message { opcode: request.opcode, opaque: request.opaque, ..response }
    }

    /// A key's stores, first choice first.
    fn order(&self, key: &[u8]) -> impl Iterator<Item = &Arc<Store>> {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(key);
        let first = (hasher.finish() % self.stores.len() as u64) as usize;
        self.stores[first..].iter().chain(&self.stores[..first])
    }

    /// Asks as many stores as are needed, and for each that does not answer well another one.
    async fn ask(&self, request: &Message, is_good: fn(u8) -> bool) -> Responses {
        let mut responses = Responses { good: Vec::new(), bad: Vec::new() };
        let mut stores = self.order(&request.key);
        while responses.good.len() < self.needed {
            let asked: Vec<_> = stores.by_ref().take(self.needed - responses.good.len()).cloned().collect();
            if asked.is_empty() {
                break;
            }
            for response in tell(asked, request).await {
                let good = response.1.as_ref().and_then(|response| response.status).is_some_and(is_good);
                if good { &mut responses.good } else { &mut responses.bad }.push(response);
            }
        }
        responses
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
            Some(status::DUPLICATE_KEY) => Some(request.response(status::DUPLICATE_KEY)),
            Some(status::VERSION_CONFLICT) => newest.clone(),
            _ if !enough => Some(refusal(request, &prepared.bad)),
            _ if live.is_none() && prepare.opcode == op::PREPARE_UPDATE => Some(request.response(status::NO_KEY)),
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
            prepared.good.retain(|(_, response)| {
                response.as_ref().and_then(|response| response.status) != Some(status::ALREADY_FULFILLED)
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
        let responses = self.ask(&read, good).await;
        if responses.good.len() < self.needed {
            return refusal(request, &responses.bad);
        }
        let Some(found) = responses.newest() else { return request.response(status::NO_KEY) };
        let stale = responses
            .good
            .iter()
            .filter(|(_, response)| response.as_ref().is_some_and(|response| response.meta.modified < found.meta.modified));
        // Before the response: what a client has seen must not vanish with the one store that had it.
        tell(stale.map(|(store, _)| Arc::clone(store)).collect(), &repair(found)).await;
        if found.status == Some(status::MARKED_DELETE) { request.response(status::NO_KEY) } else { found.clone() }
    }

    /// Marks a record as deleted, at all stores that are there. The mark is a record like any other.
    async fn destroy(&self, request: &Message) -> Message {
        let prepare = Message { opcode: op::PREPARE_DELETE, ..request.clone() };
        let good =
            |response: &Message| matches!(response.status, Some(status::OK | status::NO_KEY | status::ALREADY_FULFILLED));
        let (good, bad) = tell(self.order(&request.key).cloned().collect(), &prepare)
            .await
            .into_iter()
            .partition(|(_, response)| response.as_ref().is_some_and(good));
        let prepared = Responses { good, bad };
        let newest = prepared.newest().cloned();
        let Some(newest) = newest.filter(|_| prepared.good.len() >= self.needed) else {
            let enough = prepared.good.len() >= self.needed;
            self.abort(request, &prepared, None).await;
            return if enough { request.response(status::OK) } else { refusal(request, &prepared.bad) };
        };
        let mut mark = phase_two(request, op::MARK_DELETE);
        mark.flags = FLAG_MARK_DELETE;
        mark.meta = Meta { modified: after(&newest), request: request.meta.request, ..newest.meta };
        let response = self.settle(request, mark, prepared.good).await;
        Message { meta: Meta { ttl: 0, created: 0, modified: 0, ..response.meta.clone() }, ..response }
    }

    /// The second phase: at the stores that prepared; where one of them fails, every other takes the record whole. The
    /// write is acknowledged when enough of them have it, and has failed otherwise, though one of them may have it.
    async fn settle(&self, request: &Message, second: Message, prepared: Vec<Response>) -> Message {
        let responses = tell(prepared.into_iter().map(|(store, _)| store).collect(), &second).await;
        let mut done: Vec<_> = succeeded(responses).collect();
        if done.len() < self.needed {
            let missing = self.order(&request.key).filter(|store| !done.iter().any(|other| Arc::ptr_eq(store, other)));
            let payload = if second.opcode == op::COMMIT { request.payload.clone() } else { bytes::Bytes::new() };
            let repair = Message { opcode: op::REPAIR, payload, ..second.clone() };
            let missing = missing.cloned().collect();
            done.extend(succeeded(tell(missing, &repair).await));
        }
        if done.len() < self.needed {
            return request.response(status::COMMIT_FAILURE);
        }
        Message { meta: second.meta, ..request.response(status::OK) }
    }

    /// Unlocks what was prepared. A store that refused for a record which is deleted elsewhere is told of that.
    async fn abort(&self, request: &Message, prepared: &Responses, newest: Option<&Message>) {
        tell(prepared.good.iter().map(|(store, _)| Arc::clone(store)).collect(), &phase_two(request, op::ABORT)).await;
        let deleted = newest.filter(|newest| newest.status == Some(status::INSERTING));
        let stale =
            prepared.bad.iter().filter(|(_, response)| response.as_ref().is_some_and(|response| response.meta.version != 0));
        if let Some(deleted) = deleted {
            tell(stale.map(|(store, _)| Arc::clone(store)).collect(), &repair(deleted)).await;
        }
    }
}

/// Tells each of the stores the same, and waits for all.
async fn tell(stores: Vec<Arc<Store>>, request: &Message) -> Vec<Response> {
    join_all(stores.into_iter().map(|store| async {
        let response = store.ask(request.clone()).await;
        (store, response)
    }))
    .await
}

/// The stores that did as they were told.
fn succeeded(responses: Vec<Response>) -> impl Iterator<Item = Arc<Store>> {
    let ok = |response: Option<Message>| response.is_some_and(|response| response.status == Some(status::OK));
    responses.into_iter().filter_map(move |(store, response)| ok(response).then_some(store))
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
fn refusal(request: &Message, bad: &[Response]) -> Message {
    let told: Vec<u8> = bad.iter().filter_map(|(_, response)| response.as_ref()?.status).collect();
    let status = [status::RECORD_LOCKED, status::BAD_PARAMETER, status::OUT_OF_RESOURCE, status::STORE_ERROR]
        .into_iter()
        .find(|status| told.contains(status));
    request.response(status.unwrap_or(if told.is_empty() { status::NO_STORE } else { status::BUSY }))
}
