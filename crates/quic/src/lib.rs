//! QUIC as a driver over a driver: [`Over`] makes and accepts connections of QUIC on another driver's datagrams, and is a [`Driver`] itself.
//! So the workers of client and origin run on it as they are, and their loads, checks and counters with them.
//!
//! What a connection carries is a sequence of frames of streams ([`weir_wire::quic`]) each way; the protocol above it (HTTP/3) reads and
//! writes them. [`Event::Connected`](weir_net::Event::Connected) and [`Event::Accepted`](weir_net::Event::Accepted) come when the handshake
//! is done. `quinn-proto` has QUIC's state machines, and `weir_wire::tls` the options and checks of TLS.
//!
//! Each client connection has a socket of its own. All that a turn brings is read before any connection answers, and what a connection
//! then sends leaves in as few calls as segmentation allows. There is no ECN: it would cost a control message for each train.
//!
//! It reads no clock: [`Io::now`](weir_net::Io::now) is the time of its timers. Connection IDs, packet numbers that are skipped, and greased bits follow
//! from a seed. Keys and nonces of TLS do not: its library draws them. So a world's trace has the same times, peers and lengths for a seed,
//! and other bytes; a signature's length may differ by two bytes.
//!
//! This crate does not know what streams carry, nor where the clocks and threads are.

mod connection;
mod driver;
mod endpoint;
mod error;
mod ids;
mod tls;

pub use driver::{Over, OverTask};
pub use endpoint::{ClientOptions, Observe, Quic, ServerOptions, Target};
pub use error::{Failure, FailureKind};

#[cfg(test)]
mod tests;
