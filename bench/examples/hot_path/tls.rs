//! TLS 1.3: the records of a request and its response, both sealed and opened again.

use std::hint::black_box;

use anyhow::bail;
use weir_bench::peers::client::SUITE;
use weir_wire::tls::{
    ClientConfig, ClientOptions, Identity, KeyKind, Scratch, ServerConfig, ServerName, ServerOptions, Session, TlsEvent,
};

use crate::http1::{REQUEST, RESPONSE_HEAD};

/// `count` requests of HTTP/1.1 and responses of 128 bytes over one connection: each is sealed by one half and opened by the
/// other.
pub fn exchange(count: u64) -> anyhow::Result<()> {
    let (mut client, mut server) = connected()?;
    let (mut scratch, mut wire, mut back) = (Scratch::new(), Vec::new(), Vec::new());
    let body = [b'x'; 128];
    for _ in 0..count {
        let mut pass = |from: &mut Session, to: &mut Session, text: &[&[u8]]| -> anyhow::Result<()> {
            wire.clear();
            from.write(black_box(text), &mut wire)?;
            let mut input = black_box(&wire[..]);
            let mut plain = 0;
            while let Some(event) = to.next(&mut input, &mut scratch, &mut back)? {
                if let TlsEvent::Plaintext(range) = event {
                    plain += range.len();
                }
            }
            if plain != text.iter().map(|part| part.len()).sum::<usize>() {
                bail!("{plain} bytes came through");
            }
            Ok(())
        };
        pass(&mut client, &mut server, &[REQUEST])?;
        pass(&mut server, &mut client, &[RESPONSE_HEAD.as_bytes(), &body])?;
    }
    Ok(())
}

/// Two halves after their handshake.
fn connected() -> anyhow::Result<(Session, Session)> {
    let identity = Identity::generated(KeyKind::P256)?;
    let suites = vec![SUITE.to_owned()];
    let of_client = ClientOptions { suites: suites.clone(), ..ClientOptions::default() };
    let of_server = ServerOptions { suites, identities: vec![identity], resumption: false, ..ServerOptions::default() };
    let mut client = Session::client(&ClientConfig::new(&of_client)?, &ServerName::new("localhost")?)?;
    let mut server = Session::server(&ServerConfig::new(&of_server)?)?;
    let (mut scratch, mut up, mut down) = (Scratch::new(), Vec::new(), Vec::new());
    client.start(&mut up)?;
    // Two flights each way at most; tickets are none.
    for _ in 0..3 {
        let mut input = &up[..];
        while server.next(&mut input, &mut scratch, &mut down)?.is_some() {}
        up.clear();
        let mut input = &down[..];
        while client.next(&mut input, &mut scratch, &mut up)?.is_some() {}
        down.clear();
    }
    if !client.ready() || !server.ready() {
        bail!("the handshake did not end");
    }
    Ok((client, server))
}
