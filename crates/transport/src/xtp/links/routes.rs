//! [`Routes`]: how addresses are reached: by which socket, with which label, and which association
//! is there.
//!
//! Invariant: of addresses without an association at most [`ROUTES_MAX`] are remembered.

use std::collections::HashMap;
use std::net::SocketAddr;

/// The most addresses that are remembered.
const ROUTES_MAX: usize = 4 * crate::DATA_LANES_MAX;

/// How an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) door: usize,
    pub(crate) label: u32,
    /// The association with it.
    pub(crate) link: Option<usize>,
}

/// The ways to addresses.
#[derive(Debug, Default)]
pub(super) struct Routes(HashMap<SocketAddr, Route>);

impl Routes {
    /// How an address is reached, where that is known.
    pub(super) fn get(&self, remote: SocketAddr) -> Option<Route> {
        self.0.get(&remote).copied()
    }

    /// The association with an address.
    pub(super) fn number_of(&self, remote: SocketAddr) -> Option<usize> {
        self.get(remote).and_then(|route| route.link)
    }

    /// Something has come from an address with which there is no association.
    pub(super) fn note(&mut self, remote: SocketAddr, door: usize, label: u32) {
        if self.0.len() >= ROUTES_MAX {
            self.0.retain(|_, route| route.link.is_some());
        }
        self.0.insert(remote, Route { door, label, link: None });
    }

    /// There is an association with an address.
    pub(super) fn bind(&mut self, remote: SocketAddr, route: Route) {
        self.0.insert(remote, route);
    }

    /// The association with an address is over; what is still said goes the same way.
    pub(super) fn free(&mut self, remote: SocketAddr) {
        if let Some(route) = self.0.get_mut(&remote) {
            route.link = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: usize) -> SocketAddr {
        ([10, 0, (number >> 8) as u8, number as u8], 9).into()
    }

    #[test]
    fn an_address_is_known_with_its_association_and_without() {
        let mut routes = Routes::default();
        assert_eq!((routes.get(at(1)), routes.number_of(at(1))), (None, None));
        routes.note(at(1), 2, 7);
        let route = Route { door: 2, label: 7, link: None };
        assert_eq!((routes.get(at(1)), routes.number_of(at(1))), (Some(route), None));
        routes.bind(at(1), Route { link: Some(5), ..route });
        assert_eq!(routes.number_of(at(1)), Some(5));
        routes.free(at(1));
        routes.free(at(2));
        assert_eq!((routes.get(at(1)), routes.get(at(2))), (Some(route), None));
    }

    #[test]
    fn of_too_many_addresses_those_without_an_association_are_forgotten() {
        let mut routes = Routes::default();
        routes.bind(at(0), Route { door: 0, label: 7, link: Some(5) });
        (1..=ROUTES_MAX).for_each(|number| routes.note(at(number), 0, 7));
        assert_eq!((routes.0.len(), routes.number_of(at(0))), (2, Some(5)));
        assert!(routes.get(at(ROUTES_MAX)).is_some());
    }
}
