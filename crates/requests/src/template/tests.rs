use std::collections::BTreeSet;

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

fn parse(text: &str) -> Template {
    Template::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn render(template: &Template, number: u64, seed: u64) -> String {
    let mut out = Vec::new();
    template.render(&mut out, number, &mut ChaCha8Rng::seed_from_u64(seed));
    String::from_utf8(out).unwrap()
}

fn many(text: &str) -> Vec<String> {
    let (template, mut random) = (parse(text), ChaCha8Rng::seed_from_u64(5));
    let mut one = |number| {
        let mut out = Vec::new();
        template.render(&mut out, number, &mut random);
        String::from_utf8(out).unwrap()
    };
    (0..2_000).map(&mut one).collect()
}

#[test]
fn numbers_count_up_and_are_padded() {
    for (text, number, rendered) in [
        ("{{seq}}", 0, "0"),
        ("/a/{{seq}}?b={{seq}}", 17, "/a/17?b=17"),
        ("{{seq:1000}}", 17, "1017"),
        ("{{seq:1:8}}", 0, "00000001"),
        ("{{seq:1:1}}", 99, "100"),
        ("{{seq:1:20}}", 0, "00000000000000000001"),
        ("{{seq:18446744073709551615}}", 0, "18446744073709551615"),
        ("{{seq:18446744073709551615}}", 1, "0"),
    ] {
        assert_eq!(render(&parse(text), number, 1), rendered, "{text}");
    }
}

#[test]
fn braces_that_are_no_fields_are_text() {
    for (text, rendered) in [
        ("", ""),
        ("{\"a\":{\"b\":[1]}}", "{\"a\":{\"b\":[1]}}"),
        ("}}", "}}"),
        ("{{{{", "{{"),
        ("{{{{seq}}", "{{seq}}"),
        ("{{{seq}}}", "{7}"),
        ("{{{{{", "{{{"),
        ("{{{{{{seq}}", "{{7"),
        ("{\"id\":{{seq}}}", "{\"id\":7}"),
        ("{", "{"),
    ] {
        assert_eq!(render(&parse(text), 7, 1), rendered, "{text}");
    }
    assert_eq!(render(&Template::text(b"{{seq}}"), 7, 1), "{{seq}}");
}

#[test]
fn random_numbers_fill_their_range() {
    let all = many("{{random:9..12}}");
    let kinds: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(kinds, ["10", "11", "12", "9"].into());
    // 500 each are expected, with a deviation of sqrt(2000 * 1/4 * 3/4) = 19.4; five of them are allowed.
    for kind in kinds {
        let count = all.iter().filter(|one| *one == kind).count();
        assert!((403..=597).contains(&count), "{kind} came {count} times");
    }
    assert!(many("{{random:0..18446744073709551615}}").iter().any(|number| number.len() == 20));
    assert_eq!(many("{{random:5..5:3}}")[0], "005");
}

#[test]
fn digits_letters_and_uuids_are_what_they_are_called() {
    let hex = many("{{hex:37}}");
    assert!(hex.iter().all(|one| one.len() == 37 && one.bytes().all(|b| b"0123456789abcdef".contains(&b))));
    assert_eq!(hex.iter().collect::<BTreeSet<_>>().len(), hex.len());
    let alnum = many("{{alnum:21}}");
    assert!(alnum.iter().all(|one| one.len() == 21 && one.bytes().all(|b| b.is_ascii_alphanumeric())));
    let used: BTreeSet<u8> = alnum.iter().flat_map(|one| one.bytes()).collect();
    assert_eq!(used.len(), 62, "every letter and digit comes");
    // The last digit of each of the stream's numbers is as good as the first.
    let last: BTreeSet<u8> = alnum.iter().map(|one| one.as_bytes()[9]).collect();
    assert_eq!(last.len(), 62);

    let uuids = many("x{{uuid}}");
    for uuid in &uuids {
        let parts: Vec<usize> = uuid[1..].split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{uuid}");
        assert!(uuid[1..].bytes().all(|b| b == b'-' || b"0123456789abcdef".contains(&b)), "{uuid}");
        assert_eq!(uuid.as_bytes()[1 + 14], b'4', "the version: {uuid}");
        assert!(b"89ab".contains(&uuid.as_bytes()[1 + 19]), "the variant: {uuid}");
    }
    assert_eq!(uuids.iter().collect::<BTreeSet<_>>().len(), uuids.len());
    assert_eq!(render(&parse("{{uuid}}{{uuid}}"), 0, 1).len(), 72);
}

#[test]
fn picks_are_any_text() {
    let kinds: BTreeSet<String> = many("{{pick:a b||{\"x\":1}|c:d}}").into_iter().collect();
    assert_eq!(kinds, ["", "a b", "c:d", "{\"x\":1}"].map(str::to_owned).into());
    assert_eq!(many("{{pick:}}")[0], "");
}

#[test]
fn lengths_are_known_where_they_are_fixed() {
    for (text, len) in [
        ("", Some(0)),
        ("abc", Some(3)),
        ("a{{hex:5}}{{alnum:6}}{{uuid}}", Some(1 + 5 + 6 + 36)),
        ("{{seq}}", None),
        ("{{random:0..9}}", Some(1)),
        ("{{random:0..10}}", None),
        ("{{random:0..10:2}}", Some(2)),
        ("{{random:100..999:2}}", Some(3)),
        ("{{pick:ab|cd}}", Some(2)),
        ("{{pick:ab|c}}", None),
    ] {
        assert_eq!(parse(text).fixed_len(), len, "{text}");
    }
}

#[test]
fn errors_say_what_was_found_and_what_would_be_right() {
    for (text, found, wanted) in [
        ("a{{seq", "\"{{seq\" has no end", "{{{{ for two braces"),
        ("{{}}", "{{}} is no field", "{{seq}}"),
        ("{{sec}}", "{{sec}} is no field; did you mean \"seq\"?", "{{seq}}"),
        ("{{ seq }}", "{{ seq }} is no field; did you mean", "{{seq}}"),
        ("{{seq:}}", "{{seq:}} has no start", "{{seq:1:8}}"),
        ("{{seq:-1}}", "{{seq:-1}} has no start", "{{seq:1:8}}"),
        ("{{seq:1:21}}", "{{seq:1:21}} has no start or width", "at most 20"),
        ("{{seq:1:0}}", "or width that is a number", "{{seq:1:8}}"),
        ("{{random}}", "{{random}} has no range", "{{random:1..1000}}"),
        ("{{random:5..1}}", "{{random:5..1}} has no range", "the lower first"),
        ("{{random:1..18446744073709551616}}", "has no range", ""),
        ("{{hex}}", "{{hex}} has no number of digits", "{{hex:16}}"),
        ("{{hex:0}}", "{{hex:0}} has no number of digits", "1 to 1048576"),
        ("{{alnum:+5}}", "{{alnum:+5}} has no number of letters", "{{alnum:12}}"),
        ("{{alnum:1048577}}", "has no number of letters", "1 to 1048576"),
        ("{{uuid:4}}", "{{uuid:4}} has an argument", "{{uuid}}"),
        ("{{pick}}", "{{pick}} has nothing to pick from", "{{pick:a|b|c}}"),
    ] {
        let error = Template::parse(text.as_bytes()).unwrap_err();
        assert!(error.found.contains(found), "{text}: {}", error.found);
        assert!(error.wanted.contains(wanted), "{text}: {}", error.wanted);
    }
    let long = format!("{{{{{}}}}}", "x".repeat(1_000));
    assert!(Template::parse(long.as_bytes()).unwrap_err().found.len() < 100);
}

#[test]
fn what_the_help_shows_is_right() {
    let fields: Vec<&str> = HELP.lines().filter_map(|line| line.strip_prefix("  {{")).collect();
    assert_eq!(fields.len(), 10);
    for line in fields {
        let field = format!("{{{{{}", line.split("  ").next().unwrap());
        assert!(!many(&field).is_empty(), "{field}");
    }
}

#[test]
fn samples_show_every_text_of_every_field() {
    let samples = parse("/{{pick:a|b}}/{{seq}}{{pick:c|d|e}}").samples();
    let samples: Vec<&str> = samples.iter().map(|sample| str::from_utf8(sample).unwrap()).collect();
    assert_eq!(samples, ["/a/0c", "/b/0c", "/a/0d", "/a/0e"]);
}

#[test]
fn samples_of_a_column_have_each_byte_first_last_and_elsewhere() {
    let feed = crate::feed::parse("x", b"a\nab\nba\nab\nbb\na b\n b\n\"\"\nb \n\"\"\nbab\n").unwrap();
    let samples = Template::parse_with(b"<{{a}}>", Some(&feed)).unwrap().samples();
    let samples: Vec<&str> = samples.iter().map(|sample| str::from_utf8(sample).unwrap()).collect();
    assert_eq!(samples, ["<ab>", "<ba>", "<a b>", "< b>", "<>", "<b >"]);
}

#[test]
fn a_buffer_that_has_grown_is_not_grown_again() {
    let template =
        parse("/{{seq:0:20}}/{{hex:64}}/{{alnum:64}}/{{uuid}}/{{pick:long|longer|longest}}/{{random:1..99999}}");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut out = Vec::with_capacity(256);
    let before = (out.capacity(), out.as_ptr());
    for number in 0..10_000 {
        out.clear();
        template.render(&mut out, number, &mut random);
    }
    assert_eq!((out.capacity(), out.as_ptr()), before);
}

proptest! {
    #[test]
    fn any_text_can_be_written_as_a_template(text: String) {
        let escaped = text.replace("{{", "{{{{");
        prop_assert_eq!(render(&parse(&escaped), 3, 1), text);
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = Template::parse(&bytes);
    }

    #[test]
    fn what_looks_like_a_template_is_refused_or_rendered_alike(
        text in "([a-z ]{0,3}(\\{\\{){0,2}(seq|random|hex|alnum|uuid|pick|se)?:?[0-9]{0,3}(\\.\\.)?[0-9|]{0,4}:?[0-9]{0,2}(\\}\\})?){1,4}",
        number: u64,
        seed: u64,
    ) {
        if let Ok(template) = Template::parse(text.as_bytes()) {
            let once = render(&template, number, seed);
            prop_assert_eq!(&once, &render(&template, number, seed));
            if let Some(len) = template.fixed_len() {
                prop_assert_eq!(once.len(), len);
            }
        }
    }
}
