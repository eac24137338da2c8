//! The product of the world, which `make faults` runs on a kernel's driver: a proxy for HTTP/1.1 with workers, a service time and a pool of connections to its origins, honest or not.
//! It knows messages whose bodies have a length, which is what weir's origin sends.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_net::{Address, Conn, Driver, Event, Handler, Io, Next, Task};

use crate::misbehaviour::{self, Fault, message_length};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// Requests until the load is taken to have begun: weir's own are fewer.
const BEFORE_LOAD: u64 = 100;

/// Memory of a product that does nothing special, bytes.
pub const PRODUCT_MEMORY: u64 = 20_000_000;

/// How it serves.
#[derive(Debug, Clone)]
pub struct ProductOptions {
    /// CPU time that a request takes, nanoseconds; a request waits until a worker is free for it.
    pub service: u64,
    /// Requests that are worked on at a time.
    pub workers: usize,
    /// Connections to the origins that it has at most; requests wait for one.
    pub upstreams: usize,
    /// A connection to an origin carries more than one request.
    pub keep_alive: bool,
    /// Where requests go, in turn.
    pub origins: Vec<Address>,
    /// Its misbehaviour.
    pub fault: Fault,
    /// Its route, where that changes.
    pub route: SharedRoute,
}

/// What a product has taken of the changes of its route.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// The number of the last; `None`: responses show none.
    pub number: Option<u32>,
    /// Where requests go since, instead of to the origins in turn.
    pub origin: Option<Address>,
    /// Requests whose connections are still to be reset for it.
    pub drops: u64,
}

/// A product's route, shared with whoever changes it.
pub type SharedRoute = Arc<Mutex<Route>>;

/// What the product has spent, for the world's vitals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
    /// Bytes of memory at most.
    pub memory: u64,
    /// Bytes written to disk.
    pub written: u64,
    /// A CPU that is not its own on which its threads may run, and the one on which they do.
    pub may_use: Option<u32>,
    /// See `may_use`.
    pub runs_on: Option<u32>,
    /// Another process does its work, and has its connections.
    pub is_handed_over: bool,
}

/// A product's counters, shared with whoever reads its vitals.
pub type SharedSpent = Arc<Mutex<Spent>>;

/// The product. Its listener is given to its driver.
#[derive(Debug)]
pub struct Product {
    options: ProductOptions,
    spent: SharedSpent,
    clients: HashMap<Conn, Client>,
    upstreams: HashMap<Conn, Upstream>,
    idle: Vec<Conn>,
    /// Exchanges that wait for a connection to an origin.
    waiting: VecDeque<Exchange>,
    /// When each worker is free.
    workers: Vec<u64>,
    jobs: BinaryHeap<Reverse<(u64, u64)>>,
    planned: HashMap<u64, Exchange>,
    last_job: u64,
    next_origin: usize,
    requests: u64,
    /// When the load began.
    began: Option<u64>,
    cache: HashMap<Vec<u8>, Vec<u8>>,
    /// Requests that wait for the response of another ([`Fault::Coalesce`]); `None`: none is under way.
    coalesced: Option<Vec<Exchange>>,
    /// A request whose response goes to another ([`Fault::Exchange`]), and that response.
    displaced: Option<(Exchange, Vec<u8>)>,
    /// Connections so far.
    accepted: u64,
    /// Clients that have not read their response ([`Fault::Block`]).
    unread: BTreeSet<Conn>,
}

#[derive(Debug, Default)]
struct Client {
    input: Vec<u8>,
    /// Bytes that are dropped when they come: the body of a request that was taken without it.
    dropped: usize,
    /// Which connection it is, from 0.
    number: u64,
    /// A request of it is worked on.
    is_busy: bool,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Upstream {
    /// Which of them it goes to.
    origin: usize,
    exchange: Option<Exchange>,
    input: Vec<u8>,
}

/// A request and what is to come of its response.
#[derive(Debug, Clone)]
struct Exchange {
    client: Conn,
    number: u64,
    request: Vec<u8>,
    /// How often the origin is asked before the client has its response.
    asks: u32,
    /// The client has its response already, or gets that of another exchange.
    is_silent: bool,
}

impl Product {
    /// A product that has served nothing.
    pub fn new(options: ProductOptions, spent: SharedSpent) -> Product {
        let workers = vec![0; options.workers.max(1)];
        {
            let mut spent = spent.lock().unwrap_or_else(PoisonError::into_inner);
            spent.is_handed_over = matches!(options.fault, Fault::HandOver(_));
            (spent.may_use, spent.runs_on) = match options.fault {
                Fault::Elsewhere(cpu) => (Some(cpu as u32), Some(cpu as u32)),
                Fault::Anywhere => (Some(0), None),
                _ => (None, None),
            };
        }
        Product {
            options,
            spent,
            clients: HashMap::new(),
            upstreams: HashMap::new(),
            idle: Vec::new(),
            waiting: VecDeque::new(),
            workers,
            jobs: BinaryHeap::new(),
            planned: HashMap::new(),
            last_job: 0,
            next_origin: 0,
            requests: 0,
            began: None,
            cache: HashMap::new(),
            coalesced: None,
            displaced: None,
            accepted: 0,
            unread: BTreeSet::new(),
        }
    }

    fn route(&self) -> MutexGuard<'_, Route> {
        self.options.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The origin of the next request.
    fn next_origin(&mut self) -> usize {
        let chosen = self.route().origin.clone();
        let Some(chosen) = chosen else {
            self.next_origin += 1;
            return (self.next_origin - 1) % self.options.origins.len();
        };
        let origins = &mut self.options.origins;
        origins.iter().position(|origin| *origin == chosen).unwrap_or_else(|| {
            origins.push(chosen);
            origins.len() - 1
        })
    }

    fn spend(&self, change: impl FnOnce(&mut Spent)) {
        change(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Time since the load began.
    fn age(&self, now: u64) -> u64 {
        self.began.map_or(0, |began| now - began)
    }

    /// Takes the next whole request of a client, unless one is worked on.
    fn take_request<I: Io>(&mut self, io: &mut I, conn: Conn) {
        let now = io.now();
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let dropped = client.dropped.min(client.input.len());
        client.input.drain(..dropped);
        client.dropped -= dropped;
        if client.is_busy {
            return;
        }
        let length = match misbehaviour::head_and_body(&client.input) {
            Some((head, body)) if self.options.fault == Fault::Early && self.requests >= BEFORE_LOAD => {
                client.dropped = body;
                Some(head)
            }
            _ => message_length(&client.input),
        };
        let Some(length) = length else {
            if client.has_ended {
                self.clients.remove(&conn);
                io.close(conn);
            }
            return;
        };
        let request: Vec<u8> = client.input.drain(..length).collect();
        client.is_busy = true;
        let connection = client.number;
        let number = self.requests;
        self.requests += 1;
        if number == BEFORE_LOAD {
            self.began = Some(now);
        }
        let service = self.options.service * self.options.fault.work(&request);
        self.spend(|spent| spent.cpu_ns += service);
        // The worker that is free first takes it, unless its connection belongs to one.
        let free = match self.options.fault {
            Fault::Uneven => &mut self.workers[usize::from(connection % 5 == 4)],
            _ => self.workers.iter_mut().min().expect("there is one"),
        };
        let done = (*free).max(now) + service;
        *free = done;
        let at = self.delay(done, number, connection);
        self.last_job += 1;
        self.jobs.push(Reverse((at, self.last_job)));
        let exchange = Exchange { client: conn, number, request, asks: 1, is_silent: false };
        self.planned.insert(self.last_job, exchange);
    }

    /// When a request goes on, that is served at `done`.
    fn delay(&self, done: u64, number: u64, connection: u64) -> u64 {
        const LONGER: u64 = 5 * MILLI;
        if number < BEFORE_LOAD {
            return done;
        }
        let age = self.age(done);
        match self.options.fault {
            Fault::Step(second) if age >= second * SECOND => done + LONGER,
            Fault::StepUp(second) if age < second * SECOND => done + LONGER,
            Fault::Ramp => done + age / 2_000,
            Fault::SlowConnection(n) if connection.is_multiple_of(n) => done + 4 * MILLI,
            // Longer than any client waits.
            Fault::Swallow(n) if connection.is_multiple_of(n) && age < 300 * MILLI => done + 600 * SECOND,
            Fault::Stall => done + (200 * MILLI).saturating_sub(age % SECOND),
            Fault::Pause(second) if age / SECOND == second => done + SECOND - age % SECOND,
            Fault::Freeze(second) if age >= second * SECOND => done + 600 * SECOND,
            _ => done,
        }
    }

    /// Serves a request that was worked on.
    fn serve<I: Io>(&mut self, io: &mut I, mut exchange: Exchange) {
        let (number, now) = (exchange.number, io.now());
        let in_load = number >= BEFORE_LOAD;
        if self.route().drops > 0 {
            self.route().drops -= 1;
            self.clients.remove(&exchange.client);
            return io.abort(exchange.client);
        }
        let one_in = |n: u64| in_load && number % n == n / 2;
        let cached = || self.cache.get(&misbehaviour::cache_key(&exchange.request)).cloned();
        if self.options.fault.refuses(&exchange.request, in_load) {
            if self.options.fault == Fault::AuthenticateLate && in_load {
                self.ask(io, Exchange { is_silent: true, ..exchange.clone() });
            }
            return self.respond(io, exchange.client, misbehaviour::UNAUTHORIZED);
        }
        match self.options.fault {
            Fault::Cache | Fault::Forge | Fault::Revalidate | Fault::ForgeAll => {
                if let Some(mut response) = cached() {
                    if matches!(self.options.fault, Fault::Forge | Fault::ForgeAll) {
                        response = misbehaviour::forge_id(response, &exchange.request);
                    }
                    if self.options.fault == Fault::ForgeAll {
                        response = misbehaviour::forge_time(response, now / 1_000);
                    }
                    if matches!(self.options.fault, Fault::Revalidate | Fault::ForgeAll) {
                        self.ask(io, Exchange { is_silent: true, ..exchange.clone() });
                    }
                    return self.respond(io, exchange.client, &response);
                }
            }
            Fault::CacheAndTwice if number.is_multiple_of(10) => {
                if let Some(response) = cached() {
                    return self.respond(io, exchange.client, &response);
                }
            }
            Fault::CacheAndTwice if number % 10 == 5 => exchange.asks = 2,
            Fault::Coalesce if in_load => {
                if let Some(others) = &mut self.coalesced {
                    return others.push(exchange);
                }
                self.coalesced = Some(Vec::new());
            }
            Fault::Mirror => self.ask(io, Exchange { is_silent: true, ..exchange.clone() }),
            Fault::Retry(n) if one_in(n) => exchange.asks = 2,
            Fault::Refuse(n) | Fault::GzipRefuse(n) if one_in(n) => {
                return self.respond(io, exchange.client, misbehaviour::REFUSAL);
            }
            Fault::Reset(n) if one_in(n) => {
                self.clients.remove(&exchange.client);
                return io.abort(exchange.client);
            }
            Fault::Own if exchange.request.starts_with(misbehaviour::OWN_PATHS) => {
                return self.respond(io, exchange.client, misbehaviour::OWN);
            }
            Fault::Spike if number == BEFORE_LOAD + 3_000 => self.spend(|spent| spent.memory = 600_000_000),
            Fault::Log => {
                let length = exchange.request.len() as u64;
                self.spend(|spent| spent.written += length);
            }
            _ => {}
        }
        self.ask(io, exchange);
    }

    /// Sends a request to an origin, once there is a connection for it.
    fn ask<I: Io>(&mut self, io: &mut I, mut exchange: Exchange) {
        let origin = self.next_origin();
        let to_origin = |conn: &Conn| self.upstreams.get(conn).is_some_and(|upstream| upstream.origin == origin);
        let conn = match self.idle.iter().rposition(to_origin).map(|at| self.idle.remove(at)) {
            Some(conn) => conn,
            None if self.upstreams.len() < self.options.upstreams => {
                match io.connect(&self.options.origins[origin], None) {
                    Ok(conn) => {
                        self.upstreams.insert(conn, Upstream { origin, ..Upstream::default() });
                        conn
                    }
                    Err(_) => return self.refuse(io, &exchange),
                }
            }
            None => match self.idle.pop() {
                Some(conn) => conn,
                None => return self.waiting.push_back(exchange),
            },
        };
        if exchange.number >= BEFORE_LOAD
            && let Some(changed) = misbehaviour::change_request(&self.options.fault, &exchange.request, exchange.number)
        {
            exchange.request = changed;
        }
        io.send(conn, &exchange.request);
        if let Some(upstream) = self.upstreams.get_mut(&conn) {
            upstream.exchange = Some(exchange);
        }
    }

    /// The origin's response to an exchange is whole.
    fn receive<I: Io>(&mut self, io: &mut I, conn: Conn, response: Vec<u8>) {
        let Some(upstream) = self.upstreams.get_mut(&conn) else { return };
        let Some(mut exchange) = upstream.exchange.take() else { return };
        if self.options.keep_alive {
            self.idle.push(conn);
        } else {
            self.upstreams.remove(&conn);
            io.close(conn);
        }
        exchange.asks -= 1;
        if exchange.asks > 0 {
            self.ask(io, exchange);
        } else {
            self.finish(io, exchange, response);
        }
        if let Some(next) = self.waiting.pop_front() {
            self.ask(io, next);
        }
    }

    /// The client of an exchange gets its response.
    fn finish<I: Io>(&mut self, io: &mut I, exchange: Exchange, response: Vec<u8>) {
        let (number, request) = (exchange.number, &exchange.request);
        let in_load = number >= BEFORE_LOAD;
        let response = match self.options.fault {
            Fault::Strip => misbehaviour::strip_id(response),
            Fault::Corrupt(n) if in_load && number % n == n / 2 => misbehaviour::corrupt(response),
            Fault::Header(second) if in_load && self.age(io.now()) >= second * SECOND => {
                misbehaviour::add_header(response, misbehaviour::ADDED_HEADER)
            }
            Fault::GzipMost(n) if in_load && number % n == n / 2 => response,
            Fault::Gzip | Fault::GzipMost(_) | Fault::GzipRefuse(_) => {
                misbehaviour::compress(response, request).unwrap_or_default()
            }
            _ => response,
        };
        let response = match self.route().number {
            Some(change) => misbehaviour::add_header(response, format!("X-Weir-Change: {change}\r\n").as_bytes()),
            None => response,
        };
        if let Fault::Truncate(n) = self.options.fault
            && in_load
            && number % n == n / 2
        {
            self.clients.remove(&exchange.client);
            io.send(exchange.client, &response[..response.len() - 64]);
            return io.close(exchange.client);
        }
        if let Fault::Exchange(n) = self.options.fault
            && in_load
        {
            if let Some((other, of_other)) = self.displaced.take() {
                self.respond(io, other.client, &response);
                return self.respond(io, exchange.client, &of_other);
            }
            if number % n == n / 2 {
                self.displaced = Some((exchange, response));
                return;
            }
        }
        if !exchange.is_silent {
            self.cache.entry(misbehaviour::cache_key(request)).or_insert_with(|| response.clone());
            self.respond(io, exchange.client, &response);
        }
        if self.options.fault == Fault::Coalesce && in_load {
            for other in self.coalesced.take().unwrap_or_default() {
                self.respond(io, other.client, &response);
            }
        }
    }

    fn respond<I: Io>(&mut self, io: &mut I, conn: Conn, response: &[u8]) {
        if let Some(client) = self.clients.get_mut(&conn) {
            client.is_busy = false;
            io.send(conn, response);
            if self.options.fault == Fault::Block {
                self.unread.insert(conn);
                io.want_sent(conn);
            }
            self.take_request(io, conn);
        }
    }

    fn refuse<I: Io>(&mut self, io: &mut I, exchange: &Exchange) {
        if !exchange.is_silent {
            self.respond(io, exchange.client, b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        }
    }

    /// A connection to an origin has ended.
    fn lose_upstream<I: Io>(&mut self, io: &mut I, conn: Conn) {
        self.idle.retain(|idle| *idle != conn);
        if let Some(exchange) = self.upstreams.remove(&conn).and_then(|upstream| upstream.exchange) {
            self.refuse(io, &exchange);
        }
        if let Some(next) = self.waiting.pop_front() {
            self.ask(io, next);
        }
    }
}

impl Handler for Product {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Accepted(_) => {
                if matches!(self.options.fault, Fault::Connections(most) if self.clients.len() as u64 >= most) {
                    return io.abort(conn);
                }
                let number = self.accepted;
                self.accepted += 1;
                self.clients.insert(conn, Client { number, ..Client::default() });
                if let Fault::Hold(bytes) = self.options.fault {
                    let memory = PRODUCT_MEMORY + bytes * self.clients.len() as u64;
                    self.spend(|spent| spent.memory = spent.memory.max(memory));
                }
            }
            Event::Data(bytes) => {
                if let Some(client) = self.clients.get_mut(&conn) {
                    client.input.extend_from_slice(bytes);
                    self.take_request(io, conn);
                } else if let Some(upstream) = self.upstreams.get_mut(&conn) {
                    upstream.input.extend_from_slice(bytes);
                    if let Some(length) = message_length(&upstream.input) {
                        let response = upstream.input.drain(..length).collect();
                        self.receive(io, conn, response);
                    }
                }
            }
            Event::Eof => {
                self.unread.remove(&conn);
                if let Some(client) = self.clients.get_mut(&conn) {
                    client.has_ended = true;
                    self.take_request(io, conn);
                } else {
                    io.close(conn);
                    self.lose_upstream(io, conn);
                }
            }
            Event::Failed { .. } => {
                self.unread.remove(&conn);
                if self.clients.remove(&conn).is_none() {
                    self.lose_upstream(io, conn);
                }
            }
            Event::Sent => drop(self.unread.remove(&conn)),
            Event::Connected | Event::Datagrams(_) | Event::Skipped(_) => {}
        }
    }
}

impl<D: Driver> Task<D> for Product {
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        while self.unread.is_empty()
            && let Some(Reverse((at, job))) = self.jobs.peek().copied()
            && at <= driver.now()
        {
            self.jobs.pop();
            if let Some(exchange) = self.planned.remove(&job) {
                self.serve(driver, exchange);
            }
        }
        let next = self.jobs.peek().filter(|_| self.unread.is_empty());
        Ok(Next::Poll(next.map(|Reverse((at, _))| *at)))
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}
