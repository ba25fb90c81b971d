//! [`Plan`]: a session file with everything that it names found and checked.
//!
//! ```text
//!   movie.toml --qos--> SessionFile --+-- media: files opened, formats, lengths
//!                                     +-- graph: modules, parameters, legality     all problems
//!                                     v                                            at once
//!                                    Plan --> SessionSpec, Publisher --> Core::publish
//! ```
//!
//! What it is not: a session; a plan can be served any number of times.
//!
//! Invariants: what a plan says of a file was true when it was loaded; a publisher opens it anew
//! for every participant, so one that has vanished since is refused to that participant and nobody
//! else. Every problem names its file and line.

mod describe;
mod graph;
mod media;

pub(crate) use describe::format_text;

use crate::access::raw::{RawReceiver, RawSender};
use crate::access::timeline::{Extent, Speed};
use crate::access::{AudioSource, Progress, VideoSource, count, file, test};
use dacapo_core::{Port, Publisher, SessionSpec, Source};
use dacapo_lift::Catalogue;
use dacapo_media::Format;
use dacapo_qos::{AttributeKey, Errors, FlowSpec, Problem, Role, SessionFile, TransportKind};
use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::session::{Direction, FlowOffer};
use media::{Files, Found, Origin};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The receiver's jitter budget of a flow that names none.
const PLAYOUT_NS: u64 = 100_000_000;

/// The least bound of a flow that names none, in bit/s.
const BOUND_BPS_MIN: u64 = 10_000_000;

/// A flow of media without a bound may send so many times the mean rate of its medium.
const BOUND_FACTOR: u64 = 4;

/// Participants at a time, when the session file bounds them nowhere.
const PARTICIPANTS_MAX: usize = 64;

/// A session file with everything that it names found and checked.
#[derive(Clone, Debug)]
pub struct Plan {
    path: PathBuf,
    name: String,
    title: String,
    participants_max: usize,
    flows: Vec<Flow>,
    extent: Extent,
}

/// One flow of a plan.
#[derive(Clone, Debug)]
struct Flow {
    offer: FlowOffer,
    found: Found,
    graph: graph::Described,
    asks: String,
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

/// The application's end of a flow of bytes, for a participant that has just joined.
#[derive(Debug)]
pub enum RawEnd {
    /// The creator sends: the flow ends when this is dropped.
    Sender(RawSender),
    /// The creator receives.
    Receiver(RawReceiver),
}

/// Gets the application's ends of flows of bytes: the flow's name and its end.
pub type OnRaw = Box<dyn FnMut(&str, RawEnd) + Send>;

impl Plan {
    /// Reads a session file and looks at everything that it names.
    ///
    /// # Errors
    /// All problems at once, each with file, line and what would be right.
    pub fn load(path: &Path) -> Result<Self, PlanErrors> {
        let read = |error| PlanErrors::Read { path: path.to_owned(), error };
        let file = std::fs::File::open(path).map_err(read)?;
        let mut bytes = Vec::new();
        // One more than allowed, so that a file that is too long is seen to be.
        let len_max = dacapo_qos::MAX_FILE_LEN as u64 + 1;
        file.take(len_max).read_to_end(&mut bytes).map_err(read)?;
        let origin = path.display().to_string();
        let file = SessionFile::parse_bytes(&bytes, &origin).map_err(PlanErrors::File)?;
        Self::of(path, &file).map_err(PlanErrors::File)
    }

    fn of(path: &Path, session: &SessionFile) -> Result<Self, Errors> {
        let catalogue = crate::catalogue();
        let mut problems = Vec::new();
        let mut files = Files::default();
        let mut flows = Vec::new();
        for (index, spec) in session.flows.iter().enumerate() {
            let place = Place { session, spec, index };
            let found = media::find(place, &mut files, &mut problems);
            let graph = graph::read(place, &catalogue, &mut problems);
            if let (Some(found), Some(graph)) = (found, graph) {
                flows.extend(make_flow(place, found, graph, &catalogue, &mut problems));
            }
        }
        if let Some(errors) = Errors::new(problems) {
            return Err(errors);
        }
        name_groups(&mut flows);
        let title = session.title.as_ref().map_or(&session.name, |title| title);
        Ok(Self {
            path: path.to_owned(),
            name: session.name.value.clone(),
            title: title.value.clone(),
            participants_max: participants_max(session),
            extent: extent(&flows),
            flows,
        })
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

    /// The length of the session and its rate of pictures.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The flows as they are offered.
    pub fn offers(&self) -> impl Iterator<Item = &FlowOffer> {
        self.flows.iter().map(|flow| &flow.offer)
    }

    /// What was noticed in the media files, each with its file.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> =
            self.flows.iter().flat_map(|flow| flow.found.warnings.iter().cloned()).collect();
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
        }
    }

    /// What opens the media for each participant, at `speed` times real time (0.001 to 1000). Flows
    /// of bytes that the creator would send end at once; those that it receives are counted.
    #[must_use]
    pub fn publisher(&self, speed: f64) -> Box<dyn Publisher> {
        self.make_publisher(speed, None)
    }

    /// The same; the application gets its ends of the flows of bytes, anew for each participant.
    #[must_use]
    pub fn publisher_with(&self, speed: f64, on_raw: OnRaw) -> Box<dyn Publisher> {
        self.make_publisher(speed, Some(on_raw))
    }

    fn make_publisher(&self, speed: f64, on_raw: Option<OnRaw>) -> Box<dyn Publisher> {
        let speed = Speed::from_factor(speed);
        let origins = self.flows.iter().map(|flow| flow.found.origin.clone()).collect();
        Box::new(MediaPublisher { origins, extent: self.extent, speed, on_raw })
    }

    /// The session as text for people: flows, formats, protocols.
    #[must_use]
    pub fn describe(&self) -> String {
        describe::describe(self)
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

fn make_flow(
    place: Place<'_>,
    found: Found,
    graph: graph::Mapped,
    catalogue: &Catalogue,
    problems: &mut Vec<Problem>,
) -> Option<Flow> {
    let spec = place.spec;
    let unit_len_max = found.unit_len_max(graph.unit_room);
    let described = graph::check(place, &graph, unit_len_max, catalogue, problems)?;
    check_transport(place, problems)?;
    let bound_bps = match (&spec.bound, &found.format) {
        (Some(bound), _) => bound.value,
        (None, Some(_)) => found.mean_bps.saturating_mul(BOUND_FACTOR).max(BOUND_BPS_MIN),
        // How much the application sends, nobody knows: the core decides.
        (None, None) => 0,
    };
    let offer = FlowOffer {
        flow: place.index as u16,
        name: spec.name.value.clone(),
        direction: match spec.from.value {
            Role::Creator => Direction::ToParticipant,
            Role::Participant => Direction::ToCreator,
        },
        medium: found.format.as_ref().map(crate::access::sinks::medium_of).unwrap_or_default(),
        group: String::new(),
        graph: graph.form,
        transport: match spec.transport.value {
            TransportKind::Udp => 1,
            // Refused above; kept so that the number is right once a host opens it.
            TransportKind::Inproc => 2,
        },
        bound_bps,
        unit_len_max,
        datagram_len: 0,
        playout_ns: spec.playout.map_or(PLAYOUT_NS, |playout| playout.value),
        attributes: attributes(spec),
    };
    let asks = spec.attributes.to_string();
    Some(Flow { offer, found, graph: described, asks })
}

/// A host opens UDP only: a flow that asked for another transport would run over UDP all the same.
fn check_transport(place: Place<'_>, problems: &mut Vec<Problem>) -> Option<()> {
    let transport = &place.spec.transport;
    if transport.value == TransportKind::Udp {
        return Some(());
    }
    let what = format!("{:?}: this host opens no such transport", transport.value.name());
    let problem = place.session.problem(transport, place.key("transport"), what);
    problems.push(problem.allowed("udp"));
    None
}

fn attributes(spec: &FlowSpec) -> Vec<AttributeForm> {
    let quantity = |quantity: u64| i64::try_from(quantity).unwrap_or(i64::MAX);
    let form = |(key, asked): (AttributeKey, dacapo_qos::Requirement)| AttributeForm {
        key: key.number(),
        min: asked.min.map(quantity),
        max: asked.max.map(quantity),
        weight: asked.weight,
    };
    spec.attributes.entries().map(form).collect()
}

/// Flows out of one file or one test movie are played together.
fn name_groups(flows: &mut [Flow]) {
    let keys: Vec<_> = flows.iter().map(|flow| flow.found.origin.group_key()).collect();
    let names: Vec<String> = flows.iter().map(|flow| flow.offer.name.clone()).collect();
    for (flow, key) in flows.iter_mut().zip(&keys) {
        let Some(key) = key else { continue };
        let mut members = keys.iter().zip(&names).filter(|(other, _)| other.as_ref() == Some(key));
        let first = members.next();
        if let (Some((_, name)), Some(_)) = (first, members.next()) {
            flow.offer.group.clone_from(name);
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

fn extent(flows: &[Flow]) -> Extent {
    let nominal = flows.iter().find_map(|flow| match &flow.found.format {
        Some(Format::Video(video)) => Some((video.rate, video.scale)),
        _ => None,
    });
    let duration_ns = flows.iter().map(|flow| flow.found.duration_ns).max().unwrap_or(0);
    Extent { duration_ns, nominal }
}

/// Opens the media of a plan for each participant.
struct MediaPublisher {
    origins: Vec<Origin>,
    extent: Extent,
    speed: Speed,
    on_raw: Option<OnRaw>,
}

impl Publisher for MediaPublisher {
    fn open(&mut self, flow: &FlowOffer) -> Result<Port, String> {
        let origin = self.origins.get(usize::from(flow.flow)).cloned();
        let origin = origin.ok_or("the plan has no such flow")?;
        if flow.direction == Direction::ToCreator {
            return Ok(self.open_sink(flow, &origin));
        }
        match origin {
            Origin::Raw => Ok(Port::Source(self.open_raw(flow))),
            origin => self.open_media(flow, &origin).map(Port::Source),
        }
    }
}

impl MediaPublisher {
    fn open_raw(&mut self, flow: &FlowOffer) -> Box<dyn Source> {
        let (sender, source) = RawSender::pair();
        if let Some(on_raw) = &mut self.on_raw {
            on_raw(&flow.name, RawEnd::Sender(sender));
        }
        Box::new(source)
    }

    fn open_sink(&mut self, flow: &FlowOffer, origin: &Origin) -> Port {
        let progress = Progress::new(&flow.name);
        match (&mut self.on_raw, origin) {
            (Some(on_raw), Origin::Raw) => {
                let (receiver, sink) = RawReceiver::pair(progress);
                on_raw(&flow.name, RawEnd::Receiver(receiver));
                Port::Sink(Box::new(sink))
            }
            (None, Origin::Raw) => Port::Sink(Box::new(count::RawCountSink::new(progress))),
            _ => {
                let budget = Duration::from_nanos(flow.playout_ns);
                Port::Sink(Box::new(count::CountSink::new(progress, budget)))
            }
        }
    }

    fn open_media(&self, flow: &FlowOffer, origin: &Origin) -> Result<Box<dyn Source>, String> {
        let (extent, speed, len) = (self.extent, self.speed, flow.unit_len_max);
        let text = |error: dacapo_media::testmovie::TestMovieError| error.to_string();
        Ok(match origin {
            Origin::AviVideo { path, stream } => {
                let pictures = file::AviPictures::open(path, *stream)?;
                Box::new(VideoSource::new(pictures, extent, speed))
            }
            Origin::AviAudio { path, stream } => {
                let sound = file::AviSound::open(path, *stream)?;
                Box::new(AudioSource::new(sound, extent, speed, len))
            }
            Origin::Wav { path } => {
                let sound = file::WavSound::open(path)?;
                Box::new(AudioSource::new(sound, extent, speed, len))
            }
            Origin::TestVideo(movie) => {
                let pictures = test::TestPictures::new(movie).map_err(text)?;
                Box::new(VideoSource::new(pictures, extent, speed))
            }
            Origin::TestAudio(movie) => {
                let sound = test::TestSound::new(movie).map_err(text)?;
                Box::new(AudioSource::new(sound, extent, speed, len))
            }
            Origin::Raw => return Err("bytes come from the application".to_owned()),
        })
    }
}
