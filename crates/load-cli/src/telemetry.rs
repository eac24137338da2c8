//! Hands the progress of a load or a run to other programs while it goes on. Prometheus reads it as text (`--metrics`), and the end is
//! also in a file (`--metrics-file`). `weir load` and `weir run` publish once a second what the terminal shows. The listener has a thread
//! of its own, so the load's threads never wait for it. The module does not know how anything is measured.

pub mod exposition;
pub mod family;
pub(crate) mod load;
mod serve;

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use self::family::Family;
use crate::exit::{Failure, wrong_value};

/// Where progress goes, other than to the terminal.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Metrics")]
pub struct TelemetryArgs {
    /// Serve live metrics for Prometheus at http://ADDR/metrics: a port of 127.0.0.1, or an address and a port.
    #[arg(long, value_name = "ADDR", value_parser = address, hide_short_help = true)]
    metrics: Option<SocketAddr>,
    /// Write the last metrics to a file, in the OpenMetrics text format.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    metrics_file: Option<PathBuf>,
}

/// What was published last. Readers take it whole.
type Shared = Arc<Mutex<Arc<Vec<Family>>>>;

/// The ways on which metrics go out.
#[derive(Debug)]
pub struct Telemetry {
    last: Shared,
    file: Option<(PathBuf, File)>,
}

impl Telemetry {
    /// Opens what was asked for; `None` where nothing was.
    ///
    /// # Errors
    /// The address is taken, or the file cannot be written: before anything starts.
    pub fn open(args: &TelemetryArgs) -> Result<Option<Telemetry>, Failure> {
        if args.metrics.is_none() && args.metrics_file.is_none() {
            return Ok(None);
        }
        let last = Shared::default();
        let file = match &args.metrics_file {
            None => None,
            Some(path) => {
                let wrong = |e| {
                    Failure::wrong("--metrics-file", format!("{}: {e}", path.display()), "a file that can be written")
                };
                Some((path.clone(), File::create(path).map_err(wrong)?))
            }
        };
        if let Some(address) = args.metrics {
            let wrong = |e| {
                Failure::wrong("--metrics", format!("{address}: {e}"), "an address of this machine and a free port")
            };
            let served = serve::start(address, last.clone()).map_err(wrong)?;
            remark!("metrics: http://{served}/metrics");
        }
        Ok(Some(Telemetry { last, file }))
    }

    /// Replaces what readers see.
    pub fn publish(&self, families: Vec<Family>) {
        // A reader that panicked left a whole list behind.
        *self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(families);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written any more.
    pub fn finish(self) -> Result<(), Failure> {
        let Some((path, mut file)) = self.file else { return Ok(()) };
        let text = exposition::text(&last(&self.last));
        std::io::Write::write_all(&mut file, text.as_bytes())
            .map_err(|e| Failure::missing(format!("--metrics-file: {}: {e}", path.display())))
    }
}

fn last(shared: &Shared) -> Arc<Vec<Family>> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// Reads `9464` (of 127.0.0.1), `127.0.0.1:9464`, `[::1]:9464` or `0.0.0.0:9464`. What others can reach has to be named.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| wrong_value(format!("\"{text}\" is no address"), "a port such as 9464, or 127.0.0.1:9464"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_the_loopback_address() {
        for (text, right) in
            [("9464", "127.0.0.1:9464"), (":0", "127.0.0.1:0"), ("0.0.0.0:1", "0.0.0.0:1"), ("[::1]:9", "[::1]:9")]
        {
            assert_eq!(address(text).expect(text).to_string(), right);
        }
        for wrong in ["", "localhost", "localhost:1", "99999", "1.2.3.4"] {
            assert!(address(wrong).expect_err(wrong).contains("such as 9464"), "{wrong}");
        }
    }
}
