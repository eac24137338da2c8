//! HTTP/1.1 over plain TCP with another implementation, so that `weir-wire` does not judge itself. [`super::Http`] calls it.

use std::net::SocketAddr;
use std::time::Duration;

use weir_model::suite::Request;

use super::{LARGEST_BODY, Response};

/// A client of one address, with its own pool of connections.
pub(super) struct IndependentClient {
    agent: ureq::Agent,
}

impl IndependentClient {
    pub(super) fn new(timeout: Duration) -> IndependentClient {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // The environment's proxy settings must not come between weir and what it measures.
            .proxy(None)
            .timeout_global(Some(timeout))
            .user_agent("weir-lab")
            .build();
        IndependentClient { agent: ureq::Agent::new_with_config(config) }
    }

    /// Sends one request.
    pub(super) fn send(&self, addr: SocketAddr, request: &Request) -> Result<Response, String> {
        let mut builder = ureq::http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("http://{addr}{}", request.path));
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let request = builder.body(request.body.as_slice()).map_err(|e| e.to_string())?;
        let response = self.agent.run(request).map_err(|e| e.to_string())?;
        read(response)
    }
}

fn read(mut received: ureq::http::Response<ureq::Body>) -> Result<Response, String> {
    let headers = received
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let mut response = Response::new(received.status().as_u16(), &format!("{:?}", received.version()), headers);
    let body = received.body_mut().with_config().limit(LARGEST_BODY as u64);
    response.body = body.read_to_vec().map_err(|e| e.to_string())?;
    Ok(response.complete())
}
