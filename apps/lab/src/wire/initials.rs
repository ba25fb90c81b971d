//! The first datagrams of QUIC clients, as anybody can make them.

use dacapo_security::{Identity, client_crypto, endpoint_keys};
use quinn_proto::{ClientConfig, Endpoint, EndpointConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// As many first datagrams to `to`, no two alike.
///
/// # Errors
/// `quinn-proto` finds that `to` is no address to connect to.
pub fn initials(who: &Identity, to: SocketAddr, count: usize) -> Result<Vec<Vec<u8>>, String> {
    let keys = endpoint_keys(&[7; 64]);
    let mut config = EndpointConfig::new(keys.reset);
    // Greased, the first byte would not be QUIC's here.
    config.grease_quic_bit(false);
    let mut endpoint = Endpoint::new(Arc::new(config), None, false, None);
    let client = ClientConfig::new(client_crypto(who));
    let now = Instant::now();
    let first = |_| {
        let begun = endpoint.connect(now, client.clone(), to, "dacapo");
        let (_, mut connection) = begun.map_err(|error| format!("{to}: {error}"))?;
        let mut bytes = Vec::new();
        let transmit = connection.poll_transmit(now, 1, &mut bytes);
        bytes.truncate(transmit.map_or(0, |transmit| transmit.size));
        Ok(bytes)
    };
    (0..count).map(first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_wire::data::{Belongs, classify};
    use std::collections::BTreeSet;

    #[test]
    fn they_are_long_enough_to_be_taken_and_all_different() {
        let who = Identity::generate().expect("a key");
        let all = initials(&who, SocketAddr::from(([127, 0, 0, 1], 9)), 20).expect("an address");
        assert!(all.iter().all(|it| it.len() >= 1_200 && classify(it) == Belongs::Quic));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 20);
    }
}
