//! Loads: almost all in a simulated world, against scripted servers or weir's own origin, and those on real sockets that only a kernel
//! shows (`real`).

mod counts;
mod failures;
mod hostile;
mod http2;
mod http3;
mod keyvalue;
mod new_connections;
mod options;
mod origin;
mod overload;
mod parts;
mod real;
mod reasons;
#[path = "../common/script.rs"]
mod script;
mod servers;
mod slow_clients;
mod stopping;
mod store;
mod streams;
mod tls;
mod world;
