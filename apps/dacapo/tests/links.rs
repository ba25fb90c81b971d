//! `dacapo serve`, `ls` and `play` over addresses of one link, which are none without their
//! interface: between two network namespaces with a cable. Without the right to make them a test
//! says so and ends.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::veth::Cable;
use common::{LONG, Place, movie_session};

/// The far end, as it is called at either: the ends of the cable are named alike.
const FAR: &str = "fe80::2%v";

#[test]
fn the_command_serves_lists_and_plays_over_one_link() {
    let Some(cable) = Cable::of_net(79) else { return };
    let place = Place::new();
    place.movie("movie.avi", "1");
    place.write("a.toml", movie_session("movie", "movie.avi"));
    let serve = ["serve", "a.toml", "--listen", FAR];
    let server = cable.at(1, || place.start(&serve));
    server.wait_for_out("identity ", LONG);
    for host in [FAR, "[fe80::2%v]", "[fe80::2%v]:19980"] {
        let ls = cable.at(0, || place.run(&["ls", host])).expect(0);
        assert!(ls.out.contains("/movie"), "{}", ls.all());
    }
    let play = ["play", "dacapo://[fe80::2%v]/movie", "--save", "out"];
    cable.at(0, || place.run(&play)).expect(0);
    let wrong = cable.at(0, || place.run(&["ls", "fe80::2%none"])).expect(3);
    wrong.says(&["no interface \"none\"", "`ip link`"]);
    let wrong = cable.at(0, || place.run(&["ls", "fe80::2"])).expect(3);
    wrong.says(&["fe80::2 is of one link", "fe80::2%eth0"]);
    server.signal("TERM");
    server.wait(LONG).expect(143);
}
