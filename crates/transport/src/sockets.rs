//! [`Config`]: how sockets are set that carry datagrams, of whichever transport.

use dacapo_sys::udp;

/// How sockets are set that carry datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Send trains in one call where the kernel can; false forces a call per datagram.
    pub gso: bool,
    /// Receive trains in one call where the kernel can; false forces a call per datagram.
    pub gro: bool,
    /// Bytes of receive buffer to ask for per socket; the kernel may give less.
    pub recv_buffer_bytes: usize,
    /// Bytes of send buffer to ask for per socket; the kernel may give less.
    pub send_buffer_bytes: usize,
    /// The most data lanes and memberships of groups, up to [`crate::DATA_LANES_MAX`].
    pub data_lanes_max: usize,
    /// How groups are reached.
    pub groups: Groups,
}

/// How groups are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The number of the interface by which groups are joined and sent to; `None` takes the one by
    /// which the source is reached, or that has the address that is listened at.
    pub interface: Option<u32>,
    /// How many hops what is sent to a group goes; 1 stays on the link.
    pub hops: u8,
    /// Receivers on this host get what is sent to a group, too.
    pub loops: bool,
}

impl Default for Groups {
    fn default() -> Self {
        Self { interface: None, hops: 1, loops: true }
    }
}

impl Default for Config {
    fn default() -> Self {
        let socket = udp::Config::default();
        Self {
            gso: socket.gso,
            gro: socket.gro,
            recv_buffer_bytes: socket.recv_buffer_bytes,
            send_buffer_bytes: socket.send_buffer_bytes,
            data_lanes_max: crate::DATA_LANES_MAX,
            groups: Groups::default(),
        }
    }
}

impl Config {
    /// For a protocol that reads the congestion marks of what arrives.
    pub(crate) fn socket_with_marks(&self) -> udp::Config {
        udp::Config { marks: true, ..self.socket(false) }
    }

    pub(crate) fn socket(&self, reuse: bool) -> udp::Config {
        udp::Config {
            gso: self.gso,
            gro: self.gro,
            recv_buffer_bytes: self.recv_buffer_bytes,
            send_buffer_bytes: self.send_buffer_bytes,
            reuse,
            marks: false,
        }
    }
}
