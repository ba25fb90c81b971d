//! [`RawUnit`]: a unit that waits for the application: its bytes, or a loan of where they came in.

use dacapo_packet::Loan;

/// A unit of bytes.
#[derive(Debug)]
pub enum RawUnit {
    /// A copy in one piece.
    Bytes(Vec<u8>),
    /// Lent by the memory that it came into, in pieces.
    Loan(Loan),
}

impl RawUnit {
    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Loan(loan) => loan.len(),
        }
    }

    /// True when it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes in order, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let (bytes, loan) = match self {
            Self::Bytes(bytes) => (Some(bytes.as_slice()), None),
            Self::Loan(loan) => (None, Some(loan)),
        };
        bytes.into_iter().chain(loan.into_iter().flat_map(Loan::pieces))
    }

    /// Its bytes, where they lie in one piece.
    #[must_use]
    pub fn only_piece(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Loan(loan) => loan.only_piece(),
        }
    }

    /// Copies as much of it as there is room for to the beginning of `into`.
    pub fn copy_to(&self, mut into: &mut [u8]) {
        for piece in self.pieces() {
            let now = piece.len().min(into.len());
            let (here, behind) = into.split_at_mut(now);
            here.copy_from_slice(piece.get(..now).unwrap_or_default());
            into = behind;
        }
    }

    /// A copy of it in one piece, in empty memory.
    #[must_use]
    pub fn copy(&self, mut memory: Vec<u8>) -> Vec<u8> {
        memory.reserve(self.len());
        self.pieces().for_each(|piece| memory.extend_from_slice(piece));
        memory
    }

    /// Its bytes in one piece; what is lent is copied into `spare`, which is empty.
    #[must_use]
    pub fn into_bytes(self, spare: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Loan(_) => self.copy(spare()),
        }
    }
}
