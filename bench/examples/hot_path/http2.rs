//! HTTP/2: a connection whose two halves talk to each other in memory. Both are counted, for one cannot be without the
//! other: stream numbers and HPACK's tables forbid playing the same bytes again.

use std::hint::black_box;

use anyhow::bail;
use weir_wire::http2::{Body, Client, ClientEvent, Options, Prepared, Request, Server, ServerEvent, Stream};

static BODY: [u8; 128] = [b'x'; 128];

/// `count` requests over one connection, `streams` at a time, each answered with 128 bytes.
pub fn exchange(count: u64, streams: u32) -> anyhow::Result<()> {
    let options = Options { max_streams: streams, keep_headers: false, ..Options::client() };
    let mut pair = Pair {
        client: Client::new(&options),
        server: Server::new(&Options::server()),
        response: Prepared::response(
            200,
            &[("server", "weir-origin"), ("content-type", "application/octet-stream")],
            Some(BODY.len() as u64),
        )?,
        up: Vec::new(),
        down: Vec::new(),
        asked: Vec::new(),
    };
    let ask = Prepared::request(&Request {
        method: "GET",
        scheme: "http",
        authority: "127.0.0.1:9000",
        path: "/bytes/128",
        headers: &[],
    })?;
    pair.client.start(&mut pair.up);
    pair.server.start(&mut pair.down);
    // Settings go to and fro.
    for _ in 0..2 {
        pair.turn()?;
    }
    let mut done = 0;
    while done < count {
        for tag in 0..streams {
            let sent = pair.client.request(tag, &ask, Body::None, &mut pair.up);
            sent.map_err(|why| anyhow::anyhow!("the request was refused: {why:?}"))?;
        }
        let answered = pair.turn()?;
        if answered != streams {
            bail!("{answered} of {streams} requests were answered");
        }
        done += u64::from(answered);
    }
    Ok(())
}

struct Pair {
    client: Client,
    server: Server,
    response: Prepared,
    /// On the way to the server.
    up: Vec<u8>,
    /// On the way to the client.
    down: Vec<u8>,
    asked: Vec<Stream>,
}

impl Pair {
    /// Carries requests to the server and responses to the client. Returns how many responses ended.
    fn turn(&mut self) -> anyhow::Result<u32> {
        let mut input = black_box(&self.up[..]);
        while let Some(event) = self.server.next(&mut input, &mut self.down)? {
            if let ServerEvent::End { stream } = event {
                self.asked.push(stream);
            }
        }
        self.up.clear();
        for stream in self.asked.drain(..) {
            let sent = self.server.respond(stream, &self.response, Body::Static(&BODY), &mut self.down);
            sent.map_err(|why| anyhow::anyhow!("the response was refused: {why:?}"))?;
        }
        let mut answered = 0;
        let mut input = black_box(&self.down[..]);
        while let Some(event) = self.client.next(&mut input, &mut self.up)? {
            answered += u32::from(matches!(black_box(event), ClientEvent::End { .. }));
        }
        self.down.clear();
        Ok(answered)
    }
}
