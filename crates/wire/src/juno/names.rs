//! Operations and statuses by number and name. The load and the origin use them.

/// What a message asks for, or responses. The default is to do nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Opcode(pub u8);

#[allow(missing_docs, reason = "JunoDB's names")]
impl Opcode {
    // From clients.
    pub const NOP: Opcode = Opcode(0);
    pub const CREATE: Opcode = Opcode(1);
    pub const GET: Opcode = Opcode(2);
    pub const UPDATE: Opcode = Opcode(3);
    pub const SET: Opcode = Opcode(4);
    pub const DESTROY: Opcode = Opcode(5);
    // From the proxy to a store.
    pub const PREPARE_CREATE: Opcode = Opcode(0x81);
    pub const READ: Opcode = Opcode(0x82);
    pub const PREPARE_UPDATE: Opcode = Opcode(0x83);
    pub const PREPARE_SET: Opcode = Opcode(0x84);
    pub const PREPARE_DELETE: Opcode = Opcode(0x85);
    pub const DELETE: Opcode = Opcode(0x86);
    pub const COMMIT: Opcode = Opcode(0xC1);
    pub const ABORT: Opcode = Opcode(0xC2);
    pub const REPAIR: Opcode = Opcode(0xC3);
    pub const MARK_DELETE: Opcode = Opcode(0xC4);
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

#[allow(missing_docs, reason = "the messages say it")]
impl Status {
    pub const OK: Status = Status(0);
    pub const BAD_MESSAGE: Status = Status(1);
    pub const NO_KEY: Status = Status(3);
    pub const DUPLICATE_KEY: Status = Status(4);
    pub const BAD_PARAMETER: Status = Status(7);
    pub const RECORD_LOCKED: Status = Status(8);
    pub const NO_UNCOMMITTED: Status = Status(10);
    pub const NO_STORE: Status = Status(12);
    pub const BUSY: Status = Status(14);
    pub const VERSION_CONFLICT: Status = Status(19);
    pub const STORE_ERROR: Status = Status(21);
    pub const TIMEOUT: Status = Status(24);
    pub const COMMIT_FAILURE: Status = Status(25);
    pub const INCONSISTENT: Status = Status(26);
    pub const MARKED_DELETE: Status = Status(27);
    pub const NOT_SUPPORTED: Status = Status(28);

    /// The operation was carried out. Clients count an inconsistent state among these: one store has it, another will.
    pub fn is_success(self) -> bool {
        matches!(self, Status::OK | Status::INCONSISTENT)
    }

    /// What it means, for people.
    pub fn text(self) -> &'static str {
        match self {
            Status::OK => "ok",
            Status::BAD_MESSAGE => "bad message",
            Status(2) => "service denied",
            Status::NO_KEY => "no such key",
            Status::DUPLICATE_KEY => "the key exists",
            Status::BAD_PARAMETER => "bad parameter",
            Status::RECORD_LOCKED => "the record is locked",
            Status::NO_UNCOMMITTED => "nothing to commit",
            Status::NO_STORE => "too few storage servers",
            Status::BUSY => "server busy",
            Status::VERSION_CONFLICT => "version conflict",
            Status::STORE_ERROR => "storage server error",
            Status(22) => "the storage server is out of a resource",
            Status(23) => "the time to live was not extended",
            Status::TIMEOUT => "processing timed out",
            Status::COMMIT_FAILURE => "commit failure",
            Status::INCONSISTENT => "inconsistent state",
            Status::MARKED_DELETE => "marked as deleted",
            Status::NOT_SUPPORTED => "operation not supported",
            _ => "internal error",
        }
    }
}
