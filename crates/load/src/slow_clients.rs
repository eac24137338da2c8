//! Slow clients during a load: connections that receive a large response, or send a large request, a little each second. They are a task
//! of their own, with a driver of their own: the workers, whose requests are measured, know nothing of them. They ask for
//! `/_weir/ready`, which the origin counts apart. The controller gets their account. With TLS a reader's handshake is slow, too.
//!
//! All is done by turns, without timers: turn n is that of client n modulo their number, and all have one in a second. In its first turn a
//! client connects, in its last it is closed; so they come and go within a second, and are served evenly.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use weir_model::fault::SLOW_BYTES;
use weir_model::load::{SlowClients, SlowClientsSpec};
use weir_net::{Conn, Driver, Event, Handler, Io, Next, SocketLimits, Task};
use weir_wire::http1::{Limits, ResponseEvent, ResponseParser, encode};
use weir_wire::tls::{ClientConfig, Scratch, Session, TlsEvent};

use crate::clock::{MILLI, SECOND, from_secs};
use crate::controller::WorkerParts;
use crate::error::SpecError;
use crate::plan::Plan;
use crate::shared::{Message, Shared};

/// How often the start is looked for, and turns are taken that have become due meanwhile.
const LOOKS: u64 = 10 * MILLI;
const TURNS: u64 = 2 * MILLI;

/// The limits of a client that is far away. Without them the kernel would hold megabytes of each response over loopback.
const LIMITS: SocketLimits = SocketLimits { receive_buffer: Some(4_096), segment: Some(1_460) };

/// The body that writers send.
static BODY: [u8; SLOW_BYTES as usize] = [0; SLOW_BYTES as usize];

/// See the module.
#[derive(Debug)]
pub(crate) struct SlowTask {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    messages: Sender<Message>,
    groups: Vec<Group>,
    /// The group and the number of the client whose connection it is.
    owners: HashMap<Conn, (usize, usize)>,
    has_limits: bool,
    /// TLS, if it is spoken, and room for what sessions open and write.
    tls: Option<ClientConfig>,
    scratch: Scratch,
    records: Vec<u8>,
}

/// The clients of one fault.
#[derive(Debug)]
struct Group {
    spec: SlowClientsSpec,
    /// The request; of writers its head.
    request: Vec<u8>,
    clients: Vec<SlowClient>,
    /// The next turn.
    next: u64,
    /// Connections open.
    open: u32,
    seen: SlowClients,
}

/// One client.
#[derive(Debug)]
struct SlowClient {
    conn: Option<Conn>,
    tls: Option<Box<Session>>,
    /// It can send its request.
    is_up: bool,
    /// Of the request's body.
    sent: usize,
    parser: ResponseParser,
    /// The status of the response, once its head has come.
    status: u16,
}

/// The act of a client in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    GoOn,
    Close,
}

impl SlowTask {
    /// Makes the slow clients of a load, which this worker has a part of.
    ///
    /// # Errors
    /// A request that cannot be sent to the load's target.
    pub(crate) fn new(parts: &WorkerParts) -> Result<SlowTask, SpecError> {
        let (plan, shared, messages) = (Arc::clone(&parts.plan), Arc::clone(&parts.shared), parts.messages.clone());
        let groups = plan.spec.slow_clients.iter().map(|spec| Group::new(*spec, &plan)).collect::<Result<_, _>>()?;
        let tls = plan.tls.as_ref().map(|tls| tls.config.for_thread());
        let (owners, scratch, records) = (HashMap::new(), Scratch::new(), Vec::new());
        Ok(SlowTask { plan, shared, messages, groups, owners, has_limits: false, tls, scratch, records })
    }

    /// Takes the turns that are due, of a window with this start and end. Returns when the next is; `None`: there is none.
    fn take_turns<I: Io>(&mut self, io: &mut I, window: u64, end: u64) -> Option<u64> {
        let now = io.now();
        for group in 0..self.groups.len() {
            while let Some((at, turn)) = self.groups[group].turn(window, end)
                && at <= now
            {
                let client = (self.groups[group].next % u64::from(self.groups[group].spec.clients)) as usize;
                self.groups[group].next += 1;
                self.take_turn(io, group, client, turn);
            }
        }
        self.groups.iter().filter_map(|group| group.turn(window, end)).map(|(at, _)| at.max(now + TURNS)).min()
    }

    fn take_turn<I: Io>(&mut self, io: &mut I, group: usize, client: usize, turn: Turn) {
        let of_group = &mut self.groups[group];
        let pace = of_group.spec.bytes_per_second;
        let one = &mut of_group.clients[client];
        match one.conn {
            None if turn == Turn::Close => {}
            None => {
                let target = &self.plan.targets[0];
                let source = target.sources[client % target.sources.len()];
                match io.connect(&target.address, source) {
                    Ok(conn) => {
                        *one = SlowClient { conn: Some(conn), ..SlowClient::default() };
                        if !of_group.spec.writers {
                            io.receive_at_most(conn, pace);
                        }
                        self.owners.insert(conn, (group, client));
                    }
                    Err(_) => of_group.seen.refused += 1,
                }
            }
            Some(conn) if turn == Turn::Close => {
                io.abort(conn);
                self.forget(conn, group, client);
            }
            Some(_) if !one.is_up && (of_group.spec.writers || one.tls.is_none()) => {}
            // The kernel may not have taken what was sent before.
            Some(conn) if of_group.spec.writers && io.unsent(conn) > 0 => {}
            Some(conn) if of_group.spec.writers => of_group.write(io, conn, client, &mut self.records),
            Some(conn) => io.receive_at_most(conn, pace),
        }
    }

    /// A connection is made: TLS begins on it, or it is up. Returns whether it goes on.
    fn connected<I: Io>(&mut self, io: &mut I, conn: Conn, group: usize, client: usize) -> bool {
        let of_group = &mut self.groups[group];
        let Some((config, tls)) = self.tls.as_ref().zip(self.plan.tls.as_ref()) else {
            of_group.up(io, conn, client, &mut self.records);
            return true;
        };
        self.records.clear();
        let begun = Session::client(config, &tls.names[0]).and_then(|mut session| {
            session.start(&mut self.records)?;
            Ok(session)
        });
        let Ok(session) = begun else {
            of_group.ended(client, false);
            return false;
        };
        of_group.clients[client].tls = Some(Box::new(session));
        of_group.seen.bytes_out += self.records.len() as u64;
        io.send(conn, &self.records);
        true
    }

    /// Bytes came. Returns whether the connection goes on.
    fn receive<I: Io>(&mut self, io: &mut I, conn: Conn, group: usize, client: usize, mut bytes: &[u8]) -> bool {
        let of_group = &mut self.groups[group];
        of_group.seen.bytes_in += bytes.len() as u64;
        loop {
            let Some(session) = &mut of_group.clients[client].tls else { return of_group.receive(client, bytes) };
            self.records.clear();
            let event = session.next(&mut bytes, &mut self.scratch, &mut self.records);
            if !self.records.is_empty() {
                of_group.seen.bytes_out += self.records.len() as u64;
                io.send(conn, &self.records);
            }
            match event {
                Ok(None) => return true,
                Ok(Some(TlsEvent::Ready)) => of_group.up(io, conn, client, &mut self.records),
                Ok(Some(TlsEvent::Plaintext(range))) => {
                    if !of_group.receive(client, &self.scratch[range]) {
                        return false;
                    }
                }
                other => {
                    of_group.ended(client, other.is_ok());
                    return false;
                }
            }
        }
    }

    /// The connection is gone. The client comes again in its next turn.
    fn forget(&mut self, conn: Conn, group: usize, client: usize) {
        self.owners.remove(&conn);
        let of_group = &mut self.groups[group];
        of_group.open -= u32::from(of_group.clients[client].is_up);
        of_group.clients[client] = SlowClient::default();
    }
}

impl Group {
    fn new(spec: SlowClientsSpec, plan: &Plan) -> Result<Group, SpecError> {
        let host = [("Host", plan.spec.targets[0].authority.as_str())];
        let mut request = Vec::new();
        let encoded = if spec.writers {
            encode::request(&mut request, "POST", "/_weir/ready", &host, &BODY)
        } else {
            encode::request(&mut request, "GET", &format!("/_weir/ready?bytes={SLOW_BYTES}"), &host, &[])
        };
        encoded.map_err(|error| format!("slow clients cannot send their requests: {error}"))?;
        request.truncate(request.len() - if spec.writers { BODY.len() } else { 0 });
        let clients = (0..spec.clients).map(|_| SlowClient::default()).collect();
        Ok(Group { spec, request, clients, next: 0, open: 0, seen: SlowClients::default() })
    }

    /// The time of the next turn, and the act in it; `None`: all are over.
    fn turn(&self, window: u64, end: u64) -> Option<(u64, Turn)> {
        let clients = u64::from(self.spec.clients).max(1);
        let since = self.next / clients * SECOND + self.next % clients * SECOND / clients;
        let begin = window + from_secs(self.spec.at_s);
        let (at, over) = (begin + since, (begin + from_secs(self.spec.for_s)).min(end));
        if at >= over {
            return None;
        }
        Some((at, if at + SECOND < over { Turn::GoOn } else { Turn::Close }))
    }

    /// Sends a little more.
    fn write<I: Io>(&mut self, io: &mut I, conn: Conn, client: usize, records: &mut Vec<u8>) {
        let one = &mut self.clients[client];
        let more = (BODY.len() - one.sent).min(self.spec.bytes_per_second as usize);
        if more > 0 {
            self.seen.bytes_out += one.send(io, conn, &BODY[..more], records);
            one.sent += more;
        }
    }

    /// A client can send its request.
    fn up<I: Io>(&mut self, io: &mut I, conn: Conn, client: usize, records: &mut Vec<u8>) {
        self.open += 1;
        self.seen.opened += 1;
        self.seen.held = self.seen.held.max(self.open);
        let one = &mut self.clients[client];
        one.is_up = true;
        one.parser.request_sent(false);
        self.seen.bytes_out += one.send(io, conn, &self.request, records);
        if self.spec.writers {
            self.write(io, conn, client, records);
        }
    }

    /// A part of the response has come. Returns whether more is to come.
    fn receive(&mut self, client: usize, mut bytes: &[u8]) -> bool {
        let one = &mut self.clients[client];
        loop {
            match one.parser.next(&mut bytes) {
                Ok(Some(ResponseEvent::Head(head))) => one.status = head.status,
                Ok(Some(ResponseEvent::Body(_) | ResponseEvent::Informational(_))) => {}
                Ok(Some(ResponseEvent::End { .. })) => {
                    self.completed(client);
                    return false;
                }
                Ok(None) => return true,
                Err(_) => {
                    self.seen.cut += 1;
                    return false;
                }
            }
        }
    }

    /// The response is whole.
    fn completed(&mut self, client: usize) {
        let one = &self.clients[client];
        if (200..300).contains(&one.status) && (!self.spec.writers || one.sent == BODY.len()) {
            self.seen.completed += 1;
        } else {
            *self.seen.statuses.entry(one.status).or_default() += 1;
        }
    }

    /// The peer has ended the connection, with the end of the stream or a failure.
    fn ended(&mut self, client: usize, at_end: bool) {
        let one = &mut self.clients[client];
        if !one.is_up {
            self.seen.refused += 1;
        } else if at_end && one.parser.on_eof() == Ok(true) {
            self.completed(client);
        } else {
            self.seen.cut += 1;
        }
    }
}

impl SlowClient {
    /// Sends bytes, in a record if TLS is spoken. Returns how many bytes go on the wire.
    fn send<I: Io>(&mut self, io: &mut I, conn: Conn, bytes: &[u8], records: &mut Vec<u8>) -> u64 {
        let Some(session) = &mut self.tls else {
            io.send(conn, bytes);
            return bytes.len() as u64;
        };
        records.clear();
        // Only a session that has failed refuses, and its connection ends with that.
        let _ = session.write(&[bytes], records);
        io.send(conn, records);
        records.len() as u64
    }
}

impl Default for SlowClient {
    fn default() -> SlowClient {
        let parser = ResponseParser::new(Limits::default());
        SlowClient { conn: None, tls: None, is_up: false, sent: 0, parser, status: 0 }
    }
}

impl Handler for SlowTask {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let Some((group, client)) = self.owners.get(&conn).copied() else { return };
        let goes_on = match event {
            Event::Connected => self.connected(io, conn, group, client),
            Event::Data(bytes) => self.receive(io, conn, group, client, bytes),
            Event::Eof => {
                self.groups[group].ended(client, true);
                false
            }
            Event::Failed { .. } => {
                self.groups[group].ended(client, false);
                return self.forget(conn, group, client);
            }
            Event::Accepted(_) | Event::Skipped(_) | Event::Datagrams(_) | Event::Sent => true,
        };
        if !goes_on {
            io.abort(conn);
            self.forget(conn, group, client);
        }
    }
}

impl<D: Driver> Task<D> for SlowTask {
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        if !std::mem::replace(&mut self.has_limits, true) {
            driver.limit_sockets(LIMITS);
        }
        let now = driver.now();
        if self.shared.is_abandoned() {
            return Ok(Next::Over);
        }
        let Some(start) = self.shared.start() else {
            return Ok(Next::Poll(Some(now + LOOKS)));
        };
        if let Some(next) = self.take_turns(driver, start + self.plan.warmup, self.shared.end()) {
            return Ok(Next::Poll(Some(next.min(now + LOOKS))));
        }
        for (conn, (group, client)) in std::mem::take(&mut self.owners) {
            // The load was cut short.
            driver.abort(conn);
            self.forget(conn, group, client);
        }
        let seen = self.groups.iter().map(|group| group.seen.clone()).collect();
        // Nobody listens where the load is given up.
        let _ = self.messages.send(Message::SlowClients(seen));
        Ok(Next::Over)
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}
