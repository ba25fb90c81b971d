//! Flow control: no more is sent than the receiving application has room for.
//!
//! ```text
//!   sender       used       limit                      receiver
//!   |------------|...........|  waits here             |--- came ---|
//!                                   <-- granted --     |-- taken --|unread|--- room ---|
//! ```
//!
//! One mechanism, which counts bytes (`window`) or units (`credit`): `Controlled` is both. In a
//! group each receiver grants for itself, and `slow` says what becomes of one who is slower.

pub mod credit;
pub mod window;

mod controlled;
mod counted;
mod granting;
mod profile;
mod receivers;
mod spending;

use controlled::Controlled;
