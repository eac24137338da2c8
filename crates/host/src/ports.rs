//! Free ports for a trial.
//!
//! Taken from below the kernel's ephemeral range, so that no outgoing connection of the client or the product can
//! grab one between our look and the product's bind. A machine whose ephemeral range begins below 16,000 leaves no
//! room for that: there a port may be taken in between, which becomes an error row.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use rand::Rng;

/// First port weir gives out.
const LOWEST: u16 = 15_000;

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
#[error(
    "no free port on 127.0.0.1 between {LOWEST} and {0} in 200 tries\n  to mend it: see what listens there with `ss -ltn`"
)]
pub struct NoPort(u16);

/// Chooses `N` different ports on which 127.0.0.1 has no listener now.
///
/// # Errors
/// When 200 random candidates were all taken.
pub fn free<const N: usize>() -> Result<[SocketAddr; N], NoPort> {
    let top = ephemeral_start().max(LOWEST + 1_000);
    let mut found: Vec<SocketAddr> = Vec::with_capacity(N);
    let mut rng = rand::rng();
    for _ in 0..200 {
        let addr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), rng.random_range(LOWEST..top));
        // A bind without SO_REUSEADDR also refuses ports with sockets in TIME_WAIT: better another port.
        if !found.contains(&addr) && TcpListener::bind(addr).is_ok() {
            found.push(addr);
            if let Ok(ports) = <[SocketAddr; N]>::try_from(found.as_slice()) {
                return Ok(ports);
            }
        }
    }
    Err(NoPort(top))
}

fn ephemeral_start() -> u16 {
    weir_vitals::local_ports().map_or(32_768, |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_are_free_and_below_the_ephemeral_range() {
        let ports: [SocketAddr; 3] = free().expect("three of thousands of ports are free");
        assert_ne!(ports[0], ports[1]);
        assert_ne!(ports[1], ports[2]);
        for addr in ports {
            assert!(addr.port() < ephemeral_start().max(LOWEST + 1_000));
            assert!(TcpListener::bind(addr).is_ok(), "{addr} was said to be free");
        }
    }
}
