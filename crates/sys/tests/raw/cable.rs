//! Two namespaces with a cable `v` between them, 10.81.0.1 and .2, fd81::1 and ::2.

use crate::{ETHERTYPE, LONG, PROTOCOL};
use dacapo_base::patience;
use dacapo_sys::netns::Namespace;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::{interface, packet, process, raw};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Gone with everything in it when it is dropped.
pub struct Cable {
    pub ends: [Namespace; 2],
}

impl Cable {
    pub fn new() -> Option<Self> {
        if process::uid() != 0 || Command::new("ip").arg("-V").output().is_err() {
            println!("skipped: a cable between namespaces: this is not root, or has no `ip`");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("dacapo-raw-{}-{number}-{end}", process_id());
        let ends = [1, 2].map(|end| Namespace::create(&name(end)).unwrap());
        let [a, b] = ends.each_ref().map(Namespace::name);
        ip(&format!("-n {a} link add v type veth peer name v netns {b}"));
        for (end, name) in [(1, a), (2, b)] {
            ip(&format!("-n {name} address add 10.81.0.{end}/24 dev v"));
            ip(&format!("-n {name} address add fd81::{end}/64 dev v nodad"));
            ip(&format!("-n {name} link set v up"));
        }
        for name in [a, b] {
            // What is sent before the kernel has noticed the other end is dropped.
            let is_up = || ip(&format!("-n {name} link show v")).contains("state UP").then_some(());
            patience::until(Instant::now, LONG, is_up).unwrap();
        }
        Some(Self { ends })
    }

    pub fn raw(&self, end: usize, local: &str) -> raw::Socket {
        let local = SocketAddr::new(local.parse().unwrap(), 0);
        self.ends[end].run(|| raw::Socket::bind(local, PROTOCOL)).unwrap().unwrap()
    }

    /// A socket for frames without a ring, and the address of its interface.
    pub fn ethernet(&self, end: usize) -> (packet::Socket, packet::Address) {
        let open = || {
            let socket = packet::Socket::open(interface::index("v").unwrap(), ETHERTYPE);
            (socket.unwrap(), interface::ethernet_address("v").unwrap().unwrap())
        };
        self.ends[end].run(open).unwrap()
    }
}

fn process_id() -> u32 {
    std::process::id()
}

pub fn ip(words: &str) -> String {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

pub fn wait(fd: BorrowedFd<'_>) {
    let mut poller = Poller::new().unwrap();
    poller.add(fd, 0, Interest::Read).unwrap();
    let mut events = Vec::new();
    poller.wait(Some(LONG), &mut events).unwrap();
    assert!(!events.is_empty(), "nothing came");
}
