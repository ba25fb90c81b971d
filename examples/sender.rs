//! Sends its lines to `receiver`: a whole program that joins a session.
//!
//! `cargo run --example sender [URI]`, and type.

pub(crate) fn main() -> Result<(), dacapo::Error> {
    let uri = std::env::args().nth(1);
    let uri = uri.unwrap_or_else(|| "dacapo://127.0.0.1:19981/notes".to_owned());
    let session = dacapo::connect(&uri)?;
    session.activate()?;
    let mut text = session.sender("text")?;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        text.send(line.as_bytes())?;
    }
    text.finish()?;
    println!("{}", session.close()?);
    Ok(())
}
