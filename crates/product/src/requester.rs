//! weir's own requests in a trial, which must come from where the load comes from: those for readiness and verification from the
//! client's host, those for a part's own numbers from the product's. A process of weir's own (`weir requester`, hidden) sends
//! them there. The trial asks it, one question at a time. The conformance tests, which run on this machine, ask without a process.
//!
//! Questions and responses are lines of JSON. The first question brings the run's TLS, so that no key is in an argument. This
//! module does not know what follows from a response.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_host::stop::Stop;
use weir_host::{Clock, Host, ReceiveError, RoleProcess, RoleSpec, SystemClock};
use weir_model::change::CHANGE_HEADER;
use weir_model::keyvalue::KeyValue;
use weir_model::suite::{Expect, Protocol, Request, Workload};

use crate::client::{Network, WireProtocol};
use crate::consumers::{credential, credential_header, refused_request};
use crate::expiry::{self, TestKey};
use crate::failure::Failure;
use crate::http::Http;
use crate::monitor::Monitors;
use crate::tls::RunTls;
use crate::verify;

/// What a question may take beside its requests.
const SPARE: Duration = Duration::from_secs(10);

/// Requests that one question can cause, at most.
const MOST_REQUESTS: u32 = 3 * 5 + 1;

/// The longest time for one request for readiness.
pub(crate) const LONGEST_TRY: Duration = Duration::from_secs(2);

/// The shortest time for one, because little may be left of `ready_within`.
const LEAST_TRY: Duration = Duration::from_millis(50);

/// A question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Query {
    /// The run's TLS, for all that follow.
    Tls(Box<RunTls>),
    /// Sends a request that the origin answers, or keeps a value.
    Ready(Server),
    /// Verifies the responses of `to`, against those of `origin` where there is one. `refused`: a request that a product has to refuse.
    Verify { workload: Box<Workload>, refused: Option<Box<Request>>, to: Server, origin: Option<Server>, proxied: bool },
    /// Tests how long keys live.
    Expiry { keys: Vec<TestKey>, to: Server },
    /// Whether a client without a certificate is served.
    ServesStrangers { workload: Box<Workload>, to: Server },
    /// The number of the change that the response shows.
    ChangeShown { workload: Box<Workload>, to: Server },
    /// Writes the body of the response into a file.
    Save { request: Request, from: Server, file: PathBuf },
    /// Asks parts for their own numbers until the process ends, or is told to ask none.
    Monitor { parts: Vec<(String, String)>, folder: PathBuf },
}

/// Whom to ask, and how.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Server {
    /// Where it listens.
    pub addr: SocketAddr,
    /// What it speaks.
    pub protocol: Protocol,
    /// How long each request may take.
    pub timeout: Duration,
}

/// Sends weir's own requests.
#[derive(Debug)]
pub struct Requester(How);

#[derive(Debug)]
enum How {
    Here(Box<RunTls>),
    There { process: Arc<dyn RoleProcess>, host: Arc<dyn Host>, output: PathBuf },
}

impl Requester {
    /// One in this process.
    pub fn here(tls: RunTls) -> Requester {
        Requester(How::Here(Box::new(tls)))
    }

    /// A process on a host. What it prints goes to `output`.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(host: &Arc<dyn Host>, tls: &RunTls, output: &Path) -> Result<Requester, Failure> {
        let failed = |e: String| Failure::at("start", e, "", "see requester.log in the trial's folder");
        let spec = RoleSpec {
            name: "requester".to_owned(),
            args: vec!["requester".to_owned()],
            output: output.to_owned(),
            hold: false,
        };
        let process = host.start_role(&spec).map_err(|e| failed(e.to_string()))?;
        let requester = Requester(How::There { process, host: Arc::clone(host), output: output.to_owned() });
        requester.ask::<()>(&Query::Tls(Box::new(tls.clone())), Duration::ZERO).map_err(failed)?;
        Ok(requester)
    }

    /// Sends one request through a product: one that the origin answers, or a value to keep.
    ///
    /// # Errors
    /// What came instead.
    pub fn ready(&self, server: Server) -> Result<(), String> {
        self.ask(&Query::Ready(server), server.timeout)
    }

    /// Asks again until the origin answers through the server at `addr`; `still` is asked in between. The inner error is the last
    /// try's.
    ///
    /// # Errors
    /// A stop, and what `still` says.
    pub fn wait_ready(
        &self,
        (addr, protocol): (SocketAddr, Protocol),
        within: Duration,
        stop: &Stop,
        mut still: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Result<(), String>, Failure> {
        let clock = self.clock();
        let deadline = clock.now().plus(within);
        let mut last = String::from("no response");
        while !clock.left(deadline).is_zero() {
            if stop.is_requested() {
                return Err(Failure::Stopped);
            }
            still()?;
            // A product that accepts and never answers must not take longer than one that does not listen.
            let timeout = clock.left(deadline).clamp(LEAST_TRY, LONGEST_TRY);
            match self.ready(Server { addr, protocol, timeout }) {
                Ok(()) => return Ok(Ok(())),
                Err(error) => last = error,
            }
            clock.sleep(Duration::from_millis(10));
        }
        Ok(Err(last))
    }

    fn clock(&self) -> Arc<dyn Clock> {
        match &self.0 {
            How::Here(_) => Arc::new(SystemClock),
            How::There { host, .. } => host.local_clock(),
        }
    }

    /// Verifies the responses of a server. Where there is an origin, its own response is what the server's are compared with. Returns
    /// what every response of the load is held to; the inner error is the product's, the outer one the origin's or the suite's.
    ///
    /// # Errors
    /// What was found and what would be right.
    pub fn verify(
        &self,
        workload: &Workload,
        to: Server,
        origin: Option<Server>,
        proxied: bool,
    ) -> Result<Result<Expect, String>, String> {
        let mut workload = Box::new(workload.clone());
        let filter = workload.gateway.filter;
        let refused = filter.and_then(|filter| refused_request(filter, &workload.request)).map(Box::new);
        let key = filter.and_then(|filter| Some((credential_header(filter)?.to_owned(), credential(filter, 0))));
        workload.request.headers.extend(key);
        self.ask(&Query::Verify { workload, refused, to, origin, proxied }, to.timeout)
    }

    /// Writes and reads keys with a time to live, as [`expiry::test`] does. Returns them with what is known of them then.
    ///
    /// # Errors
    /// How a request failed.
    pub fn expiry(&self, keys: Vec<TestKey>, to: Server) -> Result<Vec<TestKey>, String> {
        self.ask(&Query::Expiry { keys, to }, to.timeout)
    }

    /// Whether a client without a certificate is served.
    ///
    /// # Errors
    /// When nobody can tell.
    pub fn serves_strangers(&self, workload: &Workload, to: Server) -> Result<bool, String> {
        self.ask(&Query::ServesStrangers { workload: Box::new(workload.clone()), to }, to.timeout)
    }

    /// The number of the change of the route that a response shows, over a new connection.
    ///
    /// # Errors
    /// There is no response, or none with a number.
    pub fn change_shown(&self, workload: &Workload, to: Server) -> Result<u32, String> {
        self.ask(&Query::ChangeShown { workload: Box::new(workload.clone()), to }, to.timeout)
    }

    /// Writes the body with which a server answers into a file of the requester's host.
    ///
    /// # Errors
    /// Why there is no such file.
    pub fn save(&self, request: &Request, from: Server, file: PathBuf) -> Result<(), String> {
        self.ask(&Query::Save { request: request.clone(), from, file }, from.timeout)
    }

    /// From now on asks these parts each second for their own numbers, by their addresses, and writes them into files in
    /// `folder`; no parts: asks nobody any more.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn monitor(&self, parts: Vec<(String, String)>, folder: &Path) -> Result<(), String> {
        self.ask(&Query::Monitor { parts, folder: folder.to_owned() }, Duration::ZERO)
    }

    fn ask<T: DeserializeOwned>(&self, query: &Query, timeout: Duration) -> Result<T, String> {
        let response = match &self.0 {
            How::Here(tls) => Sender { tls, network: None }.respond(query)?,
            How::There { process, host, output } => {
                let line = serde_json::to_string(query).map_err(|e| e.to_string())?;
                let line = process.ask(&line, timeout * MOST_REQUESTS + SPARE).map_err(|error| {
                    let what = match error {
                        ReceiveError::Ended => "has ended",
                        ReceiveError::Timeout => "says nothing",
                    };
                    format!("weir's requester {what}; {}", host.last_lines(output, 5))
                })?;
                serde_json::from_str::<Result<Value, String>>(&line).map_err(|e| e.to_string())??
            }
        };
        serde_json::from_value(response).map_err(|e| e.to_string())
    }
}

/// Responder the questions on `input` until it ends.
///
/// # Errors
/// What the system said of input or output.
pub fn serve(input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut responses = Responder::default();
    for line in input.lines() {
        writeln!(output, "{}", responses.to(&line?))?;
        output.flush()?;
    }
    Ok(())
}

/// What a requester's process remembers from one question to the next.
#[derive(Debug, Default)]
pub struct Responder {
    /// What its requests go over; `None`: this machine's sockets.
    network: Option<Arc<dyn Network>>,
    tls: Option<Box<RunTls>>,
    monitors: Monitors,
}

impl Responder {
    /// Of a requester whose requests go over this.
    pub fn over(network: Arc<dyn Network>) -> Responder {
        Responder { network: Some(network), ..Responder::default() }
    }

    /// The response to a question, a line each.
    pub fn to(&mut self, line: &str) -> String {
        let answered = match (serde_json::from_str(line), &self.tls) {
            (Err(error), _) => Err(format!("no question: {error}")),
            (Ok(Query::Tls(given)), _) => {
                self.tls = Some(given);
                Ok(Value::Null)
            }
            (Ok(Query::Monitor { parts, folder }), _) => {
                drop(std::mem::replace(&mut self.monitors, Monitors::start(&parts, &folder)));
                Ok(Value::Null)
            }
            (Ok(_), None) => Err("no TLS was told".to_owned()),
            (Ok(query), Some(tls)) => Sender { tls, network: self.network.as_ref() }.respond(&query),
        };
        // Values and texts are always written.
        serde_json::to_string(&answered).unwrap_or_default()
    }
}

/// Carries out questions.
#[derive(Debug)]
struct Sender<'a> {
    tls: &'a RunTls,
    network: Option<&'a Arc<dyn Network>>,
}

impl Sender<'_> {
    fn respond(&self, query: &Query) -> Result<Value, String> {
        let value = match query {
            Query::Ready(server) => self.ready(server).map(|()| Value::Null)?,
            Query::Verify { workload, refused, to, origin, proxied } => {
                let refused = refused.as_deref();
                serde_json::to_value(self.verified(workload, refused, to, origin.as_ref(), *proxied)?)
                    .map_err(|e| e.to_string())?
            }
            Query::Expiry { keys, to } => serde_json::to_value(self.expiry(keys, to)?).map_err(|e| e.to_string())?,
            Query::ServesStrangers { workload, to } => self.serves_strangers(workload, to)?.into(),
            Query::ChangeShown { workload, to } => {
                let response = self.http(to)?.send(&workload.sent_request(None))?;
                let number = response.header(CHANGE_HEADER).and_then(|value| value.parse::<u32>().ok());
                number.ok_or_else(|| format!("its response has no number in {CHANGE_HEADER}"))?.into()
            }
            Query::Save { request, from, file } => self.save(request, from, file).map(|()| Value::Null)?,
            Query::Tls(_) | Query::Monitor { .. } => return Err("only a process can".to_owned()),
        };
        Ok(value)
    }

    fn over(&self, wire_protocol: WireProtocol) -> WireProtocol {
        WireProtocol { network: self.network.cloned(), ..wire_protocol }
    }

    fn http(&self, server: &Server) -> Result<Http, String> {
        let wire_protocol = self.over(self.tls.wire_protocol(server.protocol)?);
        Ok(Http::with_protocol(server.addr, server.timeout, &wire_protocol))
    }

    fn ready(&self, server: &Server) -> Result<(), String> {
        if server.protocol.is_keyvalue() {
            let endpoint = self.over(self.tls.wire_protocol(server.protocol)?).at(server.addr);
            return verify::keyvalue(&KeyValue::default(), &endpoint, server.protocol, server.timeout);
        }
        match self.http(server)?.get("/_weir/ready")? {
            // A gateway that authenticates is ready when it refuses.
            response if matches!(response.status, 204 | 401) => Ok(()),
            response => Err(format!("status {} instead of the origin's 204", response.status)),
        }
    }

    fn verified(
        &self,
        workload: &Workload,
        refused: Option<&Request>,
        to: &Server,
        origin: Option<&Server>,
        proxied: bool,
    ) -> Result<Result<Expect, String>, String> {
        if let Some(keyvalue) = &workload.keyvalue {
            let endpoint = self.over(self.tls.wire_protocol(to.protocol)?).at(to.addr);
            let kept = verify::keyvalue(keyvalue, &endpoint, to.protocol, to.timeout);
            return Ok(kept.map(|()| Expect::default()));
        }
        let to_product = self.http(to)?;
        let to_origin = origin.map(|origin| self.http(origin)).transpose()?;
        let (expect, reference) = verify::reference(workload, to_origin.as_ref().unwrap_or(&to_product))?;
        let compared = if proxied {
            let same = verify::product(workload, &to_product, &reference);
            same.and_then(|()| verify::filter(workload, refused, &to_product, &reference))
        } else {
            Ok(())
        };
        Ok(compared.map(|()| expect))
    }

    fn expiry(&self, keys: &[TestKey], to: &Server) -> Result<Vec<TestKey>, String> {
        let endpoint = self.over(self.tls.wire_protocol(to.protocol)?).at(to.addr);
        let mut keys = keys.to_vec();
        expiry::test(&mut keys, &endpoint, to.protocol, to.timeout).map_err(|e| e.to_string())?;
        Ok(keys)
    }

    fn serves_strangers(&self, workload: &Workload, to: &Server) -> Result<bool, String> {
        let Some(stranger) = self.tls.stranger(to.protocol)? else { return Ok(false) };
        let stranger = self.over(stranger);
        Ok(match &workload.keyvalue {
            Some(keyvalue) => verify::keyvalue(keyvalue, &stranger.at(to.addr), to.protocol, to.timeout).is_ok(),
            None => Http::with_protocol(to.addr, to.timeout, &stranger).send(&workload.request).is_ok(),
        })
    }

    fn save(&self, request: &Request, from: &Server, file: &Path) -> Result<(), String> {
        let response =
            self.http(from)?.send(request).map_err(|e| format!("weir's own origin did not answer it: {e}"))?;
        if response.status != 200 {
            return Err(format!("its response has the status {}", response.status));
        }
        let io = |e: std::io::Error| format!("{}: {e}", file.display());
        file.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        std::fs::write(file, &response.body).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::suite::Tls;

    fn told(questions: &[&str]) -> Vec<Result<Value, String>> {
        let mut said = Vec::new();
        serve(questions.join("\n").as_bytes(), &mut said).expect("memory");
        said.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).expect("JSON"))
            .collect()
    }

    #[test]
    fn questions_are_answered_in_their_order_and_wrong_ones_are_said() {
        let tls =
            serde_json::to_string(&Query::Tls(Box::new(RunTls::new(Tls::default()).expect("made")))).expect("JSON");
        let server = Server {
            addr: SocketAddr::from(([127, 0, 0, 1], 1)),
            protocol: Protocol::default(),
            timeout: Duration::from_millis(200),
        };
        let ready = serde_json::to_string(&Query::Ready(server)).expect("JSON");
        let responses = told(&["?", &ready, &tls, &ready]);
        assert!(responses[0].as_ref().is_err_and(|why| why.starts_with("no question: ")), "{responses:?}");
        assert_eq!(responses[1], Err("no TLS was told".to_owned()));
        assert_eq!(responses[2], Ok(Value::Null));
        assert!(responses[3].as_ref().is_err_and(|why| why.contains("efused")), "{responses:?}");
    }

    #[test]
    fn a_runs_tls_survives_its_way() {
        for client_certificates in [false, true] {
            let tls = RunTls::new(Tls { client_certificates, ..Tls::default() }).expect("made");
            let text = serde_json::to_string(&tls).expect("JSON");
            let again: RunTls = serde_json::from_str(&text).expect("the same");
            assert_eq!(serde_json::to_string(&again).expect("JSON"), text);
            assert_eq!(again.identity(), tls.identity());
            assert_eq!(again.stranger(Protocol::Https11).expect("options").is_some(), client_certificates);
        }
    }
}
