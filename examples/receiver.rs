//! Prints the lines that `sender` sends: a whole program that serves a session.
//!
//! `cargo run --example receiver [ADDRESS]`, then `cargo run --example sender [URI]` elsewhere.

const SESSION: &str = r#"
[session]
name = "notes"

[[flow]]
name = "text"
from = "participant"
source = { raw = true }
digest = true
attributes = { loss = "0", order = "ordered", integrity = "checked" }
"#;

pub(crate) fn main() -> Result<(), dacapo::Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:19981".to_owned());
    let creator = dacapo::create(SESSION)?;
    creator.listen(&address)?;
    eprintln!("{}", creator.uri().map_or_else(String::new, |uri| uri.to_string()));
    let session = creator.accept()?;
    let mut text = session.receiver("text")?;
    while text.recv_with(|unit| println!("{}", String::from_utf8_lossy(&unit)))?.is_some() {}
    session.close()?;
    Ok(())
}
