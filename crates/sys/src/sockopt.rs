//! Integer socket options that `socket2` does not name.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an integer option.
pub(crate) fn set(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel
    // only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option that is the first `len` bytes of a structure of the kernel.
///
/// # Panics
/// When the structure is shorter.
pub(crate) fn set_front<T>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
    len: usize,
) -> io::Result<()> {
    assert!(len <= size_of::<T>(), "an option longer than its structure");
    let pointer: *const T = value;
    // SAFETY: the pointer and the length, which was checked, describe a part of `value`, which
    // outlives the call; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, pointer.cast(), len as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an integer option.
pub(crate) fn int(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut words = [0];
    words_into(fd, level, name, &mut words)?;
    Ok(words[0])
}

/// Reads an option that is an array of 32-bit words; returns how many words the kernel wrote.
pub(crate) fn words_into(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    words: &mut [i32],
) -> io::Result<usize> {
    let mut len = size_of_val(words) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `words`, which is borrowed exclusively for the
    // call; the kernel writes at most `len` bytes, and any bytes are valid integers.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, words.as_mut_ptr().cast(), &raw mut len)
    };
    if result == 0 { Ok(len as usize / size_of::<i32>()) } else { Err(io::Error::last_os_error()) }
}
