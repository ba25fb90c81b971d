//! Segmentation: units of the application become packets of the path's size, and packets units.
//!
//! What it is not: the copy of the unit; that was made once, into the layout that is found here.

pub mod segment;

mod profile;
mod reassembly;
