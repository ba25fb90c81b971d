//! Flow control: no more is sent than the receiving application has room for.
//!
//! ```text
//!   sender       used       limit                      receiver
//!   |------------|...........|  waits here             |--- came ---|
//!                                   <-- granted --     |-- taken --|unread|--- room ---|
//! ```
//!
//! One mechanism, which counts bytes (`window`) or units (`credit`): `Controlled` is both.

pub mod credit;
pub mod window;

mod controlled;
mod counted;
mod granting;
mod profile;
mod spending;

use controlled::Controlled;
