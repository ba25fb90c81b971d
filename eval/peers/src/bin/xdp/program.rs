//! [`Program`]: the XDP program that steers UDP to one port into a socket, written by hand.
//!
//! ```text
//!   frame -- 42 bytes, IPv4, UDP, our port? -- no --> XDP_PASS
//!                      '- yes --> bpf_redirect_map(XSKMAP, queue)
//! ```
//!
//! Options of IPv4 are not looked for: who sends none has its ports at 34. Invariant: the program
//! leaves the interface when its last descriptor is closed, however this process ends.
//!
//! Source: the instruction set is RFC 9669; the numbers are those of `linux/bpf.h`.

#![allow(unsafe_code, reason = "bpf(2) has no safe wrapper in the crates used here")]

use crate::refused::{Refused, Step};
use nix::libc;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;
const HELPER_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;

/// An instruction: what it does, its registers (source above, destination below), how far it jumps
/// or reaches, its constant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    constant: i32,
}

const fn op(code: u8, to: u8, from: u8, offset: i16, constant: i32) -> Instruction {
    Instruction { code, registers: from << 4 | to, offset, constant }
}

/// A program at an interface, while this lives.
#[derive(Debug)]
pub struct Program {
    // Held open, not used: each is what keeps the next one alive.
    _link: OwnedFd,
    _map: OwnedFd,
    is_native: bool,
}

impl Program {
    /// Steers what comes for `port` by queue 0 of the interface into the socket; in the driver,
    /// where that can.
    ///
    /// # Errors
    /// The step that the kernel refuses.
    pub fn attach(interface: u32, port: u16, socket: &impl AsRawFd) -> Result<Self, Refused> {
        let map = bpf(BPF_MAP_CREATE, &mut [BPF_MAP_TYPE_XSKMAP, 4, 4, 1]);
        let map = descriptor(map.map_err(|error| Refused { step: Step::Map, error })?);
        insert(&map, socket.as_raw_fd())?;
        let code = instructions(map.as_raw_fd(), port);
        let program = load(&code)?;
        let link = |flags| {
            let fd = program.as_raw_fd() as u32;
            bpf(BPF_LINK_CREATE, &mut [fd, interface, BPF_XDP, flags])
        };
        let (fd, is_native) = match link(FLAG_NATIVE) {
            Ok(fd) => (fd, true),
            Err(_) => {
                let generic = link(FLAG_GENERIC);
                (generic.map_err(|error| Refused { step: Step::Attach, error })?, false)
            }
        };
        Ok(Self { _link: descriptor(fd), _map: map, is_native })
    }

    /// Whether the driver runs it, and not the kernel behind the driver.
    pub fn is_native(&self) -> bool {
        self.is_native
    }
}

/// Puts the socket into place 0 of the map.
fn insert(map: &OwnedFd, socket: RawFd) -> Result<(), Refused> {
    #[repr(C)]
    struct Update {
        map: u64,
        key: *const u32,
        value: *const i32,
        flags: u64,
    }
    let mut update = Update { map: map.as_raw_fd() as u64, key: &0, value: &socket, flags: 0 };
    let done = bpf(BPF_MAP_UPDATE_ELEM, &mut update);
    done.map(|_| ()).map_err(|error| Refused { step: Step::Map, error })
}

fn load(code: &[Instruction]) -> Result<OwnedFd, Refused> {
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        code: *const Instruction,
        licence: *const libc::c_char,
        log: [u64; 2],
    }
    let licence = c"Dual MIT/GPL".as_ptr();
    let (kind, count) = (BPF_PROG_TYPE_XDP, code.len() as u32);
    let mut load = Load { kind, count, code: code.as_ptr(), licence, log: [0; 2] };
    let loaded = bpf(BPF_PROG_LOAD, &mut load);
    loaded.map(descriptor).map_err(|error| Refused { step: Step::Load, error })
}

/// `bpf(2)` with what a command takes; what is left out of it is 0.
fn bpf<A>(command: libc::c_long, attributes: &mut A) -> nix::Result<RawFd> {
    let len = size_of_val(attributes);
    // SAFETY: `attributes` is `len` readable bytes that begin as the command's part of `union
    // bpf_attr` does; the addresses in it are of values that live until the call is over.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes as *mut u8, len) };
    nix::errno::Errno::result(done).map(|fd| fd as RawFd)
}

fn descriptor(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made it for us, and nobody else closes it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// The program: r1 is the context (`struct xdp_md`), r0 what becomes of the frame.
fn instructions(map: RawFd, port: u16) -> [Instruction; 19] {
    let in_memory = |word: u16| i32::from(u16::from_ne_bytes(word.to_be_bytes()));
    [
        op(0x61, 2, 1, 0, 0),                   //  0 r2 = data
        op(0x61, 3, 1, 4, 0),                   //  1 r3 = data_end
        op(0xbf, 4, 2, 0, 0),                   //  2 r4 = r2
        op(0x07, 4, 0, 0, 42),                  //  3 r4 += 42
        op(0x2d, 4, 3, 12, 0),                  //  4 r4 > r3: to 17
        op(0x69, 4, 2, 12, 0),                  //  5 r4 = type of the frame
        op(0x55, 4, 0, 10, in_memory(0x0800)),  //  6 not IPv4: to 17
        op(0x71, 4, 2, 23, 0),                  //  7 r4 = protocol
        op(0x55, 4, 0, 8, 17),                  //  8 not UDP: to 17
        op(0x69, 4, 2, 36, 0),                  //  9 r4 = destination port
        op(0x55, 4, 0, 6, in_memory(port)),     // 10 not ours: to 17
        op(0x61, 2, 1, 16, 0),                  // 11 r2 = queue
        op(0x18, 1, 1, 0, map),                 // 12 r1 = the map,
        op(0, 0, 0, 0, 0),                      // 13   in two instructions
        op(0xb7, 3, 0, 0, XDP_PASS),            // 14 r3 = if it has no socket for that
        op(0x85, 0, 0, 0, HELPER_REDIRECT_MAP), // 15 r0 = bpf_redirect_map(r1, r2, r3)
        op(0x95, 0, 0, 0, 0),                   // 16 return
        op(0xb7, 0, 0, 0, XDP_PASS),            // 17 r0 = XDP_PASS
        op(0x95, 0, 0, 0, 0),                   // 18 return
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_ends_where_a_frame_is_passed_on() {
        let code = instructions(5, 21_000);
        let jumps = code.iter().enumerate().filter(|(_, it)| matches!(it.code, 0x2d | 0x55));
        let targets: Vec<usize> =
            jumps.map(|(place, it)| place + 1 + usize::try_from(it.offset).unwrap()).collect();
        assert_eq!(targets, [17; 4]);
        assert_eq!(code[17], op(0xb7, 0, 0, 0, XDP_PASS));
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
