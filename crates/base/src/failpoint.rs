//! [`failpoint!`](crate::failpoint!): named places where a test can end or stop the process.
//!
//! A table of names ([`NAMES`]), a macro that says "here is one of them", a hook that the edge of a
//! program sets once, and [`Armed`], which counts hits and says when it is time.
//!
//! Without `debug_assertions` the macro is nothing at all, and neither the hook nor [`Armed`]
//! exist; only the check of the name at compile time stays.
//!
//! ```text
//!   DACAPO_FAILPOINT=file.renamed:2   --the edge--> Armed -----+
//!                                                              v
//!   failpoint!("file.renamed")  --reach--> hook(name) --is_hit--> SIGKILL (or SIGSTOP)
//! ```
//!
//! Invariants: a name that is not in the table does not compile; a test compares the table with the
//! tree, so every name has one place and every place a name.

/// Every failpoint, by the part of the system that it is in; names of the core begin with `core.`.
pub const NAMES: &[&str] = &[
    // The core: the greeting, the set-up of a session, its end.
    "core.connected",
    "core.hello",
    "core.welcome",
    "core.join",
    "core.offer",
    "core.answer",
    "core.accept",
    "core.ready",
    "core.activate",
    "core.end",
    "core.report",
    "core.close",
    // The start of a host, and what it serves.
    "config.read",
    "plan.made",
    "identity.before",
    "identity.ready",
    "host.before_bind",
    "host.bound_udp",
    "host.listening",
    "serve.published",
    "serve.listening",
    "plan.offer",
    "source.open",
    "source.unit",
    "serve.joined",
    "serve.signal",
    "serve.left",
    // A player, and what it saves.
    "play.connecting",
    "play.offered",
    "stream.dial",
    "sink.begin",
    "play.ready",
    "control.bound",
    "recording.begin",
    "recording.header",
    "recording.unit",
    "recording.sync",
    "recording.index",
    "recording.trailer",
    "sound.trailer",
    "play.closing",
    "play.over",
    // A transfer: who sends, who receives.
    "send.offered",
    "transfer.begin",
    "transfer.data",
    "transfer.hash",
    "transfer.end",
    "send.closing",
    "recv.ready",
    "file.create",
    "file.part",
    "file.data",
    "file.hash",
    "file.place",
    "file.placed",
    "recv.received",
    // A test movie.
    "testmovie.picture",
    "testmovie.place",
    // The endpoint of an application.
    "endpoint.thread",
    "endpoint.publish",
    "endpoint.command",
    "endpoint.joining",
    "endpoint.ended",
    "endpoint.stop",
];

/// Whether the table has a name.
#[must_use]
pub const fn is_known(name: &str) -> bool {
    let mut at = 0;
    while at < NAMES.len() {
        if is_equal(NAMES[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

/// `==`, which constants do not have.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Says that the program is at a named place. The name is a literal that [`NAMES`] has; a statement
/// by itself. In release builds it is nothing.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        const {
            assert!(
                $crate::failpoint::is_known($name),
                concat!("no such failpoint: add ", $name, " to NAMES in base/src/failpoint.rs")
            );
        }
        #[cfg(debug_assertions)]
        $crate::failpoint::reach($name);
    };
}

#[cfg(debug_assertions)]
pub use armed::{Act, Armed, WrongFailpoint, reach, set_hook};

#[cfg(debug_assertions)]
mod armed {
    use super::NAMES;
    use std::fmt;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static HOOK: OnceLock<fn(&'static str)> = OnceLock::new();

    /// What every failpoint calls from now on; false when there is a hook already, which stays.
    pub fn set_hook(hook: fn(&'static str)) -> bool {
        HOOK.set(hook).is_ok()
    }

    /// The program is at a named place: what [`failpoint!`](crate::failpoint!) calls.
    pub fn reach(name: &'static str) {
        if let Some(hook) = HOOK.get() {
            hook(name);
        }
    }

    /// What becomes of the process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Act {
        /// It ends at once, as by SIGKILL.
        Kill,
        /// It stops until somebody lets it go on, as by SIGSTOP.
        Stop,
    }

    /// A failpoint at which something is to happen.
    #[derive(Debug)]
    pub struct Armed {
        name: &'static str,
        hit: u64,
        act: Act,
        hits: AtomicU64,
    }

    impl Armed {
        /// Reads `NAME`, `NAME:N` or `NAME:N:stop`: at the N-th hit, from 1.
        ///
        /// # Errors
        /// An unknown name, or a text of another form.
        pub fn parse(text: &str) -> Result<Self, WrongFailpoint> {
            let wrong = || WrongFailpoint(text.to_owned());
            let mut parts = text.split(':');
            let name = parts.next().unwrap_or_default();
            let name = NAMES.iter().copied().find(|known| *known == name).ok_or_else(wrong)?;
            let hit = parts.next().map_or(Some(1), |hit| hit.parse().ok());
            let hit = hit.filter(|hit| *hit > 0).ok_or_else(wrong)?;
            let act = match parts.next() {
                None | Some("kill") => Act::Kill,
                Some("stop") => Act::Stop,
                Some(_) => return Err(wrong()),
            };
            let is_over = parts.next().is_none();
            let armed = Self { name, hit, act, hits: AtomicU64::new(0) };
            if is_over { Ok(armed) } else { Err(wrong()) }
        }

        /// The program is at a place: what is to happen now, if anything is.
        pub fn act_at(&self, name: &str) -> Option<Act> {
            if name != self.name {
                return None;
            }
            let hits = self.hits.fetch_add(1, Ordering::Relaxed) + 1;
            (hits == self.hit).then_some(self.act)
        }
    }

    /// A text that names no failpoint.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WrongFailpoint(String);

    impl fmt::Display for WrongFailpoint {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let Self(text) = self;
            write!(f, "{text:?} is no failpoint; write NAME, NAME:N or NAME:N:stop with one of: ")?;
            f.write_str(&NAMES.join(" "))
        }
    }

    impl std::error::Error for WrongFailpoint {}
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_only_as_a_whole() {
        assert!(NAMES.iter().all(|name| is_known(name)));
        for wrong in ["", "file", "file.placed2", "File.placed", "file.place "] {
            assert!(!is_known(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_armed_happens_once_at_the_hit_that_was_asked_for() {
        let armed = Armed::parse("file.placed:3").unwrap();
        let acts = ["file.placed", "file.place", "file.placed", "file.placed", "file.placed"];
        let acts = acts.map(|name| armed.act_at(name));
        assert_eq!(acts, [None, None, None, Some(Act::Kill), None]);
        let stop = Armed::parse("file.placed:1:stop").unwrap();
        assert_eq!(stop.act_at("file.placed"), Some(Act::Stop));
        assert_eq!(Armed::parse("plan.made").unwrap().act_at("plan.made"), Some(Act::Kill));
    }

    #[test]
    fn anything_else_is_refused_with_the_names_that_there_are() {
        for wrong in ["", "no.such", "file.placed:0", "file.placed:x", "file.placed:1:nap"] {
            let text = Armed::parse(wrong).unwrap_err().to_string();
            assert!(text.contains(wrong) && text.contains("plan.made"), "{text}");
        }
        assert!(Armed::parse("file.placed:1:stop:2").is_err());
    }

    #[test]
    fn a_failpoint_calls_the_hook_that_was_set_first() {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        crate::failpoint!("plan.made");
        assert!(set_hook(|name| {
            assert_eq!(name, "plan.made");
            COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }));
        assert!(!set_hook(|_| {}));
        crate::failpoint!("plan.made");
        assert_eq!(COUNT.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
}
