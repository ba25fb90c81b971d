//! Sends numbers to `receiver`, and changes the protocol under them twice; none is lost.
//!
//! `cargo run --example change [URI]`

use dacapo::Change;

pub(crate) fn main() -> Result<(), dacapo::Error> {
    let uri = std::env::args().nth(1);
    let session = dacapo::connect(&uri.unwrap_or("dacapo://127.0.0.1:19981/notes".to_owned()))?;
    session.activate()?;
    let mut text = session.sender("text")?;
    for number in 0..30 {
        if let Some(graph) = match number {
            10 => Some("segment ! checksum"),
            20 => Some("segment"),
            _ => None,
        } {
            let epoch = session.change("text", &Change::Graph(graph.to_owned()))?;
            println!("epoch {epoch}: {graph}");
        }
        text.send(number.to_string().as_bytes())?;
    }
    text.finish()?;
    println!("{}", session.close()?);
    Ok(())
}
