//! What the sessions carry: one flow to each participant, whose source has nothing to send.

use crate::exit::{Exit, Failure};
use dacapo::Plan;
use dacapo::Time;
use dacapo::offer::FlowOffer;
use dacapo::plan::Assumptions;
use dacapo::port::{
    JoinRequest, Port, SessionProvider, SessionSpec, Sink, Source, SourcePoll, Taken, UnitView,
    UnitWriter,
};

/// The name of the session.
pub const NAME: &str = "bench-scale";

/// The session as it is served.
pub fn spec() -> Result<SessionSpec, Failure> {
    let text = format!(
        "[session]\nname = \"{NAME}\"\n[[flow]]\nname = \"idle\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\nunit_max = \"1 KiB\"\ntransport = \"udp\"\n\
         graph = [\"segment\", \"sequence\"]\n"
    );
    let assumptions = Assumptions { on_loopback: true, ..Assumptions::default() };
    let plan = Plan::parse(&text, "bench-scale", &assumptions);
    let plan =
        plan.map_err(|errors| Failure::new(Exit::Invalid, "bench scale: its session", errors))?;
    Ok(SessionSpec { participants_max: usize::MAX, ..plan.spec() })
}

/// A source that has nothing, a sink that takes everything, and who opens the source.
pub struct Idle;

impl Source for Idle {
    fn poll_unit(&mut self, _: Time, _: &mut UnitWriter<'_>) -> SourcePoll {
        SourcePoll::Idle
    }
}

impl Sink for Idle {
    fn handle_unit(&mut self, _: Time, _: &UnitView<'_>) -> Taken {
        Taken::Delivered
    }
}

impl SessionProvider for Idle {
    fn open(&mut self, _: &FlowOffer, _: &JoinRequest) -> Result<Port, String> {
        Ok(Port::Source(Box::new(Self)))
    }
}
