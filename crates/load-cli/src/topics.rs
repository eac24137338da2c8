//! The topics of `weir help load`: all that its flags do, in pages of a screen. This module does not know how help is printed.

/// A page of `weir help load TOPIC`: text and examples from a file, with the flags between them.
#[derive(Debug)]
pub struct Topic {
    /// Its name behind `weir help load`.
    pub name: &'static str,
    /// Its text, and examples.
    pub page: &'static str,
    /// The flags by their long names; none for all flags under the heading with the topic's name.
    pub flags: &'static [&'static str],
}

/// All topics, in the order of `--help`.
pub const TOPICS: [Topic; 8] = [
    Topic { name: "load", page: include_str!("../help/topics/load.txt"), flags: &[] },
    Topic {
        name: "find-max",
        page: include_str!("../help/topics/find-max.txt"),
        flags: &["find-max", "budget", "connections", "max-connections", "duration", "warmup", "arrivals"],
    },
    Topic { name: "request", page: include_str!("../help/topics/request.txt"), flags: &[] },
    Topic { name: "key-value", page: include_str!("../help/topics/key-value.txt"), flags: &[] },
    Topic { name: "responses", page: include_str!("../help/topics/responses.txt"), flags: &[] },
    Topic { name: "connections", page: include_str!("../help/topics/connections.txt"), flags: &[] },
    Topic { name: "tls", page: include_str!("../help/topics/tls.txt"), flags: &[] },
    Topic { name: "output", page: include_str!("../help/topics/output.txt"), flags: &[] },
];
