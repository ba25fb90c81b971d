//! What an application asks of a flow, and the file in which it does.
//!
//! The closed vocabulary of [`Attributes`] (throughput, delay, loss, order …), the units in which
//! their values are written, and the [`SessionFile`], the TOML text with which the creator of a
//! session describes it. Everything that is read keeps its line, so that whoever checks it further
//! (is this graph legal?) can still answer with `file:line`. And [`configure`], which chooses
//! modules and a transport from attributes and says why.
//!
//! Nothing here opens a file or knows which modules exist; and the bytes of attributes on the wire
//! are `dacapo-wire`'s.
//!
//! ```text
//!   movie.toml ──> toml_edit ──> session_file ──> SessionFile { flows: [FlowSpec] }
//!                                  │      │
//!                  units ── value ─┘      └── attribute (numbers, names, ranges)
//!                                  │
//!                      problem: every mistake, each with its line
//! ```
//!
//! Invariants: text from outside never panics and never allocates more than a small multiple of
//! its length, which is at most [`MAX_FILE_LEN`]; all mistakes are reported at once, each with a
//! line of the file; a value that was accepted is within the range of its key; what the `format_*`
//! functions write, the `parse_*` functions read back to the same number.
//!
//! ```
//! use dacapo_qos::{AttributeKey, SessionFile};
//!
//! let text = r#"
//! [session]
//! name = "talk"
//!
//! [[flow]]
//! name = "voice"
//! from = "creator"
//! source = { raw = true }
//! attributes = { delay = "150 ms", order = "ordered" }
//! "#;
//! let file = SessionFile::parse(text, "talk.toml").unwrap();
//! let delay = file.flows[0].attributes.get(AttributeKey::Delay).unwrap();
//! assert_eq!(delay.max, Some(150_000_000));
//!
//! let errors = SessionFile::parse(&text.replace("150 ms", "150 mm"), "talk.toml").unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     "talk.toml:9: flow[0].attributes.delay: \"150 mm\" is not a duration; \
//!      allowed: a number with a unit of ns, us, ms, s, min, for example \"50 ms\""
//! );
//! ```

// All of this crate reads text that others wrote.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

pub mod attribute;
pub mod configure;
mod decimal;
mod nearest;
mod path;
mod problem;
mod schema;
mod session_file;
mod spanned;
mod text_error;
mod units;
mod value;
mod word;

pub use attribute::{
    AttributeError, AttributeKey, AttributeNumbers, Attributes, Bound, Bounds, Contradiction, Kind,
    NumbersError, Quantity, Requirement, RequirementError, level,
};
pub use configure::{Choice, Explanation, Outcome, Pins, Refusal, Request, Use, choose};
pub use nearest::nearest;
pub use path::{PathAssumption, PathKey, PathPreset};
pub use problem::{Errors, Problem};
pub use schema::schema;
pub use session_file::{
    AccessUse, FieldValue, Fields, Flawed, FlowBuilder, FlowSpec, MAX_ATTRIBUTES, MAX_FILE_LEN,
    MAX_FLOWS, MAX_GIVE_UP_NS, MAX_MODULES, MAX_NAME_LEN, MAX_PARAMS, MAX_UNIT_LEN, ModuleUse,
    Param, Passes, Role, SessionBuilder, SessionFile, Source, StreamKind, StreamSelector,
    TestMedia, is_name,
};
pub use spanned::Spanned;
pub use text_error::{MAX_TEXT_LEN, TextError};
pub use units::{
    Dimension, PPB, UnitError, UnitFault, format_duration, format_frequency, format_rate,
    format_ratio, format_size, parse_duration, parse_frequency, parse_rate, parse_ratio,
    parse_size,
};
pub use value::{Value, ValueError};
