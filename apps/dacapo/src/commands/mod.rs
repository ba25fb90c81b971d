//! One file per command.

pub mod bench;
pub mod check;
pub mod control;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod inspect;
pub mod link;
pub mod ls;
pub mod modules;
pub mod play;
pub mod serve;
pub mod testmovie;
pub mod transfer;
pub mod xtp;
