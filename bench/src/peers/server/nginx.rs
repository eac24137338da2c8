//! nginx as an origin: its configuration, and how it is started.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{Certificate, Server, Wire, files, free_port, process};
use crate::peers::tool::SUITE;

/// What differs between one nginx and another.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// What it speaks.
    pub wire: Wire,
    /// `sendfile` and `tcp_nopush`.
    pub sendfile: bool,
    /// Shown with TLS.
    pub certificate: &'a Certificate,
    /// Where it writes a line for each request: version, suite, group, protocol and bytes of the request.
    pub log: Option<&'a Path>,
}

/// An nginx of these settings that serves `/bytes/<size>`.
///
/// # Errors
/// When it does not come up.
pub fn serve(program: &Path, cpu: usize, size: u64, settings: &Settings<'_>) -> anyhow::Result<Server> {
    let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
    let (child, port) = spawn(program, cpu, folder.path(), size, settings)?;
    Server::up(child, port, settings.wire, size, folder)
}

/// Starts it on a CPU with `/bytes/<size>`; its process and its port.
///
/// # Errors
/// When files cannot be written or it cannot be started.
pub(super) fn spawn(
    program: &Path,
    cpu: usize,
    folder: &Path,
    size: u64,
    settings: &Settings<'_>,
) -> anyhow::Result<(Child, u16)> {
    files(folder, size)?;
    let port = free_port()?;
    let config = folder.join("nginx.conf");
    fs::write(&config, configuration(folder, port, settings))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(&config).arg("-e").arg(folder.join("error.log"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok((process::spawn_on(cpu, &mut command)?, port))
}

fn configuration(folder: &Path, port: u16, settings: &Settings<'_>) -> String {
    let folder = folder.display();
    let switch = if settings.sendfile { "on" } else { "off" };
    // Workers of root's nginx would be somebody else, who cannot read a temporary folder.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {folder}/{name};\n"))
        .concat();
    let log = match settings.log {
        None => "    access_log off;\n".to_owned(),
        Some(file) => format!(
            "    log_format agreed '$ssl_protocol $ssl_cipher $ssl_curve $ssl_session_reused $server_protocol $request_length';\n\
             \x20   access_log {} agreed;\n",
            file.display()
        ),
    };
    let spoken = match settings.wire {
        Wire::Plain => "",
        Wire::Tls => " ssl",
        Wire::H2c => " http2",
        Wire::H2Tls => " ssl http2",
    };
    let tls = if settings.wire.is_tls() { tls(settings.certificate) } else { String::new() };
    format!(
        "daemon off;\n{user}pid {folder}/pid;\nerror_log {folder}/error.log;\nworker_processes 1;\n\
         worker_rlimit_nofile 20000;\nevents {{\n    worker_connections 16384;\n}}\nhttp {{\n{log}\
         \x20   sendfile {switch};\n    tcp_nopush {switch};\n    keepalive_requests 1000000000;\n    keepalive_timeout 75s;\n\
         \x20   open_file_cache max=16;\n    open_file_cache_valid 1h;\n    default_type application/octet-stream;\n\
         {temporary}    server {{\n        listen 127.0.0.1:{port} backlog=16384{spoken};\n{tls}        root {folder}/root;\n    }}\n}}\n"
    )
}

/// One version, one suite, nothing resumed.
fn tls(certificate: &Certificate) -> String {
    let Certificate { cert, key } = certificate;
    format!(
        "        ssl_certificate {};\n        ssl_certificate_key {};\n        ssl_protocols TLSv1.3;\n\
         \x20       ssl_conf_command Ciphersuites {SUITE};\n        ssl_ecdh_curve X25519;\n        ssl_session_tickets off;\n        ssl_session_cache off;\n",
        cert.display(),
        key.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_what_is_spoken() {
        let certificate = Certificate { cert: "/c".into(), key: "/k".into() };
        let of = |wire, log| {
            configuration(Path::new("/f"), 7, &Settings { wire, sendfile: false, certificate: &certificate, log })
        };
        assert!(of(Wire::Plain, None).contains("listen 127.0.0.1:7 backlog=16384;"));
        assert!(!of(Wire::H2c, None).contains("ssl_"));
        assert!(of(Wire::H2c, None).contains("backlog=16384 http2;"));
        let both = of(Wire::H2Tls, Some(Path::new("/l")));
        assert!(
            both.contains("backlog=16384 ssl http2;") && both.contains(SUITE) && both.contains("access_log /l agreed")
        );
    }
}
