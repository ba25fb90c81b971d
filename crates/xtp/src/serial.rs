//! Numbers of requests, which wrap: `sync` and `echo`, compared modulo 2^32 (decided here; RFC 1982
//! compares serial numbers so).

/// Whether `one` is `other` or newer.
#[must_use]
pub const fn is_at_least(one: u32, other: u32) -> bool {
    one.wrapping_sub(other) < 1 << 31
}

/// Whether `one` is newer than `other`.
#[must_use]
pub const fn is_newer(one: u32, other: u32) -> bool {
    one != other && is_at_least(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_highest_number_is_newer() {
        assert!(is_newer(1, 0) && is_newer(0, u32::MAX) && is_newer(5, u32::MAX - 5));
        assert!(!is_newer(7, 7) && is_at_least(7, 7));
        assert!(!is_newer(u32::MAX, 0) && !is_at_least(0, 1));
    }
}
