//! Decoded headers, flat in one buffer.

/// The headers of a message, without pseudo-headers, as they came: names in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    /// For each: length of the name and of the value (4 bytes each), the name, the value.
    pub(super) flat: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let mut flat = self.flat;
        std::iter::from_fn(move || {
            let (head, rest) = flat.split_at_checked(8)?;
            let (name, value) = head.split_at(4);
            let length = |bytes: &[u8]| bytes.try_into().map(|b| u32::from_ne_bytes(b) as usize).ok();
            let (name, rest) = rest.split_at_checked(length(name)?)?;
            let (value, rest) = rest.split_at_checked(length(value)?)?;
            flat = rest;
            Some((name, value))
        })
    }

    /// The value of the first header with this name, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }
}
