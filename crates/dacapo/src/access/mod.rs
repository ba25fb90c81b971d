//! Access modules: where the units of a flow come from and where they go.
//!
//! ```text
//!   Creator                                        Participant
//!   medium   file.rs, test.rs        unit          arrival.rs   header, generation, delay, playout
//!     |      Pictures, Sound        =======>           |
//!   source   video.rs, audio.rs                    sink       record.rs   files } interleave.rs
//!     |      cursor.rs: which unit                            player.rs   ffplay}
//!   timeline.rs: where in the medium  <- commands               count.rs    figures
//!   raw.rs   bytes of the application: RawSender, RawReceiver   progress.rs what is shown
//!                                                  pass.rs     hashes of what is repeated
//!   messages/  messages of any length as such bytes: Outbox, Inbox
//! ```
//!
//! Invariant: nothing here reads a clock; files are opened here and nowhere else, by names that no
//! peer chose (`names.rs`).

mod arrival;
pub mod audio;
mod budget;
pub mod count;
pub mod cursor;
mod entry;
pub mod file;
pub(crate) mod found;
pub mod histogram;
mod interleave;
pub mod live;
pub mod media;
pub mod messages;
mod names;
mod pass;
pub mod player;
pub mod progress;
pub mod raw;
pub mod record;
pub mod sinks;
mod source;
pub mod test;
pub mod timeline;
pub mod video;
pub(crate) mod words;

pub use audio::AudioSource;
pub use entry::{
    AccessEntry, AccessParam, AccessSpec, Carries, Open, Settings, Setup, Shared, Wrong,
};
pub use found::{Access, Found, Opening};
pub use histogram::Summary;
pub use media::{Pictures, Sound};
pub use player::PlayerHandle;
pub use progress::{Progress, Snapshot};
pub use raw::{RawReceiver, RawSender};
pub use sinks::{Sinks, Wanted};
pub use timeline::{Extent, Speed, Timeline};
pub use video::VideoSource;
