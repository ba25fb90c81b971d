//! [`Contexts`]: the contexts of a host, each in a slot that is used again.
//!
//! Invariants: at most as many as it was made for; what they keep beyond what each keeps at first
//! is at most `growth_max` bytes in all; a [`ContextId`] that was released names nobody,
//! because whoever has its slot is of another generation.

use super::error::UserError;
use crate::config::Config;
use crate::context::Context;
use crate::event::{ContextId, Event};

#[derive(Debug)]
struct Slot {
    generation: u32,
    context: Option<Box<Context>>,
    /// The port of the listener in whose backlog it is.
    listener: Option<u16>,
}

/// The contexts of a host.
#[derive(Debug)]
pub struct Contexts {
    slots: Vec<Slot>,
    free: Vec<u32>,
    count_max: usize,
    /// Bytes that a context keeps at first, both ways.
    len: usize,
    /// Bytes that all may keep beyond that.
    left: usize,
}

impl Contexts {
    /// None yet, and never more than the configuration says.
    pub const fn new(config: &Config) -> Self {
        let (count_max, left) = (config.contexts_max, config.growth_max);
        let len = config.buffer_len.saturating_mul(2);
        Self { slots: Vec::new(), free: Vec::new(), count_max, len, left }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slots.len().saturating_sub(self.free.len())
    }

    /// Whether there may be one more.
    pub fn has_capacity(&self) -> bool {
        self.count() < self.count_max
    }

    /// Puts a context into a slot; `None` when there are as many as may be.
    pub fn insert(&mut self, context: Context, listener: Option<u16>) -> Option<ContextId> {
        if !self.has_capacity() {
            return None;
        }
        let context = Some(Box::new(context));
        let Some(slot) = self.free.pop() else {
            let (slot, generation) = (u32::try_from(self.slots.len()).ok()?, 0);
            self.slots.push(Slot { generation, context, listener });
            return Some(ContextId { slot, generation });
        };
        let place = self.slots.get_mut(slot as usize)?;
        (place.context, place.listener) = (context, listener);
        Some(ContextId { slot, generation: place.generation })
    }

    /// Forgets a context; gives the port of the listener in whose backlog it still was.
    pub fn remove(&mut self, slot: u32) -> Option<u16> {
        let place = self.slots.get_mut(slot as usize)?;
        let context = place.context.take()?;
        let (rx, tx) = (context.composer().inbound.receiver(), context.outbound().sender());
        let taken = rx.taken().saturating_add(tx.capacity());
        self.left = self.left.saturating_add(taken.saturating_sub(self.len));
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        place.listener.take()
    }

    /// The context in a slot.
    pub fn at(&self, slot: u32) -> Option<&Context> {
        self.slots.get(slot as usize)?.context.as_deref()
    }

    /// The context of this name.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn of(&self, id: ContextId) -> Result<&Context, UserError> {
        let place = self.slots.get(id.slot as usize).ok_or(UserError::Released)?;
        let context = place.context.as_deref().filter(|_| place.generation == id.generation);
        context.ok_or(UserError::Released)
    }

    /// Does something to the context in a slot; `None` where there is none.
    pub fn with<R>(&mut self, slot: u32, act: impl FnOnce(&mut Context) -> R) -> Option<R> {
        self.slots.get_mut(slot as usize)?.context.as_deref_mut().map(act)
    }

    /// Does something to the context in a slot that may keep more or less after it, and what is
    /// left for all of them; `None` where there is none.
    pub fn with_left<R>(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut Context, &mut usize) -> R,
    ) -> Option<R> {
        let context = self.slots.get_mut(slot as usize)?.context.as_deref_mut()?;
        Some(act(context, &mut self.left))
    }

    /// Takes the first thing that the user is to be told of a context; one that is told of as
    /// incoming leaves the backlog of its listener.
    pub fn take_event(&mut self, slot: u32) -> Option<Event> {
        let place = self.slots.get_mut(slot as usize)?;
        let id = ContextId { slot, generation: place.generation };
        let event = place.context.as_mut()?.take_event(id, place.listener.unwrap_or(0))?;
        if let Event::Incoming { .. } = event {
            place.listener = None;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Format, Header, Key};
    use crate::{Mode, Open};
    use dacapo_base::Time;
    use std::net::SocketAddr;

    fn context(key: u64) -> Context {
        let at = SocketAddr::from(([192, 0, 2, 1], 4_040));
        Context::opening(Time::ZERO, &Config::default(), &Open::stream(at, at, at), None, (key, 0))
    }

    #[test]
    fn a_name_that_was_released_names_nobody_who_comes_after() {
        let mut contexts = Contexts::new(&Config { contexts_max: 2, ..Config::default() });
        let first = contexts.insert(context(7), Some(9)).expect("there is room for two");
        assert!(contexts.insert(context(8), None).is_some() && !contexts.has_capacity());
        assert_eq!(contexts.insert(context(9), None), None);
        assert_eq!(contexts.of(first).map(|it| it.addressing().own_key()), Ok(7));
        assert_eq!(contexts.remove(first.slot), Some(9));
        assert_eq!((contexts.remove(first.slot), contexts.count()), (None, 1));
        let next = contexts.insert(context(9), Some(9)).expect("one has gone");
        assert_eq!((next.slot, contexts.of(first).err()), (first.slot, Some(UserError::Released)));
        assert_eq!(contexts.with(next.slot, |it| it.addressing().own_key()), Some(9));
    }

    #[test]
    fn who_was_told_of_is_in_no_backlog_any_more() {
        let mut contexts = Contexts::new(&Config { contexts_max: 1, ..Config::default() });
        let (header, at) =
            (Header::new(Key::own(3), Format::First), ([192, 0, 2, 1], 4_040).into());
        let (config, mode) = (Config::default(), Mode::default());
        let context = Context::accepting(Time::ZERO, &config, mode, (at, &header), (7, 0, None));
        let id = contexts.insert(context, Some(9)).expect("there is room");
        assert_eq!(contexts.take_event(id.slot), Some(Event::Incoming { port: 9, id }));
        assert_eq!((contexts.take_event(id.slot), contexts.remove(id.slot)), (None, None));
        assert!(contexts.at(id.slot).is_none() && contexts.with(id.slot, |_| ()).is_none());
    }
}
