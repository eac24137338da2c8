//! weir for another kind of processor, under user-mode emulation: it sends and answers real requests over epoll. `make release-test` builds
//! the program and names it in `WEIR_EMULATED`, and the emulator in `WEIR_EMULATOR`.

use std::process::Command;
use std::time::Duration;

use crate::common::{OriginUnderTest, not_shown, number, run_within, scratch};
use serde_json::Value;

/// The emulator with the program, or why there is none.
fn emulated() -> Option<Command> {
    let named = |variable| std::env::var_os(variable);
    let (Some(emulator), Some(program)) = (named("WEIR_EMULATOR"), named("WEIR_EMULATED")) else {
        not_shown("no program to emulate is named; `make release-test` builds one");
    };
    let mut command = Command::new(emulator);
    command.arg(program);
    Some(command)
}

/// A load by the emulated weir in which all was rightly answered.
fn all_right(mut weir: Command, args: &[&str]) -> Value {
    weir.args(["load", "-q", "--json", "--driver", "epoll", "-c", "4"]).args(args);
    let ended = run_within(&mut weir, Duration::from_secs(120));
    ended.expect(0);
    let result = ended.json();
    assert_eq!(result["window"]["due"], result["window"]["successful"], "{result:#}");
    assert_eq!(result["window"]["errors"], serde_json::json!({}), "{result:#}");
    assert_eq!(result["driver"], "epoll", "{result:#}");
    result
}

#[test]
fn the_program_is_one_of_another_processor() {
    let Some(program) = std::env::var_os("WEIR_EMULATED").filter(|_| emulated().is_some()) else { return };
    let bytes = std::fs::read(program).expect("the program");
    // EM_AARCH64 where an ELF file has its machine.
    assert_eq!((&bytes[..4], &bytes[18..20]), (b"\x7fELF".as_slice(), [183, 0].as_slice()));
}

#[test]
fn an_emulated_load_is_answered() {
    let Some(weir) = emulated() else { return };
    let origin = OriginUnderTest::start(&[]);
    let result = all_right(weir, &[&origin.url("/bytes/128"), "-n", "500"]);
    assert_eq!(number(&result, "/window/successful"), 500.0);
    assert_eq!(number(&result, "/window/body_bytes"), 500.0 * 128.0);
}

#[test]
fn an_emulated_load_over_tls_is_answered() {
    let Some(weir) = emulated() else { return };
    let origin = OriginUnderTest::start(&["--tls"]);
    let result = all_right(weir, &[&origin.https("/bytes/128"), "-n", "100"]);
    assert_eq!((number(&result, "/window/successful"), number(&result, "/tls/handshakes")), (100.0, 4.0));
}

#[test]
fn an_emulated_load_at_a_rate_is_answered() {
    let Some(weir) = emulated() else { return };
    let origin = OriginUnderTest::start(&[]);
    let result = all_right(weir, &[&origin.url("/bytes/128"), "-R", "100", "-d", "2s", "--warmup", "0s"]);
    assert_eq!(number(&result, "/window/successful"), 200.0);
}

#[test]
fn an_emulated_origin_answers_an_emulated_load() {
    let (Some(weir), Some(mut origin)) = (emulated(), emulated()) else { return };
    let folder = scratch();
    origin.args(["origin", "--listen", "127.0.0.1:0", "--json", "--driver", "epoll"]).current_dir(folder.path());
    let origin = OriginUnderTest::started(origin);
    let result = all_right(weir, &[&origin.url("/bytes/1024"), "-n", "200"]);
    assert_eq!(number(&result, "/window/body_bytes"), 200.0 * 1024.0);
}
