//! Decoded headers, flat in one buffer. Decoders write them, and callers read them as [`Headers`].

/// The headers of a message, without pseudo-headers, as they came: names in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    /// For each: length of the name and of the value (4 bytes each), the name, the value.
    flat: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let mut flat = self.flat;
        std::iter::from_fn(move || {
            let (name, rest) = flat.split_first_chunk()?;
            let (value, rest) = rest.split_first_chunk()?;
            let (name, rest) = rest.split_at_checked(u32::from_ne_bytes(*name) as usize)?;
            let (value, rest) = rest.split_at_checked(u32::from_ne_bytes(*value) as usize)?;
            flat = rest;
            Some((name, value))
        })
    }

    /// The value of the first header with this name, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }
}

/// Bytes of lengths before each header.
const LENGTHS: usize = 8;
/// A larger buffer is freed after use, so that waiting connections stay small.
const KEPT: usize = 1024;

/// The buffer. A decoder also builds a header here before it is known whether it is kept.
#[derive(Debug)]
pub(crate) struct Fields {
    flat: Vec<u8>,
    /// Of the header that is being built: where it begins and where its name ends.
    name_end: usize,
    keep: bool,
    /// The most bytes of headers that are kept.
    limit: usize,
}

impl Fields {
    /// `keep`: headers stay until [`Fields::clear`]. Without, they are built and dropped.
    pub(crate) fn new(keep: bool, limit: u32) -> Fields {
        Fields { flat: Vec::new(), name_end: 0, keep, limit: limit as usize }
    }

    pub(crate) fn clear(&mut self) {
        if self.flat.capacity() > KEPT {
            self.flat = Vec::new();
        }
        self.flat.clear();
    }

    fn keeps(&self) -> bool {
        self.keep && self.flat.len() <= self.limit
    }

    /// Adds a header, if headers are kept. Returns where its value begins.
    #[inline]
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> usize {
        if !self.keeps() {
            return 0;
        }
        // Strings are shorter than 2^29 bytes: the decoder accepts no longer integers.
        self.flat.extend_from_slice(&(name.len() as u32).to_ne_bytes());
        self.flat.extend_from_slice(&(value.len() as u32).to_ne_bytes());
        self.flat.extend_from_slice(name);
        let at = self.flat.len();
        self.flat.extend_from_slice(value);
        at
    }

    /// Begins a header. Returns where.
    pub(crate) fn begin(&mut self) -> usize {
        let start = self.flat.len();
        self.flat.extend_from_slice(&[0; LENGTHS]);
        start
    }

    /// Where the parts of a header are built, one behind the other.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.flat
    }

    /// The name is complete.
    pub(crate) fn name_ends(&mut self) {
        self.name_end = self.flat.len();
    }

    /// Name and value of the header that began at `start` and is complete, and where its value begins.
    pub(crate) fn last(&self, start: usize) -> (&[u8], &[u8], usize) {
        (&self.flat[start + LENGTHS..self.name_end], &self.flat[self.name_end..], self.name_end)
    }

    /// Writes a kept value over another of the same length.
    pub(crate) fn replace(&mut self, at: u32, value: &[u8]) {
        if let Some(old) = self.flat.get_mut(at as usize..at as usize + value.len()) {
            old.copy_from_slice(value);
        }
    }

    /// Keeps the header that began at `start`, or not. True: it is kept.
    pub(crate) fn end(&mut self, start: usize) -> bool {
        if !self.keep || start > self.limit {
            self.flat.truncate(start);
            return false;
        }
        let name = (self.name_end - start - LENGTHS) as u32;
        let value = (self.flat.len() - self.name_end) as u32;
        self.flat[start..start + 4].copy_from_slice(&name.to_ne_bytes());
        self.flat[start + 4..start + LENGTHS].copy_from_slice(&value.to_ne_bytes());
        true
    }

    /// The given number of bytes from `at` on.
    pub(crate) fn slice(&self, (at, length): (u32, u32)) -> &[u8] {
        self.flat.get(at as usize..(at + length) as usize).unwrap_or_default()
    }

    /// The headers from `at` on.
    pub(crate) fn headers(&self, at: u32) -> Headers<'_> {
        Headers { flat: self.flat.get(at as usize..).unwrap_or_default() }
    }
}
