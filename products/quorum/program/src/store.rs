//! One store: prepared writes in memory, records in RocksDB.
//!
//! A write has two phases. *Prepare* locks the record for the request, keeps the new value, and says what there is;
//! *commit* writes it and unlocks, *abort* unlocks. A lock that is neither committed nor aborted ends after a while.
//! A store whose disk is nearly full takes no more writes, so that what it has taken is safe.
//! A deleted record stays as a mark until the time of what it deleted is over, so that it is told from one that this store
//! never had.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::config::{Config, Durability};
use crate::message::{FLAG_MARK_DELETE, Id, Message, op, status};
use crate::record::{self, Record};
use crate::rocks::Rocks;
use crate::server;

/// How long a prepared write is kept. Longer than the proxy waits for a store.
const LOCKED: Duration = Duration::from_millis(600);
/// How often locks that have ended are removed.
const SWEEP: Duration = Duration::from_secs(1);
/// How often a store looks how much room its disk has.
const LOOK: Duration = Duration::from_millis(100);
/// With less room than this, bytes, it takes no writes. RocksDB may end the process when it meets a full disk.
const ROOM: u64 = 32 << 20;
/// Locks lie in so many tables, by the key's hash.
const TABLES: usize = 64;

/// A store.
#[derive(Debug)]
struct Store {
    rocks: &'static Rocks,
    tables: [Mutex<HashMap<Bytes, Lock>>; TABLES],
    hasher: RandomState,
    /// Writes wait for the disk.
    slow: bool,
    /// The disk has no room for writes.
    full: AtomicBool,
}

/// A record that is about to be written.
#[derive(Debug)]
struct Lock {
    request: Id,
    until: Instant,
    payload: Bytes,
}

impl Lock {
    fn is_held(&self) -> bool {
        self.until > Instant::now()
    }
}

/// Serves as the store of this place in the configuration, until the process ends.
pub async fn serve(config: Config, store: usize, rocks: &'static Rocks) -> anyhow::Result<()> {
    let (listen, monitor) = (config.stores[store], config.monitors.map(|monitors| monitors[store]));
    let store: &'static Store = Box::leak(Box::new(Store::new(rocks, config.durability == Durability::Fsync)));
    tokio::spawn(async {
        loop {
            tokio::time::sleep(SWEEP).await;
            store.sweep();
        }
    });
    tokio::spawn(async {
        loop {
            store.full.store(rocks.room() < ROOM, Ordering::Relaxed);
            tokio::time::sleep(LOOK).await;
        }
    });
    if let Some(monitor) = monitor {
        let listener = server::listen(monitor)?;
        tokio::spawn(server::accept(listener, |stream| tell(stream, rocks)));
    }
    let listener = server::listen(listen)?;
    server::accept(listener, |stream| server::messages(stream, |request| store.handle(request))).await;
    Ok(())
}

/// Tells the database's numbers over HTTP, once for a connection.
async fn tell(mut stream: tokio::net::TcpStream, rocks: &Rocks) {
    let _ = stream.read(&mut [0; 4096]).await;
    let numbers = rocks.numbers().map(|(name, number)| format!("\"{name}\":{number}"));
    let body = format!("{{{}}}\n", numbers.join(","));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let response = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(response.as_bytes()).await;
}

impl Store {
    fn new(rocks: &'static Rocks, slow: bool) -> Store {
        let tables = std::array::from_fn(|_| Mutex::default());
        Store { rocks, tables, hasher: RandomState::new(), slow, full: AtomicBool::new(false) }
    }

    async fn handle(&self, request: Message) -> Message {
        let writes = matches!(request.opcode, op::COMMIT | op::REPAIR | op::MARK_DELETE);
        let carried_out = if writes && self.slow {
            tokio::task::block_in_place(|| self.carry_out(&request))
        } else {
            self.carry_out(&request)
        };
        carried_out.unwrap_or_else(|error| {
            eprintln!("weir-quorum: {error:#}");
            request.response(status::STORE_ERROR)
        })
    }

    fn carry_out(&self, request: &Message) -> anyhow::Result<Message> {
        if request.opcode == op::NOP {
            return Ok(request.response(status::OK));
        }
        let Some(id) = request.meta.request.filter(|_| !request.key.is_empty()) else {
            return Ok(request.response(status::BAD_PARAMETER));
        };
        let key = stored_key(request);
        match request.opcode {
            op::PREPARE_CREATE | op::PREPARE_UPDATE | op::PREPARE_SET | op::PREPARE_DELETE | op::REPAIR
                if self.is_full() =>
            {
                Ok(request.response(status::OUT_OF_RESOURCE))
            }
            op::PREPARE_CREATE | op::PREPARE_UPDATE | op::PREPARE_SET | op::PREPARE_DELETE => {
                self.prepare(request, id, key)
            }
            op::COMMIT | op::ABORT | op::MARK_DELETE => self.finish(request, id, &key),
            op::READ => self.read(request, &key),
            op::REPAIR => self.repair(request, id, &key),
            _ => Ok(request.response(status::NOT_SUPPORTED)),
        }
    }

    /// What is kept of a key.
    fn record(&self, key: &[u8]) -> anyhow::Result<Option<Record>> {
        Ok(self.rocks.get(key)?.and_then(Record::decode).filter(|record| record.kept > record::now()))
    }

    fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    fn table(&self, key: &[u8]) -> MutexGuard<'_, HashMap<Bytes, Lock>> {
        let table = self.hasher.hash_one(key) as usize % TABLES;
        self.tables[table].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sweep(&self) {
        for table in &self.tables {
            table.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, lock| lock.is_held());
        }
    }

    fn prepare(&self, request: &Message, id: Id, key: Bytes) -> anyhow::Result<Message> {
        let mut table = self.table(&key);
        if table.get(&key).is_some_and(Lock::is_held) {
            return Ok(request.response(status::RECORD_LOCKED));
        }
        let record = self.record(&key)?;
        let live = record.as_ref().filter(|record| record.is_live());
        let asked = request.meta.version;
        let (status, locks) = match (request.opcode, live) {
            (_, Some(record)) if record.request == id => (status::ALREADY_FULFILLED, false),
            (op::PREPARE_CREATE, Some(_)) => (status::DUPLICATE_KEY, false),
            (op::PREPARE_DELETE, None) => (status::NO_KEY, true),
            (_, Some(record)) if asked != 0 && asked < record.version => (status::VERSION_CONFLICT, false),
            (_, Some(_)) => (status::OK, true),
            (_, None) => (status::INSERTING, true),
        };
        if locks {
            table.insert(key, Lock { request: id, until: Instant::now() + LOCKED, payload: request.payload.clone() });
        }
        let mut response = request.response(status);
        if let Some(record) = record {
            response.meta = record.meta(Some(id));
            if status == status::VERSION_CONFLICT {
                response.payload = record.payload;
            }
        }
        Ok(response)
    }

    /// The second phase. The lock is kept until the record is written.
    fn finish(&self, request: &Message, id: Id, key: &Bytes) -> anyhow::Result<Message> {
        let mut table = self.table(key);
        let Some(lock) = table.get(key).filter(|lock| lock.is_held() && lock.request == id) else {
            return Ok(request.response(status::NO_UNCOMMITTED));
        };
        match request.opcode {
            op::COMMIT => self.rocks.put(key, &Record::of(request, lock.payload.clone()).encode())?,
            op::MARK_DELETE => {
                let mark = Record { deleted: true, ..Record::of(request, Bytes::new()) };
                self.rocks.put(key, &mark.encode())?;
            }
            _ => {}
        }
        table.remove(key);
        Ok(request.response(status::OK))
    }

    fn read(&self, request: &Message, key: &Bytes) -> anyhow::Result<Message> {
        let Some(mut record) = self.record(key)? else { return Ok(request.response(status::NO_KEY)) };
        if record.is_live() && request.meta.expires > record.expires && !self.is_full() {
            // Read again below the lock: a write may have come in between.
            let table = self.table(key);
            let locked = table.get(key).is_some_and(Lock::is_held);
            if let Some(newest) = self.record(key)?.filter(|newest| !locked && newest.is_live()) {
                let expires = newest.expires.max(request.meta.expires);
                record = Record { expires, kept: newest.kept.max(expires), ..newest };
                self.rocks.put(key, &record.encode())?;
            }
        }
        let mut response = request.response(if record.is_live() { status::OK } else { status::MARKED_DELETE });
        response.meta = record.meta(request.meta.request);
        response.payload = record.payload;
        Ok(response)
    }

    /// Writes a record as it stands in the request, unless what is there is as new.
    fn repair(&self, request: &Message, id: Id, key: &Bytes) -> anyhow::Result<Message> {
        let mut table = self.table(key);
        if table.get(key).is_some_and(|lock| lock.is_held() && lock.request != id) {
            return Ok(request.response(status::RECORD_LOCKED));
        }
        if self.record(key)?.is_none_or(|record| record.modified < request.meta.modified) {
            let deleted = request.flags & FLAG_MARK_DELETE != 0;
            let payload = if deleted { Bytes::new() } else { request.payload.clone() };
            self.rocks.put(key, &Record::of(request, payload).encode())?;
        }
        table.remove(key);
        Ok(request.response(status::OK))
    }
}

/// Namespace and key as one, so that no two pairs are alike.
fn stored_key(request: &Message) -> Bytes {
    let mut key = BytesMut::with_capacity(1 + request.namespace.len() + request.key.len());
    key.put_u8(request.namespace.len() as u8);
    key.put_slice(&request.namespace);
    key.put_slice(&request.key);
    key.freeze()
}
