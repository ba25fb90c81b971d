//! Sends numbers to `receiver` in a task of tokio: nothing is waited for but by `await`.
//!
//! `cargo run --features dacapo/async --example futures [URI]`

use dacapo::{AsyncEndpoint, Command, Endpoint, Event, Outcome};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = std::env::args().nth(1);
    let endpoint = Endpoint::new()?;
    let session = endpoint.connect(&uri.unwrap_or("dacapo://127.0.0.1:19981/notes".to_owned()))?;
    let (mut text, mut endpoint) = (session.sender("text")?, AsyncEndpoint::new(endpoint)?);
    endpoint.command(Command::Activate(session.id()))?;
    let account = 'run: loop {
        endpoint.ready().await?;
        while let Some((_, event)) = endpoint.poll_event() {
            let Event::Done { outcome, .. } = event else { continue };
            if let Outcome::Closed(account) = outcome? {
                break 'run account;
            }
            for number in 0..30 {
                assert!(text.try_send(number.to_string().as_bytes())?);
            }
            endpoint.command(Command::Close(session.id()))?;
        }
    };
    println!("{account}");
    Ok(())
}
