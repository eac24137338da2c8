//! Memory with 1,000 client connections open, each of which has carried a request.

use weir_model::suite::Protocol;

use super::keep_alive::grouped;
use crate::cell::{Cell, size};
use crate::rig::{Rig, memory};
use crate::table::{Check, When};
use crate::talk::PATIENCE;

/// Of the table.
pub const CHECK: Check = Check {
    name: "memory-1000",
    title: "Memory, 1,000 clients",
    asks: "Memory of all its processes with 1,000 client connections open, each of which has carried one request; and what each added.",
    protocol: Protocol::Http11,
    when: When::Crowd,
    run,
};

const CLIENTS: usize = 1000;

fn run(rig: &mut dyn Rig) -> Cell {
    with(rig, CLIENTS)
}

fn with(rig: &mut dyn Rig, clients: usize) -> Cell {
    let before = match rig.look() {
        Ok(usage) => memory(&usage).0,
        Err(why) => return Cell::unknown(why),
    };
    let door = rig.product();
    let request = door.request("GET", "/bytes/128", &[]);
    let mut lines = Vec::with_capacity(clients);
    for nth in 0..clients {
        let asked = door.open().and_then(|mut line| {
            let heard = line.ask(&request, false, PATIENCE)?;
            Ok((line, heard))
        });
        let trouble = match asked {
            Ok((line, heard)) if heard.status == 200 => {
                lines.push(line);
                continue;
            }
            Ok((_, heard)) => heard.status.to_string(),
            Err(trouble) => trouble.word().to_owned(),
        };
        return Cell::no(format!("{} clients", grouped(nth as u64)))
            .with(format!("connection {} gets: {trouble}", grouped(nth as u64 + 1)));
    }
    match rig.look() {
        Ok(usage) => {
            let now = memory(&usage).0;
            let each = now.saturating_sub(before) / clients as u64;
            Cell::reading(size(now)).with(format!("{} a connection", size(each)))
        }
        Err(why) => Cell::unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Say, TestRig, answer};

    #[test]
    fn growth_is_divided_and_a_limit_is_found() {
        let mut rig = TestRig::good();
        rig.grows = 4096 * 20;
        let cell = with(&mut rig, 20);
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("8.2 MiB", Some("4.0 KiB a connection")));
        let limited = |asked: &crate::fake::Asked| (asked.connection >= 7).then(|| Say::Last(answer(503, "", b"")));
        let cell = with(&mut TestRig::but(limited), 20);
        assert_eq!((cell.says.as_str(), cell.note.as_deref()), ("7 clients", Some("connection 8 gets: 503")));
    }
}
