//! The control messages as a whole: round trips, hostile bytes, pieces of a stream, and the page
//! that specifies them. Every random test runs from numbered seeds and prints the one that failed.

mod hostile;
mod page;
mod random;
mod round_trip;
mod sample;
mod stream;
