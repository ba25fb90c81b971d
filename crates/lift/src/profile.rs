//! [`Profile`] and [`TransportProfile`]: how a module, or a transport, changes what is predicted,
//! and what it costs.
//!
//! The part of a spec that is computed.
//!
//! Invariant: a profile is a pure function; a better service below never makes a worse one above
//! ([`crate::conformance::a_better_service_below_is_never_worse_above`]).

use crate::{Cost, Figures, Params, Service, Setting};
use std::fmt;
use std::panic::RefUnwindSafe;

/// The most operating points that a module proposes.
pub const POINTS_MAX: usize = 3;

/// How a C-module changes figures, and what it costs.
pub trait Profile: fmt::Debug + Sync + RefUnwindSafe {
    /// Whether the module may be chosen for such units over such a path, where nobody names it.
    fn suits(&self, _setting: &Setting) -> bool {
        true
    }

    /// The values of the parameters that are worth trying above this service: 1 to [`POINTS_MAX`].
    /// They depend on the path and the units, never on what is asked for.
    fn points(&self, _setting: &Setting, _below: &Service) -> Vec<Params> {
        vec![Params::new()]
    }

    /// What is predicted above, from what is below.
    fn figures(&self, _params: &Params, _setting: &Setting, below: &Service) -> Figures {
        below.figures
    }

    /// What the module itself costs.
    fn cost(&self, _params: &Params) -> Cost {
        Cost::ZERO
    }

    /// How old what it hands over may be at most, in ns, where it gives
    /// [`Property::Timely`](crate::Property::Timely): no more than is asked for, in what it
    /// proposes.
    fn age_ns_max(&self, _params: &Params) -> u64 {
        0
    }

    /// How many packets it hands down for one at most.
    fn copies(&self, _params: &Params) -> u64 {
        1
    }

    /// How many packets it hands down for every 1,000 that it gets, at least that: what everything
    /// below is paid for.
    fn packets_milli(&self, params: &Params, _setting: &Setting) -> u64 {
        self.copies(params).saturating_mul(1_000)
    }
}

/// What a transport makes of a path.
pub trait TransportProfile: fmt::Debug + Sync + RefUnwindSafe {
    /// What is predicted of its datagrams.
    fn figures(&self, setting: &Setting) -> Figures;

    /// What it costs, system calls and the kernel's copies included.
    fn cost(&self) -> Cost;
}

/// The profile of a module that changes no figure and whose cost nobody has measured.
#[derive(Debug)]
pub struct Neutral;

impl Profile for Neutral {}
