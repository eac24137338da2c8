//! Our halves of HTTP/3 against an independent implementation, the crate `h3`, over `quinn` and localhost.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, ServerConfig, VarInt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weir_wire::http3::{ALPN, Body, Client, ClientEvent, Code, Options, Prepared, Request, Server, ServerEvent};

static TEXT: [u8; 300_000] = [b't'; 300_000];

/// Every byte that a value may have, without white space at an end.
fn odd_value() -> Vec<u8> {
    let mut value = b"\"".to_vec();
    value.extend((0x20..=0x7e).chain(0x80..=0xff).chain([b'\t', b'.']));
    value
}

/// A server's endpoint, and a client's that trusts it.
fn endpoints() -> (Endpoint, Endpoint, SocketAddr) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let chain = vec![identity.cert.der().clone()];
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(chain[0].clone()).expect("a certificate");
    let mut server =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key.into()).expect("a key");
    server.alpn_protocols = vec![ALPN.to_vec()];
    let mut client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![ALPN.to_vec()];
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = QuicServerConfig::try_from(server).expect("TLS 1.3");
    let server = Endpoint::server(ServerConfig::with_crypto(Arc::new(server)), any).expect("a port");
    let address = server.local_addr().expect("an address");
    let mut endpoint = Endpoint::client(any).expect("a port");
    let client = QuicClientConfig::try_from(client).expect("TLS 1.3");
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(client)));
    (server, endpoint, address)
}

/// Bytes of a stream, and whether they are the last.
type Piece = (u64, Vec<u8>, bool);

/// Reads a stream to its end.
async fn read(mut stream: RecvStream, pieces: UnboundedSender<Piece>) {
    let id = VarInt::from(stream.id()).into_inner();
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
        let _ = pieces.send((id, chunk.bytes.to_vec(), false));
    }
    let _ = pieces.send((id, Vec::new(), true));
}

/// Opens our control stream, and reads those of the peer, which never end while the connection lives.
async fn control(connection: &Connection, first: &[u8], pieces: &UnboundedSender<Piece>) -> quinn::SendStream {
    let mut stream = connection.open_uni().await.expect("a stream");
    stream.write_all(first).await.expect("a connection");
    let (connection, pieces) = (connection.clone(), pieces.clone());
    tokio::spawn(async move {
        while let Ok(stream) = connection.accept_uni().await {
            tokio::spawn(read(stream, pieces.clone()));
        }
    });
    stream
}

/// Echoes every body, with the path and an odd header and trailers; to HEAD nothing.
async fn serve(connection: Connection) {
    let mut connection = h3::server::Connection::<_, Bytes>::new(h3_quinn::Connection::new(connection))
        .await
        .expect("our control stream");
    while let Ok(Some(resolver)) = connection.accept().await {
        let (request, mut stream) = resolver.resolve_request().await.expect("our request");
        let mut got = Vec::new();
        while let Some(mut piece) = stream.recv_data().await.expect("our DATA") {
            let length = piece.remaining();
            got.extend_from_slice(&piece.copy_to_bytes(length));
        }
        let response = http::Response::builder()
            .header("x-path", request.uri().path())
            .header("x-odd", http::HeaderValue::from_bytes(&odd_value()).expect("a value"))
            .header("content-length", got.len())
            .body(())
            .expect("a response");
        stream.send_response(response).await.expect("a stream");
        if request.method() != http::Method::HEAD && !got.is_empty() {
            stream.send_data(got.into()).await.expect("a stream");
            let mut trailers = http::HeaderMap::new();
            trailers.insert("x-sum", http::HeaderValue::from_static("1"));
            stream.send_trailers(trailers).await.expect("a stream");
        }
        stream.finish().await.expect("a stream");
    }
}

#[tokio::test]
async fn our_client_and_the_server_of_h3() {
    let (server, endpoint, address) = endpoints();
    tokio::spawn(async move { serve(server.accept().await.expect("a client").await.expect("a handshake")).await });
    let connection = endpoint.connect(address, "localhost").expect("an address").await.expect("a handshake");
    let (to, mut pieces): (_, UnboundedReceiver<Piece>) = unbounded_channel();
    let mut client = Client::new(&Options::default());
    let mut out = Vec::new();
    client.start(&mut out);
    let _control = control(&connection, &out, &to).await;
    let headers = [("accept", "*/*"), ("X-Any", "some value"), ("te", "trailers")];
    let bodies: [&'static [u8]; 4] = [b"", b"short", &TEXT, b""];
    for (tag, body) in (0..).zip(bodies) {
        let (method, path) = if tag == 3 { ("HEAD", "/head") } else { ("POST", "/post?a=%20") };
        let request = Request { method, scheme: "https", authority: "localhost", path, headers: &headers };
        let prepared = Prepared::request(&request).expect("a request");
        let (mut send, receive) = connection.open_bi().await.expect("a stream");
        out.clear();
        let id = VarInt::from(send.id()).into_inner();
        client.request(id, tag, &prepared, Body::Static(body), &mut out).expect("a connection");
        tokio::spawn(read(receive, to.clone()));
        send.write_all(&out).await.expect("a stream");
        send.finish().expect("a stream");
    }
    let mut responses: [(u16, Option<u64>, Vec<u8>, Vec<u8>); 4] = Default::default();
    let (mut ended, mut settled) = (0, false);
    while ended < 4 {
        let (id, bytes, fin) = pieces.recv().await.expect("a connection");
        let mut input = &bytes[..];
        while let Some(event) = client.next(id, &mut input, fin).expect("what h3 sends") {
            match event {
                ClientEvent::Head { tag, head } => {
                    let response = &mut responses[tag as usize];
                    (response.0, response.1) = (head.status, head.length);
                    response.2 = head.headers.get("x-path").unwrap_or_default().to_vec();
                    assert_eq!(head.headers.get("x-odd"), Some(&odd_value()[..]));
                }
                ClientEvent::Data { tag, bytes } => responses[tag as usize].3.extend_from_slice(bytes),
                ClientEvent::Trailers { headers, .. } => assert_eq!(headers.get("x-sum"), Some(&b"1"[..])),
                ClientEvent::End { .. } => ended += 1,
                ClientEvent::Settings => settled = true,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(settled && client.open() == 0);
    for (response, body) in responses.iter().zip(bodies) {
        assert_eq!((response.0, response.1, &response.3[..]), (200, Some(body.len() as u64), body));
    }
    assert_eq!((&responses[2].2[..], &responses[3].2[..]), (&b"/post"[..], &b"/head"[..]));
    connection.close(VarInt::from_u64(Code::NO_ERROR.0).expect("small"), b"");
}

#[tokio::test]
async fn the_client_of_h3_and_our_server() {
    let (endpoint, client, address) = endpoints();
    let serving = tokio::spawn(async move {
        let connection = endpoint.accept().await.expect("a client").await.expect("a handshake");
        let (to, mut pieces): (_, UnboundedReceiver<Piece>) = unbounded_channel();
        let mut server = Server::new(&Options::default());
        let mut out = Vec::new();
        server.start(&mut out);
        let _control = control(&connection, &out, &to).await;
        let (opened, mut sends) = unbounded_channel();
        let accepting = connection.clone();
        tokio::spawn(async move {
            while let Ok((send, receive)) = accepting.accept_bi().await {
                let _ = opened.send(send);
                tokio::spawn(read(receive, to.clone()));
            }
        });
        let (mut waiting, mut bodies, mut paths) = (std::collections::HashMap::new(), Vec::new(), Vec::new());
        while bodies.len() < 3 {
            let (id, bytes, fin) = pieces.recv().await.expect("a connection");
            let mut input = &bytes[..];
            let mut whole = None;
            while let Some(event) = server.next(id, &mut input, fin).expect("what h3 sends") {
                match event {
                    ServerEvent::Request { head, .. } => {
                        assert_eq!(head.headers.get("x-odd"), Some(&odd_value()[..]));
                        assert_eq!((head.method, head.scheme), (&b"POST"[..], &b"https"[..]));
                        paths.push(String::from_utf8_lossy(head.path).into_owned());
                        waiting.insert(id, Vec::new());
                    }
                    ServerEvent::Data { bytes, .. } => waiting.get_mut(&id).expect("open").extend_from_slice(bytes),
                    ServerEvent::End { stream } => whole = Some(stream),
                    ServerEvent::Settings => {}
                    other => panic!("{other:?}"),
                }
            }
            let Some(stream) = whole else { continue };
            let body = waiting.remove(&id).expect("open");
            out.clear();
            server.interim(stream, 103, &mut out).expect("open");
            let headers = [("x-odd", &odd_value()[..]), ("content-type", b"text/plain")];
            server.respond_with(stream, 200, &headers, Body::Copied(&body), &mut out).expect("open");
            let mut send: quinn::SendStream = sends.recv().await.expect("a stream");
            assert_eq!(VarInt::from(send.id()).into_inner(), id, "requests come one after the other");
            send.write_all(&out).await.expect("a stream");
            send.finish().expect("a stream");
            bodies.push(body);
        }
        connection.closed().await;
        (bodies, paths)
    });
    let connection = client.connect(address, "localhost").expect("an address").await.expect("a handshake");
    let (mut driver, mut requests) =
        h3::client::new(h3_quinn::Connection::new(connection.clone())).await.expect("a connection");
    tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
    let sent: [&'static [u8]; 3] = [b"", b"short", &TEXT];
    for body in sent {
        let request = http::Request::post("https://localhost/a?b=c")
            .header("x-odd", http::HeaderValue::from_bytes(&odd_value()).expect("a value"))
            .body(())
            .expect("a request");
        let mut stream = requests.send_request(request).await.expect("a stream");
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body)).await.expect("a stream");
        }
        stream.finish().await.expect("a stream");
        // It knows no interim responses, but takes them for what they are: not the last.
        let mut response = stream.recv_response().await.expect("our response");
        if response.status() == 103 {
            response = stream.recv_response().await.expect("our response");
        }
        assert_eq!(
            (response.status().as_u16(), response.headers()["content-type"].as_bytes()),
            (200, &b"text/plain"[..])
        );
        assert_eq!(response.headers()["x-odd"].as_bytes(), odd_value());
        let mut got = Vec::new();
        while let Some(mut piece) = stream.recv_data().await.expect("our DATA") {
            let length = piece.remaining();
            got.extend_from_slice(&piece.copy_to_bytes(length));
        }
        assert_eq!(got, body);
    }
    connection.close(VarInt::from_u64(Code::NO_ERROR.0).expect("small"), b"");
    let (bodies, paths) = serving.await.expect("it serves");
    assert_eq!((bodies, paths), (sent.map(<[u8]>::to_vec).to_vec(), vec!["/a?b=c".to_owned(); 3]));
}
