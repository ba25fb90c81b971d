//! Flows over QUIC: all of them, in order, or some of them, and to nobody but the peer.

use crate::any_stream::{accounts_for_all, loses_nothing, over};
use crate::world::{active_pair, watched};

#[test]
fn a_flow_over_quic_loses_nothing_and_keeps_the_order() {
    loses_nothing(over("quic"));
}

#[test]
fn a_flow_of_quic_datagrams_accounts_for_every_unit() {
    accounts_for_all(over("quic-datagram"), "quic-datagram");
}

#[test]
fn a_request_for_secrecy_or_proof_of_the_sender_is_met_by_quic() {
    watched(|| {
        for asked in ["confidentiality = \"required\"", "authenticity = \"source\""] {
            let flow = "\n[[flow]]\nname = \"data\"\nfrom = \"creator\"\nsource = { raw = true }\n";
            let file = format!("[session]\nname = \"safe\"{flow}attributes = {{ {asked} }}\n");
            let (creator, participant) = active_pair(&file);
            assert!(participant.flows()[0].transport.starts_with("quic"), "{asked}");
            creator.sender("data").unwrap().send(b"between us").unwrap();
            assert_eq!(
                participant.receiver("data").unwrap().recv().unwrap().as_deref(),
                Some(&b"between us"[..])
            );
            creator.close().unwrap();
        }
    });
}
