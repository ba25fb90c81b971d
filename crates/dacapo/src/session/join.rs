//! [`Join`]: how a session is joined, and where its media go at this end.
//!
//! ```text
//!   offer: video, audio (one group), notes     Join::save(dir)   Join::play()   Join::count()
//!      video, audio -> access modules               NAME.avi         ffplay         figures
//!      notes        -> Session::recv
//! ```

use super::entry::Entry;
use super::events::make_end;
use super::flow::{Flow, FlowInfo};
use super::handle::Session;
use super::wanted;
use crate::Catalogue;
use crate::access::sinks::{Sinks, Wanted};
use crate::access::{
    Access, AccessEntry, AccessSpec, Carries, Opening, Settings, Setup, Shared, Snapshot, Wrong,
};
use crate::misuse::misuse;
use crate::plan::attribute_forms;
use dacapo_base::Time;
use dacapo_core::table::Role;
use dacapo_core::{Error, JoinParams, Port};
use dacapo_qos::{Attributes, Value};
use dacapo_sys::clock;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::{Direction, FlowOffer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a session is joined: as its Creator serves it, and without its media, unless it is told
/// otherwise.
///
/// ```no_run
/// let join = dacapo::Join::new().save("received");
/// let session = dacapo::Endpoint::new()?.join("dacapo://192.0.2.7/movie", &join)?;
/// session.activate()?;
/// session.wait_end()?;
/// println!("{}", session.close()?);
/// # Ok::<(), dacapo::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    pub(super) asks: Attributes,
    pub(super) is_live: bool,
    pub(super) media: Option<Taken>,
    pub(super) access: Vec<AccessWish>,
    pub(super) wait: Option<Duration>,
}

/// What becomes of what is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// This, of its media.
    Media(Wanted),
    /// What the program says when it has seen the offer.
    Decided,
}

impl Join {
    /// As the Creator serves it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks of every flow what its Creator does not; what is asked may be refused.
    #[must_use]
    pub fn asks(self, asks: &Attributes) -> Self {
        Self { asks: asks.clone(), ..self }
    }

    /// Keeps trying to reach the host for so long, also while nothing listens there: it may be
    /// about to start. Otherwise it is tried for 10 s, or until it is known that nothing listens.
    #[must_use]
    pub fn wait(self, most: Duration) -> Self {
        Self { wait: Some(most), ..self }
    }

    /// Media begin where those are who have joined before, not at their beginning.
    #[must_use]
    pub fn live(self) -> Self {
        Self { is_live: true, ..self }
    }

    /// Saves pictures and sound in this folder, which exists; files of the same names are not
    /// written over.
    #[must_use]
    pub fn save(self, dir: impl Into<PathBuf>) -> Self {
        self.media(Wanted::Save { dir: dir.into(), force: false })
    }

    /// Shows pictures and plays sound by `ffplay`; without it they are counted.
    #[must_use]
    pub fn play(self) -> Self {
        self.media(Wanted::Player)
    }

    /// Takes pictures and sound, and only counts them.
    #[must_use]
    pub fn count(self) -> Self {
        self.media(Wanted::Count)
    }

    /// A flow has this access module of the endpoint's catalogue at this end, told these parameters
    /// as a session file has them, such as `("len", "500 B")`; calls do not get it.
    #[must_use]
    pub fn access(mut self, flow: &str, module: &str, params: &[(&str, &str)]) -> Self {
        let text = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let params = params.iter().map(text);
        let (flow, module, params) = (flow.to_owned(), module.to_owned(), params.collect());
        self.access.push(AccessWish { flow, module, params });
        self
    }

    /// What becomes of pictures and sound.
    #[must_use]
    pub fn media(self, wanted: Wanted) -> Self {
        Self { media: Some(Taken::Media(wanted)), ..self }
    }

    /// The program says itself what becomes of each flow, bytes and media, when it has seen what is
    /// offered: [`Event::Offered`](super::Event::Offered), then
    /// [`Endpoint::answer`](super::Endpoint::answer).
    #[must_use]
    pub fn decide(self) -> Self {
        Self { media: Some(Taken::Decided), ..self }
    }

    /// What is asked of the peer; `follows`: also to learn where else the session is.
    pub(super) fn params(&self, follows: bool) -> JoinParams {
        JoinParams { attributes: attribute_forms(&self.asks), live: self.is_live, follows }
    }

    /// What becomes of flows at this end that calls do not get, and whether the program says so
    /// when it has seen them.
    ///
    /// # Errors
    /// Misuse: an access module that there is not, or that is told what it does not take; one where
    /// the program decides.
    pub(super) fn taken(&self, parts: &Catalogue) -> Result<(Option<Box<Media>>, bool), Error> {
        let wanted = match &self.media {
            None if self.access.is_empty() => return Ok((None, false)),
            None => None,
            Some(Taken::Media(wanted)) => Some(wanted.clone()),
            Some(Taken::Decided) => match self.access.first() {
                None => return Ok((None, true)),
                Some(wish) => return Err(wish.wrong("the program decides of each flow".to_owned())),
            },
        };
        let opened = self.access.iter().map(|wish| wish.open(parts)).collect::<Result<_, _>>()?;
        let (progress, notes) = (Vec::new(), Vec::new());
        Ok((Some(Box::new(Media { wanted, opened, progress, notes })), false))
    }
}

/// What a flow is opened by at this end, instead of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccessWish {
    flow: String,
    module: String,
    params: Vec<(String, String)>,
}

/// The same, opened.
#[derive(Debug)]
struct Opened {
    flow: String,
    spec: &'static AccessSpec,
    access: Arc<dyn Access>,
}

impl AccessWish {
    /// The access module, and what it is told.
    ///
    /// # Errors
    /// Misuse: there is none of this name, or it does not take that.
    pub fn find<'a>(&self, parts: &'a Catalogue) -> Result<(&'a AccessEntry, Settings), Error> {
        let unknown = |(text, allowed)| self.wrong(format!("{text}; allowed: {allowed}"));
        let entry = parts.access(&self.module).map_err(unknown)?;
        let value =
            |text: &str| text.parse().map_or_else(|_| Value::from_text(text), Value::Number);
        let params = self.params.iter().map(|(name, text)| (name.as_str(), value(text)));
        let params: Vec<(&str, Value)> = params.collect();
        let given = params.iter().map(|(name, value)| (*name, value));
        let settings = Settings::read(entry.spec, given).map_err(|all| {
            let texts: Vec<String> = all.iter().map(Wrong::to_string).collect();
            self.wrong(texts.join("; "))
        })?;
        Ok((entry, settings))
    }

    fn open(&self, parts: &Catalogue) -> Result<Opened, Error> {
        let (entry, settings) = self.find(parts)?;
        let shared = &mut Shared::default();
        let mut setup = Setup { settings, shared, asked: None, assumes_missing: false };
        let found = (entry.open)(&mut setup).map_err(|it| self.wrong(it.to_string()))?;
        let calls = || self.wrong(format!("\"{}\" leaves its units to calls", self.module));
        let access = found.access.ok_or_else(calls)?;
        Ok(Opened { flow: self.flow.clone(), spec: entry.spec, access })
    }

    fn wrong(&self, text: String) -> Error {
        misuse(format!("for the flow \"{}\": {text}", self.flow))
    }
}

impl Opened {
    /// This end of the flow, by its place in the offer.
    fn port(&self, offers: &[FlowOffer]) -> Result<(usize, Port), String> {
        let Self { flow, spec, access } = self;
        let name = spec.name;
        let place = offers.iter().position(|offer| offer.name == *flow);
        let no_flow = || format!("{name}: the session has no flow \"{flow}\"");
        let place = place.ok_or_else(no_flow)?;
        let offer = offers.get(place).ok_or_else(no_flow)?;
        let carries = match offer.medium {
            Medium::Raw => Carries::Bytes,
            Medium::Video { .. } => Carries::Pictures,
            Medium::Audio { .. } => Carries::Sound,
        };
        if !spec.carries.contains(&carries) {
            return Err(format!("{flow}: \"{name}\" does not carry {carries}"));
        }
        let to = Opening::of(offer);
        let port = match (offer.direction, spec.sends, spec.takes) {
            (Direction::ToCreator, true, _) => access.source(&to).map(Port::Source),
            (Direction::ToParticipant, _, true) => access.sink(&to).map(Port::Sink),
            (Direction::ToCreator, false, _) => Err(format!("{flow}: \"{name}\" is no source")),
            (Direction::ToParticipant, _, false) => Err(format!("{flow}: \"{name}\" is no sink")),
        };
        port.map(|port| (place, port))
    }
}

/// What becomes of flows at this end that calls do not get: media, and those of access modules.
#[derive(Debug)]
pub(super) struct Media {
    wanted: Option<Wanted>,
    opened: Vec<Opened>,
    progress: Vec<crate::access::Progress>,
    notes: Vec<String>,
}

impl Media {
    /// Opens the access modules of the media of an offer; their places in the offer with them.
    fn open(&mut self, session: &str, offers: &[FlowOffer]) -> Result<Vec<(usize, Port)>, String> {
        let opened = self.opened.iter().map(|it| it.port(offers));
        let mut all: Vec<(usize, Port)> = opened.collect::<Result<_, _>>()?;
        let Some(wanted) = &self.wanted else { return Ok(all) };
        let is_open = |place: usize| all.iter().any(|(other, _)| *other == place);
        let of_media = offers.iter().enumerate();
        let of_media = of_media.filter(|(at, it)| it.medium != Medium::Raw && !is_open(*at));
        let (places, offers): (Vec<usize>, Vec<FlowOffer>) =
            of_media.map(|(place, offer)| (place, offer.clone())).unzip();
        let sinks = Sinks::for_offer(session, &offers, wanted)?;
        (self.progress, self.notes) = (sinks.progress, sinks.notes);
        let ports = places.into_iter().zip(sinks.ports);
        all.extend(ports.filter_map(|(place, port)| Some((place, port?))));
        Ok(all)
    }
}

impl Entry {
    /// This end of each flow that was offered, for the core: queues for flows of bytes, access
    /// modules where they are wanted; nothing declines.
    ///
    /// # Errors
    /// Why a file, a player or an access module cannot be opened.
    pub fn open_ends(
        &mut self,
        offers: &[FlowOffer],
        catalogue: &dacapo_lift::Catalogue,
    ) -> Result<Vec<Option<Port>>, String> {
        let opened = match &mut self.media {
            Some(media) => media.open(&self.name, offers)?,
            None => Vec::new(),
        };
        let (mut ends, mut ports): (Vec<_>, Vec<_>) = offers.iter().map(make_end).unzip();
        for (place, port) in opened {
            if let (Some(end), Some(slot)) = (ends.get_mut(place), ports.get_mut(place)) {
                (*end, *slot) = (None, Some(port));
            }
        }
        let infos = offers.iter().map(|offer| FlowInfo::of(offer, Role::Participant, catalogue));
        self.flows = infos.zip(ends).map(|(info, end)| Flow::new(info, end)).collect();
        Ok(ports)
    }
}

impl Session {
    /// How far the media are that this end takes ([`Join::media`]), flow by flow.
    #[must_use]
    pub fn media(&self) -> Vec<Snapshot> {
        let state = self.lock();
        let media = state.sessions.get(&self.core_id()).and_then(|entry| entry.media.as_ref());
        let progress = media.map(|media| media.progress.clone()).unwrap_or_default();
        drop(state);
        progress.iter().map(crate::access::Progress::snapshot).collect()
    }

    /// What a user should know of the media that this end takes: flows that are declined and why, a
    /// player that is missing.
    #[must_use]
    pub fn media_notes(&self) -> Vec<String> {
        let state = self.lock();
        let media = state.sessions.get(&self.core_id()).and_then(|entry| entry.media.as_ref());
        media.map(|media| media.notes.clone()).unwrap_or_default()
    }

    /// Waits until each flow that was taken at set-up is over and accounted for, or the session is:
    /// media end with their files, flows of bytes when their sender finishes them.
    ///
    /// # Errors
    /// Misuse when the session is closed or has never been active; why it ended, if that was before
    /// and not in order.
    pub fn wait_end(&self) -> Result<(), Error> {
        self.wait_end_until(Time::NEVER).map(|_| ())
    }

    /// The same, for at most so long: whether they are.
    ///
    /// # Errors
    /// As [`Session::wait_end`].
    pub fn wait_end_timeout(&self, most: Duration) -> Result<bool, Error> {
        self.wait_end_until(clock::now() + most)
    }

    fn wait_end_until(&self, until: Time) -> Result<bool, Error> {
        let mut state = self.lock();
        let entry = state.open_entry(self.core_id())?;
        entry.check_begun()?;
        let flows = state.core().status(self.core_id());
        let taken = flows.iter().enumerate().filter(|(_, flow)| flow.refused.is_none());
        let taken: Arc<[usize]> = taken.map(|(place, _)| place).collect();
        let accounts = wanted::Wanted::Accounts(self.core_id(), Arc::clone(&taken));
        let (mut state, outcome) = self.wait(state, until, &accounts);
        let is_over = outcome?;
        let entry = state.open_entry(self.core_id())?;
        match entry.disorder() {
            Some(error) if !entry.are_accounted(&taken) => Err(error.clone()),
            _ => Ok(is_over),
        }
    }
}
