//! Against OpenSSL, which is neither ours nor rustls: its `s_server` and `s_client`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use weir_wire::tls::{ClientAuth, ClientConfig, ServerConfig, ServerName, Session, Version, groups, suites};

use super::pair::{End, client, p256, rsa, server};

const PATIENCE: Duration = Duration::from_secs(20);

/// An `openssl` at work; ended when dropped.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    /// What it prints, line by line.
    lines: mpsc::Receiver<String>,
}

impl Program {
    fn start(folder: &Path, arguments: &[&str]) -> Program {
        let mut child = Command::new("openssl")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl starts, of the package openssl");
        let (sender, lines) = mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("piped")), Box::new(child.stderr.take().expect("piped"))];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                    let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
                }
            });
        }
        let stdin = child.stdin.take();
        Program { child, stdin, lines }
    }

    /// A server on a port of its own, and the port.
    fn server(folder: &Path, arguments: &[&str]) -> (Program, u16) {
        let always = ["s_server", "-accept", "127.0.0.1:0", "-cert", "p256.pem", "-key", "p256.key"];
        let program = Program::start(folder, &[&always, arguments].concat());
        let line = program.wait_for("ACCEPT 127.0.0.1:");
        let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok()).expect("a port");
        (program, port)
    }

    fn wait_for(&self, start: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(start) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("openssl never said \"{start}\", but:\n{}", seen.join("\n")),
            }
        }
    }

    fn say(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).expect("openssl reads");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with the certificates and keys as files.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, identity) in [("p256", p256()), ("rsa", rsa())] {
        std::fs::write(folder.path().join(format!("{name}.pem")), identity.chain).expect("a file");
        std::fs::write(folder.path().join(format!("{name}.key")), identity.key).expect("a file");
    }
    folder
}

/// A session over a socket.
struct Line {
    end: End,
    socket: TcpStream,
}

impl Line {
    fn over(session: Session, socket: TcpStream) -> Line {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Line { end: End::new(session), socket }
    }

    fn connect(config: &ClientConfig, port: u16) -> Line {
        let session = Session::client(config, &ServerName::new("localhost").unwrap()).unwrap();
        let mut line = Line::over(session, TcpStream::connect(("127.0.0.1", port)).expect("openssl listens"));
        line.end.session.start(&mut line.end.out).unwrap();
        line.until(|end| end.ready);
        line
    }

    fn accept(config: &ServerConfig, listener: &TcpListener) -> Line {
        let (socket, _) = listener.accept().expect("openssl connects");
        let mut line = Line::over(Session::server(config).unwrap(), socket);
        line.until(|end| end.ready);
        line
    }

    /// Reads and writes until the condition holds.
    fn until(&mut self, done: impl Fn(&End) -> bool) {
        loop {
            self.socket.write_all(&std::mem::take(&mut self.end.out)).expect("openssl reads");
            if done(&self.end) {
                return;
            }
            self.read();
        }
    }

    /// Reads what there is, or waits for it.
    fn read(&mut self) {
        let mut buffer = [0; 5000];
        let len = loop {
            match self.socket.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read.expect("openssl answers"),
            }
        };
        assert!(len > 0, "openssl closed; heard {:?}", String::from_utf8_lossy(&self.end.heard));
        self.end.take(&buffer[..len]).expect("openssl speaks TLS");
    }

    fn say(&mut self, text: &str) {
        self.end.say(text.as_bytes());
        self.until(|end| end.out.is_empty());
    }

    fn hears(&mut self, text: &str) {
        self.until(|end| end.heard.ends_with(text.as_bytes()));
        self.end.heard.clear();
    }
}

/// A client that wants one suite of one version, and one group if one is named.
fn wanting(suite: &str, version: Version, group: Option<&str>) -> ClientConfig {
    client(|o| {
        o.versions = (version, version);
        o.suites = vec![suite.to_owned()];
        o.groups = group.iter().map(|&group| group.to_owned()).collect();
        o.alpn = Some("http/1.1".to_owned());
        o.resumption = true;
    })
}

#[test]
fn our_client_talks_to_its_server() {
    let folder = folder();
    let (_server, port) =
        Program::server(folder.path(), &["-dcert", "rsa.pem", "-dkey", "rsa.key", "-rev", "-alpn", "h2,http/1.1"]);
    for (suite, version) in suites() {
        // OpenSSL learnt the hybrids in 3.5.
        for group in groups().filter(|group| !group.contains("MLKEM")) {
            // To OpenSSL the groups of TLS 1.2 are also the curves that the certificate may be of.
            if suite.contains("_ECDSA_") && group != "secp256r1" {
                continue;
            }
            let config = wanting(suite, version, Some(group));
            for resumed in [false, true, true] {
                let mut line = Line::connect(&config, port);
                let negotiated = line.end.session.negotiated().unwrap().clone();
                assert_eq!((negotiated.suite, negotiated.version, negotiated.resumed), (suite, version, resumed));
                assert_eq!(negotiated.alpn.as_deref(), Some("http/1.1"));
                if version == Version::Tls13 || !resumed {
                    assert_eq!(negotiated.group, Some(group));
                }
                line.say("weir\n");
                line.hears("riew\n");
                line.end.session.close(&mut line.end.out);
                line.until(|end| end.closed);
            }
        }
    }
}

#[test]
fn our_client_takes_large_responses() {
    let folder = folder();
    let body: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 7 + (i >> 9)) as u8).collect();
    std::fs::write(folder.path().join("file"), &body).unwrap();
    for version in [Version::Tls12, Version::Tls13] {
        let (_server, port) = Program::server(folder.path(), &["-WWW"]);
        let mut line = Line::connect(&client(|o| o.versions = (version, version)), port);
        line.say("GET /file HTTP/1.0\r\n\r\n");
        line.until(|end| end.closed);
        assert!(line.end.heard.ends_with(&body), "{} bytes came", line.end.heard.len());
    }
}

#[test]
fn its_server_checks_our_client() {
    let folder = folder();
    // The certificate signs for itself; OpenSSL takes it as an authority because it is told to.
    let arguments = ["-Verify", "1", "-CAfile", "rsa.pem", "-verify_return_error", "-partial_chain", "-rev"];
    for version in [Version::Tls12, Version::Tls13] {
        let (_server, port) = Program::server(folder.path(), &arguments);
        let config = client(|o| {
            o.identity = Some(rsa());
            o.authorities = Some(p256().chain);
            o.versions = (version, version);
        });
        let mut line = Line::connect(&config, port);
        line.say("abc\n");
        line.hears("cba\n");
    }
}

/// OpenSSL updates its keys, and then wants ours updated; data goes over in between.
fn updates(program: &mut Program, line: &mut Line, done: impl Fn(&Program, &mut Line)) {
    for command in ["k\n", "K\n", "K\n"] {
        program.say(command);
        // What it reads together with a command it throws away.
        done(program, line);
        program.say("from openssl\n");
        line.hears("from openssl\n");
        line.say("from weir\n");
        program.wait_for("from weir");
    }
}

#[test]
fn keys_are_updated_either_way() {
    let folder = folder();
    let (mut program, port) = Program::server(folder.path(), &["-tls1_3"]);
    let mut line = Line::connect(&client(|_| ()), port);
    // Behind the tickets.
    program.say("first\n");
    line.hears("first\n");
    // It notifies its peer at once.
    updates(&mut program, &mut line, |_, line| line.read());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let mut program = Program::start(folder.path(), &["s_client", "-connect", &to, "-tls1_3"]);
    let mut line = Line::accept(&server(|_| ()), &listener);
    // It notifies its user at once, and its peer with the next data.
    updates(&mut program, &mut line, |program, _| drop(program.wait_for("KEYUPDATE")));
}

#[test]
fn its_client_talks_to_our_server() {
    let folder = folder();
    let config = server(|_| ());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    std::fs::write(folder.path().join("both.pem"), [p256().chain, rsa().chain].concat()).unwrap();
    for (suite, version) in suites() {
        let (flag, option, name) = match version {
            Version::Tls13 => ("-tls1_3", "-ciphersuites", suite.to_owned()),
            Version::Tls12 => ("-tls1_2", "-cipher", openssl_name(suite)),
        };
        for resumed in [false, true] {
            let sessions: &[&str] = if resumed { &["-sess_in", "session"] } else { &["-sess_out", "session"] };
            let arguments = ["s_client", "-connect", &to, flag, option, &name, "-CAfile", "both.pem", "-partial_chain"];
            let strict = ["-verify_return_error", "-verify_hostname", "localhost", "-servername", "localhost"];
            let mut program = Program::start(folder.path(), &[&arguments[..], &strict, sessions].concat());
            let mut line = Line::accept(&config, &listener);
            let negotiated = line.end.session.negotiated().unwrap();
            assert_eq!((negotiated.suite, negotiated.version, negotiated.resumed), (suite, version, resumed));
            if !resumed && suite.contains("_RSA_") {
                program.wait_for("Server public key is 2048 bit");
            }
            program.say("hello\n");
            line.hears("hello\n");
            line.say("good day\n");
            program.wait_for("good day");
            // Its end writes the session's file.
            program.say("Q\n");
            line.until(|end| end.closed);
            line.end.session.close(&mut line.end.out);
            let _ = line.socket.write_all(&line.end.out);
            drop(line);
            program.child.wait().unwrap();
        }
        std::fs::remove_file(folder.path().join("session")).unwrap();
    }
}

/// OpenSSL's name of a suite of TLS 1.2.
fn openssl_name(suite: &str) -> String {
    let name = suite.trim_start_matches("TLS_").replace("_WITH_", "-").replace('_', "-");
    name.replace("AES-", "AES").replace("POLY1305-SHA256", "POLY1305")
}

#[test]
fn its_client_is_checked_by_our_server() {
    let folder = folder();
    let config = server(|o| o.clients = ClientAuth::Required(rsa().chain));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    for flag in ["-tls1_2", "-tls1_3"] {
        let arguments = ["s_client", "-connect", &to, flag, "-cert", "rsa.pem", "-key", "rsa.key"];
        let mut program = Program::start(folder.path(), &arguments);
        let mut line = Line::accept(&config, &listener);
        program.say("hello\n");
        line.hears("hello\n");
    }
}
