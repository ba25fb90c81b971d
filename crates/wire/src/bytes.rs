//! Big-endian integers out of and into byte slices, without a way to panic.

use crate::Malformed;

/// Reads a slice from front to back. What lacks is [`Malformed`], and then nothing more is to be
/// read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `len` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The next byte.
    ///
    /// # Errors
    /// There are fewer.
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    /// A number of 2 bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of 4 bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of 8 bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// Something is.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// All items, `most` at most, of `LEN` bytes each, of which the bytes are a list and nothing else;
/// `parse` reads one.
///
/// # Errors
/// They are not, or one of them is none: then nothing is read.
pub(crate) fn all<'a, const LEN: usize, T: 'a>(
    bytes: &'a [u8],
    most: usize,
    parse: fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<impl Iterator<Item = T> + 'a, Malformed> {
    let (items, rest) = bytes.as_chunks::<LEN>();
    if !rest.is_empty() || items.len() > most {
        return Err(Malformed);
    }
    let read = move || items.iter().map(move |item| parse(&mut Reader(item)));
    if read().any(|item| item.is_err()) { Err(Malformed) } else { Ok(read().flatten()) }
}
