//! Facts about this process.
//!
//! What it is not: process control.

/// The effective user id of this process, which `SO_PEERCRED` shows to the other end of a socket.
#[must_use]
pub fn uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches no memory and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_user_id_is_the_owner_of_this_process() {
        assert_eq!(uid(), std::fs::metadata("/proc/self").unwrap().uid());
    }
}
