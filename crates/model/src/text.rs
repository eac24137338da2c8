//! Formats numbers and lists for people, in tables, sentences and on the terminal: it groups thousands, picks a unit,
//! and joins "a, b and c". Every crate that writes for people uses it. Nothing reads this text back; records hold exact
//! values.

mod lines;
mod numbers;

pub use lines::{hanging, wrapped};
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

/// A text without the mark of byte order that some programs write first.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The 1-based line of the byte at this place of a text.
pub fn line_at(text: &[u8], at: usize) -> usize {
    1 + text[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// A text as a cell of CSV. A spreadsheet takes one that begins with `=`, `+`, `-`, `@`, a tab or a carriage return for a formula, and a
/// run's texts come from others: such a text gets a `'` before it. Numbers, negative ones too, stay as they are.
pub fn csv_cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if formula { format!("'{text}") } else { text.to_owned() }
}

/// `one of a, b, c`, or `a` when there is only one, or that there is none.
pub fn one_of<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<S> = names.into_iter().collect();
    match names.as_slice() {
        [] => "nothing: there are none".to_owned(),
        [only] => only.as_ref().to_owned(),
        names => format!("one of {}", names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")),
    }
}

/// `; did you mean "nginx"?` when one of `names` is near `wrong`, else nothing.
pub fn suggestion<S: AsRef<str>>(wrong: &str, names: impl IntoIterator<Item = S>) -> String {
    // A third of the letters may be wrong: "ngnix" is near "nginx", "foo" is near nothing.
    let bound = (wrong.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::damerau_levenshtein(&wrong.to_lowercase(), &name.to_lowercase());
    let all = names.into_iter().map(|name| (distance(name.as_ref()), name.as_ref().to_owned()));
    let nearest = all.filter(|(distance, _)| *distance <= bound).min();
    nearest.map_or(String::new(), |(_, name)| format!("; did you mean {name:?}?"))
}

/// The values of each key together, in the order in which the keys come first.
pub fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// The least and the largest of some numbers; `None` when there are none.
pub fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().map(|value| (value, value)).reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
}

/// Each name once, in the order of their first places.
pub fn unique<T: PartialEq>(names: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed() {
        assert_eq!([list(&["a"]), list(&["a", "b"]), list(&["a", "b", "c"])], ["a", "a and b", "a, b and c"]);
        assert_eq!(list(&[] as &[&str]), "");
        assert_eq!(unique(["a", "b", "a"]), ["a", "b"]);
        assert_eq!(extremes([2.0, 1.0, 3.0]), Some((1.0, 3.0)));
        assert_eq!(extremes([]), None);
        assert_eq!(grouped([("a", 1), ("b", 2), ("a", 3)]), [("a", vec![1, 3]), ("b", vec![2])]);
    }

    #[test]
    fn formulas_are_texts_in_a_cell_and_numbers_stay() {
        for formula in ["=HYPERLINK(\"http://x\")", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-"] {
            assert_eq!(csv_cell(formula), format!("'{formula}"));
        }
        for harmless in ["", "nginx", "a=b", "-1.5", "+2", "-1e-7", "1.2.3", "x@y", "'=1"] {
            assert_eq!(csv_cell(harmless), harmless);
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["nginx", "haproxy", "h2o"];
        assert_eq!(suggestion("ngnix", names), "; did you mean \"nginx\"?");
        assert_eq!(suggestion("HAproxy", names), "; did you mean \"haproxy\"?");
        assert_eq!(suggestion("h2", names), "; did you mean \"h2o\"?");
        assert_eq!(suggestion("varnish", names), "");
    }
}
