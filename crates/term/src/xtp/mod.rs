//! An end of XTP for a program that speaks it: arguments, the network below, signals, calls that
//! wait.

pub mod args;
pub mod below;
pub mod patience;
