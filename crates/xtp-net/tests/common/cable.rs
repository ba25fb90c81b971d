//! Two namespaces with a cable between them: 10.82.0.1 and .2, fd82::1 and ::2, interface `v`.

use super::gate;
pub use super::veth::Cable;
use dacapo_xtp_net::{
    CaptureWriter, Connectionless, Ethernet, InternetConfig, Ip, LinkType, Sniffer, Udp,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const LUA: &str =
    concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../xtp-net/tests/common/xtp.lua");
/// What has tshark see XTP in UDP and Ethernet.
pub const SCRIPT: [&str; 2] = ["-X", LUA];

/// What carries XTP over a cable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Over {
    Udp4,
    Udp6,
    Ip4,
    Ip6,
    Ethernet,
}

impl Over {
    pub const ALL: [Self; 5] = [Self::Udp4, Self::Udp6, Self::Ip4, Self::Ip6, Self::Ethernet];

    /// The address of a group.
    pub fn group(self) -> SocketAddr {
        let text = match self {
            Self::Udp4 => "239.82.0.1:4040",
            Self::Udp6 => "[ff15::82]:4040",
            Self::Ip4 => "239.82.0.1:0",
            Self::Ip6 => "[ff15::82]:0",
            Self::Ethernet => "[ff02::82]:0",
        };
        text.parse().unwrap()
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Cable {
    /// `None`, and a word, where there can be none.
    pub fn new() -> Option<Self> {
        Self::of_net(82)
    }

    /// The network of an end.
    pub fn network(&self, end: usize, over: Over) -> Box<dyn Connectionless> {
        let four = ["10.82.0.1:4040", "10.82.0.2:4040"][end];
        let six = ["[fd82::1]:4040", "[fd82::2]:4040"][end];
        let config = |at: &str| InternetConfig::new(at.parse().unwrap());
        self.at(end, || -> Box<dyn Connectionless> {
            match over {
                Over::Udp4 => Box::new(Udp::bind(&config(four)).unwrap()),
                Over::Udp6 => Box::new(Udp::bind(&config(six)).unwrap()),
                Over::Ip4 => Box::new(Ip::bind(&config(four)).unwrap()),
                Over::Ip6 => Box::new(Ip::bind(&config(six)).unwrap()),
                Over::Ethernet => Box::new(Ethernet::open("v", None).unwrap()),
            }
        })
    }

    /// Sees what the cable carries, from now on.
    pub fn tap(&self) -> Tap {
        self.tap_on("v", 4_040)
    }

    /// The same, of an interface in the namespace of the first end, and of a port of UDP.
    pub fn tap_on(&self, interface: &str, port: u16) -> Tap {
        Tap(self.at(0, || Sniffer::open(interface, port).unwrap()))
    }
}

/// What hears a cable.
pub struct Tap(Sniffer);

impl Tap {
    /// Everything that it has heard, in a file.
    pub fn write(&mut self, path: &Path) -> u64 {
        let file = std::fs::File::create(path).unwrap();
        let mut writer = CaptureWriter::new(file, LinkType::Ethernet).unwrap();
        let (mut count, mut at_ns) = (0, 0);
        while let Some(seen) = self
            .0
            .next(|packet| {
                at_ns += 1_000;
                writer.packet(at_ns, packet)
            })
            .unwrap()
        {
            count += seen as u64;
        }
        count
    }

    /// Everything that was sent was heard, and tshark, where there is one, reads all of it.
    pub fn judge(&mut self, over: Over, sent: u64) {
        let path = capture_path(&format!("{over:?}"));
        let count = self.write(&path);
        assert_eq!(self.0.take_drops().unwrap(), 0);
        assert_eq!(count, sent, "{over:?}: not all that was sent was heard");
        if gate::has_tshark() {
            assert_eq!(gate::judge_file(&path, &SCRIPT) as u64, count, "{over:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}

/// Where a capture is written; no two have one name.
pub fn capture_path(name: &str) -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("dacapo-xtp-net-{}-{number}-{name}.pcapng", std::process::id());
    std::env::temp_dir().join(name)
}
