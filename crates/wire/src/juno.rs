//! JunoDB's protocol, client and server half, between clients and the proxy and between the proxy and its stores.
//!
//! A message is a header, metadata and a record. [`Reader`] takes whole messages out of a stream, [`Message`] reads and
//! writes one. Requests may be answered in any order; [`Message::opaque`] matches them. Nothing here knows what a proxy
//! or a store does with a message.

mod codec;
mod frame;
mod names;

pub use codec::{Message, Meta, Payload};
pub use frame::{MessageFrame, Reader};
pub use names::{Opcode, Status};

/// What a peer did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A message does not begin with 0x5050.
    #[error("a message does not begin with 0x5050")]
    BadMagic,
    /// A version other than 1.
    #[error("the version is not 1")]
    UnsupportedVersion,
    /// A message of another type than an operation: admin and cluster control get no response.
    #[error("the message is not an operation")]
    NotAnOperation,
    /// A size that is smaller than the headers.
    #[error("a message's size is smaller than its headers")]
    BadSize,
    /// A message is larger than the limit.
    #[error("a message is larger than the limit")]
    TooLarge,
    /// A component's size is not a multiple of 8, or reaches beyond the message.
    #[error("a component's size does not fit its message")]
    BadComponent,
    /// A field of the metadata reaches beyond its component, or has a length that it cannot have.
    #[error("a field of the metadata has the wrong length")]
    BadField,
    /// The lengths of namespace, key and value do not fit their component.
    #[error("namespace, key and value do not fit their component")]
    BadRecord,
}

/// Why a message cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A namespace is longer than 255 bytes.
    #[error("the namespace is longer than 255 bytes")]
    LongNamespace,
    /// A key is longer than 65,535 bytes.
    #[error("the key is longer than 65,535 bytes")]
    LongKey,
    /// A value is 4 GiB long or longer.
    #[error("the value is longer than a message can be")]
    LongValue,
}
