//! The origins, each started on one CPU under weir's supervisor, which also ends everything that the origin started.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::ValueEnum;
use weir_host::ports;
use weir_host::supervisor::{Supervised, descendants};
use weir_host::tail::last_lines;
use weir_host::{LocalHost, Process, ProgramSpec};
use weir_model::protocol::Protocol;
use weir_model::record::Role;
use weir_vitals::Watched;
use weir_wire::tls::{Identity, KeyKind};

use super::client::SUITE;

/// An origin, in the order of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Server {
    /// `weir origin`
    Weir,
    /// `null origin`, the floor
    Null,
    /// nginx with a static file, `sendfile` and `tcp_nopush` on, as distributions ship it
    Nginx,
    /// nginx with a static file and `sendfile` off, which costs it less for small files
    #[value(name = "nginx sendfile off")]
    NginxCopy,
    /// nghttpd with a static file
    Nghttpd,
    /// haterm, of HAProxy
    Haterm,
    /// redis-server, nothing on disk
    #[value(name = "redis-server")]
    Redis,
}

impl Server {
    /// How it differs from weir's origin where that affects its cost.
    pub fn differs(self) -> &'static str {
        match self {
            Server::Weir => "",
            Server::Null => "reads no path; one fixed response",
            Server::Nginx => "sends Date, Last-Modified, ETag and Accept-Ranges too; sendfile and tcp_nopush on",
            Server::NginxCopy => "sends Date, Last-Modified, ETag and Accept-Ranges too; sendfile off",
            Server::Nghttpd => "sends Date, Last-Modified and Cache-Control too",
            Server::Haterm => "HAProxy's engine as a server; sends X-Req and X-Rsp too",
            Server::Redis => "nothing on disk",
        }
    }

    /// Whether it takes part with that protocol. With TLS nginx copies whatever `sendfile` says.
    pub fn speaks(self, protocol: Protocol) -> bool {
        match self {
            Server::Weir => true,
            Server::NginxCopy => !protocol.is_keyvalue(),
            Server::Redis => protocol == Protocol::Redis,
            Server::Null | Server::Nginx => protocol == Protocol::Http11,
            Server::Nghttpd => protocol == Protocol::H2c,
            Server::Haterm => matches!(protocol, Protocol::Http11 | Protocol::H2c),
        }
    }

    /// Its program; `None` when it is not installed.
    pub fn program(self, programs: &Programs) -> Option<&PathBuf> {
        match self {
            Server::Weir => Some(&programs.weir),
            Server::Null => Some(&programs.null),
            Server::Nginx | Server::NginxCopy => programs.nginx.as_ref(),
            Server::Nghttpd => programs.nghttpd.as_ref(),
            Server::Haterm => programs.haterm.as_ref(),
            Server::Redis => programs.redis.as_ref(),
        }
    }
}

/// The certificate that all servers show, and its key, as PEM files: made by this process, signed by itself.
#[derive(Debug, Clone)]
pub struct Certificate {
    cert: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// What kind of key it has.
    pub const KEY: &str = "ECDSA P-256";

    /// Makes one in a folder.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn make(folder: &Path) -> anyhow::Result<Certificate> {
        let made = Certificate { cert: folder.join("cert.pem"), key: folder.join("key.pem") };
        let identity = Identity::generated(KeyKind::P256)?;
        fs::write(&made.cert, &identity.chain)?;
        fs::write(&made.key, &identity.key)?;
        Ok(made)
    }
}

/// Programs that are started.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `weir`
    pub weir: PathBuf,
    /// `null`
    pub null: PathBuf,
    /// `nginx`, if it is installed.
    pub nginx: Option<PathBuf>,
    /// `nghttpd`, if it is installed.
    pub nghttpd: Option<PathBuf>,
    /// `haterm`, if it was built.
    pub haterm: Option<PathBuf>,
    /// `redis-server`, if it is installed.
    pub redis: Option<PathBuf>,
    /// What servers with TLS show.
    pub certificate: Certificate,
}

/// What a server is started for.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its CPU.
    pub cpu: u32,
    /// Bytes of what it serves, at `/bytes/<size>`. (Key-value servers serve what they were given.)
    pub size: u64,
    /// Further arguments.
    pub arguments: Vec<String>,
    /// Where nginx writes a line for each request: version, suite, group, protocol and bytes of the request.
    pub log: Option<&'a Path>,
}

/// An origin that serves. Dropping it ends it.
#[derive(Debug)]
pub struct RunningServer {
    process: Supervised,
    /// Where it serves.
    pub url: String,
    /// How it was started.
    pub argv: Vec<String>,
    // After the process, which writes there.
    _folder: tempfile::TempDir,
}

impl RunningServer {
    /// Starts an origin and waits until it listens.
    ///
    /// # Errors
    /// When it is not installed or does not come up.
    pub fn start(server: Server, programs: &Programs, options: &Options<'_>) -> anyhow::Result<RunningServer> {
        let (folder, [addr]) = (super::scratch()?, ports::free_on(&LocalHost::new(programs.weir.clone()))?);
        let program =
            server.program(programs).with_context(|| format!("there is no {}", super::cases::name(server)))?;
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("bytes"))?;
        fs::write(root.join("bytes").join(options.size.to_string()), vec![b'x'; usize::try_from(options.size)?])?;
        let Certificate { cert, key } = &programs.certificate;
        let line = match server {
            Server::Weir if options.protocol.is_tls() => format!(
                "origin --json --listen {addr} --tls --tls-version 1.3 --resume off --cert {} --key {}",
                cert.display(),
                key.display()
            ),
            Server::Weir if options.protocol.is_keyvalue() => {
                format!("origin --json --listen {}://{addr}", options.protocol.scheme())
            }
            Server::Weir => format!("origin --json --listen {addr}"),
            // The last word is empty: no snapshots.
            Server::Redis => format!("--bind 127.0.0.1 --port {} --appendonly no --save ", addr.port()),
            Server::Null => format!("origin --size {} --listen {addr}", options.size),
            Server::Haterm => format!("-L {addr}"),
            Server::Nginx | Server::NginxCopy => {
                let config = folder.path().join("nginx.conf");
                fs::write(&config, configuration(folder.path(), addr, server, programs, options))?;
                let folder = folder.path().display();
                format!("-p {folder} -c {} -e {folder}/error.log", config.display())
            }
            Server::Nghttpd => {
                let (root, port) = (root.display(), addr.port());
                format!("--no-tls --workers=1 --address=127.0.0.1 --htdocs {root} {port}")
            }
        };
        let words = line.split(' ').map(str::to_owned).chain(options.arguments.iter().cloned());
        let argv: Vec<String> = std::iter::once(program.display().to_string()).chain(words).collect();
        let spec = ProgramSpec {
            argv: argv.clone(),
            env: std::env::vars().collect(),
            dir: folder.path().to_owned(),
            output: folder.path().join("output"),
            cpus: vec![options.cpu],
            ..ProgramSpec::default()
        };
        let process = Supervised::start(&programs.weir, &spec)?;
        let url = match server {
            Server::Haterm => format!("http://{addr}/?s={}", options.size),
            _ => super::cases::url(options.protocol, addr.port(), options.size),
        };
        let mut running = RunningServer { process, url, argv, _folder: folder };
        running.wait_until_it_listens(addr, &spec.output)?;
        Ok(running)
    }

    fn wait_until_it_listens(&mut self, addr: SocketAddr, output: &Path) -> anyhow::Result<()> {
        let start = Instant::now();
        while TcpStream::connect(addr).is_err() {
            if let Some(ended) = self.process.ended() {
                bail!("the server ended at once: {ended}: {}", last_lines(output, 3));
            }
            if start.elapsed() > Duration::from_secs(10) {
                bail!("the server does not listen after 10 s");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// What to watch for its CPU time.
    pub fn watched(&self) -> Watched {
        Watched::below(Role::Origin, self.process.root())
    }

    /// The process that does the work: nginx's is its worker.
    pub fn worker(&self) -> u32 {
        let supervisor = self.process.root();
        descendants(supervisor).last().copied().unwrap_or(supervisor)
    }
}

fn configuration(
    folder: &Path,
    addr: SocketAddr,
    server: Server,
    programs: &Programs,
    options: &Options<'_>,
) -> String {
    let (ssl, http2) = (options.protocol.is_tls(), options.protocol.is_multiplexed());
    let spoken = format!("{}{}", if ssl { " ssl" } else { "" }, if http2 { " http2" } else { "" });
    let Certificate { cert, key } = &programs.certificate;
    // Workers of root's nginx would be somebody else, who cannot read a temporary folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let values = [
        ("@USER@", user.to_owned()),
        ("@FOLDER@", folder.display().to_string()),
        ("@LOG@", options.log.map_or_else(|| "off".to_owned(), |file| format!("{} agreed", file.display()))),
        ("@SENDFILE@", if server == Server::Nginx { "on" } else { "off" }.to_owned()),
        ("@CERT@", cert.display().to_string()),
        ("@KEY@", key.display().to_string()),
        ("@SUITE@", SUITE.to_owned()),
        ("@LISTEN@", format!("{addr} backlog=16384{spoken}")),
    ];
    values.iter().fold(include_str!("nginx.conf").to_owned(), |text, (name, value)| text.replace(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Programs {
        let certificate = Certificate { cert: "/c".into(), key: "/k".into() };
        Programs {
            weir: "/bin/true".into(),
            null: "/bin/true".into(),
            nginx: None,
            nghttpd: None,
            haterm: None,
            redis: None,
            certificate,
        }
    }

    fn options(protocol: Protocol, log: Option<&Path>) -> Options<'_> {
        Options { protocol, cpu: 0, size: 1, arguments: Vec::new(), log }
    }

    #[test]
    fn a_server_that_does_not_start_is_an_error() {
        for server in Server::value_variants() {
            assert!(RunningServer::start(*server, &programs(), &options(Protocol::Http11, None)).is_err());
        }
    }

    #[test]
    fn a_configuration_says_what_is_spoken() {
        let of = |protocol, log| {
            let addr = "127.0.0.1:7".parse().unwrap();
            configuration(Path::new("/f"), addr, Server::NginxCopy, &programs(), &options(protocol, log))
        };
        let plain = of(Protocol::Http11, None);
        assert!(plain.contains("listen 127.0.0.1:7 backlog=16384;") && plain.contains("access_log off;"), "{plain}");
        assert!(!plain.contains('@') && plain.contains("sendfile off;"), "{plain}");
        assert!(of(Protocol::H2c, None).contains("backlog=16384 http2;"));
        let both = of(Protocol::H2, Some(Path::new("/l")));
        assert!(
            both.contains("backlog=16384 ssl http2;") && both.contains(SUITE) && both.contains("access_log /l agreed")
        );
    }

    #[test]
    fn a_certificate_and_a_key_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let made = Certificate::make(folder.path()).unwrap();
        assert!(fs::read_to_string(made.cert).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(fs::read_to_string(made.key).unwrap().contains("PRIVATE KEY-----"));
    }
}
