//! Header compression alone, for tests and fuzzing that compare it with another implementation. Not part of the
//! interface.

use super::qpack;
use crate::http2::class::Class;
use crate::http2::fields::Fields;
use crate::http2::hpack::Reader;

/// Name and value.
pub type Header = (Vec<u8>, Vec<u8>);

struct All(Vec<Header>);

impl Reader for All {
    fn field(&mut self, _: Class, name: &[u8], value: &[u8], _: usize) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

/// The headers of a section, whatever they mean.
///
/// # Errors
/// What is wrong with it.
pub fn read(section: &[u8]) -> Result<Vec<Header>, super::Violation> {
    let mut all = All(Vec::new());
    qpack::decode(section, &mut Fields::new(true, 1 << 20), &mut all)?;
    Ok(all.0)
}

/// A section with these headers.
pub fn write(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = qpack::PREFIX.to_vec();
    for (name, value) in headers {
        qpack::put(&mut out, name, value);
    }
    out
}
