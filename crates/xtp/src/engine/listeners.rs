//! [`Listeners`]: who may open associations here, and how many wait to be told of.

use super::error::ListenError;
use crate::config::{Listen, Mode};
use crate::wire::{Reason, Service};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Listener {
    listen: Listen,
    waiting: usize,
}

/// The ports of XTP that are listened on.
#[derive(Debug, Default)]
pub struct Listeners(BTreeMap<u16, Listener>);

impl Listeners {
    /// Somebody listens.
    ///
    /// # Errors
    /// [`ListenError::Taken`].
    pub fn insert(&mut self, listen: Listen) -> Result<(), ListenError> {
        let port = listen.port;
        if self.0.contains_key(&port) {
            return Err(ListenError::Taken { port });
        }
        self.0.insert(port, Listener { listen, waiting: 0 });
        Ok(())
    }

    /// Nobody listens there any more.
    pub fn remove(&mut self, port: u16) {
        self.0.remove(&port);
    }

    /// Whether somebody listens there.
    pub fn has(&self, port: u16) -> bool {
        self.0.contains_key(&port)
    }

    /// With which options who asks at a port is let in: the service by its number, and whether a
    /// group is asked.
    ///
    /// # Errors
    /// Why not, as a diagnostic says it.
    pub fn admit(&self, port: u16, number: u8, is_multi: bool) -> Result<Mode, Reason> {
        let Listener { listen, waiting } = self.0.get(&port).ok_or(Reason::NO_LISTENER)?;
        let is_there = |service: &Service| is_multi == service.is_to_group();
        let known = Service::from_number(number).filter(is_there);
        let is_given = |service| listen.service.is_none_or(|given| given == service);
        if !known.is_some_and(is_given) {
            return Err(Reason::NO_PROVIDER);
        }
        if *waiting >= listen.backlog_max {
            return Err(Reason::NO_RESOURCE);
        }
        Ok(listen.mode)
    }

    /// Who was let in waits to be told of.
    pub fn handle_begun(&mut self, port: u16) {
        if let Some(listener) = self.0.get_mut(&port) {
            listener.waiting = listener.waiting.saturating_add(1);
        }
    }

    /// Who was let in waits no longer: it was told of, or is gone.
    pub fn handle_taken(&mut self, port: u16) {
        if let Some(listener) = self.0.get_mut(&port) {
            listener.waiting = listener.waiting.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: u8 = Service::Stream as u8;

    /// DIAG 1: no listener, no provider, no resource.
    #[test]
    fn who_asks_is_refused_with_the_reason() {
        let mut listeners = Listeners::default();
        assert_eq!(listeners.admit(7, STREAM, false), Err(Reason::NO_LISTENER));
        let listen = Listen { service: Some(Service::Stream), backlog_max: 1, ..Listen::on(7) };
        assert_eq!(listeners.insert(listen), Ok(()));
        assert_eq!(listeners.insert(listen), Err(ListenError::Taken { port: 7 }));
        assert_eq!(listeners.admit(7, STREAM, false), Ok(Mode::default()));
        for (number, is_multi) in [
            (STREAM, true),
            (Service::Datagram as u8, false),
            (Service::Multicast as u8, true),
            (200, false),
        ] {
            let refused = listeners.admit(7, number, is_multi);
            assert_eq!(refused, Err(Reason::NO_PROVIDER), "{number} {is_multi}");
        }
        listeners.handle_begun(7);
        assert_eq!(listeners.admit(7, STREAM, false), Err(Reason::NO_RESOURCE));
        listeners.handle_taken(7);
        assert!(listeners.admit(7, STREAM, false).is_ok() && listeners.has(7));
        listeners.remove(7);
        assert!(!listeners.has(7));
    }

    #[test]
    fn without_a_service_every_one_is_given_to_hosts_and_to_groups() {
        let mut listeners = Listeners::default();
        assert_eq!(listeners.insert(Listen::on(7)), Ok(()));
        assert!(listeners.admit(7, STREAM, false).is_ok());
        assert!(listeners.admit(7, Service::Multicast as u8, true).is_ok());
        assert_eq!(listeners.admit(7, STREAM, true), Err(Reason::NO_PROVIDER));
        // Who is let in and gone after nobody listens any more is no matter.
        listeners.handle_begun(8);
        listeners.handle_taken(7);
        assert!(listeners.admit(7, STREAM, false).is_ok());
    }
}
