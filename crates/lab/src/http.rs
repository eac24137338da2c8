//! The lab's own requests: readiness, verification, the origin's books. Never part of a load.

use std::net::SocketAddr;
use std::time::Duration;

use weir_model::books::Books;
use weir_model::suite::Request;
use xxhash_rust::xxh3::xxh3_64;

/// Largest body the lab reads.
const LARGEST_BODY: u64 = 256 * 1024 * 1024;

/// A connection pool to one address.
#[derive(Debug)]
pub struct Http {
    agent: ureq::Agent,
    addr: SocketAddr,
}

/// An answer as the lab sees it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// `HTTP/1.0`, `HTTP/1.1`.
    pub version: String,
    /// Headers, lower-case names, in the order received.
    pub headers: Vec<(String, String)>,
    /// Size of the body, bytes.
    pub size: u64,
    /// XXH3-64 of the body.
    pub hash: u64,
    /// The body itself.
    pub body: Vec<u8>,
}

impl Answer {
    /// First header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

impl Http {
    /// For one address; every request takes at most `timeout`.
    pub fn new(addr: SocketAddr, timeout: Duration) -> Http {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // The environment's proxy settings must not come between weir and what it measures.
            .proxy(None)
            .timeout_global(Some(timeout))
            .user_agent("weir-lab")
            .build();
        Http { agent: ureq::Agent::new_with_config(config), addr }
    }

    /// Sends one request of a workload.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn send(&self, request: &Request) -> Result<Answer, String> {
        let mut builder = ureq::http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("http://{}{}", self.addr, request.path));
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let request = builder.body(request.body.as_slice()).map_err(|e| e.to_string())?;
        let response = self.agent.run(request).map_err(|e| e.to_string())?;
        read(response)
    }

    /// GET of a path.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn get(&self, path: &str) -> Result<Answer, String> {
        let request = Request { method: "GET".into(), path: path.into(), headers: Vec::new(), body: Vec::new() };
        self.send(&request)
    }

    /// The origin's books. Only for the origin's own address.
    ///
    /// # Errors
    /// What went wrong, in words.
    pub fn books(&self) -> Result<Books, String> {
        let answer = self.get("/_weir/books")?;
        serde_json::from_slice(&answer.body).map_err(|e| format!("the origin's books are not readable: {e}"))
    }
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Result<Answer, String> {
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let body = response.body_mut().with_config().limit(LARGEST_BODY).read_to_vec().map_err(|e| e.to_string())?;
    Ok(Answer {
        status: response.status().as_u16(),
        version: format!("{:?}", response.version()),
        headers,
        size: body.len() as u64,
        hash: xxh3_64(&body),
        body,
    })
}
