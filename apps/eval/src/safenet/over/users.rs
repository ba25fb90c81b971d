//! The level of users: messages of the SAFENET service, by calls that wait.
//!
//! ```text
//!   near   send_message(route to ECHO)  -->  far   get_message, send_message(answer)
//!          get_message              <-------------------'
//!          send_message(route to DISCARD) -> far   get_message, counts
//! ```

use super::far::{Far, SLICE, Tally};
use super::near::{Near, PATIENCE, Talk, Trouble};
use super::place::{Network, Way};
use dacapo::safenet_net::{CallError, MessageHost};
use dacapo_safenet::measure::Cast;
use dacapo_safenet::{Config, Ending, Part, Route};
use std::net::SocketAddr;
use std::time::Duration;

/// The port of XTP where messages are answered, at both ends; the numbers are those of RFC 862 and
/// RFC 863.
pub const ECHO: u16 = 7;
/// The port where they are taken and counted.
pub const DISCARD: u16 = 9;

/// How the near end talks.
pub struct Users {
    host: MessageHost,
    echo: Route,
    discard: Route,
}

impl Users {
    /// A near end and as many far ends as the cast has.
    pub fn near(network: &Network, cast: Cast) -> Result<Near, String> {
        let (count, is_group) = match cast {
            Cast::Unicast => (1, false),
            Cast::Multicast { receivers } => (receivers, true),
        };
        let mut host = open(network, 0, 0, is_group.then_some(Way::Back))?;
        let port = if is_group { host.local().port() } else { 0 };
        host.listen(ECHO).map_err(|error| error.to_string())?;
        let back = is_group.then(|| Route::group(network.group(Way::Back, port), ECHO));
        let (mut fars, mut to) = (Vec::new(), network.group(Way::There, port));
        for end in 1..=count {
            let mut far = FarUser {
                host: open(network, end, port, is_group.then_some(Way::There))?,
                // Of a group the first answers.
                answers: end == 1,
                back,
            };
            if !is_group {
                to = far.host.local();
            }
            for port in [ECHO, DISCARD] {
                far.host.listen(port).map_err(|error| error.to_string())?;
            }
            fars.push(Far::start(move |tally| far.work(tally).map_err(|error| error.to_string()))?);
        }
        let route = if is_group { Route::group } else { Route::host };
        let talk = Self { host, echo: route(to, ECHO), discard: route(to, DISCARD) };
        // Groups here are without repair.
        Ok(Near::new(talk, fars, !is_group))
    }

    fn try_send(&mut self, route: Route, len: usize) -> Result<(), CallError> {
        let until = self.host.after(PATIENCE);
        self.host.send_message(route, vec![0; len], until)?;
        while self.host.poll_event().is_some() {}
        Ok(())
    }

    fn try_round_trip(&mut self, len: usize) -> Result<(), CallError> {
        self.try_send(self.echo, len)?;
        let until = self.host.after(PATIENCE);
        while self.host.get_message(ECHO, until)?.ending != Ending::Last {}
        Ok(())
    }
}

impl Talk for Users {
    fn round_trip(&mut self, len: usize) -> Result<(), Trouble> {
        self.try_round_trip(len).map_err(trouble)
    }

    fn send(&mut self, len: usize) -> Result<(), Trouble> {
        self.try_send(self.discard, len).map_err(trouble)
    }

    fn turn(&mut self, most: Duration) -> Result<(), Trouble> {
        while self.host.poll_event().is_some() {}
        self.host.turn(most).map_err(|error| Trouble::Broken(error.to_string()))
    }
}

fn trouble(error: CallError) -> Trouble {
    match error {
        CallError::TimedOut { .. } => Trouble::Lost(error.to_string()),
        error => Trouble::Broken(error.to_string()),
    }
}

fn open(
    network: &Network,
    end: usize,
    port: u16,
    hears: Option<Way>,
) -> Result<MessageHost, String> {
    let host = network.host(end, port, hears)?;
    let source = SocketAddr::new(host.local().ip(), ECHO);
    let config = Config { without_check: network.without_check, ..Config::new(source) };
    Ok(MessageHost::new(host, config))
}

/// A far end.
struct FarUser {
    host: MessageHost,
    answers: bool,
    /// Where answers go, when not to who has asked.
    back: Option<Route>,
}

impl FarUser {
    fn work(&mut self, tally: &Tally) -> Result<(), CallError> {
        self.host.turn(SLICE)?;
        while let Some(part) = self.host.take_message(DISCARD) {
            if part.ending == Ending::Last {
                tally.count(part.number);
            }
        }
        while let Some(part) = self.host.take_message(ECHO) {
            if part.ending == Ending::Last && self.answers {
                self.answer(&part)?;
            }
        }
        while self.host.poll_event().is_some() {}
        Ok(())
    }

    fn answer(&mut self, part: &Part) -> Result<(), CallError> {
        let Some(route) = self.back.or_else(|| part.answer()) else { return Ok(()) };
        let until = self.host.after(PATIENCE);
        let data = vec![0; usize::try_from(part.len).unwrap_or(0)];
        self.host.send_message(route, data, until)?;
        Ok(())
    }
}
