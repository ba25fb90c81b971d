//! Stops and plays a medium at the other end, and prints what happens: media commands and events.
//!
//! `cargo run --example remote [URI]`, beside `dacapo serve conf/testcard.toml`.

use dacapo::{Endpoint, Event, Join, MediaCommand};

pub(crate) fn main() -> Result<(), dacapo::Error> {
    let uri = std::env::args().nth(1);
    let uri = uri.unwrap_or_else(|| "dacapo://127.0.0.1/testcard".to_owned());
    let session = Endpoint::new()?.join(&uri, &Join::new().count())?;
    let mut events = session.events();
    session.activate()?;
    for command in [MediaCommand::Stop, MediaCommand::Rwd, MediaCommand::Ff, MediaCommand::Play] {
        println!("{command}: {}", session.command(command)?);
    }
    while let Some(event) = events.wait()? {
        println!("{event:?}");
        if matches!(event, Event::FlowEnded { .. }) {
            break;
        }
    }
    println!("{}", session.close()?);
    Ok(())
}
