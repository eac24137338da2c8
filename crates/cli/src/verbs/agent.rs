//! `weir agent` (hidden): weir on another host, started by a transport. `weir_host::agent` has the conversation; this verb says
//! what the program above that crate offers there.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use weir_host::agent::clean::remove_leftovers;
use weir_host::agent::process;
use weir_host::agent::serve::End;
use weir_host::transport::bin_folder;

use crate::exit::{Exit, Failure, VerbResult};

/// Runs it.
pub fn main() -> VerbResult {
    let weir = std::env::current_exe().map_err(Failure::missing)?;
    Ok(match process::run(weir, Arc::new(offer)).map_err(Failure::missing)? {
        End::Goodbye => Exit::Ok,
        End::Refused => Exit::Missing,
        End::Lost(_) => Exit::Failed,
    })
}

/// The calls that a host offers. `doctor`, with a folder: checks of the machine. `list`, `find`, `plan`, `install`, `use`: its products.
/// `clean`: removes what killed runs left there. `resolve`, with `host:port`: the address there that accepts connections.
fn offer(name: &str, argument: Value, progress: &mut dyn FnMut(Value)) -> Result<Value, String> {
    let said = |error: serde_json::Error| error.to_string();
    match name {
        "doctor" => {
            let runs: PathBuf = serde_json::from_value(argument).map_err(said)?;
            serde_json::to_value(super::doctor::examine(&runs)).map_err(said)
        }
        "clean" => {
            let cleaned = remove_leftovers(bin_folder().as_deref()).map_err(|error| error.to_string())?;
            serde_json::to_value(cleaned).map_err(said)
        }
        "resolve" => {
            let address: String = serde_json::from_value(argument).map_err(said)?;
            serde_json::to_value(resolve(&address)?).map_err(said)
        }
        "list" | "find" | "plan" | "install" | "use" => {
            let request: weir_install::Request = serde_json::from_value(argument).map_err(said)?;
            let mut catalogue = crate::library::catalogue(&request.libraries).map_err(|error| error.to_string())?;
            // The weir that calls has asked its user.
            catalogue.agree(|_| true);
            weir_install::serve(name, &request, &catalogue, progress)
        }
        _ => Err(format!("weir offers no {name} on its hosts")),
    }
}

/// How long a connection may take.
const CONNECTS: Duration = Duration::from_secs(5);

/// The first address of a name that accepts connections, else why none does.
fn resolve(address: &str) -> Result<SocketAddr, String> {
    let mut why = "it has no address".to_owned();
    for found in address.to_socket_addrs().map_err(|error| error.to_string())? {
        match TcpStream::connect_timeout(&found, CONNECTS) {
            Ok(_) => return Ok(found),
            Err(error) => why = format!("{found}: {error}"),
        }
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_is_one_that_accepts_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let there = listener.local_addr().expect("an address");
        let asked = format!("localhost:{}", there.port());
        assert_eq!(offer("resolve", asked.clone().into(), &mut |_| {}), Ok(there.to_string().into()));
        drop(listener);
        assert!(offer("resolve", asked.into(), &mut |_| {}).expect_err("gone").contains("efused"));
        assert!(resolve("no-such-host.invalid:80").is_err());
    }
}
