//! Sends numbers to `receiver` from a loop of its own: no call waits but `turn`.
//!
//! `cargo run --example own_loop [URI]`. Beside descriptors of your own: watch `Endpoint::as_fd`
//! together with them, and turn with `Deadline::PAST` when it is readable.

use dacapo::{Command, Deadline, Endpoint, Event, Outcome};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uri = std::env::args().nth(1);
    let mut endpoint = Endpoint::new()?;
    let session = endpoint.connect(&uri.unwrap_or("dacapo://127.0.0.1:19981/notes".to_owned()))?;
    let mut text = session.sender("text")?;
    endpoint.command(Command::Activate(session.id()))?;
    let account = 'run: loop {
        endpoint.turn(Deadline::NEVER)?;
        while let Some((_, event)) = endpoint.poll_event() {
            let Event::Done { outcome, .. } = event else { continue };
            if let Outcome::Closed(account) = outcome? {
                break 'run account;
            }
            for number in 0..30 {
                // These fit the queue. When one does not, `as_fd` shows that there is room again.
                assert!(text.try_send(number.to_string().as_bytes())?);
            }
            endpoint.command(Command::Close(session.id()))?;
        }
    };
    println!("{account}");
    Ok(())
}
