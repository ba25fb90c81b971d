//! Saves the pictures and the sound of a session in a folder: media into a file.
//!
//! `cargo run --example save [URI] [FOLDER]`, beside `dacapo serve conf/testcard.toml`.

use dacapo::{Endpoint, Join};

pub(crate) fn main() -> Result<(), dacapo::Error> {
    let mut args = std::env::args().skip(1);
    let uri = args.next().unwrap_or_else(|| "dacapo://127.0.0.1/testcard".to_owned());
    let folder = args.next().unwrap_or_else(|| ".".to_owned());
    let session = Endpoint::new()?.join(&uri, &Join::new().save(folder))?;
    session.activate()?;
    session.wait_end()?;
    for flow in session.media() {
        println!("{}: {} frames, saved {:?}", flow.flow, flow.media_frames, flow.saved);
    }
    println!("{}", session.close()?);
    Ok(())
}
