//! [`Budget`]: how long after it was sent a unit is shown, and what flows that are shown together
//! agree on.

use dacapo_wire::session::FlowOffer;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest time that a unit is held until it is shown.
const PLAYOUT_MAX: Duration = Duration::from_secs(10);

/// How long after it was sent a unit is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    pub most: Duration,
    /// Where no more is to be kept than is used.
    pub least: Option<Duration>,
    pub together: Together,
}

impl From<Duration> for Budget {
    fn from(most: Duration) -> Self {
        Self { most, ..Self::default() }
    }
}

/// What flows want that are shown together: each keeps as much as the one that wants most, so that
/// lips and voice agree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Together {
    wanted: Arc<Mutex<Vec<Duration>>>,
    place: usize,
}

impl Together {
    /// One more that is shown together with this one.
    fn another(&self) -> Self {
        let mut all = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.len();
        all.push(Duration::ZERO);
        Self { wanted: Arc::clone(&self.wanted), place }
    }

    /// Says what this one wants; what the one wants that wants most.
    pub fn tell(&self, wanted: Duration) -> Duration {
        let mut all = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(self.place) {
            *own = wanted;
        }
        all.iter().copied().max().unwrap_or(wanted)
    }
}

/// The budgets of the flows of a session: those of one group are shown together.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    groups: BTreeMap<String, Together>,
}

impl Budgets {
    /// That of a flow.
    pub fn of(&mut self, offer: &FlowOffer) -> Budget {
        let most = Duration::from_nanos(offer.playout_ns).min(PLAYOUT_MAX);
        let least = offer.playout_min_ns.map(Duration::from_nanos);
        let together = match offer.group.is_empty() {
            true => Together::default(),
            false => self.groups.entry(offer.group.clone()).or_default().another(),
        };
        Budget { most, least, together }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn flows_of_one_group_want_what_the_most_demanding_wants() {
        let mut budgets = Budgets::default();
        let mut of = |group: &str, least: Option<u64>| {
            budgets.of(&FlowOffer {
                group: group.into(),
                playout_ns: 200_000_000,
                playout_min_ns: least,
                ..FlowOffer::default()
            })
        };
        let lips = of("film", Some(20_000_000));
        let (voice, other, alone) = (of("film", None), of("news", None), of("", None));
        assert_eq!((lips.most, lips.least, voice.least), (ms(200), Some(ms(20)), None));
        assert_eq!(lips.together.tell(ms(40)), ms(40));
        assert_eq!(voice.together.tell(ms(90)), ms(90));
        assert_eq!(lips.together.tell(ms(40)), ms(90));
        assert_eq!(voice.together.tell(ms(10)), ms(40));
        assert_eq!((other.together.tell(ms(1)), alone.together.tell(ms(2))), (ms(1), ms(2)));
    }

    #[test]
    fn nobody_can_ask_for_more_than_ten_seconds() {
        let offer = FlowOffer { playout_ns: u64::MAX, ..FlowOffer::default() };
        assert_eq!(Budgets::default().of(&offer).most, PLAYOUT_MAX);
    }
}
