//! A small proxy for HTTP/1.1, honest by default, that misbehaves in one way on request. Each connection of a client has a thread and
//! a connection to the origin of its own, and blocks: nothing is cheaper to read. It knows requests without bodies and answers with
//! `Content-Length`, which is what weir's origin gives.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::thread::CpuSet;
use weir_world::misbehaviour::{
    ADDED_HEADER, Fault, REFUSAL, add_header, cache_key, compress, corrupt, forge_id, forge_time, message_length,
    strip_id,
};

/// Requests until the load is taken to have begun: weir's own are fewer.
const BEFORE_LOAD: u64 = 100;

/// What the threads share.
struct Proxy {
    origin: SocketAddr,
    fault: Fault,
    requests: AtomicU64,
    began: OnceLock<Instant>,
    /// Answers by the request's first line.
    cache: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    /// The request that is under way for others, and its answer.
    shared: (Mutex<Shared>, Condvar),
    log: Option<File>,
}

#[derive(Default)]
struct Shared {
    under_way: bool,
    round: u64,
    answer: Vec<u8>,
}

/// Serves until it is killed.
pub fn serve(listen: &str, origin: &str, fault: Fault) -> Result<()> {
    let listener = TcpListener::bind(listen)?;
    if let Fault::HandOver(path) = &fault {
        // It keeps its own end, so that the listener is still that of the product's process.
        hand_over(path, &listener, origin)?;
        loop {
            sleep(Duration::from_secs(60));
        }
    }
    accept(&listener, origin, fault)
}

fn accept(listener: &TcpListener, origin: &str, fault: Fault) -> Result<()> {
    let origin = origin.parse().map_err(|_| ErrorKind::InvalidInput)?;
    let log = (fault == Fault::Log).then(|| File::create("access.log")).transpose()?;
    let (requests, began, cache, shared) = Default::default();
    let proxy = Arc::new(Proxy { origin, fault, requests, began, cache, shared, log });
    loop {
        let (client, _) = listener.accept()?;
        let proxy = Arc::clone(&proxy);
        // A client that goes away is no failure.
        std::thread::spawn(move || drop(proxy.connection(client)));
    }
}

impl Proxy {
    fn connection(&self, mut client: TcpStream) -> Result<()> {
        client.set_nodelay(true)?;
        match self.fault {
            Fault::Elsewhere(cpu) => pin(|set| set.set(cpu))?,
            Fault::Anywhere => pin(|set| (0..CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu)))?,
            _ => {}
        }
        let (mut origin, mut second) = (self.connect()?, None);
        let mut input = Vec::with_capacity(4096);
        loop {
            let Some(length) = message(&mut client, &mut input)? else { return Ok(()) };
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            if number == BEFORE_LOAD {
                let _ = self.began.set(Instant::now());
            }
            let in_load = number >= BEFORE_LOAD;
            if in_load {
                self.wait(number);
            }
            let request = &input[..length];
            let one_in = |n: u64| in_load && number % n == n / 2;
            let answer = match &self.fault {
                Fault::Cache => self.cached(request, &mut origin)?.0,
                Fault::Forge => forge_id(self.cached(request, &mut origin)?.0, request),
                Fault::Revalidate | Fault::ForgeAll => {
                    let (mut answer, from_cache) = self.cached(request, &mut origin)?;
                    if from_cache {
                        if self.fault == Fault::ForgeAll {
                            answer = forge_time(forge_id(answer, request), now_us());
                        }
                        client.write_all(&answer)?;
                        ask(&mut origin, request)?;
                        input.drain(..length);
                        continue;
                    }
                    answer
                }
                Fault::CacheAndTwice if number.is_multiple_of(10) => self.cached(request, &mut origin)?.0,
                Fault::CacheAndTwice if number % 10 == 5 => {
                    ask(&mut origin, request)?;
                    ask(&mut origin, request)?
                }
                Fault::Coalesce if in_load => self.coalesced(request, &mut origin)?,
                Fault::Strip => strip_id(ask(&mut origin, request)?),
                Fault::Mirror => {
                    let second = match &mut second {
                        Some(second) => second,
                        none => none.insert(self.connect()?),
                    };
                    second.write_all(request)?;
                    let answer = ask(&mut origin, request)?;
                    let mut mirrored = Vec::new();
                    message(second, &mut mirrored)?;
                    answer
                }
                Fault::Retry(n) if one_in(*n) => {
                    ask(&mut origin, request)?;
                    ask(&mut origin, request)?
                }
                Fault::Corrupt(n) if one_in(*n) => corrupt(ask(&mut origin, request)?),
                Fault::Refuse(n) if one_in(*n) => REFUSAL.to_vec(),
                Fault::Reset(n) if one_in(*n) => {
                    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO))?;
                    return Ok(());
                }
                Fault::Header(second) if self.second() >= *second => {
                    add_header(ask(&mut origin, request)?, ADDED_HEADER)
                }
                Fault::Gzip => compress(ask(&mut origin, request)?, request)?,
                _ => ask(&mut origin, request)?,
            };
            client.write_all(&answer)?;
            if let Some(mut log) = self.log.as_ref() {
                log.write_all(request)?;
            }
            input.drain(..length);
        }
    }

    fn connect(&self) -> Result<TcpStream> {
        let origin = TcpStream::connect(self.origin)?;
        origin.set_nodelay(true)?;
        Ok(origin)
    }

    fn age(&self) -> Duration {
        self.began.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    fn second(&self) -> u64 {
        self.age().as_secs()
    }

    /// Takes the time that the fault takes.
    fn wait(&self, number: u64) {
        const LONGER: Duration = Duration::from_millis(5);
        match self.fault {
            Fault::Step(second) if self.second() >= second => sleep(LONGER),
            Fault::StepUp(second) if self.second() < second => sleep(LONGER),
            Fault::Ramp => sleep(self.age() / 2_000),
            Fault::Stall => {
                sleep(Duration::from_millis(200).saturating_sub(Duration::from_nanos(self.age().subsec_nanos().into())))
            }
            Fault::Pause(second) if self.second() == second => sleep(Duration::from_secs(1)),
            // Longer than the client waits.
            Fault::Freeze(second) if self.second() >= second => sleep(Duration::from_secs(15)),
            // In the middle of a short window.
            Fault::Spike if number == BEFORE_LOAD + 3_000 => {
                let memory = vec![1u8; 600_000_000];
                sleep(Duration::from_millis(100));
                drop(std::hint::black_box(memory));
            }
            _ => {}
        }
    }

    /// The answer, and whether it was there.
    fn cached(&self, request: &[u8], origin: &mut TcpStream) -> Result<(Vec<u8>, bool)> {
        let key = cache_key(request);
        if let Some(answer) = locked(&self.cache).get(&key) {
            return Ok((answer.clone(), true));
        }
        let answer = ask(origin, request)?;
        locked(&self.cache).insert(key, answer.clone());
        Ok((answer, false))
    }

    fn coalesced(&self, request: &[u8], origin: &mut TcpStream) -> Result<Vec<u8>> {
        let (shared, changed) = (&self.shared.0, &self.shared.1);
        let mut now = locked(shared);
        if now.under_way {
            let round = now.round;
            let waited = changed.wait_while(now, |now| now.round == round);
            return Ok(waited.unwrap_or_else(PoisonError::into_inner).answer.clone());
        }
        now.under_way = true;
        drop(now);
        let answer = ask(origin, request)?;
        let mut now = locked(shared);
        (now.under_way, now.answer) = (false, answer.clone());
        now.round += 1;
        changed.notify_all();
        Ok(answer)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pin(choose: impl FnOnce(&mut CpuSet)) -> Result<()> {
    let mut set = CpuSet::new();
    choose(&mut set);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The whole answer of the origin.
fn ask(origin: &mut TcpStream, request: &[u8]) -> Result<Vec<u8>> {
    origin.write_all(request)?;
    let mut answer = Vec::with_capacity(1024);
    message(origin, &mut answer)?.ok_or(ErrorKind::UnexpectedEof)?;
    Ok(answer)
}

/// Reads until `input` begins with a whole message, and returns its length; `None` at the end.
fn message(from: &mut TcpStream, input: &mut Vec<u8>) -> Result<Option<usize>> {
    let mut buffer = [0u8; 16 * 1024];
    loop {
        if let Some(length) = message_length(input) {
            return Ok(Some(length));
        }
        match from.read(&mut buffer)? {
            0 => return Ok(None),
            n => input.extend_from_slice(&buffer[..n]),
        }
    }
}

/// Microseconds of the monotonic clock.
fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// Gives the listener away, with the origin's address.
fn hand_over(path: &str, listener: &TcpListener, origin: &str) -> Result<()> {
    let to = UnixStream::connect(path)?;
    let fds = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(&to, &[IoSlice::new(origin.as_bytes())], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Waits for a listener at `path`, and serves it honestly.
pub fn take_over(path: &str) -> Result<()> {
    let (from, _) = UnixListener::bind(path)?.accept()?;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0u8; 64];
    let received = recvmsg(&from, &mut [IoSliceMut::new(&mut text)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let rights = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let listener: OwnedFd = rights.ok_or(ErrorKind::InvalidData)?;
    let origin = std::str::from_utf8(&text[..received.bytes]).map_err(|_| ErrorKind::InvalidData)?;
    accept(&TcpListener::from(listener), origin, Fault::Honest)
}

/// Uses so many per cent of a CPU, in turns of 10 ms, for so long.
pub fn burn(cpu: usize, percent: u64, length: Duration) -> Result<()> {
    pin(|set| set.set(cpu))?;
    let begun = Instant::now();
    while begun.elapsed() < length {
        let turn = Instant::now();
        while turn.elapsed() < Duration::from_micros(percent * 100) {}
        sleep(Duration::from_millis(10).saturating_sub(turn.elapsed()));
    }
    Ok(())
}

/// The same by children, of which each works for 20 ms.
pub fn breed(cpu: &str, percent: u32, length: Duration) -> Result<()> {
    const LIFE_MS: u32 = 20;
    let own = std::env::current_exe()?;
    let begun = Instant::now();
    while begun.elapsed() < length {
        std::process::Command::new(&own).args(["burn", cpu, "100", &LIFE_MS.to_string()]).status()?;
        sleep(Duration::from_millis((LIFE_MS * (100 - percent) / percent).into()));
    }
    Ok(())
}
