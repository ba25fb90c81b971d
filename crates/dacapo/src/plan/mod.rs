//! [`Plan`]: a session file with everything that it names found, and a protocol chosen for each
//! flow.
//!
//! ```text
//!   movie.toml --qos--> SessionFile --+-- access: files opened, formats, lengths
//!                                     +-- graph: what is fixed by hand
//!                                     +-- choice: attributes + path -> graph
//!                                     |   all problems at once, those of the file too
//!                                     v
//!                                    Plan --> SessionSpec, SessionProvider --> Core::publish
//!                                                  who joins: chosen anew, tightened
//! ```
//!
//! Invariants: what a plan says of a file was true when it was loaded; a publisher opens it anew
//! for every participant, so one that has vanished since is refused to that participant and nobody
//! else. Every problem names its file and line.

mod access;
mod bytes;
mod choice;
mod describe;
mod explain;
mod graph;
mod line;
mod load;
mod measured;
mod need;
mod publisher;

pub use bytes::{BytesFlow, OnRaw, OpenBytes, RawEnd};
pub use choice::attribute_forms;
pub use describe::playout;
pub use explain::FlowExplanation;
pub use line::graph_of;

pub use crate::access::found::AssumedMedium;
use crate::access::live::LiveClock;
use crate::access::timeline::{Extent, Speed};
use crate::access::{Found, Shared};
use choice::{Chosen, Constraints};
use dacapo_base::failpoint;
use dacapo_core::{Error, GIVE_UP_AFTER, SessionProvider, SessionSpec};
use dacapo_lift::{Catalogue, Path as NetworkPath};
use dacapo_media::Format;
use dacapo_qos::configure::{Demand, Reason, Refusal};
use dacapo_qos::{
    AttributeKey, Attributes, Errors, Flawed, FlowSpec, Passes, PathAssumption, Problem, Role,
    SessionFile, Source, Spanned,
};
use dacapo_wire::session::{Direction, FlowOffer};
use need::Need;
use publisher::MediaPublisher;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Participants at a time, when the session file bounds them nowhere.
const PARTICIPANTS_MAX: usize = 64;

/// What a plan is made for, besides its file.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// What is assumed of the network, whatever the file says.
    pub path: Option<PathAssumption>,
    /// Until somebody joins: participants are on this host.
    pub on_loopback: bool,
    /// The transports that this host offers, by number; none is all.
    pub transports: Option<Vec<u16>>,
    /// What flows are composed of; none are the parts of this build.
    pub catalogue: Option<Arc<crate::Catalogue>>,
    /// A media file that is missing is taken for a usual one instead of being a mistake: enough to
    /// explain a session, and not to serve it.
    pub assumes_missing_media: bool,
    /// How fast media are sent: what the flows may send follows it, where the session file does not
    /// bound them itself.
    pub speed: Speed,
}

impl Assumptions {
    /// For participants on this host.
    #[must_use]
    pub fn loopback() -> Self {
        Self { on_loopback: true, ..Self::default() }
    }

    /// The modules and transports that exist and are offered here.
    fn catalogue(&self) -> Catalogue {
        let all = match &self.catalogue {
            Some(parts) => parts.all_specs(),
            None => crate::catalogue(),
        };
        all.only(|_| true, |id| self.has_transport(id))
    }

    /// All parts that exist here.
    fn parts(&self) -> Arc<crate::Catalogue> {
        self.catalogue.clone().unwrap_or_default()
    }

    fn has_transport(&self, id: u16) -> bool {
        self.transports.as_ref().is_none_or(|transports| transports.contains(&id))
    }

    fn path(&self, on_loopback: bool) -> NetworkPath {
        self.path.as_ref().map_or_else(|| need::usual_path(on_loopback), PathAssumption::path)
    }

    /// With what the file assumes, where nothing else was said.
    fn with_file(&self, session: &SessionFile) -> Self {
        let path = self.path.or(session.path.map(|path| path.value));
        Self { path, ..self.clone() }
    }
}

/// A session file with everything that it names found and a protocol chosen for each flow.
#[derive(Clone, Debug)]
pub struct Plan {
    path: PathBuf,
    name: String,
    title: String,
    participants_max: usize,
    give_up_after: Duration,
    assumptions: Assumptions,
    flows: Vec<Flow>,
    extent: Extent,
}

/// One flow of a plan.
#[derive(Clone, Debug)]
struct Flow {
    need: Need,
    chosen: Chosen,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum PlanErrors {
    /// The session file cannot be read.
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is wrong, or something that it names is: all problems with their lines.
    File(Errors),
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, error } => write!(f, "{}: {error}", path.display()),
            Self::File(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for PlanErrors {}

impl Plan {
    /// Reads a session file, looks at everything that it names, and chooses protocols.
    ///
    /// # Errors
    /// All problems at once, each with file, line and what would be right.
    pub fn load(path: &Path) -> Result<Self, PlanErrors> {
        Self::load_for(path, &Assumptions::default())
    }

    /// The same, under these assumptions.
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn load_for(path: &Path, assumptions: &Assumptions) -> Result<Self, PlanErrors> {
        let read = |error| PlanErrors::Read { path: path.to_owned(), error };
        let file = std::fs::File::open(path).map_err(read)?;
        let mut bytes = Vec::new();
        // One more than allowed, so that a file that is too long is seen to be.
        let len_max = dacapo_qos::MAX_FILE_LEN as u64 + 1;
        file.take(len_max).read_to_end(&mut bytes).map_err(read)?;
        failpoint!("config.read");
        let origin = path.display().to_string();
        let read = SessionFile::parse_bytes_lenient(&bytes, &origin);
        Self::of(path, read, assumptions).map_err(PlanErrors::File)
    }

    /// A plan from the text of a session file. `origin` stands for its path: problems name it, and
    /// media are looked for in its folder, which is the current one where it is a mere name.
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn parse(text: &str, origin: &str, assumptions: &Assumptions) -> Result<Self, Errors> {
        Self::of(Path::new(origin), SessionFile::parse_lenient(text, origin), assumptions)
    }

    /// Of a file with mistakes the rest is looked at too, so that all are told at once.
    fn of(
        path: &Path,
        read: Result<SessionFile, Box<Flawed>>,
        assumptions: &Assumptions,
    ) -> Result<Self, Errors> {
        let session = match read {
            Ok(session) => session,
            Err(flawed) => return Err(with_further(*flawed, assumptions)),
        };
        let assumptions = assumptions.with_file(&session);
        let numbers: Vec<usize> = (0..session.flows.len()).collect();
        let (mut flows, problems) = plan_flows(&session, &numbers, &assumptions, |_| true);
        if let Some(errors) = Errors::new(problems) {
            return Err(errors);
        }
        let session = &session;
        let too_much = overloaded(session, &flows, &Constraints::new(&assumptions));
        if let Some(errors) = Errors::new(too_much.into_iter().collect()) {
            return Err(errors);
        }
        let extent = extent(&flows, passes(session));
        if let Some(errors) = Errors::new(too_short(session, extent).into_iter().collect()) {
            return Err(errors);
        }
        group(&mut flows);
        failpoint!("plan.made");
        let title = session.title.as_ref().map_or(&session.name, |title| title);
        Ok(Self {
            path: path.to_owned(),
            name: session.name.value.clone(),
            title: title.value.clone(),
            participants_max: participants_max(session),
            give_up_after: session
                .give_up_ns
                .as_ref()
                .map_or(GIVE_UP_AFTER, |ns| Duration::from_nanos(ns.value)),
            extent,
            assumptions,
            flows,
        })
    }

    /// The modules and transports that it was made from.
    pub(crate) fn catalogue(&self) -> Catalogue {
        self.assumptions.catalogue()
    }

    /// The name that the session is asked for by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What people see of it.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether all who join it are served together: a flow is sent once for several, or it was said
    /// how many may join.
    #[must_use]
    pub fn is_for_one_reactor(&self) -> bool {
        let catalogue = self.catalogue();
        let is_group = |id| catalogue.transport(id).is_some_and(|it| it.groups);
        let is_shared = |it: &FlowOffer| it.multicast.is_some() || is_group(it.transport);
        self.participants_max != PARTICIPANTS_MAX || self.offers().any(is_shared)
    }

    /// The length of the session and its rate of pictures.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The flows as they are offered.
    pub fn offers(&self) -> impl Iterator<Item = &FlowOffer> {
        self.flows.iter().map(|flow| &flow.chosen.offer)
    }

    /// What was noticed in the media files, each with its file.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.flows.iter().flat_map(|flow| flow.need.found.warnings.iter().cloned()).collect();
        warnings.sort();
        warnings.dedup();
        warnings
    }

    /// What a core is told to serve.
    #[must_use]
    pub fn spec(&self) -> SessionSpec {
        SessionSpec {
            name: self.name.clone(),
            title: self.title.clone(),
            flows: self.offers().cloned().collect(),
            participants_max: self.participants_max,
            give_up_after: self.give_up_after,
        }
    }

    /// The same plan, given up when contact is lost for this long; a program's own option goes
    /// before its file.
    #[must_use]
    pub fn with_give_up(self, give_up_after: Option<Duration>) -> Self {
        Self { give_up_after: give_up_after.unwrap_or(self.give_up_after), ..self }
    }

    /// What opens the media for each participant, `speed` times as fast as the plan was made for;
    /// within 0.001 to 1000 times real time. The flows keep their bounds. Flows of bytes that the
    /// creator would send end at once; those that it receives are counted.
    #[must_use]
    pub fn publisher(&self, speed: f64) -> Box<dyn SessionProvider> {
        self.publisher_of(speed, bytes::nobody())
    }

    /// The same; the application gets its ends of the flows of bytes, anew for each participant.
    #[must_use]
    pub fn publisher_with(&self, speed: f64, on_raw: OnRaw) -> Box<dyn SessionProvider> {
        self.publisher_of(speed, bytes::handed_to(on_raw))
    }

    /// The same; `open_bytes` opens the access modules of flows of bytes.
    #[must_use]
    pub fn publisher_of(&self, speed: f64, open_bytes: OpenBytes) -> Box<dyn SessionProvider> {
        Box::new(MediaPublisher {
            needs: self.flows.iter().map(|flow| flow.need.clone()).collect(),
            planned: self.offers().cloned().collect(),
            extent: self.extent,
            speed: self.assumptions.speed.times(speed),
            assumptions: self.assumptions.clone(),
            live: LiveClock::default(),
            open_bytes,
        })
    }

    /// The session as text for people: flows, formats, protocols.
    #[must_use]
    pub fn describe(&self) -> String {
        describe::describe(self)
    }

    /// Why each flow has the protocol that it has.
    #[must_use]
    pub fn explain(&self) -> Vec<FlowExplanation> {
        self.flows.iter().map(|flow| FlowExplanation::of(&flow.need, &flow.chosen)).collect()
    }

    /// The same for a participant that asks for this besides.
    ///
    /// # Errors
    /// Why a flow could not be had: what contradicts what the file asks, or cannot be met.
    pub fn explain_for(&self, asked: &Attributes) -> Result<Vec<FlowExplanation>, Error> {
        let constraints = Constraints::new(&self.assumptions);
        let needs = || self.flows.iter().map(|flow| &flow.need);
        let chosen = needs().map(|need| choice::tightened(need, asked, &constraints));
        let chosen = chosen.collect::<Result<Vec<_>, _>>()?;
        load::check(needs().zip(chosen.iter().map(|it| it.load_bps)), &constraints.path)?;
        Ok(needs().zip(&chosen).map(|(need, chosen)| FlowExplanation::of(need, chosen)).collect())
    }
}

/// A flow of a session file, for what looks at it.
#[derive(Clone, Copy)]
struct Place<'a> {
    session: &'a SessionFile,
    spec: &'a FlowSpec,
    index: usize,
}

impl Place<'_> {
    /// The dotted path of one of the flow's keys.
    fn key(&self, rest: &str) -> String {
        format!("flow[{}].{rest}", self.index)
    }
}

/// Finds the media of flows and chooses their protocols, where `is_chosen`.
fn plan_flows(
    session: &SessionFile,
    numbers: &[usize],
    assumptions: &Assumptions,
    is_chosen: impl Fn(usize) -> bool,
) -> (Vec<Flow>, Vec<Problem>) {
    let constraints = Constraints::new(assumptions);
    let parts = assumptions.parts();
    let mut finder = access::Finder {
        parts: &parts,
        shared: Shared::default(),
        assumes_missing: assumptions.assumes_missing_media,
    };
    let (mut flows, mut problems) = (Vec::new(), Vec::new());
    for (spec, index) in session.flows.iter().zip(numbers.iter().copied()) {
        let place = Place { session, spec, index };
        let found = finder.find(place, &mut problems);
        let sink = finder.find_sink(place, &mut problems);
        let pins = graph::read(place, &constraints.catalogue, &mut problems);
        if let (Some(found), Some(sink), Some(pins), true) = (found, sink, pins, is_chosen(index)) {
            let need = Need { sink, ..need_of(place, found, pins, assumptions.speed) };
            flows.extend(choose(place, need, &constraints, &mut problems));
        }
    }
    (flows, problems)
}

/// All problems of a file with mistakes: those that reading found, and what is wrong with the rest.
/// No protocol is chosen for a flow that is not what its author meant.
fn with_further(flawed: Flawed, assumptions: &Assumptions) -> Errors {
    let Flawed { errors, rest, flow_numbers } = flawed;
    let Some(session) = rest else { return errors };
    let is_elsewhere = |key: &str, flow: &str| match key.strip_prefix(flow) {
        Some(_) => false,
        None => key.starts_with("flow[") || key.split('.').next() == Some("session"),
    };
    let is_chosen = |index: usize| {
        let flow = format!("flow[{index}]");
        errors.problems().iter().all(|problem| is_elsewhere(&problem.key, &flow))
    };
    let assumptions = assumptions.with_file(&session);
    let (_, further) = plan_flows(&session, &flow_numbers, &assumptions, is_chosen);
    let all = errors.problems().iter().cloned().chain(further).collect();
    Errors::new(all).unwrap_or(errors)
}

fn need_of(
    place: Place<'_>,
    found: Found,
    pins: dacapo_qos::configure::Pins,
    speed: Speed,
) -> Need {
    let spec = place.spec;
    Need {
        index: place.index as u16,
        name: spec.name.value.clone(),
        direction: match spec.from.value {
            Role::Creator => Direction::ToParticipant,
            Role::Participant => Direction::ToCreator,
        },
        found,
        sink: None,
        attributes: spec.attributes.clone(),
        pins,
        multicast: spec.multicast.map(|group| group.value),
        bound_bps: spec.bound.map(|bound| bound.value),
        playout_ns: spec.playout.map(|playout| playout.value),
        playout_min_ns: spec.playout_min.map(|least| least.value),
        unit_max: spec.unit_max.and_then(|len| u32::try_from(len.value).ok()),
        digest: spec.digest.map(|digest| digest.value),
        speed,
    }
}

fn choose(
    place: Place<'_>,
    need: Need,
    constraints: &Constraints,
    problems: &mut Vec<Problem>,
) -> Option<Flow> {
    if let Some(text) = need.too_fast(&need.attributes) {
        problems.push(bounded(place, &need, text));
        return None;
    }
    match choice::choose(&need, need.attributes.clone(), constraints) {
        Ok(chosen) => Some(Flow { need, chosen }),
        Err(refusal) => {
            let mut problem = refused(place, &refusal);
            if let Some(assumed) = &need.found.assumed {
                problem.what += &format!(" ({assumed})");
            }
            problems.push(problem);
            None
        }
    }
}

/// A problem at the line that bounds a flow below what its medium needs.
fn bounded(place: Place<'_>, need: &Need, text: String) -> Problem {
    let by_bound =
        place.spec.bound.filter(|it| Some(it.value) == need.asked_bound_bps(&need.attributes));
    let key = AttributeKey::Throughput;
    let by_attribute = || {
        let at = place.spec.attribute_place(key)?;
        Some((at, place.key(&format!("attributes.{}", key.name()))))
    };
    let by_bound = by_bound.map(|bound| (bound.with(()), place.key("bound")));
    let source = || (place.spec.source.with(()), place.key("source"));
    let (at, key) = by_bound.or_else(by_attribute).unwrap_or_else(source);
    place.session.problem(&at, key, text)
}

/// A refusal at the line of what stands in the way.
fn refused(place: Place<'_>, refusal: &Refusal) -> Problem {
    let (at, key) = match &refusal.reason {
        Reason::Illegal(illegal) => graph::place_of(place, illegal),
        _ => {
            let attributes = refusal.demands().filter(|it| matches!(it, Demand::Attribute(_)));
            let mut demands = attributes.chain(refusal.demands());
            let name = || (place.spec.name.with(()), format!("flow[{}]", place.index));
            let graph = place.spec.graph.as_ref();
            let graph = graph.map(|graph| (graph.with(()), place.key("graph")));
            demands.find_map(|it| line_of(place, it)).or(graph).unwrap_or_else(name)
        }
    };
    let what = match &refusal.reason {
        Reason::Illegal(illegal) => illegal.to_string(),
        _ => refusal.to_string(),
    };
    place.session.problem(&at, key, what)
}

/// Where a demand stands in the file, if it does.
fn line_of(place: Place<'_>, demand: Demand) -> Option<(Spanned<()>, String)> {
    let spec = place.spec;
    Some(match demand {
        Demand::Attribute(key) => match spec.attribute_place(key) {
            Some(at) => (at, place.key(&format!("attributes.{}", key.name()))),
            // What a medium needs is asked by nobody, and the bound may be in its way.
            None if key == AttributeKey::Throughput => (spec.bound?.with(()), place.key("bound")),
            None => return None,
        },
        Demand::Playout => (spec.playout?.with(()), place.key("playout")),
        Demand::UnitSize => (spec.unit_max?.with(()), place.key("unit_max")),
    })
}

fn group(flows: &mut [Flow]) {
    let keys: Vec<_> = flows.iter().map(|flow| flow.need.found.group()).collect();
    let mut offers: Vec<FlowOffer> = flows.iter().map(|flow| flow.chosen.offer.clone()).collect();
    name_groups(&mut offers, &keys);
    for (flow, offer) in flows.iter_mut().zip(offers) {
        flow.chosen.offer = offer;
    }
}

/// Flows out of one file or one test movie are played together.
fn name_groups(offers: &mut [FlowOffer], keys: &[Option<PathBuf>]) {
    let names: Vec<String> = offers.iter().map(|offer| offer.name.clone()).collect();
    for (offer, key) in offers.iter_mut().zip(keys) {
        let Some(key) = key else { continue };
        let mut members = keys.iter().zip(&names).filter(|(other, _)| other.as_ref() == Some(key));
        let first = members.next();
        if let (Some((_, name)), Some(_)) = (first, members.next()) {
            offer.group.clone_from(name);
        }
    }
}

fn participants_max(session: &SessionFile) -> usize {
    let asked = session.flows.iter().filter_map(|flow| {
        flow.attributes.get(AttributeKey::Receivers).and_then(|receivers| receivers.max)
    });
    let least = asked.min().and_then(|least| usize::try_from(least).ok());
    least.unwrap_or(PARTICIPANTS_MAX).max(1)
}

/// A medium that is repeated lasts so long at least, so that a pass is more than its own beginning.
const PASS_NS_MIN: u64 = 100_000_000;

/// What is said of a session that would be repeated too fast.
fn too_short(session: &SessionFile, extent: Extent) -> Option<Problem> {
    if !extent.passes.go_on_after(0) || extent.duration_ns >= PASS_NS_MIN {
        return None;
    }
    let sources = session.flows.iter().enumerate();
    let (index, at) = sources.into_iter().find_map(|(index, flow)| match &flow.source.value {
        Source::File { passes: Some(passes), .. } => Some((index, passes)),
        _ => None,
    })?;
    let what =
        format!("a medium of {} ms is too short to be repeated", extent.duration_ns / 1_000_000);
    let problem = session.problem(at, format!("flow[{index}].source.loop"), what);
    Some(problem.allowed("only for media of 100 ms and more"))
}

/// The flow with which they are more than the path is assumed to carry.
fn overloaded(session: &SessionFile, flows: &[Flow], constraints: &Constraints) -> Option<Problem> {
    let flows = flows.iter().map(|flow| (&flow.need, flow.chosen.load_bps));
    let (need, what) = load::overload(flows, &constraints.path)?;
    let index = usize::from(need.index);
    let spec = session.flow(&need.name)?;
    let problem = session.problem(&spec.name, format!("flow[{index}]"), what);
    Some(problem.allowed("less throughput, or a path that carries more: `[path] rate`"))
}

/// All media of a session are played equally often: the session file says so.
fn passes(session: &SessionFile) -> Passes {
    let is_media = |flow: &&FlowSpec| flow.from.value == Role::Creator && !flow.source.is_bytes();
    let media = session.flows.iter().find(is_media);
    media.map_or(Passes::ONCE, |flow| flow.source.value.passes())
}

fn extent(flows: &[Flow], passes: Passes) -> Extent {
    let nominal = flows.iter().find_map(|flow| match &flow.need.found.format {
        Some(Format::Video(video)) if !video.is_still() => Some((video.rate, video.scale)),
        _ => None,
    });
    let duration_ns = flows.iter().map(|flow| flow.need.found.duration_ns).max().unwrap_or(0);
    Extent { duration_ns, nominal, passes }
}
