//! Counted bodies, views, strided trains, batches and the pool they live in.
//!
//! The one owner of payload memory in a core. A [`Packet`] is a 32-byte *view* of a *body*: a block
//! of memory in the [`Pool`], counted by the views that refer to it. A packet may be a *train*:
//! equal segments at a stride, with room between them for the headers and trailers that modules
//! add, so that the one copy from the application already writes the layout in which the kernel
//! segments it (UDP GSO).
//!
//! ```text
//!  body   |head| segment 0 |tail|head| segment 1 |tail|head| seg 2 |tail|   free   |
//!               ^offset    ^len                                    ^last is shorter
//!               |<------- stride ------->|
//!  after every module has added its bytes:  len == stride, no gap is left: one buffer to send
//! ```
//!
//! Invariants
//! - A view is in exactly one place. It has no destructor, because it holds no reference to its
//!   pool: whoever ends a view gives it to [`Pool::free`]; [`Pool::live_views`] counts what is out.
//! - `head` and `tail` are room that this view alone may write, before and after every segment.
//! - The bytes of a view that was shared ([`Pool::share`]) are read-only while another view of the
//!   body lives; [`Pool::make_exclusive`] copies them out.
//! - Memory is bounded: allocation fails with [`PoolFull`] at the pool's budget.
//! - Safe Rust: a packet is an index into the pool, and the pool checks it.

mod batch;
mod packet;
mod pieces;
mod pool;
mod train;

pub use batch::{BATCH_BYTES_MAX, BATCH_PACKETS_MAX, Batch};
pub use packet::{Kind, Packet};
pub use pieces::skip_bytes;
pub use pool::{ARRIVAL_BYTES_MAX, Loan, NoRoom, Pool, PoolFull, PoolStats};
pub use train::{Layout, TRAIN_BYTES_MAX, TRAIN_SEGMENTS_MAX};
