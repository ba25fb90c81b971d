//! [`plan`]: system calls that fail on purpose, every n-th one, in the thread that asked for it.
//!
//! A script that the wrappers of this crate look at before they call the system. A call that it is
//! for is not made: the wrapper gets the errno instead. `Effect::Partial` lets the call through
//! with less than it was given.
//!
//! Without `debug_assertions` there is no script, and the looks compile to nothing.
//!
//! ```text
//!   plan(&[sendmsg: ENOBUFS every 7th])       Socket::send -> before(SendMsg) -> Err(ENOBUFS)
//!                                                                   | 6 of 7
//!                                                                   v
//!                                                               sendmsg(2)
//! ```
//!
//! Invariants: a script is of one thread and never of another; calls are counted per fault, from
//! the plan on; where a wrapper repeats a call after EINTR, every repetition counts.
//!
//! Source: errno(3).

#[cfg(debug_assertions)]
pub use script::{Effect, Fault, WrongFault, hits, parse, plan};
#[cfg(debug_assertions)]
pub(crate) use script::{before, cut, is_partial};

/// A call of the system that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `sendmsg` of a UDP socket.
    SendMsg,
    /// `recvmsg` of a UDP socket.
    RecvMsg,
    /// `send` and `sendmsg` of a TCP stream.
    TcpWrite,
    /// `recv` and `readv` of a TCP stream.
    TcpRead,
    /// `accept4` of a TCP listener.
    Accept,
    /// `connect` of a TCP stream or a UDP socket.
    Connect,
    /// `epoll_pwait2`.
    Wait,
    /// `setsockopt` with which a UDP socket joins a group.
    Join,
}

/// What a release build has of it: nothing fails.
#[cfg(not(debug_assertions))]
mod nothing {
    use super::Call;
    use std::io;

    #[inline(always)]
    pub(crate) fn before(_call: Call) -> io::Result<()> {
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn is_partial(_call: Call) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn cut(_call: Call, len: usize) -> usize {
        len
    }
}
#[cfg(not(debug_assertions))]
pub(crate) use nothing::{before, cut, is_partial};

#[cfg(debug_assertions)]
mod script {
    use super::Call;
    use std::cell::RefCell;
    use std::fmt;
    use std::io;

    const CALLS: [(&str, Call); 8] = [
        ("sendmsg", Call::SendMsg),
        ("recvmsg", Call::RecvMsg),
        ("tcpwrite", Call::TcpWrite),
        ("tcpread", Call::TcpRead),
        ("accept", Call::Accept),
        ("connect", Call::Connect),
        ("wait", Call::Wait),
        ("join", Call::Join),
    ];

    const ERRNOS: [(&str, i32); 17] = [
        ("EAGAIN", libc::EAGAIN),
        ("ECONNABORTED", libc::ECONNABORTED),
        ("ECONNREFUSED", libc::ECONNREFUSED),
        ("ECONNRESET", libc::ECONNRESET),
        ("EHOSTUNREACH", libc::EHOSTUNREACH),
        ("EINTR", libc::EINTR),
        ("EINVAL", libc::EINVAL),
        ("EIO", libc::EIO),
        ("EMFILE", libc::EMFILE),
        ("EMSGSIZE", libc::EMSGSIZE),
        ("ENETDOWN", libc::ENETDOWN),
        ("ENETUNREACH", libc::ENETUNREACH),
        ("ENODEV", libc::ENODEV),
        ("ENFILE", libc::ENFILE),
        ("ENOBUFS", libc::ENOBUFS),
        ("ENOMEM", libc::ENOMEM),
        ("EPERM", libc::EPERM),
    ];

    /// What happens to a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Effect {
        /// It is not made; the wrapper gets this errno.
        Errno(i32),
        /// It is made with a part of what it was given: one segment of a train, half of the bytes.
        Partial,
    }

    /// A fault: every `nth` call, from the `nth` on.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Fault {
        /// Which call.
        pub call: Call,
        /// What happens.
        pub effect: Effect,
        /// How often; 1 is always.
        pub nth: u32,
    }

    /// A script of faults, with how many calls each has seen.
    struct Script {
        faults: Vec<(Fault, u32)>,
        hits: u64,
    }

    impl Script {
        /// A call is about to be made: what happens to it.
        fn strike(&mut self, is_it: impl Fn(&Fault) -> bool) -> Option<Effect> {
            let mut struck = None;
            for (fault, seen) in self.faults.iter_mut().filter(|(fault, _)| is_it(fault)) {
                *seen += 1;
                if *seen >= fault.nth {
                    *seen = 0;
                    struck = struck.or(Some(fault.effect));
                }
            }
            self.hits += u64::from(struck.is_some());
            struck
        }
    }

    thread_local! {
        static SCRIPT: RefCell<Script> =
            const { RefCell::new(Script { faults: Vec::new(), hits: 0 }) };
    }

    /// From now on these calls of this thread fail; no faults let all of them through again.
    pub fn plan(faults: &[Fault]) {
        let faults = faults.iter().map(|fault| (*fault, 0)).collect();
        SCRIPT.with_borrow_mut(|script| *script = Script { faults, hits: 0 });
    }

    /// How many calls of this thread were struck since the plan.
    #[must_use]
    pub fn hits() -> u64 {
        SCRIPT.with_borrow(|script| script.hits)
    }

    /// Whether this call may be made.
    pub(crate) fn before(call: Call) -> io::Result<()> {
        let is_it = |fault: &Fault| fault.call == call && fault.effect != Effect::Partial;
        match SCRIPT.with_borrow_mut(|script| script.strike(is_it)) {
            Some(Effect::Errno(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Effect::Partial) | None => Ok(()),
        }
    }

    /// Whether this call is to get a part only.
    pub(crate) fn is_partial(call: Call) -> bool {
        let is_it = |fault: &Fault| fault.call == call && fault.effect == Effect::Partial;
        SCRIPT.with_borrow_mut(|script| script.strike(is_it)).is_some()
    }

    /// How many of `len` bytes this call gets: all of them or the first half, never none of some.
    pub(crate) fn cut(call: Call, len: usize) -> usize {
        if is_partial(call) { len.div_ceil(2) } else { len }
    }

    /// Reads faults as a command is told them: `sendmsg:ENOBUFS:1/7,tcpwrite:PARTIAL:1/3`.
    ///
    /// # Errors
    /// The part that is none, with what there is.
    pub fn parse(text: &str) -> Result<Vec<Fault>, WrongFault> {
        text.split(',').map(parse_one).collect()
    }

    fn parse_one(text: &str) -> Result<Fault, WrongFault> {
        let wrong = || WrongFault(text.to_owned());
        let parts: Vec<&str> = text.split(':').collect();
        let [call, effect, often] = parts[..] else { return Err(wrong()) };
        let call = CALLS.iter().find(|(name, _)| *name == call).ok_or_else(wrong)?.1;
        let effect = match effect {
            "PARTIAL" => Effect::Partial,
            name => {
                Effect::Errno(ERRNOS.iter().find(|(known, _)| *known == name).ok_or_else(wrong)?.1)
            }
        };
        let nth = often.strip_prefix("1/").and_then(|nth| nth.parse().ok());
        let nth: u32 = nth.filter(|nth| *nth > 0).ok_or_else(wrong)?;
        // Wrappers repeat an interrupted call, for ever if every call were; and a connect that was
        // interrupted goes on in the kernel, which one that was not made does not.
        let is_interrupted = effect == Effect::Errno(libc::EINTR);
        let is_endless = is_interrupted && (nth < 2 || call == Call::Connect);
        if is_endless { Err(wrong()) } else { Ok(Fault { call, effect, nth }) }
    }

    /// A text that is no fault.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WrongFault(String);

    impl fmt::Display for WrongFault {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let calls = CALLS.map(|(name, _)| name).join(" ");
            let errnos = ERRNOS.map(|(name, _)| name).join(" ");
            let Self(text) = self;
            write!(f, "{text:?} is no fault; write CALL:ERRNO:1/N, every N-th call fails, EINTR ")?;
            write!(f, "from 1/2 on and not for connect; calls: {calls}; errnos: {errnos} PARTIAL")
        }
    }

    impl std::error::Error for WrongFault {}

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_nth_call_is_struck_and_others_are_not() {
            let fault = Fault { call: Call::SendMsg, effect: Effect::Errno(libc::ENOBUFS), nth: 3 };
            plan(&[fault]);
            let errno = |call| before(call).err().and_then(|error| error.raw_os_error());
            let errnos: Vec<_> = (0..7).map(|_| errno(Call::SendMsg)).collect();
            let no = Some(libc::ENOBUFS);
            assert_eq!(errnos, [None, None, no, None, None, no, None]);
            assert_eq!((errno(Call::RecvMsg), hits()), (None, 2));
            let other = std::thread::spawn(|| before(Call::SendMsg).is_ok() && hits() == 0);
            assert!(other.join().unwrap(), "another thread has another script");
            plan(&[]);
            assert!((0..7).all(|_| before(Call::SendMsg).is_ok()));
        }

        #[test]
        fn a_partial_call_gets_half_and_never_nothing() {
            plan(&[Fault { call: Call::TcpWrite, effect: Effect::Partial, nth: 2 }]);
            let cuts = [8, 8, 7, 7, 1, 1, 0, 0].map(|len| cut(Call::TcpWrite, len));
            assert_eq!(cuts, [8, 4, 7, 4, 1, 1, 0, 0]);
            assert!(before(Call::TcpWrite).is_ok());
        }

        #[test]
        fn faults_are_read_and_others_are_refused_with_what_there_is() {
            let faults = parse("sendmsg:EMSGSIZE:1/7,tcpwrite:PARTIAL:1/1").unwrap();
            let first =
                Fault { call: Call::SendMsg, effect: Effect::Errno(libc::EMSGSIZE), nth: 7 };
            let second = Fault { call: Call::TcpWrite, effect: Effect::Partial, nth: 1 };
            assert_eq!(faults, [first, second]);
            for wrong in
                ["", "send:EIO:1/2", "sendmsg:EFOO:1/2", "sendmsg:EIO:2", "sendmsg:EIO:1/0"]
            {
                let text = parse(wrong).unwrap_err().to_string();
                assert!(text.contains("sendmsg") && text.contains("ENOBUFS"), "{text}");
            }
            assert!(parse("wait:EINTR:1/1").is_err() && parse("connect:EINTR:1/9").is_err());
        }
    }
}
