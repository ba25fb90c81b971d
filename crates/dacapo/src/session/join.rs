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
use crate::access::Snapshot;
use crate::access::sinks::{Sinks, Wanted};
use crate::plan::attribute_forms;
use dacapo_base::Time;
use dacapo_core::table::Role;
use dacapo_core::{Error, JoinParams, Port};
use dacapo_lift::Catalogue;
use dacapo_qos::Attributes;
use dacapo_sys::clock;
use dacapo_wire::medium::Medium;
use dacapo_wire::session::FlowOffer;
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

    /// What becomes of the media at this end, and whether the program says so.
    pub(super) fn taken(&self) -> (Option<Box<Media>>, bool) {
        match &self.media {
            Some(Taken::Media(wanted)) => (Some(Box::new(Media::new(wanted.clone()))), false),
            Some(Taken::Decided) => (None, true),
            None => (None, false),
        }
    }
}

/// The media that come to this end, and what is to be done with them.
#[derive(Debug)]
pub(super) struct Media {
    wanted: Wanted,
    progress: Vec<crate::access::Progress>,
    notes: Vec<String>,
}

impl Media {
    fn new(wanted: Wanted) -> Self {
        Self { wanted, progress: Vec::new(), notes: Vec::new() }
    }

    /// Opens the access modules of the media of an offer; their places in the offer with them.
    fn open(&mut self, session: &str, offers: &[FlowOffer]) -> Result<Vec<(usize, Port)>, String> {
        let of_media = offers.iter().enumerate().filter(|(_, it)| it.medium != Medium::Raw);
        let (places, offers): (Vec<usize>, Vec<FlowOffer>) =
            of_media.map(|(place, offer)| (place, offer.clone())).unzip();
        let sinks = Sinks::for_offer(session, &offers, &self.wanted)?;
        (self.progress, self.notes) = (sinks.progress, sinks.notes);
        let ports = places.into_iter().zip(sinks.ports);
        Ok(ports.filter_map(|(place, port)| Some((place, port?))).collect())
    }
}

impl Entry {
    /// This end of each flow that was offered, for the core: queues for flows of bytes, access
    /// modules for media where they are wanted; nothing declines.
    ///
    /// # Errors
    /// Why a file or a player cannot be opened.
    pub fn open_ends(
        &mut self,
        offers: &[FlowOffer],
        catalogue: &Catalogue,
    ) -> Result<Vec<Option<Port>>, String> {
        let (ends, mut ports): (Vec<_>, Vec<_>) = offers.iter().map(make_end).unzip();
        let infos = offers.iter().map(|offer| FlowInfo::of(offer, Role::Participant, catalogue));
        self.flows = infos.zip(ends).map(|(info, end)| Flow::new(info, end)).collect();
        let Some(media) = &mut self.media else { return Ok(ports) };
        for (place, port) in media.open(&self.name, offers)? {
            if let Some(slot) = ports.get_mut(place) {
                *slot = Some(port);
            }
        }
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
