//! The conformance suite: what every transport does, as tests that take a maker of transports.
//!
//! One function per rule, [`run_all`] for every transport, [`run_streams`] for those whose ways are
//! opened one by one, [`run_groups`] for those that know groups. Each rule makes fresh transports,
//! and ends by checking that no view of the pool is left over. What a rule asks for depends on the
//! transport's [spec](crate::Transport::spec), and every rule asks something of every transport.
//!
//! The clock that transports are given is the number of turns, in milliseconds.
//!
//! ```text
//!   make() -> Pair { client, server }     Ends = two Sides = transport + pool + what arrived
//!      ends.client.send_all(..) ----> ends.await_server(n) -> [Arrival]
//!
//!   StreamNet: serve() --> transport <-- dial(address, token)
//!                                    <-- connect(address), bare bytes
//!
//!   Group: sender, stranger --> group --> members, each its Side
//! ```
//!
//! # Panics
//! Every function panics when a rule is broken; that is its answer.

mod datagrams;
mod groups;
mod lanes;
mod owned;
mod queues;
mod refused;
mod side;
mod streams;

pub use datagrams::{
    an_oversized_datagram_is_too_large, boundaries_are_kept_for_every_size,
    sending_to_nobody_never_hangs, trains_arrive_as_the_datagrams_they_are_made_of,
};
pub use groups::{
    Group, MakeGroup, a_group_without_a_lane_is_not_sent_to,
    a_member_that_does_not_read_holds_nobody_up, every_member_gets_the_same,
    joining_again_is_joining_once_and_memberships_are_bounded, joining_what_is_no_group_is_refused,
    only_the_source_is_heard, run_groups, who_has_left_gets_nothing,
};
pub use lanes::{
    a_burst_of_data_never_drops_control, a_datagram_arrives_by_the_lane_it_was_sent_by,
    a_lane_can_be_closed_and_opened_again, data_lanes_are_idempotent_and_bounded,
    data_without_a_lane_goes_by_control,
};
pub use owned::Owned;
pub use queues::{
    a_full_pool_leaves_the_data_for_later, a_full_queue_blocks_or_counts,
    one_call_reads_a_bounded_number, the_descriptor_is_readable_while_something_waits,
};
pub use refused::{
    a_late_preface_is_closed, a_preface_that_is_not_ours_is_closed, a_token_opens_one_stream_once,
    an_unknown_token_is_closed_without_an_answer, nobody_listening_is_told,
    streams_and_tokens_are_bounded, the_65th_unclaimed_closes_the_oldest,
};
pub use side::{Arrival, Ends, Make, Pair, Side};
pub use streams::{
    Bare, StreamNet, a_close_with_a_full_queue_loses_nothing,
    a_full_queue_loses_nothing_and_keeps_the_order, a_listener_that_says_nothing_is_given_up,
    a_peer_that_leaves_within_a_record_is_told, a_record_that_is_too_long_ends_its_stream_only,
    a_release_gives_back_what_half_a_record_holds, one_blocked_stream_holds_no_other_up, open_pair,
    what_is_not_read_now_is_there_later, what_is_sent_before_the_stream_is_open_waits,
    what_was_sent_before_a_close_arrives,
};

/// Every rule that holds for any queue.
pub fn run_all(make: Make<'_>) {
    boundaries_are_kept_for_every_size(make);
    trains_arrive_as_the_datagrams_they_are_made_of(make);
    a_datagram_arrives_by_the_lane_it_was_sent_by(make);
    data_without_a_lane_goes_by_control(make);
    a_lane_can_be_closed_and_opened_again(make);
    sending_to_nobody_never_hangs(make);
    an_oversized_datagram_is_too_large(make);
    a_full_pool_leaves_the_data_for_later(make);
    one_call_reads_a_bounded_number(make);
    the_descriptor_is_readable_while_something_waits(make);
    data_lanes_are_idempotent_and_bounded(make);
    joining_what_is_no_group_is_refused(make);
}

/// What still holds for a network on which calls of the system fail now and then, when what failed
/// can be done again: nothing is lost, doubled or cut. The maker may let them fail.
pub fn run_faulty(make: Make<'_>) {
    boundaries_are_kept_for_every_size(make);
    trains_arrive_as_the_datagrams_they_are_made_of(make);
    a_datagram_arrives_by_the_lane_it_was_sent_by(make);
    a_lane_can_be_closed_and_opened_again(make);
    an_oversized_datagram_is_too_large(make);
}

/// Every rule for queues that are small. The maker gives transports whose queues 400 datagrams of
/// 500 bytes fill.
pub fn run_small(make_small: Make<'_>) {
    a_full_queue_blocks_or_counts(make_small);
    a_burst_of_data_never_drops_control(make_small);
}

/// Every rule of streams whose queues are small. The maker gives transports whose queues 400
/// datagrams of 500 bytes fill.
pub fn run_small_streams(net_small: &dyn StreamNet) {
    run_small(&|| open_pair(net_small));
    a_full_queue_loses_nothing_and_keeps_the_order(net_small);
    a_close_with_a_full_queue_loses_nothing(net_small);
    one_blocked_stream_holds_no_other_up(net_small);
}

/// Every rule of streams; those in [`run_all`] and [`run_small`] hold for them, too.
pub fn run_streams(net: &dyn StreamNet) {
    what_is_sent_before_the_stream_is_open_waits(net);
    what_was_sent_before_a_close_arrives(net);
    what_is_not_read_now_is_there_later(net);
    a_peer_that_leaves_within_a_record_is_told(net);
    a_record_that_is_too_long_ends_its_stream_only(net);
    a_release_gives_back_what_half_a_record_holds(net);
    a_listener_that_says_nothing_is_given_up(net);
    an_unknown_token_is_closed_without_an_answer(net);
    a_preface_that_is_not_ours_is_closed(net);
    a_late_preface_is_closed(net);
    a_token_opens_one_stream_once(net);
    the_65th_unclaimed_closes_the_oldest(net);
    nobody_listening_is_told(net);
    streams_and_tokens_are_bounded(net);
}
