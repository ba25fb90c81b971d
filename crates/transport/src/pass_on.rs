//! [`pass_on!`](crate::pass_on): methods of a transport that something in it answers.
//!
//! ```text
//!   impl Transport for Tap       send, recv: its own       impl StreamTransport for Quic
//!     pass_on!(inner: fd, …);                                pass_on!(streams: expect, …);
//!                 |                                                       |
//!         tap.inner.fd()                                         quic.streams.expect(…)
//! ```
//!
//! Which ones are passed on every user names, so that what is its own can be seen.
//!
//! Invariant: a transport around another passes on or answers every method, also one with a body in
//! the trait: such an `impl` denies `clippy::missing_trait_methods`, and `cargo xtask ci` fails
//! when the trait gets a method that it does not name.

/// Within an `impl` of [`Transport`](crate::Transport) or
/// [`StreamTransport`](crate::StreamTransport): the methods that are answered by the field before
/// the colon, by its method of the same name.
#[macro_export]
macro_rules! pass_on {
    ($to:ident: $($method:ident),+ $(,)?) => { $($crate::pass_on! { @ $to $method })+ };
    (@ $to:ident spec) => {
        fn spec(&self) -> &'static $crate::TransportSpec {
            self.$to.spec()
        }
    };
    (@ $to:ident datagram_len_max) => {
        fn datagram_len_max(&self) -> usize {
            self.$to.datagram_len_max()
        }
    };
    (@ $to:ident local_addrs) => {
        fn local_addrs(&self) -> &[::dacapo_base::Address] {
            self.$to.local_addrs()
        }
    };
    (@ $to:ident open_data) => {
        fn open_data(
            &mut self,
            remote: ::dacapo_base::Address,
        ) -> ::std::io::Result<::dacapo_base::Address> {
            self.$to.open_data(remote)
        }
    };
    (@ $to:ident join) => {
        fn join(&mut self, wanted: &$crate::Membership) -> Result<(), $crate::JoinError> {
            self.$to.join(wanted)
        }
    };
    (@ $to:ident leave) => {
        fn leave(&mut self, membership: &$crate::Membership) {
            self.$to.leave(membership);
        }
    };
    (@ $to:ident close_data) => {
        fn close_data(&mut self, remote: ::dacapo_base::Address) {
            self.$to.close_data(remote);
        }
    };
    (@ $to:ident send) => {
        fn send(
            &mut self,
            outgoing: &$crate::Outgoing<'_>,
        ) -> Result<$crate::Sent, $crate::SendError> {
            self.$to.send(outgoing)
        }
    };
    (@ $to:ident poll_too_large) => {
        fn poll_too_large(&mut self) -> Option<$crate::TooLong> {
            self.$to.poll_too_large()
        }
    };
    (@ $to:ident poll_refused) => {
        fn poll_refused(&mut self) -> Option<::dacapo_base::Address> {
            self.$to.poll_refused()
        }
    };
    (@ $to:ident fd) => {
        fn fd(&self) -> Option<::std::os::fd::BorrowedFd<'_>> {
            self.$to.fd()
        }
    };
    (@ $to:ident watch_in) => {
        fn watch_in(&mut self, registry: ::dacapo_sys::poll::Registry) -> ::std::io::Result<bool> {
            self.$to.watch_in(registry)
        }
    };
    (@ $to:ident handle_ready) => {
        fn handle_ready(&mut self, event: ::dacapo_sys::poll::Event) {
            self.$to.handle_ready(event);
        }
    };
    (@ $to:ident stats) => {
        fn stats(&self) -> $crate::TransportStats {
            self.$to.stats()
        }
    };
    (@ $to:ident expect) => {
        fn expect(&mut self, token: $crate::stream::Token, until: ::dacapo_base::Time) {
            self.$to.expect(token, until);
        }
    };
    (@ $to:ident set_terms) => {
        fn set_terms(
            &mut self,
            token: &$crate::stream::Token,
            terms: &$crate::stream::StreamParams,
        ) {
            self.$to.set_terms(token, terms);
        }
    };
    (@ $to:ident forget) => {
        fn forget(&mut self, token: &$crate::stream::Token) {
            self.$to.forget(token);
        }
    };
    (@ $to:ident poll_stream) => {
        fn poll_stream(&mut self) -> Option<$crate::StreamEvent> {
            self.$to.poll_stream()
        }
    };
    (@ $to:ident set_reading) => {
        fn set_reading(&mut self, remote: ::dacapo_base::Address, is_reading: bool) {
            self.$to.set_reading(remote, is_reading);
        }
    };
    (@ $to:ident set_patience) => {
        fn set_patience(
            &mut self,
            remote: ::dacapo_base::Address,
            patience: ::std::time::Duration,
        ) {
            self.$to.set_patience(remote, patience);
        }
    };
    (@ $to:ident estimates) => {
        fn estimates(
            &self,
            remote: ::dacapo_base::Address,
        ) -> ::std::option::Option<::dacapo_lift::BelowSeen> {
            self.$to.estimates(remote)
        }
    };
    (@ $to:ident close_stream) => {
        fn close_stream(&mut self, remote: ::dacapo_base::Address) {
            self.$to.close_stream(remote);
        }
    };
    (@ $to:ident stream_count) => {
        fn stream_count(&self) -> usize {
            self.$to.stream_count()
        }
    };
    (@ $to:ident release) => {
        fn release(&mut self, pool: &mut ::dacapo_packet::Pool) {
            self.$to.release(pool);
        }
    };
}
