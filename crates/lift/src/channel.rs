//! What a core says of a flow to the transport that carries it: [`StreamParams`], [`Membership`].

use std::net::{IpAddr, SocketAddr};

/// What is known of the flow that a stream is for. Whatever is not known is left as it is in the
/// default. Each end says it to its own transport; one that has no use for it passes it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamParams {
    /// The most bits per second that the flow sends; 0 when it has no bound.
    pub bound_bps: u64,
    /// Modules above find whatever is altered on the way.
    pub is_checked: bool,
    /// The longest datagram of UDP in bytes that is known to get to the other end.
    pub path_len: Option<u16>,
    /// Which flows go first: 0 to 7, 7 before all others; 0 when nothing was asked.
    pub priority: u8,
}

/// Whose datagrams to which group are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Membership {
    /// The group, and the port that its datagrams go to.
    pub group: SocketAddr,
    /// Where they come from; what anybody else sends to the group is not handed up.
    pub source: SocketAddr,
    /// The network is asked to bring those of the source and no other's. Of a group that
    /// [`is_source_specific`] nothing else can be asked.
    pub source_specific: bool,
}

/// Whether a group exists for each source by itself: 232.0.0.0/8 and ff3x::/32 (RFC 4607,
/// section 1).
#[must_use]
pub fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => {
            let [first, second, ..] = group.segments();
            first & 0xFFF0 == 0xFF30 && second == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_source_are_known_by_their_addresses() {
        let is = |ip: &str| is_source_specific(ip.parse().unwrap());
        assert!(is("232.1.2.3") && is("ff3e::1") && is("ff35::abcd:1"));
        assert!(
            !is("239.1.2.3") && !is("ff15::1") && !is("ff3e:40:2001:db8::1") && !is("10.0.0.1")
        );
    }
}
