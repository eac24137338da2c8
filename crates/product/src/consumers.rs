//! The consumers of a gateway that authenticates: their keys, the headers with these, and the variables of templates. The lab makes requests
//! of it, [`crate::render`] configurations. It does not know how a product checks anything.
//!
//! Names and keys are the same in each run: they guard nothing. RSA's key is made once in a process.

use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use aws_lc_rs::{digest, hmac, rand};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::json;
use weir_model::gateway::{AUTHORIZED, Filter};
use weir_model::suite::Request;

/// How many there are.
pub const CONSUMERS: usize = 100;

/// The length of the longest body that [`Filter::BodyLimit`] lets pass, bytes.
pub const LONGEST_BODY: usize = 16 << 10;

/// The secret that signs the tokens of [`Filter::JwtHs256`].
const SECRET: &[u8] = b"a-secret-that-has-no-use-elsewhere";

/// When tokens expire: 2100, in seconds since 1970.
const EXPIRES: u64 = 4_102_444_800;

/// The bytes of an RSA key of 2,048 bits in its DER form (RFC 5280, `SubjectPublicKeyInfo`): the modulus stands there.
const MODULUS: std::ops::Range<usize> = 33..289;

/// RSA's key, of 2,048 bits; none where the machine has no random numbers.
static RSA_KEY: LazyLock<Option<RsaKeyPair>> = LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).ok());

/// The key of a consumer.
fn key(consumer: usize) -> String {
    format!("key-{consumer}")
}

/// The header in which requests have a consumer's key; `None`: the filter has no consumers.
pub fn credential_header(filter: Filter) -> Option<&'static str> {
    match filter {
        Filter::KeyAuth => Some("apikey"),
        Filter::BasicAuth | Filter::JwtHs256 | Filter::JwtRs256 | Filter::ExternalAuth => Some("authorization"),
        Filter::Headers | Filter::Rewrite | Filter::RateLimit | Filter::BodyLimit | Filter::Compression => None,
    }
}

/// The value of that header for a consumer; empty without consumers.
pub fn credential(filter: Filter, consumer: usize) -> String {
    match filter {
        Filter::BasicAuth => basic(consumer, &key(consumer)),
        Filter::KeyAuth => key(consumer),
        Filter::JwtHs256 | Filter::JwtRs256 => bearer(&token(filter, consumer)),
        Filter::ExternalAuth => format!("{AUTHORIZED}{consumer}"),
        Filter::Headers | Filter::Rewrite | Filter::RateLimit | Filter::BodyLimit | Filter::Compression => {
            String::new()
        }
    }
}

/// A request that the filter has to refuse, made of one that may pass; `None`: it refuses nothing by itself.
pub fn refused_request(filter: Filter, request: &Request) -> Option<Request> {
    let mut refused = request.clone();
    if filter == Filter::BodyLimit {
        refused.body = vec![b'x'; LONGEST_BODY + 1];
        return Some(refused);
    }
    let name = credential_header(filter)?;
    let value = match filter {
        Filter::BasicAuth => basic(0, "wrong"),
        // The token of one consumer with the signature of another's.
        Filter::JwtHs256 | Filter::JwtRs256 => {
            let (own, other) = (token(filter, 0), token(filter, 1));
            let claims = own.rsplit_once('.').map_or("", |(claims, _)| claims);
            let signature = other.rsplit_once('.').map_or("", |(_, signature)| signature);
            bearer(&format!("{claims}.{signature}"))
        }
        Filter::ExternalAuth => bearer("wrong"),
        _ => "wrong".to_owned(),
    };
    refused.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    refused.headers.push((name.to_owned(), value));
    Some(refused)
}

fn basic(consumer: usize, key: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("consumer-{consumer}:{key}")))
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// The token of a consumer (RFC 7519).
fn token(filter: Filter, consumer: usize) -> String {
    let algorithm = if filter == Filter::JwtRs256 { "RS256" } else { "HS256" };
    let part = |json: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    let header = part(json!({ "alg": algorithm, "typ": "JWT" }));
    let claims = part(json!({ "iss": "weir", "sub": format!("consumer-{consumer}"), "exp": EXPIRES }));
    let signed = format!("{header}.{claims}");
    let signature = match (filter, RSA_KEY.as_ref().filter(|_| filter == Filter::JwtRs256)) {
        (Filter::JwtRs256, Some(key)) => {
            let mut signature = vec![0; key.public_modulus_len()];
            let random = rand::SystemRandom::new();
            key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
                .map(|()| signature)
                .unwrap_or_default()
        }
        (Filter::JwtRs256, None) => Vec::new(),
        _ => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), signed.as_bytes()).as_ref().to_vec(),
    };
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// Variables of templates: `consumers`, and the keys that verify tokens. Empty without a filter that has consumers.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Consumers {
    /// Each consumer: `name`, `key`, and the key's SHA-1 as `sha1` (`{SHA}` of `htpasswd` files).
    pub consumers: Vec<Consumer>,
    /// The secret or the public key as a set of JSON Web Keys (RFC 7517).
    pub key_set: String,
    /// The secret as text, of HS256.
    pub secret: String,
    /// The public key as PEM, of RS256.
    pub public_key: String,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Consumer {
    /// Name.
    pub name: String,
    /// Key or password.
    pub key: String,
    /// SHA-1 of the key, in base64.
    pub sha1: String,
}

impl Consumers {
    /// Those of a filter.
    pub fn of(filter: Option<Filter>) -> Consumers {
        let Some(filter) = filter.filter(|filter| credential_header(*filter).is_some()) else {
            return Consumers::default();
        };
        let consumer = |nth: usize| {
            let sha1 = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, key(nth).as_bytes());
            Consumer { name: format!("consumer-{nth}"), key: key(nth), sha1: BASE64_STANDARD.encode(sha1) }
        };
        let consumers = (0..CONSUMERS).map(consumer).collect();
        let (key, public_key) = match filter {
            Filter::JwtRs256 => public_key().unwrap_or_default(),
            _ => (json!({ "kty": "oct", "alg": "HS256", "k": BASE64_URL_SAFE_NO_PAD.encode(SECRET) }), String::new()),
        };
        let secret = String::from_utf8_lossy(SECRET).into_owned();
        Consumers { consumers, key_set: json!({ "keys": [key] }).to_string(), secret, public_key }
    }
}

/// RSA's public key, as a JSON Web Key and as PEM.
fn public_key() -> Option<(serde_json::Value, String)> {
    let der: PublicKeyX509Der<'_> = RSA_KEY.as_ref()?.public_key().as_der().ok()?;
    let modulus = BASE64_URL_SAFE_NO_PAD.encode(der.as_ref().get(MODULUS)?);
    // Its exponent is 65,537.
    let key = json!({ "kty": "RSA", "alg": "RS256", "n": modulus, "e": "AQAB" });
    let text = BASE64_STANDARD.encode(der.as_ref());
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"));
    Some((key, pem))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};

    use super::*;

    fn parts(token: &str) -> (String, Vec<u8>) {
        let (signed, signature) = token.rsplit_once('.').expect("a signature");
        (signed.to_owned(), BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base64"))
    }

    #[test]
    fn tokens_are_what_the_keys_verify_and_others_are_not() {
        let key_set =
            |filter| -> serde_json::Value { serde_json::from_str(&Consumers::of(Some(filter)).key_set).expect("JSON") };
        let field = |set: &serde_json::Value, name: &str| {
            BASE64_URL_SAFE_NO_PAD.decode(set["keys"][0][name].as_str().expect("text")).expect("base64")
        };
        let rsa = key_set(Filter::JwtRs256);
        let public = RsaPublicKeyComponents { n: field(&rsa, "n"), e: field(&rsa, "e") };
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &field(&key_set(Filter::JwtHs256), "k"));
        for filter in [Filter::JwtHs256, Filter::JwtRs256] {
            let is_valid = |value: &str| {
                let (signed, signature) = parts(value.strip_prefix("Bearer ").expect("a bearer"));
                match filter {
                    Filter::JwtHs256 => hmac::verify(&secret, signed.as_bytes(), &signature).is_ok(),
                    _ => public.verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature).is_ok(),
                }
            };
            let name = credential_header(filter).expect("consumers");
            let values: Vec<String> = (0..CONSUMERS).map(|consumer| credential(filter, consumer)).collect();
            assert_eq!((name, values.len()), ("authorization", CONSUMERS));
            assert!(values.iter().all(|value| is_valid(value)), "{filter:?}");
            let right = Request { headers: vec![(name.to_owned(), values[3].clone())], ..Request::get("/") };
            let refused = refused_request(filter, &right).expect("refuses");
            assert!(!is_valid(refused.header(name).expect("a token")), "{filter:?}");
        }
        assert!(Consumers::of(Some(Filter::JwtRs256)).public_key.starts_with("-----BEGIN PUBLIC KEY-----\nMIIBIjAN"));
    }

    #[test]
    fn users_have_passwords_and_keys() {
        let value = credential(Filter::BasicAuth, 7);
        assert_eq!(BASE64_STANDARD.decode(&value["Basic ".len()..]).expect("base64"), b"consumer-7:key-7");
        let of = Consumers::of(Some(Filter::BasicAuth));
        // printf key-0 | openssl sha1 -binary | base64
        assert_eq!((of.consumers[0].sha1.as_str(), of.consumers.len()), ("W8juV4TuWhyp4k3jpP+pIkZIP5s=", CONSUMERS));
        assert_eq!(Consumers::of(Some(Filter::Rewrite)), Consumers::default());
        let long = refused_request(Filter::BodyLimit, &Request::get("/echo")).expect("refuses");
        assert_eq!(long.body.len(), 16_385);
    }
}
