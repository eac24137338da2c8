//! How bytes travel between two nodes of a world. It does not know connections.

/// A direction between two nodes. The default takes no time and splits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Time on the way, nanoseconds.
    pub latency: u64,
    /// Up to so much is added to it at random, nanoseconds. Bytes of a connection stay in order.
    pub jitter: u64,
    /// Bytes a second of all its connections together; 0: no limit.
    pub bandwidth: u64,
    /// Where it cuts what is sent into segments, each of which is an event of its own.
    pub split: Split,
    /// So many of a million datagrams are lost. TCP would repair that, and its bytes are not.
    pub loss: u32,
    /// So many of a million datagrams arrive twice.
    pub duplicates: u32,
    /// Larger datagrams are lost; 0: none is. Jitter changes the order of datagrams.
    pub mtu: usize,
    /// Nothing passes, datagrams are lost: bytes wait until the link is up again, and attempts to connect are repeated as Linux repeats them.
    pub down: bool,
}

/// How a link cuts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// As little as possible: what was sent together arrives together.
    Whole,
    /// After so many bytes.
    Every(usize),
    /// Anywhere. Segments that have arrived may be read together.
    Random,
}

impl Default for Link {
    fn default() -> Link {
        Link { latency: 0, jitter: 0, bandwidth: 0, split: Split::Whole, loss: 0, duplicates: 0, mtu: 0, down: false }
    }
}

/// What one thread's driver and its kernel have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeOptions {
    /// Bytes that the kernel takes of a connection before they are under way.
    pub send_buffer: usize,
    /// Bytes of a connection, or datagrams of a socket, that arrive and wait to be read.
    pub receive_buffer: usize,
    /// Connections that may be open; more are not accepted, and cannot be made.
    pub descriptors: usize,
    /// Connections that may be open from one source address to one destination, at most 32,767.
    pub ports: u16,
    /// CPU time that each event, send and connect costs, nanoseconds. It is only accounted for: work takes no time.
    pub cpu_per_event: u64,
    /// See [`crate::Driver::wake_latency`]. A wait ends on time all the same.
    pub wake_latency: u64,
    /// The monotonic clock of the node's machine is so far ahead of the world's, nanoseconds.
    pub clock_offset: u64,
}

impl Default for NodeOptions {
    fn default() -> NodeOptions {
        NodeOptions {
            send_buffer: 256 * 1024,
            receive_buffer: 256 * 1024,
            descriptors: usize::MAX,
            // As Linux has by default: 32,768 to 60,999.
            ports: 28_232,
            cpu_per_event: 1_000,
            wake_latency: 0,
            clock_offset: 0,
        }
    }
}
