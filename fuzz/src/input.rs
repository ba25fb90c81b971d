//! [`Input`]: the bytes of a fuzzer, read as a script.

/// What is left of an input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next two bytes, the high one first.
    pub fn u16(&mut self) -> u16 {
        u16::from(self.u8()) << 8 | u16::from(self.u8())
    }

    /// The next four bytes, the high one first.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// The next eight bytes, the high one first.
    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) << 32 | u64::from(self.u32())
    }

    /// A number whose size is chosen by a byte: small ones are likely, and so are the ends.
    pub fn number(&mut self) -> u64 {
        match self.u8() {
            small @ 0..=0xBF => u64::from(small),
            0xC0..=0xDF => u64::from(self.u16()),
            0xE0..=0xEF => u64::from(self.u32()),
            0xF0..=0xF7 => self.u64(),
            near @ 0xF8..=0xFF => u64::MAX - u64::from(0xFF - near),
        }
    }

    /// The next `len` bytes, or all that is left.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        piece
    }

    /// A piece whose length stands before it, in one byte.
    pub fn piece(&mut self) -> &'a [u8] {
        let len = usize::from(self.u8());
        self.take(len)
    }

    /// A piece whose length stands before it, in two bytes.
    pub fn long_piece(&mut self) -> &'a [u8] {
        let len = usize::from(self.u16());
        self.take(len)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
