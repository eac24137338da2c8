//! gRPC against an independent implementation, the crate `tonic`: its client calls weir's origin, and weir's client its server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::thread;

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use tokio::net::TcpListener;
use tokio_stream::{StreamExt, iter};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint, Server, server::TcpIncoming};
use tonic::{Code, Request, Response, Status};
use weir_load::{Outputs, StopFlag, run};
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSpec, StreamKind, StreamSpec, Target};
use weir_model::suite::{Expect, LoadKind};
use weir_origin::{Options, Origin};

/// Messages as they are.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, input: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut message = vec![0; input.remaining()];
        input.copy_to_slice(&mut message);
        Ok(Some(message))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The only field of a response (docs/echo.proto): a string of bytes behind its number and its length, of one byte or two.
fn field(message: &[u8]) -> &[u8] {
    assert_eq!(message[0], 0x0a, "field 1 has a length");
    let long = message[1] >= 0x80;
    let length = usize::from(message[1] & 0x7f) | if long { usize::from(message[2]) << 7 } else { 0 };
    let rest = &message[if long { 3 } else { 2 }..];
    assert_eq!(rest.len(), length, "nothing stands behind it");
    rest
}

type Client = tonic::client::Grpc<Channel>;

async fn client(addr: SocketAddr) -> Client {
    let channel = Endpoint::from_shared(format!("http://{addr}")).expect("a URL").connect().await;
    Client::new(channel.expect("the origin listens"))
}

async fn unary(client: &mut Client, path: &'static str) -> Result<Vec<u8>, Status> {
    client.ready().await.expect("a connection");
    let response = client.unary(Request::new(b"asked".to_vec()), PathAndQuery::from_static(path), Raw).await;
    response.map(Response::into_inner)
}

#[test]
fn the_client_of_tonic_calls_the_origin() {
    let origin = Origin::start(Options::default()).expect("an origin");
    runtime().block_on(async {
        let mut client = client(origin.addr()).await;
        let response = unary(&mut client, "/weir.Echo/Unary?size=128").await.expect("a response");
        assert_eq!(field(&response).len(), 128);
        let refused = unary(&mut client, "/weir.Echo/Unary?code=7").await.expect_err("a status");
        assert_eq!(refused.code(), Code::PermissionDenied);
        let lacking = unary(&mut client, "/weir.Echo/Other").await.expect_err("no such method");
        assert_eq!(lacking.code(), Code::Unimplemented);

        client.ready().await.expect("a connection");
        let path = PathAndQuery::from_static("/weir.Echo/ServerStream?messages=20&every=1ms&first=0s&size=100");
        let responses = client.server_streaming(Request::new(Vec::new()), path, Raw).await.expect("responses");
        let responses: Vec<_> = responses.into_inner().collect().await;
        assert!(
            responses.len() == 20 && responses.iter().all(|one| one.as_ref().is_ok_and(|one| field(one).len() == 100))
        );

        let sent: Vec<Vec<u8>> = (0..20_u8).map(|n| vec![n; 1 + 1_000 * usize::from(n)]).collect();
        client.ready().await.expect("a connection");
        let path = PathAndQuery::from_static("/weir.Echo/ClientStream?size=100");
        let response = client.client_streaming(Request::new(iter(sent.clone())), path, Raw).await.expect("a response");
        assert_eq!(field(&response.into_inner()).len(), 100);

        client.ready().await.expect("a connection");
        let path = PathAndQuery::from_static("/weir.Echo/Bidi");
        let back = client.streaming(Request::new(iter(sent.clone())), path, Raw).await.expect("messages");
        let back: Vec<Vec<u8>> = back.into_inner().map(|one| one.expect("a message")).collect().await;
        assert!(back == sent, "each comes back as it was sent");
    });
    origin.stop();
}

/// Starts a server of tonic's that sends each message back, and refuses calls of `Refuse`. It ends with the process.
fn server() -> SocketAddr {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        runtime().block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            sender.send(listener.local_addr().expect("bound")).expect("somebody waits");
            let respond = |request: http::Request<tonic::body::Body>| async move {
                let refuses = request.uri().path().ends_with("/Refuse");
                let echo = tower::service_fn(move |request: Request<Vec<u8>>| async move {
                    match refuses {
                        true => Err(Status::permission_denied("not you")),
                        false => Ok(Response::new(request.into_inner())),
                    }
                });
                Ok::<_, Infallible>(tonic::server::Grpc::new(Raw).unary(echo, request).await)
            };
            let incoming = TcpIncoming::from(listener);
            Server::builder().serve_with_incoming(tower::service_fn(respond), incoming).await.expect("served");
        });
    });
    receiver.recv().expect("it listens")
}

fn call(addr: SocketAddr, method: &str) -> LoadResult {
    let kind = StreamKind::Grpc;
    let mut request = weir_model::suite::Request::get(&format!("/weir.Echo/{method}"));
    (request.method, request.body) = ("POST".to_owned(), vec![b'm'; 1_000]);
    let spec = LoadSpec {
        kind: LoadKind::Count { requests: 500 },
        protocol: LoadProtocol::Http2 { streams: 8 },
        connections: 2,
        duration_s: 60.0,
        timeout_s: 20.0,
        stream: Some(StreamSpec { kind, one_clock: true }),
        ..LoadSpec::new(Target::tcp(addr, "localhost"), kind.dressed(&request, None), Expect::default())
    };
    run(&spec, &Outputs::default(), &StopFlag::new(), &mut |_| ()).expect("a load")
}

#[test]
fn our_client_calls_the_server_of_tonic() {
    let addr = server();
    let result = call(addr, "Unary");
    assert_eq!((result.total.sent, result.total.successful), (500, 500), "{:?}", result.reasons);
    let messages = result.messages.expect("messages");
    assert_eq!((messages.total.received, messages.total.unstamped), (500, 500), "tonic stamps none");
    let result = call(addr, "Refuse");
    assert_eq!(result.total.errors, [(ErrorKind::BadStatus, 500)].into(), "{:?}", result.reasons);
    assert!(result.reasons[0].reason.contains("PERMISSION_DENIED"), "{:?}", result.reasons);
}
