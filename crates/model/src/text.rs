//! Formats numbers and lists for people, in tables, sentences and on the terminal: it groups thousands, picks a unit,
//! and joins "a, b and c". Every crate that writes for people uses it. Nothing reads this text back; records hold exact
//! values.

mod lines;
mod numbers;

pub use lines::{columns, hanging, wrapped};
pub use numbers::{
    Unit, count, counted, fixed_us, full_rate, human_bytes, human_rate, human_us, least, percent, seconds, short,
    significant,
};

/// "a", "a and b", "a, b and c"; empty for nothing.
pub fn list<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Each name once, in the order of their first places: "a, b".
pub fn unique<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed() {
        assert_eq!([list(&["a"]), list(&["a", "b"]), list(&["a", "b", "c"])], ["a", "a and b", "a, b and c"]);
        assert_eq!(list(&[] as &[&str]), "");
        assert_eq!(unique(["a", "b", "a"]), "a, b");
    }
}
