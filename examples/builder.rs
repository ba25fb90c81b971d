//! The same as `receiver`, its session told by calls: no text in between.
//!
//! `cargo run --example builder [ADDRESS]`, then `cargo run --example sender [URI]` elsewhere.

use dacapo::{Fields, FlowBuilder, Role, SessionBuilder};

pub(crate) fn main() -> Result<(), dacapo::Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:19981".to_owned());
    let text = FlowBuilder::new("text", Role::Participant, Fields::new().with("raw", true))
        .digest(true)
        .attribute("loss", 0)
        .attribute("order", "ordered")
        .attribute("integrity", "checked");
    let creator = dacapo::create(SessionBuilder::new("notes").flow(text))?;
    creator.listen(&address)?;
    eprintln!("{}", creator.uri().map_or_else(String::new, |uri| uri.to_string()));
    let session = creator.accept()?;
    let mut text = session.receiver("text")?;
    while text.recv_with(|unit| println!("{}", String::from_utf8_lossy(&unit)))?.is_some() {}
    session.close()?;
    Ok(())
}
