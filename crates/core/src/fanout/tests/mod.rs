//! Flows that are sent once for several: one of them, one of its members, all of them.

mod member;
mod one;
mod set;
