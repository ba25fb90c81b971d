//! Two namespaces with a cable between them: 10.82.0.1 and .2, fd82::1 and ::2, interface `v`.

use super::LONG;
use dacapo_base::patience;
use dacapo_sys::netns::Namespace;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Cable {
    pub ends: [Namespace; 2],
}

impl Cable {
    /// `None`, and a word, where there can be none.
    pub fn new() -> Option<Self> {
        if dacapo_sys::process::uid() != 0 || Command::new("ip").arg("-V").output().is_err() {
            println!("skipped: a cable between namespaces: this is not root, or has no `ip`");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("dacapo-xtp-{}-{number}-{end}", std::process::id());
        let ends = [1, 2].map(|end| Namespace::create(&name(end)).unwrap());
        let [a, b] = ends.each_ref().map(Namespace::name);
        ip(&format!("-n {a} link add v type veth peer name v netns {b}"));
        for (end, name) in [(1, a), (2, b)] {
            ip(&format!("-n {name} address add 10.82.0.{end}/24 dev v"));
            ip(&format!("-n {name} address add fd82::{end}/64 dev v nodad"));
            ip(&format!("-n {name} link set v up"));
        }
        for name in [a, b] {
            // What is sent before the kernel has noticed the other end is dropped.
            let is_up = || ip(&format!("-n {name} link show v")).contains("state UP").then_some(());
            patience::until(Instant::now, LONG, is_up).unwrap();
        }
        Some(Self { ends })
    }

    /// Something that is made in the namespace of an end.
    pub fn at<T: Send>(&self, end: usize, make: impl FnOnce() -> T + Send) -> T {
        self.ends[end].run(make).unwrap()
    }
}

pub fn ip(words: &str) -> String {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}
