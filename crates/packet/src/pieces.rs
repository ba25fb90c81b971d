//! Bytes that lie in pieces.

/// The pieces without their first `skip` bytes.
pub fn skip_bytes<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    skip: usize,
) -> impl Iterator<Item = &'a [u8]> {
    pieces.scan(skip, |left, piece| {
        let now = piece.len().min(*left);
        *left -= now;
        Some(piece.get(now..).unwrap_or_default())
    })
}
