//! Lets a load begin at a time that its caller sends ahead, so that clients on several hosts, each with a clock of its own, begin
//! together. `run` waits for it; `weir client` passes on what it is told. It does not know where the time comes from.

use std::sync::mpsc::Receiver;

use weir_model::At;

/// Where a load receives its start, once it has reported that it is ready: the moment from which requests are due, those of the
/// warm-up first. A gate whose sender is gone stops the load.
pub type Gate = Receiver<At>;
