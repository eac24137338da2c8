//! The product of the simulated world on a kernel's driver: a proxy for HTTP/1.1 that misbehaves in one way on request. What the world
//! only accounts for is done here: memory is used, a log is written, threads run on other CPUs, a listener is given away.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Result, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::thread::CpuSet;
use weir_model::protocol::Protocol;
use weir_net::{Driver, EpollDriver};
use weir_origin::{Options, Origin, ResponseOptions};
use weir_world::misbehaviour::Fault;
use weir_world::product::{Product, ProductOptions, SharedSpent};
use weir_world::relay::Relay;

/// Serves until it is killed.
pub fn serve(listen: &str, origin: &str, fault: Fault) -> Result<()> {
    let listener = TcpListener::bind(listen)?;
    match &fault {
        Fault::HandOver(path) => {
            // It keeps its own end, so that the listener is still that of the product's process.
            hand_over(path, &listener, origin)?;
            loop {
                sleep(Duration::from_secs(60));
            }
        }
        Fault::Elsewhere(cpu) => pin(|set| set.set(*cpu))?,
        Fault::Anywhere => pin(|set| (0..CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu)))?,
        _ => {}
    }
    accept(listener, origin, fault)
}

/// Keeps keys and values as weir's own origin does, with its faults, until it is killed.
pub fn store(listen: &str, faults: &str) -> Result<()> {
    let listen: SocketAddr = listen.parse().map_err(|_| ErrorKind::InvalidInput)?;
    let faults = faults.parse().map_err(|error: String| std::io::Error::new(ErrorKind::InvalidInput, error))?;
    let responses = ResponseOptions { faults, ..ResponseOptions::default() };
    let _origin = Origin::start(Options { listen, protocol: Protocol::Redis, responses, ..Options::default() })
        .map_err(std::io::Error::other)?;
    loop {
        sleep(Duration::from_secs(60));
    }
}

fn accept(listener: TcpListener, origin: &str, fault: Fault) -> Result<()> {
    let origin: SocketAddr = origin.parse().map_err(|_| ErrorKind::InvalidInput)?;
    let log = (fault == Fault::Log).then(|| File::create("access.log")).transpose()?;
    let spent = SharedSpent::default();
    let shared = Arc::clone(&spent);
    // A product that favours some requests has work that it can leave out.
    let works = matches!(fault, Fault::FavourId | Fault::FavourNoAgent | Fault::Slow);
    std::thread::spawn(move || really_spend(&shared, log, works));
    let origins = vec![origin.into()];
    // Workers that have to differ take time, which is no CPU time.
    let (service, workers) = match fault {
        Fault::Uneven => (500_000, 2),
        _ if works => (60_000, 1),
        _ => (0, 1),
    };
    let options =
        ProductOptions { service, workers, upstreams: 1_000, keep_alive: true, origins, fault, route: Arc::default() };
    let mut driver = EpollDriver::new()?;
    driver.listen(listener)?;
    if let Fault::Relay(fault) = options.fault {
        return weir_net::run(&mut Relay::new(origin.into(), fault), &mut driver);
    }
    weir_net::run(&mut Product::new(options, spent), &mut driver)
}

/// Uses the memory and writes the bytes that the product accounts for, and its CPU time if it `works`.
fn really_spend(spent: &SharedSpent, mut log: Option<File>, works: bool) -> Result<()> {
    let (mut memory, mut written, mut cpu_ns) = (0, 0, 0);
    loop {
        sleep(Duration::from_millis(10));
        let now = *spent.lock().unwrap_or_else(PoisonError::into_inner);
        if works {
            let until = Instant::now() + Duration::from_nanos(now.cpu_ns - std::mem::replace(&mut cpu_ns, now.cpu_ns));
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        if now.memory > std::mem::replace(&mut memory, now.memory) {
            let used = vec![1u8; now.memory as usize];
            sleep(Duration::from_millis(100));
            drop(std::hint::black_box(used));
        }
        if let Some(log) = &mut log {
            log.write_all(&vec![b'.'; (now.written - written) as usize])?;
            written = now.written;
        }
    }
}

fn pin(choose: impl FnOnce(&mut CpuSet)) -> Result<()> {
    let mut set = CpuSet::new();
    choose(&mut set);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
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
    let listener = UnixListener::bind(path)?;
    // Products have an account of their own.
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    let (from, _) = listener.accept()?;
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
    accept(TcpListener::from(listener), origin, Fault::Honest)
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
