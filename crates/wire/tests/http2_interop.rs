//! Our halves against an independent implementation, the crate `h2`, over localhost.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use bytes::Bytes;
use weir_wire::http2::{Body, Client, ClientEvent, Options, Prepared, Request, Server, ServerEvent, Stream};

static TEXT: [u8; 300_000] = [b't'; 300_000];

/// Every byte that a value may have, without white space at an end.
fn odd_value() -> Vec<u8> {
    let mut value = b"\"".to_vec();
    value.extend((0x20..=0x7e).chain(0x80..=0xff).chain([b'\t', b'.']));
    value
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Echoes every body, with the path and an odd header; to HEAD nothing.
async fn serve(socket: tokio::net::TcpStream, window: u32) {
    let mut connection = h2::server::Builder::new()
        .initial_window_size(window)
        .max_concurrent_streams(10)
        .handshake::<_, Bytes>(socket)
        .await
        .expect("our preface and SETTINGS");
    while let Some(request) = connection.accept().await {
        let (request, mut respond) = request.expect("our requests");
        tokio::spawn(async move {
            let (parts, mut body) = request.into_parts();
            let mut got = Vec::new();
            while let Some(piece) = body.data().await {
                let piece = piece.expect("our DATA");
                got.extend_from_slice(&piece);
                body.flow_control().release_capacity(piece.len()).expect("what was received");
            }
            let response = http::Response::builder()
                .header("x-path", parts.uri.path())
                .header("x-odd", http::HeaderValue::from_bytes(&odd_value()).expect("a value"))
                .header("content-length", got.len())
                .body(())
                .expect("a response");
            let head = parts.method == http::Method::HEAD;
            let mut stream = respond.send_response(response, head || got.is_empty()).expect("a stream");
            if !head && !got.is_empty() {
                // A second block behind the body.
                stream.send_data(got.into(), false).expect("a stream");
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-sum", http::HeaderValue::from_static("1"));
                stream.send_trailers(trailers).expect("a stream");
            }
        });
    }
}

/// Sends requests until all are answered. Returns status, `x-path`, `x-odd` and body of each.
fn ask(socket: &mut TcpStream, requests: &[(Prepared, Body<'static>)], options: &Options) -> Vec<Response> {
    let mut client = Client::new(options);
    let mut out = Vec::new();
    client.start(&mut out);
    let mut responses: Vec<Response> = requests.iter().map(|_| Response::default()).collect();
    let (mut next, mut ended, mut settled) = (0, 0, false);
    let mut buffer = vec![0; 10_000];
    while ended < requests.len() {
        // Before its SETTINGS the server would refuse what is too many.
        while settled && next < requests.len() && client.open() < client.streams() {
            let (request, body) = &requests[next];
            client.request(next as u32, request, *body, &mut out).expect("a stream is free");
            next += 1;
        }
        socket.write_all(&out).expect("a socket");
        out.clear();
        let length = socket.read(&mut buffer).expect("a socket");
        assert_ne!(length, 0, "the server closed with {ended} answers given");
        let mut input = &buffer[..length];
        while let Some(event) = client.next(&mut input, &mut out).expect("what h2 sends") {
            match event {
                ClientEvent::Head { tag, head } => {
                    let response = &mut responses[tag as usize];
                    response.status = head.status;
                    response.length = head.length;
                    response.path = head.headers.get("x-path").unwrap_or_default().to_vec();
                    response.odd = head.headers.get("x-odd").unwrap_or_default().to_vec();
                }
                ClientEvent::Data { tag, bytes } => responses[tag as usize].body.extend_from_slice(bytes),
                ClientEvent::Trailers { headers, .. } => assert!(headers.get("x-sum").is_some(), "{headers:?}"),
                ClientEvent::End { .. } => ended += 1,
                ClientEvent::Settings => {
                    settled = true;
                    assert_eq!(client.streams(), options.max_streams.min(10));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    client.go_away(&mut out);
    socket.write_all(&out).expect("a socket");
    responses
}

#[derive(Debug, Default, PartialEq)]
struct Response {
    status: u16,
    length: Option<u64>,
    path: Vec<u8>,
    odd: Vec<u8>,
    body: Vec<u8>,
}

#[test]
fn our_client_and_the_server_of_h2() {
    for (server_window, client_window) in [(65_535, 16 << 20), (1000, 700), (1 << 20, 65_535)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a listener");
        let server = thread::spawn(move || {
            runtime().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let (socket, _) = listener.accept().await.expect("our connection");
                serve(socket, server_window).await;
            });
        });

        let odd = "~".repeat(300);
        let requests: Vec<_> = (0..60)
            .map(|n| {
                let method = ["GET", "POST", "HEAD"][n % 3];
                let path = format!("/{}", n % 7);
                let headers = [("User-Agent", "weir"), ("x-long", &odd[n..])];
                let request = Request { method, scheme: "http", authority: "a:1", path: &path, headers: &headers };
                let size = if method == "POST" { n * 1000 + 1 } else { 0 };
                (Prepared::request(&request).expect("a request"), Body::Static(&TEXT[..size]))
            })
            .collect();
        let options = Options { max_streams: 20, stream_window: client_window, ..Options::client() };
        let mut socket = TcpStream::connect(address).expect("the server");
        let responses = ask(&mut socket, &requests, &options);
        for (n, response) in responses.iter().enumerate() {
            let size = if n % 3 == 1 { n * 1000 + 1 } else { 0 };
            assert_eq!((response.status, response.length), (200, Some(size as u64)), "{n}");
            assert_eq!(response.path, format!("/{}", n % 7).as_bytes());
            assert_eq!(response.odd, odd_value());
            assert_eq!(response.body.len(), size);
        }
        drop(socket);
        server.join().expect("the server's thread");
    }
}

/// Serves one connection: gives back what is sent, or a long body to `/long`.
fn serve_one(mut socket: TcpStream, options: &Options) {
    let mut server = Server::new(options);
    let mut out = Vec::new();
    server.start(&mut out);
    let long = Prepared::response(200, &[("x-kind", "long")], Some(TEXT.len() as u64)).expect("a response");
    let mut open: Vec<(Stream, bool, Vec<u8>)> = Vec::new();
    let mut buffer = vec![0; 3000];
    loop {
        // The client may have finished and closed.
        let _ = socket.write_all(&out);
        out.clear();
        let Ok(length @ 1..) = socket.read(&mut buffer) else { return };
        let mut input = &buffer[..length];
        while let Some(event) = server.next(&mut input, &mut out).expect("what h2 sends") {
            match event {
                ServerEvent::Request { stream, head } => open.push((stream, head.path == b"/long", Vec::new())),
                ServerEvent::Data { stream, bytes } => {
                    let place = open.iter_mut().find(|open| open.0 == stream).expect("an open stream");
                    place.2.extend_from_slice(bytes);
                }
                ServerEvent::End { stream } => {
                    let place = open.iter().position(|open| open.0 == stream).expect("an open stream");
                    let (_, is_long, body) = open.swap_remove(place);
                    let sent = if is_long {
                        server.respond(stream, &long, Body::Static(&TEXT), &mut out)
                    } else {
                        let odd = odd_value();
                        let headers = [("x-odd", &odd[..])];
                        server.respond_with(stream, 201, &headers, Body::Copied(&body), &mut out)
                    };
                    sent.expect("an open stream");
                }
                ServerEvent::Reset { cause, .. } => panic!("{cause}"),
                ServerEvent::Malformed { fault } => panic!("{fault}"),
                ServerEvent::Settings | ServerEvent::Sent { .. } | ServerEvent::GoAway { .. } => {}
            }
        }
    }
}

#[test]
fn the_client_of_h2_and_our_server() {
    for (client_window, server_window) in [(65_535, 1 << 20), (500, 500), (1 << 20, 65_535)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = thread::spawn(move || {
            let (socket, _) = listener.accept().expect("a connection");
            let options = Options { max_streams: 8, stream_window: server_window, ..Options::server() };
            serve_one(socket, &options);
        });
        runtime().block_on(async {
            let socket = tokio::net::TcpStream::connect(address).await.expect("our server");
            let (sender, connection) = h2::client::Builder::new()
                .initial_window_size(client_window)
                .enable_push(false)
                // It would not wait for our SETTINGS, and see streams refused.
                .initial_max_send_streams(8)
                .handshake::<_, Bytes>(socket)
                .await
                .expect("our SETTINGS");
            let driver = tokio::spawn(connection);
            let mut tasks = Vec::new();
            for n in 0..40usize {
                let sender = sender.clone();
                tasks.push(tokio::spawn(async move { ask_ours(sender, n).await }));
            }
            for task in tasks {
                task.await.expect("a response");
            }
            drop(sender);
            driver.await.expect("a connection").expect("an end without an error");
        });
        server.join().expect("our server's thread");
    }
}

async fn ask_ours(sender: h2::client::SendRequest<Bytes>, n: usize) {
    let size = if n.is_multiple_of(2) { n * 500 } else { 0 };
    let path = if size == 0 { "/long" } else { "/back" };
    let request = http::Request::builder()
        .method(if size == 0 { "GET" } else { "POST" })
        .uri(format!("http://a{path}"))
        .header("x-n", n % 5)
        .header("cookie", "a=b; c=d")
        .body(())
        .expect("a request");
    let mut sender = sender.ready().await.expect("a free stream");
    let (response, mut stream) = sender.send_request(request, size == 0).expect("a stream");
    if size > 0 {
        stream.send_data(Bytes::from_static(&TEXT[..size]), true).expect("a stream");
    }
    let (head, mut body) = response.await.expect("a response").into_parts();
    let mut got = 0;
    while let Some(piece) = body.data().await {
        let piece = piece.expect("our DATA");
        got += piece.len();
        body.flow_control().release_capacity(piece.len()).expect("what was received");
    }
    if size == 0 {
        assert_eq!((head.status.as_u16(), got), (200, TEXT.len()));
        assert_eq!(head.headers["x-kind"], "long");
    } else {
        assert_eq!((head.status.as_u16(), got), (201, size));
        assert_eq!(head.headers["x-odd"].as_bytes(), odd_value());
    }
    assert_eq!(head.headers["content-length"], got.to_string());
}
