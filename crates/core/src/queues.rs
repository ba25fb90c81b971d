//! [`Queues`]: how long the queues of a core may grow.
//!
//! The bounds whose policy is to hold up or to leave out, in one place, so that a core can be run
//! with a single place in each.

/// The bounds of a core's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Units of a flow that wait for its graph; then the source is held up. At least 1.
    pub splice_units_max: usize,
    /// Bytes of a flow that wait below its graph for the pace; then the graph is fed no more. At
    /// least 1: then one unit waits.
    pub path_bytes_max: usize,
    /// Units that are held for the end of the epoch before theirs; with so many that is waited for
    /// no longer. Before it is known where theirs begins further ones are lost.
    pub held_units_max: usize,
    /// Packets of a receiver's modules that wait to be sent back; further ones are left out.
    pub feedback_packets_max: usize,
    /// Probes that wait to be sent; further questions get no answer.
    pub probes_max: usize,
    /// Stateless answers to strangers that wait to be sent; further ones are not given.
    pub answers_max: usize,
}

impl Queues {
    /// One place in each queue: slow, and everything has to go on.
    pub const ONE: Self = Self {
        splice_units_max: 1,
        path_bytes_max: 1,
        held_units_max: 1,
        feedback_packets_max: 1,
        probes_max: 1,
        answers_max: 1,
    };
}

impl Default for Queues {
    fn default() -> Self {
        Self {
            splice_units_max: 64,
            path_bytes_max: 64 * 1_024,
            held_units_max: 1_024,
            feedback_packets_max: 256,
            probes_max: 256,
            answers_max: 64,
        }
    }
}
