//! [`Further`]: the paths to a peer besides the first, and which of all carry.
//!
//! ```text
//!   dialer    an address that the peer has told -> a short question there, seldom, until it is
//!             answered -> opened as the first path is
//!   listener  a question, from wherever -> our own there, no longer -> answered: the path is there
//!
//!   all paths -> live: those that have answered and are not lost       copies go by each of them
//!             -> carrier: the first of them that is not silent         everything else goes by it
//! ```
//!
//! Each is a [`DataPath`] with a key of its own, made of that of the first, so that a probe says
//! which it is of. An address that was told proves nothing: until it answers it gets
//! [`TRY_LEN`] bytes now and then, and no data.
//!
//! Invariants: at most [`FURTHER_MAX`]; without any the first path is live and the carrier; data
//! goes by a further path only while it answers.

use super::DataPath;
use super::data_path::ProbeKey;
use crate::flow::PathTimes;
use crate::transmit::ListenerId;
use dacapo_base::{Address, Time, earlier};
use dacapo_path::{ControllerEntry, Life};
pub(crate) use dacapo_wire::limits::FURTHER_MAX;
use dacapo_wire::probe;
use std::time::Duration;

/// The length of a question to an address that has not answered yet, in bytes.
const TRY_LEN: usize = probe::LEN + probe::COUNT_LEN;

/// How long such a question waits for an answer before the next, at first; then twice as long each
/// time, up to the most.
const TRY_EVERY_MIN: Duration = Duration::from_millis(250);
const TRY_EVERY_MAX: Duration = Duration::from_secs(10);

/// From where at this end, and to where.
pub(crate) type Towards = (Option<ListenerId>, Address);

/// Some of the paths to a peer, the first included, by their places: bit 0 is the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathSet(u8);

impl PathSet {
    /// The first alone.
    pub const FIRST: Self = Self(1);

    pub fn one(place: usize) -> Self {
        Self(1 << place.min(FURTHER_MAX))
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn has(self, place: usize) -> bool {
        self.0 >> place.min(FURTHER_MAX) & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their places, the first first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..=FURTHER_MAX).filter(move |place| self.has(*place))
    }
}

/// A path besides the first.
pub(crate) struct FurtherPath {
    pub data: DataPath,
    /// By which of the places of this end it is reached, once that is known.
    pub local: Option<ListenerId>,
    /// Where the peer has said that it is; `None` at the end that listens.
    told: Option<Address>,
    try_at: Time,
    try_every: Duration,
}

/// Those of a peer.
pub(crate) struct Further {
    paths: Vec<FurtherPath>,
    live: PathSet,
    carrier: usize,
}

impl Default for Further {
    fn default() -> Self {
        Self { paths: Vec::new(), live: PathSet::FIRST, carrier: 0 }
    }
}

impl Further {
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Those that carry, of all.
    pub fn live(&self) -> PathSet {
        self.live
    }

    /// The place of the one that carries what goes by one.
    pub fn carrier(&self) -> usize {
        self.carrier
    }

    /// The paths, with their places among all.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &FurtherPath)> {
        self.paths.iter().enumerate().map(|(index, path)| (index + 1, path))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut FurtherPath)> {
        self.paths.iter_mut().enumerate().map(|(index, path)| (index + 1, path))
    }

    /// The times of the slowest of those that carry and of the first.
    #[cold]
    pub fn slowest(&self, first: PathTimes) -> PathTimes {
        let slower = |most: PathTimes, path: PathTimes| PathTimes {
            rtt: most.rtt.max(path.rtt),
            variation: most.variation.max(path.variation),
            is_lost: most.is_lost,
        };
        let live = self.iter().filter(|(place, _)| self.live.has(*place));
        live.map(|(_, path)| path.data.times()).fold(first, slower)
    }

    pub fn get(&self, place: usize) -> Option<&FurtherPath> {
        self.paths.get(place.checked_sub(1)?)
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut FurtherPath> {
        self.paths.get_mut(place.checked_sub(1)?)
    }

    /// Makes those that are not there yet: at the addresses that the peer has told, or, at the end
    /// that listens, as many as there may be, each to be found by a question. The keys of those
    /// that are new, with their places.
    pub fn open(
        &mut self,
        now: Time,
        told: Option<&[Address]>,
        first: &DataPath,
        controller: impl Fn(Option<&Address>) -> ControllerEntry,
    ) -> Vec<(ProbeKey, usize)> {
        let wanted: Vec<Option<Address>> = match told {
            Some(told) => told.iter().copied().map(Some).collect(),
            None => vec![None; FURTHER_MAX],
        };
        let mut made = Vec::new();
        for told in wanted.into_iter().take(FURTHER_MAX).skip(self.paths.len()) {
            let place = self.paths.len() + 1;
            let mut data = DataPath::new(now, &controller(told.as_ref()));
            let key = first.key().further(place);
            data.set_key(key);
            data.set_one_clock(first.is_one_clock());
            let (try_at, try_every) = (now, TRY_EVERY_MIN);
            self.paths.push(FurtherPath { data, local: None, told, try_at, try_every });
            made.push((key, place));
        }
        made
    }

    /// By which place of this end the first path is reached: the dialer's others go by it, too.
    pub fn set_place(&mut self, local: ListenerId) {
        self.paths.iter_mut().for_each(|path| path.local = Some(local));
    }

    /// Looks anew at which carry; whether that has changed.
    pub fn settle(&mut self, now: Time, first: &DataPath) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let before = (self.live, self.carrier);
        let all = || std::iter::once(first).chain(self.paths.iter().map(|path| &path.data));
        let live = all().enumerate().filter(|(_, path)| path.is_live(now));
        self.live =
            live.map(|(place, _)| PathSet::one(place)).fold(PathSet::default(), PathSet::with);
        let sounds = all().position(|path| path.is_live(now) && !path.is_silent(now));
        self.carrier = sounds.or_else(|| self.live.iter().next()).unwrap_or(0);
        if self.live.is_empty() {
            self.live = PathSet::FIRST;
        }
        before != (self.live, self.carrier)
    }

    /// Whether the peer lives, as far as these say.
    pub fn is_alive(&mut self, now: Time) -> bool {
        let alive = |path: &mut FurtherPath| path.data.watch(now, false) == Some(Life::Alive);
        // All are watched: who is not asked does not know that it was not stopped.
        self.paths.iter_mut().filter_map(|path| alive(path).then_some(())).count() > 0
    }

    /// A short question to an address that has not answered, when one is due: the path's place,
    /// from where and to where.
    pub fn poll_try(&mut self, now: Time) -> Option<(usize, Towards, Vec<u8>)> {
        let is_due = |path: &FurtherPath| path.tries_at().is_some_and(|at| at <= now);
        let (index, path) = self.paths.iter_mut().enumerate().find(|(_, path)| is_due(path))?;
        let told = path.told?;
        path.try_at = now + path.try_every;
        path.try_every = (path.try_every * 2).min(TRY_EVERY_MAX);
        let question = path.data.ask_at(now, told, TRY_LEN);
        Some((index + 1, (path.local, told), path.data.write_question(now, question)))
    }

    /// When something of them is due.
    pub fn due(&self, now: Time) -> Option<Time> {
        let due = |path: &FurtherPath| {
            [path.tries_at(), path.data.next_deadline(now), path.data.due(now)]
                .into_iter()
                .fold(None, earlier)
        };
        self.paths.iter().map(due).fold(None, earlier)
    }

    /// The addresses that lanes may have been opened to.
    pub fn remotes(&self) -> impl Iterator<Item = Address> {
        let remotes = |path: &FurtherPath| path.data.remote().or(path.told);
        self.paths.iter().filter_map(remotes)
    }
}

impl FurtherPath {
    /// When its address is asked whether it is there, until it has answered.
    fn tries_at(&self) -> Option<Time> {
        let is_tried = self.told.is_some() && self.local.is_some() && self.data.remote().is_none();
        is_tried.then_some(self.try_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::tests::narrow;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn first() -> DataPath {
        let mut first = DataPath::new(at(0), &narrow());
        first.open(at(0), "192.0.2.1:9".parse().unwrap(), ProbeKey::new([7; 16]));
        first
    }

    #[test]
    fn without_any_the_first_path_carries_all() {
        let mut further = Further::default();
        assert!(!further.settle(at(60_000), &first()), "however silent it is");
        assert_eq!((further.live(), further.carrier()), (PathSet::FIRST, 0));
        assert_eq!(further.due(at(0)), None);
    }

    #[test]
    fn each_has_a_key_of_its_own_and_there_are_no_more_than_may_be() {
        let (mut further, first) = (Further::default(), first());
        let told: Vec<Address> = (1..9).map(|host| Address::from(([192, 0, 2, host], 9))).collect();
        let made = further.open(at(0), Some(&told), &first, |_| narrow());
        assert_eq!(made.len(), FURTHER_MAX);
        let mut names: Vec<u64> = made.iter().map(|(key, _)| key.connection()).collect();
        names.push(first.key().connection());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FURTHER_MAX + 1, "a probe says which path it is of");
        assert_eq!(further.open(at(0), Some(&told), &first, |_| narrow()), []);
    }

    #[test]
    fn an_address_that_does_not_answer_gets_little_and_ever_less_often() {
        let (mut further, first) = (Further::default(), first());
        let told = [Address::from(([192, 0, 2, 7], 9))];
        further.open(at(0), Some(&told), &first, |_| narrow());
        assert_eq!(further.poll_try(at(0)), None, "it is not known yet by which place");
        further.set_place(ListenerId(3));
        let (mut bytes, mut count) = (0, 0);
        for ms in 0..60_000 {
            while let Some((place, towards, asked)) = further.poll_try(at(ms)) {
                assert_eq!((place, towards), (1, (Some(ListenerId(3)), told[0])));
                (bytes, count) = (bytes + asked.len(), count + 1);
            }
            further.settle(at(ms), &first);
            assert_eq!((further.live().has(1), further.carrier()), (false, 0));
        }
        assert_eq!((count, bytes), (11, 11 * TRY_LEN));
    }
}
