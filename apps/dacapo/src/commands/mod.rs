//! One file per command.

pub mod check;
pub mod control;
pub mod demo;
pub mod inspect;
pub mod ls;
pub mod play;
pub mod serve;
pub mod testmovie;
