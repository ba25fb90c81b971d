//! [`pass_on!`](crate::pass_on): methods of a network that something in it answers.
//!
//! ```text
//!   impl Connectionless for Recorded     send, recv: its own
//!     pass_on!(inner: local, …);         recorded.inner.local()
//! ```
//!
//! Which ones are passed on every user names, so that what is its own can be seen.
//!
//! Invariant: a network around another passes on or answers every method, also one with a body in
//! the trait: such an `impl` denies `clippy::missing_trait_methods`.

/// Within an `impl` of [`Connectionless`](crate::Connectionless): the methods that are answered by
/// the field before the colon, a network of either kind, by its method of the same name.
#[macro_export]
macro_rules! pass_on {
    ($to:ident: $($method:ident),+ $(,)?) => { $($crate::pass_on! { @ $to $method })+ };
    (@ $to:ident local) => {
        fn local(&self) -> ::std::net::SocketAddr {
            self.$to.local()
        }
    };
    (@ $to:ident packet_len_max) => {
        fn packet_len_max(&self) -> usize {
            self.$to.packet_len_max()
        }
    };
    (@ $to:ident carriage) => {
        fn carriage(&self) -> $crate::Carriage {
            self.$to.carriage()
        }
    };
    (@ $to:ident address) => {
        fn address(
            &self,
            peer: ::std::net::SocketAddr,
        ) -> Result<::std::net::SocketAddr, $crate::AddressError> {
            self.$to.address(peer)
        }
    };
    (@ $to:ident watch) => {
        fn watch(&mut self, registry: ::dacapo_sys::poll::Registry) -> ::std::io::Result<()> {
            self.$to.watch(registry)
        }
    };
    (@ $to:ident watch_capacity) => {
        fn watch_capacity(&mut self, is_wanted: bool) -> ::std::io::Result<()> {
            self.$to.watch_capacity(is_wanted)
        }
    };
    (@ $to:ident handle_event) => {
        fn handle_event(&mut self, place: u16, event: ::dacapo_sys::poll::Event) {
            self.$to.handle_event(place, event);
        }
    };
    (@ $to:ident poll_capacity) => {
        fn poll_capacity(&mut self) -> Option<(::std::net::SocketAddr, bool)> {
            self.$to.poll_capacity()
        }
    };
    (@ $to:ident recv) => {
        fn recv<'a>(
            &'a mut self,
            now: ::dacapo_base::Time,
            into: &'a mut [u8],
        ) -> Result<$crate::Arrival<'a>, $crate::RecvError> {
            self.$to.recv(now, into)
        }
    };
    (@ $to:ident join) => {
        fn join(&mut self, group: $crate::Group) -> Result<(), $crate::JoinError> {
            self.$to.join(group)
        }
    };
    (@ $to:ident take_missed) => {
        fn take_missed(&mut self) -> u64 {
            self.$to.take_missed()
        }
    };
    (@ $to:ident deadline) => {
        fn deadline(&self) -> ::dacapo_base::Time {
            self.$to.deadline()
        }
    };
    (@ $to:ident handle_time) => {
        fn handle_time(&mut self, now: ::dacapo_base::Time) {
            self.$to.handle_time(now);
        }
    };
}
