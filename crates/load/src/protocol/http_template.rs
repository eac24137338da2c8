//! HTTP requests with fields (see the module `template`), ready to be rendered. Used by `http1` and `http2`.
//!
//! A template is checked when it is made: it can be sent whatever values its fields take. This module knows the layout
//! of HTTP/1.1 and the parts that make up an HTTP/2 request. It knows neither connections nor the order of requests.

use weir_model::load::{Feed, RequestIds, RequestSpec};
use weir_model::suite::Request;
use weir_requests::template::Template;
use weir_wire::digest::{DIGEST_LENGTH, Digest, DigestKey, compared_headers};
use weir_wire::http1::{self, encode};
use weir_wire::request_id::{REQUEST_ID_LENGTH, RequestId, ResponseKey};

use super::leak;
use crate::error::SpecError;
use crate::generator::Fields;

/// Bodies from this size are sent from where they lie; smaller ones are cheaper to copy behind the head.
pub(super) const BODY_IN_PLACE: usize = 4096;

const LINE_END: usize = 2;

/// A request with fields.
#[derive(Debug)]
pub(crate) struct HttpTemplate {
    path: Template,
    headers: Vec<(String, Template)>,
    body: Body,
    /// HTTP/1.1: all up to the body, or up to where the body's length stands if that is not fixed; with the body, where
    /// that is short and fixed.
    head: Template,
    /// Where requests have IDs.
    request_id_template: Option<RequestIdTemplate>,
}

/// How a request with fields gets its ID and digest.
#[derive(Debug)]
struct RequestIdTemplate {
    key: DigestKey,
    method: String,
    /// The names of the headers in the digest, as they stand behind it.
    compared: String,
    /// The beginning of targets that is not in the digest.
    rewritten: String,
    /// The digests of what has no fields.
    target: Option<u32>,
    headers: Option<u32>,
    body: Option<u32>,
    /// How many bytes before the end of the head the header's value begins.
    before_end: usize,
}

/// A template's body.
#[derive(Debug)]
enum Body {
    /// No fields.
    Fixed(&'static [u8]),
    /// Fields, and always the same length.
    Even(Template),
    /// Fields, and a length that shows only when they are filled in.
    Uneven(Template),
}

impl HttpTemplate {
    /// Makes a template of a request whose path, header values and body are templates. `headers` is all that is to be sent but
    /// `Content-Length`, which is added as it comes out, and the header with the ID, if there is one.
    ///
    /// # Errors
    /// A template that is none, or one that may render to what cannot be sent.
    pub(crate) fn of(
        request: &Request,
        headers: &[(&str, &str)],
        named: Option<&RequestIds>,
        feed: Option<&Feed>,
    ) -> Result<HttpTemplate, SpecError> {
        let parse =
            |what: &str, text: &[u8]| Template::parse_with(text, feed).map_err(|error| format!("{what}: {error}"));
        let path = parse("the path", request.path.as_bytes())?;
        let headers: Vec<(String, Template)> = headers
            .iter()
            .map(|(name, value)| Ok(((*name).to_owned(), parse(&format!("the header {name}"), value.as_bytes())?)))
            .collect::<Result<_, SpecError>>()?;
        let body = parse("the body", &request.body)?;
        check(&request.method, &path, &headers)?;

        let mut head = head(&request.method, &path, &headers);
        let mut request_id_template =
            named.map(|ids| RequestIdTemplate::new(ids, &request.method, &path, &headers, &body));
        if let (Some(ids), Some(request_id_template)) = (named, &request_id_template) {
            head.push_text(format!("{}: ", ids.header).as_bytes());
            head.push_text(&request_id_template.value(RequestId::default(), Digest::default()));
            head.push_text(b"\r\n");
        }
        let mut after_value = LINE_END;
        let mut push = |head: &mut Template, text: &[u8]| {
            after_value += text.len();
            head.push_text(text);
        };
        let body = match body.fixed_len() {
            None => Body::Uneven(body),
            Some(length) => {
                if length > 0 || matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
                    push(&mut head, format!("Content-Length: {length}\r\n").as_bytes());
                }
                push(&mut head, b"\r\n");
                if body.is_text() {
                    Body::Fixed(leak(body.samples().pop().unwrap_or_default()))
                } else {
                    Body::Even(body)
                }
            }
        };
        if let Body::Fixed(body) = &body
            && body.len() < BODY_IN_PLACE
        {
            push(&mut head, body);
        }
        if let Some(request_id_template) = &mut request_id_template {
            request_id_template.before_end =
                request_id_template.value(RequestId::default(), Digest::default()).len() + after_value;
        }
        Ok(HttpTemplate { path, headers, body, head, request_id_template })
    }

    /// Renders a request of HTTP/1.1: its bytes, and what of its body is sent from where it lies.
    pub(crate) fn render<'a>(&self, fields: Fields<'a>, id: Option<RequestId>) -> (&'a [u8], &'static [u8]) {
        let Fields { number, random, text, body: scratch, list, .. } = fields;
        self.head.render(text, number, random);
        let end = text.len();
        let mut apart: &'static [u8] = &[];
        match &self.body {
            Body::Fixed(body) if body.len() >= BODY_IN_PLACE => apart = body,
            Body::Fixed(_) => {}
            Body::Even(body) => body.render(text, number, random),
            Body::Uneven(body) => {
                body.render(scratch, number, random);
                text.extend_from_slice(b"Content-Length: ");
                weir_requests::template::put_decimal(text, scratch.len() as u64, 1);
                text.extend_from_slice(b"\r\n\r\n");
                text.extend_from_slice(scratch);
            }
        }
        if let (Some(id), Some(request_id_template)) = (id, &self.request_id_template) {
            let body: &[u8] = match &self.body {
                Body::Fixed(body) => body,
                Body::Even(_) => &text[end..],
                Body::Uneven(_) => scratch,
            };
            let target = text.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
            let digest = request_id_template.digest(target, http1::headers(text), body, list);
            let (into_id, into_digest) = text[end - request_id_template.before_end..].split_at_mut(REQUEST_ID_LENGTH);
            into_id.copy_from_slice(&id.text());
            into_digest[..DIGEST_LENGTH].copy_from_slice(&digest.text());
        }
        (text, apart)
    }

    /// Renders path, header values and body, each for itself, and the value of the header with the ID.
    pub(crate) fn render_parts<'a>(&'a self, fields: Fields<'a>, id: Option<RequestId>) -> Parts<'a> {
        let Fields { number, random, text, body: scratch, ends, list } = fields;
        for template in std::iter::once(&self.path).chain(self.headers.iter().map(|(_, value)| value)) {
            template.render(text, number, random);
            ends.push(text.len());
        }
        let fixed = match &self.body {
            Body::Fixed(body) => Some(*body),
            Body::Even(body) | Body::Uneven(body) => {
                body.render(scratch, number, random);
                None
            }
        };
        if let (Some(id), Some(request_id_template)) = (id, &self.request_id_template) {
            let parts = Parts { template: self, text, ends, filled: scratch, fixed };
            let headers = parts.headers().map(|(name, value)| (name.as_bytes(), value));
            let digest = request_id_template.digest(parts.path(), headers, parts.body(), list);
            request_id_template.put(id, digest, text);
            ends.push(text.len());
        }
        Parts { template: self, text, ends, filled: scratch, fixed }
    }
}

impl RequestIdTemplate {
    fn new(
        ids: &RequestIds,
        method: &str,
        path: &Template,
        headers: &[(String, Template)],
        body: &Template,
    ) -> RequestIdTemplate {
        let key = DigestKey::from(ResponseKey(ids.key));
        // Names have no fields; what `Connection` lists is taken from a sample.
        let samples: Vec<String> = headers
            .iter()
            .map(|(_, value)| String::from_utf8_lossy(&value.samples().swap_remove(0)).into_owned())
            .collect();
        let sample = headers.iter().zip(&samples).map(|((name, _), value)| (name.as_str(), value.as_str()));
        let compared = compared_headers(sample.clone());
        let sample = sample.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let is_compared = |name: &str| compared.split(',').any(|one| name.eq_ignore_ascii_case(one));
        let headers_change = headers.iter().any(|(name, value)| is_compared(name) && !value.is_text());
        let fixed = |template: &Template| template.is_text().then(|| template.samples().swap_remove(0));
        RequestIdTemplate {
            key,
            method: method.to_owned(),
            target: fixed(path).map(|path| key.target(method.as_bytes(), rest(&path, &ids.rewritten))),
            rewritten: ids.rewritten.clone(),
            headers: (!headers_change).then(|| key.headers(compared.as_bytes(), sample, &mut Vec::new())),
            body: fixed(body).map(|body| key.body(&body)),
            compared,
            before_end: 0,
        }
    }

    /// The digest of a request that has this target, these headers and this body. `scratch` is overwritten.
    fn digest<'h>(
        &self,
        target: &[u8],
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone,
        body: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Digest {
        Digest {
            target: self
                .target
                .unwrap_or_else(|| self.key.target(self.method.as_bytes(), rest(target, &self.rewritten))),
            headers: self.headers.unwrap_or_else(|| self.key.headers(self.compared.as_bytes(), headers, scratch)),
            body: self.body.unwrap_or_else(|| self.key.body(body)),
            length: body.len() as u32,
        }
    }

    /// Appends the header's value.
    fn put(&self, id: RequestId, digest: Digest, out: &mut Vec<u8>) {
        out.extend_from_slice(&id.text());
        out.extend_from_slice(&digest.text());
        if !self.compared.is_empty() {
            out.push(b'-');
            out.extend_from_slice(self.compared.as_bytes());
        }
    }

    fn value(&self, id: RequestId, digest: Digest) -> Vec<u8> {
        let mut value = Vec::new();
        self.put(id, digest, &mut value);
        value
    }
}

/// A target without its beginning, if it has that.
fn rest<'t>(target: &'t [u8], beginning: &str) -> &'t [u8] {
    target.strip_prefix(beginning.as_bytes()).unwrap_or(target)
}

/// The value of the header with the ID, for a request in which only the ID changes: zeros in its place, and the digest. `headers` are
/// all that the request has.
pub(super) fn value_without_id(ids: &RequestIds, request: &Request, headers: &[(&str, &str)]) -> String {
    let headers: Vec<(String, Template)> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), Template::text(value.as_bytes()))).collect();
    let (path, body) = (Template::text(request.path.as_bytes()), Template::text(&request.body));
    let request_id_template = RequestIdTemplate::new(ids, &request.method, &path, &headers, &body);
    let digest = request_id_template.digest(b"", std::iter::empty(), &request.body, &mut Vec::new());
    let digest = request_id_template.value(RequestId::default(), digest);
    String::from_utf8_lossy(&digest).into_owned()
}

/// A rendered request in parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    template: &'a HttpTemplate,
    text: &'a [u8],
    ends: &'a [usize],
    /// The body, if it has fields.
    pub filled: &'a [u8],
    /// The body, if it has none.
    pub fixed: Option<&'static [u8]>,
}

impl<'a> Parts<'a> {
    /// The path.
    pub(crate) fn path(&self) -> &'a [u8] {
        self.part(0)
    }

    /// The value of a header, by its index among those given to [`HttpTemplate::of`].
    pub(crate) fn header(&self, index: usize) -> &'a [u8] {
        self.part(1 + index)
    }

    /// The value of the last one; the path, where there is none.
    pub(crate) fn last_header(&self) -> &'a [u8] {
        self.part(self.template.headers.len())
    }

    /// The body, with or without fields.
    fn body(&self) -> &'a [u8] {
        match self.fixed {
            Some(body) => body,
            None => self.filled,
        }
    }

    /// The headers, as they were given to [`HttpTemplate::of`].
    pub(crate) fn headers(self) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone {
        (1..).zip(&self.template.headers).map(move |(index, (name, _))| (name.as_str(), self.part(index)))
    }

    /// The value of the header with the ID, if it has one.
    pub(crate) fn id_value(&self) -> Option<&'a [u8]> {
        let after_headers = self.template.headers.len() + 1;
        (self.ends.len() > after_headers).then(|| self.part(after_headers))
    }

    fn part(&self, index: usize) -> &'a [u8] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[begin..self.ends[index]]
    }
}

/// The bytes of HTTP/1.1 up to where the body's length stands.
fn head(method: &str, path: &Template, headers: &[(String, Template)]) -> Template {
    let mut head = Template::text(method.as_bytes());
    head.push_text(b" ");
    head.push(path);
    head.push_text(b" HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_text(name.as_bytes());
        head.push_text(b": ");
        head.push(value);
        head.push_text(b"\r\n");
    }
    head
}

/// Lets the encoder check every text of every field. All other fields render to letters and digits, and one of those
/// stands for all.
fn check(method: &str, path: &Template, headers: &[(String, Template)]) -> Result<(), SpecError> {
    let try_out = |path: &[u8], changed: Option<(usize, &[u8])>| {
        let text =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| "a header's value is not UTF-8".to_owned());
        let mut all = Vec::with_capacity(headers.len());
        for (index, (name, value)) in headers.iter().enumerate() {
            let value = match changed {
                Some((place, value)) if place == index => text(value)?,
                _ => text(value.samples().first().map_or(&[], Vec::as_slice))?,
            };
            all.push((name.as_str(), value));
        }
        let path = String::from_utf8_lossy(path);
        encode::request(&mut Vec::new(), method, &path, &all, &[])
            .map_err(|error| format!("the request cannot be sent: {error}"))
    };
    // The start of the path must not depend on a field that may be empty.
    if !path.begins_with_text() {
        return Err("the request cannot be sent: its path begins with a field; expected: /".into());
    }
    let paths = path.samples();
    for path in &paths {
        try_out(path, None)?;
    }
    for (index, (_, value)) in headers.iter().enumerate() {
        for sample in value.samples() {
            try_out(&paths[0], Some((index, &sample)))?;
        }
    }
    Ok(())
}

/// The headers of a request but one, and less a right `Content-Length`, which the encoders write; a wrong one is left in for
/// them to refuse.
pub(super) fn headers_but<'a>(request: &'a RequestSpec, but: &str) -> Vec<(&'a str, &'a str)> {
    let length = request.request.body.len().to_string();
    let written = |name: &str, value: &str| name.eq_ignore_ascii_case("content-length") && value == length;
    let given = request.request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    given.filter(|(name, value)| !written(name, value) && !name.eq_ignore_ascii_case(but)).collect()
}

/// The value of a request's header.
pub(super) fn header<'a>(request: &'a RequestSpec, name: &str) -> Option<&'a str> {
    let of_name = |(given, _): &&(String, String)| given.eq_ignore_ascii_case(name);
    request.request.headers.iter().find(of_name).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use weir_wire::http1::{Limits, RequestEvent, RequestParser};

    use super::*;

    impl HttpTemplate {
        fn new(
            request: &Request,
            headers: &[(&str, &str)],
            named: Option<&RequestIds>,
        ) -> Result<HttpTemplate, SpecError> {
            HttpTemplate::of(request, headers, named, None)
        }
    }

    #[test]
    fn a_request_takes_its_columns_from_one_row() {
        let feed = weir_requests::feed::parse("x", b"user,token\nann,t 1\nbob,\n").unwrap();
        let of = |path: &str, value: &str| {
            HttpTemplate::of(&request("POST", path, b"{{user}}={{seq}}"), &[HOST, ("X", value)], None, Some(&feed))
        };
        let template = of("/{{user}}", "a{{token}}b").unwrap();
        for (number, path, value, body) in
            [(0, "/ann", "at 1b", "ann=0"), (1, "/bob", "ab", "bob=1"), (2, "/ann", "at 1b", "ann=2")]
        {
            let text =
                format!("POST {path} HTTP/1.1\r\nHost: origin.test\r\nX: {value}\r\nContent-Length: 5\r\n\r\n{body}");
            assert_eq!(render(&template, number).0, text);
        }
        // No value of a column may make a request that cannot be sent.
        let error = of("/{{token}}", "a").unwrap_err();
        assert!(error.to_string().contains("\"/t 1\" is not a request target"), "{error}");
        let error = of("/", "{{tokens}}").unwrap_err();
        assert!(
            error.to_string().contains("{{tokens}} is no field; did you mean") && error.to_string().contains("token"),
            "{error}"
        );
    }

    const HOST: (&str, &str) = ("Host", "origin.test");

    fn request(method: &str, path: &str, body: &[u8]) -> Request {
        Request { method: method.into(), path: path.into(), headers: vec![], body: body.to_vec() }
    }

    /// Buffers to render into.
    struct Buffers(ChaCha8Rng, Vec<u8>, Vec<u8>, Vec<usize>, Vec<u8>);

    impl Buffers {
        fn new() -> Buffers {
            Buffers(
                ChaCha8Rng::seed_from_u64(1),
                Vec::with_capacity(256),
                Vec::with_capacity(64),
                Vec::new(),
                Vec::new(),
            )
        }

        fn fields(&mut self, number: u64) -> Fields<'_> {
            self.1.clear();
            self.2.clear();
            let Buffers(random, text, body, ends, list) = self;
            Fields { number, random, text, body, ends, list }
        }
    }

    fn render(template: &HttpTemplate, number: u64) -> (String, &'static [u8]) {
        let mut buffers = Buffers::new();
        let (text, body) = template.render(buffers.fields(number), None);
        (String::from_utf8(text.to_vec()).unwrap(), body)
    }

    #[test]
    fn requests_are_as_the_encoder_writes_them() {
        let headers = [HOST, ("X-Id", "{{seq}}"), ("X-{{", "a {{{{ b")];
        assert!(HttpTemplate::new(&request("GET", "/", b""), &headers, None).is_err(), "names are no templates");
        let headers = &headers[..2];
        for (method, body) in [("GET", ""), ("POST", ""), ("POST", "abc"), ("PUT", "id={{seq:100}}&end")] {
            let template = HttpTemplate::new(&request(method, "/a/{{seq}}?b", body.as_bytes()), headers, None).unwrap();
            for number in [0, 7, 12_345] {
                let (got, fixed) = render(&template, number);
                let body = body.replace("{{seq:100}}", &(number + 100).to_string());
                let id = number.to_string();
                let mut expected = Vec::new();
                encode::request(
                    &mut expected,
                    method,
                    &format!("/a/{number}?b"),
                    &[HOST, ("X-Id", &id)],
                    body.as_bytes(),
                )
                .unwrap();
                assert_eq!(got.as_bytes(), expected, "{got}");
                assert!(fixed.is_empty());
            }
        }
    }

    #[test]
    fn even_bodies_have_their_length_in_the_head() {
        let template = HttpTemplate::new(&request("POST", "/", b"{{hex:10}}{{pick:ab|cd}}"), &[HOST], None).unwrap();
        assert!(matches!(template.body, Body::Even(_)));
        let (got, _) = render(&template, 0);
        let (head, body) = got.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with("Content-Length: 12") && body.len() == 12, "{got}");
    }

    #[test]
    fn large_bodies_without_fields_are_not_copied() {
        let body = vec![b'x'; 100_000];
        let template = HttpTemplate::new(&request("POST", "/{{seq}}", &body), &[HOST], None).unwrap();
        let (got, fixed) = render(&template, 5);
        assert_eq!(got, "POST /5 HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 100000\r\n\r\n");
        assert_eq!(fixed, &body[..]);
    }

    #[test]
    fn parts_are_what_the_whole_is_made_of() {
        let headers = [HOST, ("x-id", "a{{seq}}b"), ("x-more", "{{pick:c}}")];
        let template = HttpTemplate::new(&request("POST", "/{{seq}}", b"{{seq}}!"), &headers, None).unwrap();
        let mut buffers = Buffers::new();
        let parts = template.render_parts(buffers.fields(9), None);
        assert_eq!(parts.path(), b"/9");
        assert_eq!([0, 1, 2].map(|index| parts.header(index)), [&b"origin.test"[..], b"a9b", b"c"]);
        assert_eq!(parts.last_header(), b"c");
        assert_eq!((parts.filled, parts.fixed, parts.id_value()), (&b"9!"[..], None, None));
    }

    #[test]
    fn name_and_digest_are_those_of_the_request_whatever_changes_in_it() {
        let ids = RequestIds { key: [5, 9], ..RequestIds::new("x-n".into(), 1, true) };
        let key = DigestKey::from(ResponseKey(ids.key));
        let large = vec![b'x'; BODY_IN_PLACE];
        let bodies = [
            ("GET", &b""[..]),
            ("POST", b""),
            ("POST", b"abc"),
            ("PUT", b"{{hex:3}}"),
            ("PUT", b"{{seq}}"),
            ("PUT", &large),
        ];
        for ((method, body), path, value) in bodies
            .into_iter()
            .flat_map(|body| [(body, "/{{seq}}", "a; b"), (body, "/", "a={{uuid}}; b"), (body, "/?{{seq}}", "{{seq}}")])
        {
            let headers = [HOST, ("Cookie", value), ("X-Forwarded-For", "{{seq}}"), ("X-A", "b")];
            let template = HttpTemplate::new(&request(method, path, body), &headers, Some(&ids)).unwrap();
            for number in [0, 7, 12_345] {
                let (mut buffers, id) = (Buffers::new(), RequestId::new(1, 2, number));
                let (text, apart) = template.render(buffers.fields(number), Some(id));
                let head_end = text.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
                let (head, body) = text.split_at(head_end);
                let body = if apart.is_empty() { body } else { apart };
                let value = http1::header(head, "x-n").unwrap();
                let target = head.split(|byte| *byte == b' ').nth(1).unwrap();
                let expected = Digest {
                    target: key.target(method.as_bytes(), target),
                    headers: key.headers(b"cookie,x-a", http1::headers(head), &mut Vec::new()),
                    body: key.body(body),
                    length: body.len() as u32,
                };
                let (of_id, rest) = value.split_at(REQUEST_ID_LENGTH);
                assert_eq!(of_id, id.text(), "{}", String::from_utf8_lossy(text));
                assert_eq!(Digest::parse(rest), Some((expected, &b"cookie,x-a"[..])), "{path}");
                let mut again = Buffers::new();
                let parts = template.render_parts(again.fields(number), Some(id));
                assert_eq!(parts.id_value(), Some(value), "in parts");
            }
        }
    }

    #[test]
    fn what_may_come_out_wrong_is_refused() {
        for (path, value, text) in [
            ("/{{sec}}", "a", "the path: {{sec}} is no field; did you mean"),
            ("/", "{{seq", "the header X: \"{{seq\" has no end"),
            ("/{{pick:a|b c}}", "a", "\"/b c\" is not a request target"),
            ("{{pick:/a|b}}", "a", "begins with a field"),
            ("/", "{{pick:a|b\r\nY: c}}", "the header X has a control byte"),
            ("/", "{{pick:a| b}}", "white space"),
            ("a{{seq}}", "a", "is not a request target"),
        ] {
            let error = HttpTemplate::new(&request("GET", path, b""), &[HOST, ("X", value)], None).unwrap_err();
            assert!(error.to_string().contains(text), "{path} {value}: {error}");
        }
        let host = HttpTemplate::new(&request("GET", "/{{seq}}", b""), &[("X", "a")], None).unwrap_err();
        assert!(host.to_string().contains("no Host"), "{host}");
        let length =
            HttpTemplate::new(&request("POST", "/{{seq}}", b"a"), &[HOST, ("Content-Length", "1")], None).unwrap_err();
        assert!(length.to_string().contains("follows from the body"), "{length}");
    }

    #[test]
    fn rendering_again_does_not_allocate() {
        let template = HttpTemplate::new(
            &request("POST", "/{{hex:9}}", b"{{pick:a|bcd|ef}}{{random:1..100000}}"),
            &[HOST, ("X", "{{uuid}}")],
            None,
        )
        .unwrap();
        let mut buffers = Buffers::new();
        let before = (buffers.1.as_ptr(), buffers.2.as_ptr());
        for number in 0..10_000 {
            template.render(buffers.fields(number), None);
        }
        assert_eq!((buffers.1.as_ptr(), buffers.2.as_ptr()), before);
    }

    /// Reads one request with the reader of the other side.
    fn read(bytes: &[u8]) -> (String, usize) {
        let mut requests = RequestParser::new(Limits::default());
        let (mut rest, mut target, mut body) = (bytes, String::new(), 0);
        while let Some(event) = requests.next(&mut rest).unwrap() {
            match event {
                RequestEvent::Head(head) => target = String::from_utf8_lossy(head.target).into_owned(),
                RequestEvent::Body(piece) => body += piece.len(),
                RequestEvent::End { .. } => return (target, body + rest.len()),
            }
        }
        panic!("no whole request in {:?}", String::from_utf8_lossy(bytes));
    }

    proptest! {
        #[test]
        fn what_is_accepted_can_be_read(
            path in "/([a-z/]{0,3}|\\{\\{(seq|uuid|hex:4|alnum:9|random:1..200|pick:a\\|b c|pick:\\|%20\\|é)\\}\\}){0,4}",
            value in "([a-z ]{0,2}|\\{\\{(seq|pick:a\\| \\||pick:\\||random:8..11)\\}\\}){0,4}",
            body in "([a-z\r\n]{0,3}|\\{\\{(seq|uuid|pick:a\\|bcd\\||random:8..11)\\}\\}){0,4}",
            numbers in proptest::collection::vec(0u64..1_000, 5),
        ) {
            if let Ok(template) = HttpTemplate::new(&request("POST", &path, body.as_bytes()), &[HOST, ("X", &value)], None) {
                for number in numbers {
                    let (got, _) = render(&template, number);
                    let (target, body) = read(got.as_bytes());
                    prop_assert!(target.starts_with('/'));
                    let end = got.find("\r\n\r\n").unwrap() + 4;
                    prop_assert_eq!(body, got.len() - end);
                }
            }
        }
    }
}
