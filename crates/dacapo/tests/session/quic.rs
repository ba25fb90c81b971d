//! Flows over QUIC: all of them, in order, or some of them, and to nobody but the peer.

use crate::world::{TWO_WAY, active_pair, unit, watched};

const UNITS: usize = 3_000;

/// The session of both ways, over another transport and without its bound.
pub(crate) fn over(transport: &str) -> String {
    let file = TWO_WAY.replace("\"udp\"", &format!("\"{transport}\""));
    file.replace("bound = \"200 Mbit/s\"\n", "")
}

#[test]
fn a_flow_over_quic_loses_nothing_and_keeps_the_order() {
    watched(|| {
        let (creator, participant) = active_pair(&over("quic"));
        let reader = std::thread::spawn(move || {
            for number in 0..UNITS {
                assert_eq!(participant.recv("there").unwrap(), Some(unit(number)), "{number}");
                participant.send("back", &unit(number)).unwrap();
            }
            assert_eq!(participant.recv("there").unwrap(), None);
            participant.finish("back").unwrap();
            participant.close().unwrap()
        });
        let writer = std::thread::spawn(move || {
            for number in 0..UNITS {
                creator.send("there", &unit(number)).unwrap();
                assert_eq!(creator.recv("back").unwrap(), Some(unit(number)), "{number}");
            }
            creator.finish("there").unwrap();
            creator.close().unwrap()
        });
        for account in [writer.join().unwrap(), reader.join().unwrap()] {
            assert!(account.is_complete(), "{account}");
            for flow in &account.flows {
                assert_eq!(flow.ledger.delivered, UNITS as u64, "{account}");
                assert_eq!(flow.same_bytes, Some(true), "{flow}");
            }
        }
    });
}

/// As fast as the application writes: what is lost is said, and the sum closes.
#[test]
fn a_flow_of_quic_datagrams_accounts_for_every_unit() {
    watched(|| {
        let (creator, participant) = active_pair(&over("quic-datagram"));
        let reader = std::thread::spawn(move || {
            let mut came = 0_u64;
            while participant.recv("there").unwrap().is_some() {
                came += 1;
            }
            (came, participant.close().unwrap())
        });
        for number in 0..UNITS {
            creator.send("there", &unit(number)).unwrap();
        }
        creator.finish("there").unwrap();
        let (came, there) = reader.join().unwrap();
        let here = creator.close().unwrap();
        assert_eq!(here.flows[0].ledger, there.flows[0].ledger, "{here}\n{there}");
        let ledger = &here.flows[0].ledger;
        assert_eq!((ledger.sent, ledger.delivered), (UNITS as u64, came), "{here}");
        assert!(ledger.closes() && came > 0, "{here}");
    });
}

#[test]
fn a_request_for_secrecy_or_proof_of_the_sender_is_met_by_quic() {
    watched(|| {
        for asked in ["confidentiality = \"required\"", "authenticity = \"source\""] {
            let flow = "\n[[flow]]\nname = \"data\"\nfrom = \"creator\"\nsource = { raw = true }\n";
            let file = format!("[session]\nname = \"safe\"{flow}attributes = {{ {asked} }}\n");
            let (creator, participant) = active_pair(&file);
            assert!(participant.flows()[0].transport.starts_with("quic"), "{asked}");
            creator.send("data", b"between us").unwrap();
            assert_eq!(participant.recv("data").unwrap().as_deref(), Some(&b"between us"[..]));
            creator.close().unwrap();
        }
    });
}
