//! The store of the sessions that a client may resume. [`super::config`] makes it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Tickets of TLS 1.3 kept for a name (each is used once); older ones are dropped. rustls keeps 8, of which a load
/// whose thousand connections begin anew together would soon have none.
const MOST: usize = 4096;

/// One thread's store: its lock is never contended, and is taken once or twice per handshake, never for a request.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<ServerName<'static>, Kept>>);

#[derive(Default)]
struct Kept {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    fn kept(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Kept>> {
        // Nothing here panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.kept().entry(server_name).or_default().group = Some(group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().get(server_name)?.group
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().entry(server_name).or_default().tls12 = Some(value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().get(server_name)?.tls12.clone()
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        if let Some(kept) = self.kept().get_mut(server_name) {
            kept.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut names = self.kept();
        let tickets = &mut names.entry(server_name).or_default().tls13;
        if tickets.len() == MOST {
            tickets.pop_front();
        }
        tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().get_mut(server_name)?.tls13.pop_back()
    }
}

impl fmt::Debug for Tickets {
    /// Without the secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}
