//! Sessions over addresses of one link, which are none without their interface: between two network
//! namespaces with a cable. Without the right to make them a test says so and ends.

use crate::reactors::{ALWAYS, NEVER, endpoint, use_it};
use crate::veth::Cable;
use crate::world::{TWO_WAY, watched};
use dacapo::Creator;
use std::sync::mpsc;

/// The far end, as it is called at either: the ends of the cable are named alike.
const FAR: &str = "fe80::2%v";

const JOINERS: usize = 100;

/// Sends back what comes to as many as join.
fn echo(creator: &Creator) {
    std::thread::scope(|scope| {
        for _ in 0..JOINERS {
            let session = creator.accept().unwrap();
            scope.spawn(move || {
                while let Some(unit) = session.receiver("back").unwrap().recv().unwrap() {
                    session.sender("there").unwrap().send(&unit).unwrap();
                }
                session.sender("there").unwrap().finish().unwrap();
            });
        }
    });
}

/// Joins, and has something sent back; the port where that was.
fn join(uri: &str) -> u16 {
    let session = endpoint(NEVER).connect(uri).unwrap();
    use_it(&session);
    let port = session.remote().port().unwrap();
    session.close().unwrap();
    port
}

#[test]
fn a_hundred_who_join_over_one_link_are_served_by_two_reactors() {
    let Some(cable) = Cable::of_net(77) else { return };
    watched(move || {
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let (cable, far) = (&cable, move || {
                let creator = endpoint(ALWAYS).create(TWO_WAY).unwrap();
                creator.listen(&format!("[{FAR}]:0")).unwrap();
                tell.send(creator.uri().unwrap()).unwrap();
                echo(&creator);
                assert_eq!(creator.endpoint().counters().reactors, 2);
            });
            scope.spawn(move || cable.at(1, far));
            let mut uri = told.recv().unwrap();
            assert!(uri.host.starts_with("fe80::2%"), "{uri}");
            uri.host = FAR.to_owned();
            let at =
                cable.at(0, || (0..JOINERS).map(|_| join(&uri.to_string())).collect::<Vec<_>>());
            let elsewhere = at.iter().filter(|port| **port != uri.port).count();
            assert!(elsewhere > 0, "all {JOINERS} were served by the first reactor");
        });
    });
}
