//! Prints a result as ApacheBench does, in whole milliseconds. Called by `weir load --format ab`.
//! weir does not read the name of the server, so that field stays empty.

use weir_model::load::{ErrorKind, LoadSpec, Quantiles};

use super::{Account, percentile_us};

/// Prints the output of ab, with the request itself, such as the host and the path.
pub fn ab(account: Account<'_>, spec: &LoadSpec) -> String {
    let mut out = heading(account, spec);
    let (result, seconds) = (account.result, account.seconds());
    let done = account.answered();
    let (connect, length) = (account.sum(ErrorKind::is_connect), account.sum(|kind| kind == ErrorKind::WrongBody));
    let receive = account.sum(|kind| !kind.is_response()) - connect;
    let exceptions = account.sum(|kind| kind == ErrorKind::WrongHeader);
    let failed = connect + receive + length + exceptions;
    let mut line = |name: &str, value: String| out.push_str(&format!("{:<24}{value}\n", format!("{name}:")));
    line("Concurrency Level", spec.connections.to_string());
    line("Time taken for tests", format!("{:.3} seconds", result.window_s));
    line("Complete requests", done.to_string());
    line("Failed requests", failed.to_string());
    if failed > 0 {
        out.push_str(&format!(
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})\n"
        ));
    }
    out + &rates(account, spec, done, seconds) + &times(account, done) + &percentages(account)
}

/// Host and port of an authority, `[::1]:8080` among them.
fn host_and_port(authority: &str, tls: bool) -> (&str, &str) {
    let default = if tls { "443" } else { "80" };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, default),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

fn heading(account: Account<'_>, spec: &LoadSpec) -> String {
    let authority = spec.targets.first().map(|target| target.authority.as_str()).unwrap_or_default();
    let (host, port) = host_and_port(authority, spec.tls.is_some());
    let path = spec.requests.first().map(|ask| ask.request.path.as_str()).unwrap_or_default();
    let answers: u64 = account.result.window.statuses.values().sum();
    let length = account.result.window.body_bytes / answers.max(1);
    let mut out = format!(
        "This is ApacheBench as weir {} writes it\n\nBenchmarking {host} (be patient).....done\n\n\nServer Software:        \n\
         Server Hostname:        {host}\nServer Port:            {port}\n",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(tls) = &account.result.tls {
        let first = |names: &std::collections::BTreeMap<String, u64>| names.keys().next().cloned().unwrap_or_default();
        let version = first(&tls.versions).replace("TLS ", "TLSv");
        out.push_str(&format!("SSL/TLS Protocol:       {version},{}\n", first(&tls.suites)));
        out.push_str(&format!("Server Temp Key:        {}\n", first(&tls.groups)));
        let name = spec.tls.as_ref().and_then(|tls| tls.server_name.clone()).unwrap_or(host.to_owned());
        out.push_str(&format!("TLS Server Name:        {name}\n"));
    }
    out + &format!("\nDocument Path:          {path}\nDocument Length:        {length} bytes\n\n")
}

fn rates(account: Account<'_>, spec: &LoadSpec, done: u64, seconds: f64) -> String {
    let window = &account.result.window;
    let mut out = String::new();
    let bad = account.bad_statuses(300);
    if bad > 0 {
        out.push_str(&format!("Non-2xx responses:      {bad}\n"));
    }
    if !spec.connection_close {
        out.push_str(&format!("Keep-Alive requests:    {done}\n"));
    }
    let (bytes_in, bytes_out) = (window.bytes_in as f64 / 1024.0 / seconds, window.bytes_out as f64 / 1024.0 / seconds);
    out.push_str(&format!("Total transferred:      {} bytes\n", window.bytes_in));
    let body = spec.requests.iter().any(|ask| !ask.request.body.is_empty());
    if body {
        out.push_str(&format!("Total body sent:        {}\n", window.bytes_out));
    }
    out.push_str(&format!("HTML transferred:       {} bytes\n", window.body_bytes));
    if done > 0 {
        let each = seconds * 1e3 / done as f64;
        out.push_str(&format!("Requests per second:    {:.2} [#/sec] (mean)\n", done as f64 / seconds));
        out.push_str(&format!("Time per request:       {:.3} [ms] (mean)\n", each * f64::from(spec.connections)));
        out.push_str(&format!("Time per request:       {each:.3} [ms] (mean, across all concurrent requests)\n"));
        out.push_str(&format!("Transfer rate:          {bytes_in:.2} [Kbytes/sec] received\n"));
        if body {
            out.push_str(&format!(
                "{:24}{bytes_out:.2} kb/s sent\n{:24}{:.2} kb/s total\n",
                "",
                "",
                bytes_in + bytes_out
            ));
        }
    }
    out
}

fn times(account: Account<'_>, done: u64) -> String {
    if done == 0 {
        return String::new();
    }
    let result = account.result;
    let first = if result.first_byte.count > 0 { &result.first_byte } else { &result.service };
    format!(
        "\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n{}{}{}{}",
        row("Connect:", &spread_over(&result.connect, done)),
        row("Processing:", &result.service),
        row("Waiting:", first),
        row("Total:", &result.latency)
    )
}

fn row(name: &str, q: &Quantiles) -> String {
    format!(
        "{name:<12}{:>5.0} {:>4.0} {:>5.1} {:>6.0} {:>7.0}\n",
        ms(q.min_us),
        ms(q.mean_us),
        q.stdev_us / 1e3,
        ms(q.p50_us),
        ms(q.max_us)
    )
}

/// Half a millisecond is rounded up, as ab does.
fn ms(us: f64) -> f64 {
    (us / 1e3 + 0.5).floor()
}

/// Times to connect, by request instead of by connection: 0 for requests on an existing connection.
fn spread_over(connect: &Quantiles, requests: u64) -> Quantiles {
    if connect.count >= requests {
        return connect.clone();
    }
    let share = connect.count as f64 / requests as f64;
    let mean_us = connect.mean_us * share;
    let squares = (connect.stdev_us.powi(2) + connect.mean_us.powi(2)) * share;
    Quantiles {
        min_us: 0.0,
        mean_us,
        stdev_us: (squares - mean_us.powi(2)).max(0.0).sqrt(),
        p50_us: if share > 0.5 { connect.p50_us } else { 0.0 },
        ..connect.clone()
    }
}

fn percentages(account: Account<'_>) -> String {
    let histo = account.latency;
    if histo.is_empty() {
        return String::new();
    }
    let mut out = "\nPercentage of the requests served within a certain time (ms)\n".to_owned();
    for percent in [50u32, 66, 75, 80, 90, 95, 98, 99] {
        out.push_str(&format!("  {percent}%  {:>5.0}\n", ms(percentile_us(histo, f64::from(percent)))));
    }
    out + &format!(" 100%  {:>5.0} (longest request)\n", ms(account.result.latency.max_us))
}
