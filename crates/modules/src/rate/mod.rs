//! Rate control: no more leaves than was agreed.

pub mod burst;

mod credit;
mod profile;
mod waiting;
