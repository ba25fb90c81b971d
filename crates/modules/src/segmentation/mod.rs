//! Segmentation: units of the application become packets of the path's size, and packets units.

pub mod segment;

mod profile;
mod reassembly;
