//! An origin in a simulated world, and the scripted client of its tests: it sends given bytes at given times, and keeps what comes
//! back and when. It knows TLS and how a response of HTTP/1 ends, and no other protocol.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_model::counters::OriginCounters;
pub use weir_net::sim::NodeOptions;
use weir_net::sim::{Link, SimDriver, SimWaker, Split, World};
use weir_net::{Address, Conn, Driver, Event, Handler, Io, Next, Task, Wake};
use weir_origin::{Options, OriginHandle, OriginTasks, ResponseOptions};
use weir_wire::tls::{ClientConfig, ClientOptions, Scratch, ServerName, Session, TlsEvent};

/// A millisecond and a second, nanoseconds.
pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;

/// How long bytes are on the way, in each direction.
pub const LATENCY: u64 = MS;

/// From a request to its response, if the origin takes no time: all times of a test are this and what it asked for.
pub const ROUND_TRIP: u64 = 2 * LATENCY;

/// How long anything may take before a test fails.
const LIMIT: u64 = 100 * S;

/// Small buffers, which are full soon where nobody reads.
pub fn small() -> NodeOptions {
    NodeOptions { send_buffer: 10_000, receive_buffer: 10_000, ..NodeOptions::default() }
}

/// An origin and the machine of its clients.
pub struct Scene {
    pub world: World,
    pub handle: OriginHandle,
    pub addresses: Vec<SocketAddr>,
    /// Its workers' tasks, and the stall meter's.
    pub tasks: Vec<usize>,
    wakers: Vec<SimWaker>,
    pub clients: Machine,
}

impl Scene {
    pub fn new() -> Scene {
        Scene::of(Options::default())
    }

    pub fn of(options: Options) -> Scene {
        Scene::with(options, NodeOptions::default())
    }

    /// `node`: what the kernel of the origin has.
    pub fn with(options: Options, node: NodeOptions) -> Scene {
        Scene::seeded(1, Split::Whole, options, node)
    }

    /// `split`: how what is sent is cut on its way.
    pub fn seeded(seed: u64, split: Split, mut options: Options, node: NodeOptions) -> Scene {
        let world = World::new(seed);
        world.set_default_link(Link { latency: LATENCY, split, ..Link::default() });
        let listen = |addr: SocketAddr| world.listen(addr, 65_535, true).expect("a free address");
        for addr in std::iter::once(&mut options.listen).chain(&mut options.also) {
            *addr = listen(*addr).address().tcp().expect("of TCP");
        }
        let addresses: Vec<_> = std::iter::once(options.listen).chain(options.also.iter().copied()).collect();
        let OriginTasks { handle, workers, stall_meter, .. } =
            OriginTasks::<SimDriver>::new(options).expect("options that can be used");
        let (mut tasks, mut wakers) = (Vec::new(), Vec::new());
        for make in workers {
            let mut driver = world.driver_with("origin", node);
            for addr in &addresses {
                driver.listen(listen(*addr)).expect("it listens");
            }
            wakers.push(driver.waker());
            let task = make(&driver);
            tasks.push(world.add_task(driver, task));
        }
        let driver = world.driver("stall meter");
        let task = stall_meter(&driver);
        tasks.push(world.add_task(driver, task));
        let clients = Machine::new(&world, NodeOptions::default());
        Scene { world, handle, addresses, tasks, wakers, clients }
    }

    /// A connection that the origin has accepted.
    pub fn client(&self) -> Client {
        self.client_of(&self.clients, 0)
    }

    /// One of a machine, to an address of the origin.
    pub fn client_of(&self, machine: &Machine, address: usize) -> Client {
        let client = machine.connect(self.addresses[address], None);
        client.wait(|state| state.is_ready);
        client
    }

    /// One with TLS, or why there is none.
    pub fn tls_client(&self, config: &ClientConfig) -> Result<Client, End> {
        self.tls_client_of(&self.clients, config)
    }

    pub fn tls_client_of(&self, machine: &Machine, config: &ClientConfig) -> Result<Client, End> {
        let name = ServerName::new("localhost").expect("a name");
        let session = Session::client(config, &name).expect("a session");
        let client = machine.connect(self.addresses[0], Some(session));
        client.wait(|state| state.is_ready || state.end.is_some());
        let end = client.state(|state| state.end.filter(|_| !state.is_ready));
        end.map_or(Ok(client), |(_, end)| Err(end))
    }

    /// A further machine, which can be frozen: nothing that comes there is read.
    pub fn machine(&self, node: NodeOptions) -> Machine {
        Machine::new(&self.world, node)
    }

    /// Lets time pass.
    pub fn run(&self, ns: u64) {
        self.world.run_to(self.world.now() + ns);
    }

    /// The counters when all that is under way has arrived.
    pub fn counters(&self) -> OriginCounters {
        self.run(10 * LATENCY);
        self.handle.counters()
    }

    /// Asks it to stop, and waits until its workers have. Returns how long it took.
    pub fn stop(&self) -> u64 {
        let begun = self.world.now();
        let workers = &self.tasks[..self.wakers.len()];
        self.handle.stop();
        self.wakers.iter().for_each(Wake::wake);
        assert!(self.world.run_until(begun + LIMIT, || workers.iter().all(|task| self.world.is_over(*task))));
        self.world.now() - begun
    }
}

/// Delay and faults of all responses.
pub fn responses(delay: Option<&str>, faults: &str) -> ResponseOptions {
    let delay = delay.map(|delay| delay.parse().expect("a delay"));
    ResponseOptions { delay, faults: faults.parse().expect("faults"), ..ResponseOptions::default() }
}

/// A client's options with this protocol by ALPN.
pub fn client_config(alpn: Option<&str>) -> ClientConfig {
    ClientConfig::new(&ClientOptions { alpn: alpn.map(str::to_owned), ..ClientOptions::default() }).expect("options")
}

/// What a client is told to do.
#[derive(Debug)]
enum Do {
    Connect(Address),
    Send(Vec<u8>),
    /// Sends bytes below TLS.
    SendBelow(Vec<u8>),
    ShutDown,
    Close,
    Abort,
}

/// How a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Closed,
    Reset,
    /// The peer's TLS is wrong, or it has sent an alert.
    Tls,
}

/// One connection of a machine.
#[derive(Default)]
struct ClientState {
    conn: Option<Conn>,
    tls: Option<(Session, Scratch)>,
    /// The kernel has not taken all that it sends.
    is_behind: bool,
    /// What waits for the handshake.
    pending: Vec<u8>,
    /// Connected, and the handshake done.
    is_ready: bool,
    /// What has come and when, without TLS.
    chunks: VecDeque<(u64, Vec<u8>)>,
    /// TLS has ended properly.
    is_closed_by_tls: bool,
    end: Option<(u64, End)>,
}

#[derive(Default)]
struct State {
    clients: Vec<ClientState>,
    /// By connection.
    numbers: HashMap<Conn, usize>,
    /// By time and then by age.
    plan: BTreeMap<(u64, u64), (usize, Do)>,
    planned: u64,
}

impl State {
    fn carry_out(&mut self, driver: &mut SimDriver, number: usize, what: Do) {
        let state = &mut self.clients[number];
        if let Do::Connect(to) = &what {
            let conn = driver.connect(to, None).expect("a socket");
            state.conn = Some(conn);
            self.numbers.insert(conn, number);
        }
        let Some(conn) = state.conn else { return };
        match (what, &mut state.tls) {
            (Do::Connect(_), _) => {}
            (Do::SendBelow(bytes), _) | (Do::Send(bytes), None) => {
                state.is_behind = true;
                driver.send(conn, &bytes);
                driver.want_sent(conn);
            }
            (Do::Send(bytes), Some(_)) if !state.is_ready => state.pending.extend(bytes),
            (Do::Send(bytes), Some((session, _))) => {
                let mut out = Vec::new();
                session.write(&[&bytes], &mut out).expect("sealed");
                driver.send(conn, &out);
            }
            (Do::ShutDown, _) => driver.shut_down(conn),
            (Do::Close, _) => driver.close(conn),
            (Do::Abort, _) => driver.abort(conn),
        }
    }
}

impl ClientState {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let now = io.now();
        match (event, &mut self.tls) {
            (Event::Connected, None) => self.is_ready = true,
            (Event::Connected, Some((session, _))) => {
                let mut out = Vec::new();
                session.start(&mut out).expect("a hello");
                io.send(conn, &out);
            }
            (Event::Data(bytes), None) => self.chunks.push_back((now, bytes.to_vec())),
            (Event::Data(mut bytes), Some((session, scratch))) => {
                let (mut out, mut plain) = (Vec::new(), Vec::new());
                loop {
                    match session.next(&mut bytes, scratch, &mut out) {
                        Ok(None) => break,
                        Ok(Some(TlsEvent::Plaintext(place))) => plain.extend_from_slice(&scratch[place]),
                        Ok(Some(TlsEvent::Closed)) => self.is_closed_by_tls = true,
                        Ok(Some(TlsEvent::Ready)) => {
                            self.is_ready = true;
                            session.write(&[&std::mem::take(&mut self.pending)], &mut out).expect("sealed");
                        }
                        Err(_) => {
                            self.end = self.end.or(Some((now, End::Tls)));
                            break;
                        }
                    }
                }
                io.send(conn, &out);
                if !plain.is_empty() {
                    self.chunks.push_back((now, plain));
                }
            }
            (Event::Sent, _) => self.is_behind = false,
            (Event::Eof, _) => self.end = self.end.or(Some((now, End::Closed))),
            (Event::Failed { .. }, _) => self.end = self.end.or(Some((now, End::Reset))),
            _ => {}
        }
    }
}

/// The task of a machine.
struct ClientTask(Arc<Mutex<State>>);

impl Handler for ClientTask {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let mut state = lock(&self.0);
        if let Some(number) = state.numbers.get(&conn).copied() {
            state.clients[number].on_event(io, conn, event);
        }
    }
}

impl Task<SimDriver> for ClientTask {
    fn turn(&mut self, driver: &mut SimDriver) -> io::Result<Next> {
        let mut state = lock(&self.0);
        while let Some(entry) = state.plan.first_entry()
            && entry.key().0 <= driver.now()
        {
            let (number, what) = entry.remove();
            state.carry_out(driver, number, what);
        }
        Ok(Next::Poll(state.plan.keys().next().map(|(at, _)| *at)))
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine on which clients run.
#[derive(Clone)]
pub struct Machine {
    world: World,
    task: usize,
    waker: SimWaker,
    state: Arc<Mutex<State>>,
}

impl Machine {
    fn new(world: &World, node: NodeOptions) -> Machine {
        let (driver, state) = (world.driver_with("clients", node), Arc::<Mutex<State>>::default());
        let waker = driver.waker();
        let task = world.add_task(driver, Box::new(ClientTask(Arc::clone(&state))));
        Machine { world: world.clone(), task, waker, state }
    }

    fn plan(&self, at: u64, number: usize, what: Do) {
        let mut state = lock(&self.state);
        state.planned += 1;
        let key = (at, state.planned);
        state.plan.insert(key, (number, what));
        drop(state);
        self.waker.wake();
    }

    /// Begins a connection.
    pub fn connect(&self, to: SocketAddr, session: Option<Session>) -> Client {
        let mut state = lock(&self.state);
        let number = state.clients.len();
        state
            .clients
            .push(ClientState { tls: session.map(|session| (session, Scratch::new())), ..ClientState::default() });
        drop(state);
        self.plan(self.world.now(), number, Do::Connect(to.into()));
        Client { machine: self.clone(), number, at: None, buffer: Vec::new() }
    }

    /// Reads nothing and sends nothing more until [`Machine::thaw`]; its kernel goes on.
    pub fn freeze(&self) {
        self.world.run_to(self.world.now());
        self.world.freeze(self.task, u64::MAX);
    }

    pub fn thaw(&self) {
        self.world.freeze(self.task, 0);
    }

    /// Ends as a process does that is killed: what was not read makes resets.
    pub fn kill(&self) {
        self.world.kill(self.task);
    }
}

/// A connection. Dropping it closes it.
pub struct Client {
    machine: Machine,
    number: usize,
    /// When it sends and ends, if not now.
    at: Option<u64>,
    /// What has come and was not looked at.
    buffer: Vec<u8>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
    }
}

impl Client {
    fn plan(&self, what: Do) {
        let now = self.machine.world.now();
        self.machine.plan(self.at.unwrap_or(now), self.number, what);
    }

    /// What it is told next it does at this time, and not now.
    pub fn at(&mut self, at: u64) -> &mut Client {
        self.at = Some(at);
        self
    }

    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        self.plan(Do::Send(bytes.as_ref().to_vec()));
    }

    /// Sends each piece so long after the one before, the first now: each arrives by itself.
    pub fn send_pieces<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>, every: u64) {
        let begun = self.machine.world.now();
        for (number, piece) in (0..).zip(pieces) {
            self.at(begun + number * every).send(piece);
        }
        self.at = None;
    }

    pub fn send_below(&self, bytes: impl AsRef<[u8]>) {
        self.plan(Do::SendBelow(bytes.as_ref().to_vec()));
    }

    /// Sends this so many times, each when the kernel has taken the one before, while the origin reads and has not ended. Returns
    /// whether it was all.
    pub fn pour(&self, bytes: &[u8], times: usize) -> bool {
        (0..times).all(|_| {
            self.send(bytes);
            // From now on it is behind.
            self.machine.world.run_to(self.machine.world.now());
            let until = self.machine.world.now() + 10 * LATENCY;
            let is_taken = self.machine.world.run_until(until, || self.state(|state| !state.is_behind));
            is_taken && self.state(|state| state.end.is_none())
        })
    }

    /// Ends the stream to the origin, and goes on reading.
    pub fn shut_down(&self) {
        self.plan(Do::ShutDown);
    }

    pub fn close(&self) {
        self.plan(Do::Close);
    }

    pub fn abort(&self) {
        self.plan(Do::Abort);
    }

    fn state<T>(&self, see: impl FnOnce(&mut ClientState) -> T) -> T {
        see(&mut lock(&self.machine.state).clients[self.number])
    }

    fn wait(&self, done: impl Fn(&ClientState) -> bool) {
        let until = self.machine.world.now() + LIMIT;
        let came = self.machine.world.run_until(until, || self.state(|state| done(state)));
        assert!(came, "it does not happen");
    }

    /// Waits for bytes. Returns them and when they came; `None`: nothing more comes.
    pub fn receive(&self) -> Option<(u64, Vec<u8>)> {
        self.wait(|state| !state.chunks.is_empty() || state.end.is_some());
        self.state(|state| state.chunks.pop_front())
    }

    /// All that has come so far and was not looked at.
    pub fn received(&mut self) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.buffer);
        self.state(|state| state.chunks.drain(..).for_each(|(_, bytes)| all.extend(bytes)));
        all
    }

    /// Waits for the end. Returns what came until then, when it came, and which it was.
    pub fn rest(&mut self) -> (Vec<u8>, u64, End) {
        self.wait(|state| state.end.is_some());
        let (at, end) = self.state(|state| state.end).expect("it has ended");
        (self.received(), at, end)
    }

    /// Waits until the origin has closed properly, and checks that it has sent nothing more. Returns when it was.
    pub fn expect_closed(&mut self) -> u64 {
        let (rest, at, end) = self.rest();
        assert_eq!((String::from_utf8_lossy(&rest).as_ref(), end), ("", End::Closed));
        at
    }

    /// Whether the end was signalled by TLS.
    pub fn is_closed_by_tls(&self) -> bool {
        self.state(|state| state.is_closed_by_tls)
    }

    /// What TLS has negotiated by ALPN.
    pub fn alpn(&self) -> Option<String> {
        self.state(|state| Some(state.tls.as_ref()?.0.negotiated()?.alpn.as_deref()?.to_owned()))
    }

    /// Waits for exactly this. Returns when the last of it came.
    pub fn expect(&mut self, wanted: impl AsRef<[u8]>) -> u64 {
        let (wanted, mut at) = (wanted.as_ref(), self.machine.world.now());
        while self.buffer.len() < wanted.len() {
            let Some((came, bytes)) = self.receive() else { break };
            at = came;
            self.buffer.extend(bytes);
        }
        let rest = self.buffer.split_off(wanted.len().min(self.buffer.len()));
        let got = std::mem::replace(&mut self.buffer, rest);
        assert!(got == wanted, "{:?}\n{:?}", String::from_utf8_lossy(&got), String::from_utf8_lossy(wanted));
        at
    }

    pub fn get(&mut self, target: &str) -> Reply {
        self.send(get(target));
        self.reply()
    }

    /// Waits for a response of HTTP/1.
    pub fn reply(&mut self) -> Reply {
        self.reply_to(false)
    }

    /// The same; that to HEAD has no body.
    pub fn reply_to(&mut self, is_head: bool) -> Reply {
        let mut at = self.machine.world.now();
        let mut has_ended = false;
        loop {
            if let Some((reply, length)) = Reply::parse(&self.buffer, is_head, has_ended, at) {
                self.buffer.drain(..length);
                return reply;
            }
            assert!(!has_ended, "ended in a response: {:?}", String::from_utf8_lossy(&self.buffer));
            match self.receive() {
                Some((came, bytes)) => {
                    at = came;
                    self.buffer.extend(bytes);
                }
                None => has_ended = true,
            }
        }
    }
}

/// A plain GET.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: o\r\n\r\n")
}

/// A POST with a body of a given length.
pub fn post(target: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("POST {target} HTTP/1.1\r\nHost: o\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A response of HTTP/1.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// When the last of it came, if it was waited for.
    pub at: u64,
}

impl Reply {
    /// A response at the start of `bytes`, and its length.
    fn parse(bytes: &[u8], is_head: bool, has_ended: bool, at: u64) -> Option<(Reply, usize)> {
        let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
        let (text, rest) = (String::from_utf8_lossy(&bytes[..head]).into_owned(), &bytes[head..]);
        let code = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = code.unwrap_or_else(|| panic!("no status line: {text:?}"));
        let mut reply = Reply { status, head: text, body: Vec::new(), at };
        if is_head || reply.status < 200 || matches!(reply.status, 204 | 304) {
            return Some((reply, head));
        }
        let length = if reply.header("transfer-encoding") == Some("chunked") {
            let mut from = 0;
            loop {
                let line = rest[from..].windows(2).position(|end| end == b"\r\n")?;
                let size = std::str::from_utf8(&rest[from..from + line]).expect("a size");
                let size = usize::from_str_radix(size, 16).expect("a size");
                from += line + 2;
                reply.body.extend_from_slice(rest.get(from..from + size)?);
                assert_eq!(rest.get(from + size..from + size + 2)?, b"\r\n");
                from += size + 2;
                if size == 0 {
                    break from;
                }
            }
        } else {
            let length = match reply.header("content-length") {
                Some(length) => length.parse().expect("a length"),
                None => {
                    assert_eq!(reply.header("connection"), Some("close"), "{}", reply.head);
                    has_ended.then_some(rest.len())?
                }
            };
            reply.body = rest.get(..length)?.to_vec();
            length
        };
        Some((reply, head + length))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
