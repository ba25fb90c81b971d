//! [`Cable`]: two network namespaces with a cable between them. Without the right to make them a
//! test says so and ends.
//!
//! ```text
//!   ends[0]  v  10.N.0.1, fdN::1, fe80::1 ------- 10.N.0.2, fdN::2, fe80::2  v  ends[1]
//! ```

use dacapo_base::patience;
use dacapo_sys::netns::Namespace;
use dacapo_sys::process;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A cable that is not up by then never is.
const UP_MAX: Duration = Duration::from_secs(120);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Gone with everything in it when it is dropped.
pub struct Cable {
    pub ends: [Namespace; 2],
}

impl Cable {
    /// One of the networks with this number; `None`, and a word, where there can be none.
    pub fn of_net(net: u8) -> Option<Self> {
        if process::uid() != 0 || Command::new("ip").arg("-V").output().is_err() {
            dacapo_base::skip("a cable between namespaces: this is not root, or has no `ip`");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("dacapo-v{net}-{}-{number}-{end}", std::process::id());
        let ends = [1, 2].map(|end| Namespace::create(&name(end)).unwrap());
        let [a, b] = ends.each_ref().map(Namespace::name);
        ip(&format!("-n {a} link add v type veth peer name v netns {b}"));
        for (end, name) in [(1, a), (2, b)] {
            ip(&format!("-n {name} address add 10.{net}.0.{end}/24 dev v"));
            ip(&format!("-n {name} address add fd{net}::{end}/64 dev v nodad"));
            ip(&format!("-n {name} address add fe80::{end}/64 dev v nodad"));
            ip(&format!("-n {name} link set v up"));
        }
        for name in [a, b] {
            // What is sent before the kernel has noticed the other end is dropped.
            let is_up = || ip(&format!("-n {name} link show v")).contains("state UP").then_some(());
            patience::until(Instant::now, UP_MAX, is_up).unwrap();
        }
        Some(Self { ends })
    }

    /// Something that is done or made in the namespace of an end.
    #[allow(dead_code, reason = "each test file uses a part of it")]
    pub fn at<T: Send>(&self, end: usize, make: impl FnOnce() -> T + Send) -> T {
        self.ends[end].run(make).unwrap()
    }
}

/// Runs `ip` with these words.
pub fn ip(words: &str) -> String {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}
