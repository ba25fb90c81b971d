//! [`Window`]: what is counted, from the end of the warm-up on, for a given time.
//!
//! Invariant: bytes, messages and CPU time that a window reports are those between the same two
//! instants.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Failure, cpu_s};

/// What is not counted at the beginning: slow start, caches, sizes that adapt.
pub const WARM_UP: Duration = Duration::from_millis(300);

/// How long a source goes on after its window, so that the sink's is full to its end.
pub const GRACE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    bytes: u64,
    messages: u64,
    lost: u64,
    calls: u64,
    cpu_s: f64,
}

/// Counts from the first message on and remembers what the window was.
#[derive(Debug)]
pub struct Window {
    len: Duration,
    started: Option<Instant>,
    opened: Option<(Instant, Count)>,
    closed: Option<(Duration, Count)>,
    now: Count,
}

impl Window {
    /// A window of `len` that opens [`WARM_UP`] after the first message.
    #[must_use]
    pub fn new(len: Duration) -> Self {
        Self { len, started: None, opened: None, closed: None, now: Count::default() }
    }

    /// Counts `messages` of `bytes` in all, which one call carried, and `lost` before them.
    /// True as long as the window is not over.
    pub fn count(&mut self, bytes: usize, messages: u64, lost: u64) -> bool {
        let now = Instant::now();
        let started = *self.started.get_or_insert(now);
        if self.opened.is_none() && now - started >= WARM_UP {
            self.opened = Some((now, Count { cpu_s: cpu_s(), ..self.now }));
        }
        if let (Some((opened, _)), None) = (&self.opened, &self.closed) {
            let len = now - *opened;
            if len >= self.len {
                self.closed = Some((len, Count { cpu_s: cpu_s(), ..self.now }));
            }
        }
        self.now.bytes += bytes as u64;
        self.now.messages += messages;
        self.now.lost += lost;
        self.now.calls += 1;
        self.closed.is_none()
    }

    /// Closes a window that is nearly full: the other end closed its own and left a moment before.
    /// One that did not open, as a source was held up all the time, opens in hindsight: nothing is
    /// counted in it but the CPU time, with that of the beginning.
    pub fn end(&mut self) {
        if let (Some(started), None) = (self.started, &self.opened) {
            self.opened = Some((started + WARM_UP, Count { cpu_s: 0.0, ..self.now }));
        }
        if let (Some((opened, _)), None) = (&self.opened, &self.closed) {
            // A source that was held up at the beginning has opened late.
            let is_nearly_full =
                self.started.is_some_and(|it| it.elapsed() >= WARM_UP + self.len.mul_f64(0.9));
            let len = opened.elapsed();
            if is_nearly_full && len > Duration::ZERO {
                self.closed = Some((len, Count { cpu_s: cpu_s(), ..self.now }));
            }
        }
    }

    /// Whether a source may stop: the window and the grace after it are over.
    #[must_use]
    pub fn is_past_grace(&self) -> bool {
        let all = WARM_UP + self.len + GRACE;
        self.closed.is_some() && self.started.is_some_and(|started| started.elapsed() >= all)
    }

    /// What was in the window.
    ///
    /// # Errors
    /// It never closed.
    pub fn report(&self, role: &str) -> Result<Value, Failure> {
        let (Some((_, from)), Some((len, to))) = (&self.opened, &self.closed) else {
            return Err(Failure("the other end left before the window was over".to_owned()));
        };
        Ok(json!({
            "role": role,
            "seconds": len.as_secs_f64(),
            "bytes": to.bytes - from.bytes,
            "messages": to.messages - from.messages,
            "lost": to.lost - from.lost,
            "calls": to.calls - from.calls,
            "cpu_s": to.cpu_s - from.cpu_s,
        }))
    }
}

/// Numbers at the head of messages: how many are missing between one and the next.
#[derive(Debug, Default)]
pub struct Sequence {
    next: u64,
}

impl Sequence {
    /// Takes the number at the head of `message`; the number of those missing before it. One
    /// that comes late counts nothing back: it was booked as lost.
    pub fn take(&mut self, message: &[u8]) -> u64 {
        let Some(head) = message.first_chunk::<8>() else { return 0 };
        let number = u64::from_le_bytes(*head);
        let missing = number.saturating_sub(self.next);
        self.next = self.next.max(number.saturating_add(1));
        missing
    }

    /// Takes datagrams of `size` that lie one behind the other; how many there are, and how many
    /// are missing before them.
    pub fn take_all(&mut self, bytes: &[u8], size: usize) -> (u64, u64) {
        let datagrams = bytes.chunks(size.max(1));
        datagrams.fold((0, 0), |(count, lost), it| (count + 1, lost + self.take(it)))
    }

    /// Writes the next number to the head of `message`.
    pub fn put(&mut self, message: &mut [u8]) {
        if let Some(head) = message.first_chunk_mut::<8>() {
            *head = self.next.to_le_bytes();
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_are_counted_once_and_late_ones_not_back() {
        let mut sequence = Sequence::default();
        let mut missing = |number: u64| sequence.take(&number.to_le_bytes());
        assert_eq!([missing(0), missing(1), missing(4), missing(2), missing(5)], [0, 0, 2, 0, 0]);
    }

    #[test]
    fn numbers_that_were_put_are_taken_without_a_gap() {
        let (mut out, mut back) = (Sequence::default(), Sequence::default());
        let mut message = [0; 16];
        for _ in 0..3 {
            out.put(&mut message);
            assert_eq!(back.take(&message), 0);
        }
    }

    #[test]
    fn a_window_that_is_nearly_full_can_be_ended_and_one_that_is_not_cannot() {
        let mut window = Window::new(Duration::from_secs(10));
        let ago = |s| Instant::now().checked_sub(Duration::from_secs(s)).unwrap();
        let at = |window: &mut Window, started: u64, opened: u64| {
            window.started = Some(ago(started));
            window.opened = Some((ago(opened), Count::default()));
        };
        at(&mut window, 5, 5);
        window.end();
        assert!(window.report("source").is_err());
        at(&mut window, 10, 4);
        window.end();
        assert!(window.report("source").is_ok());
        let mut held_up = Window::new(Duration::from_secs(10));
        assert!(held_up.count(20, 1, 0));
        held_up.started = Some(ago(10));
        held_up.end();
        assert_eq!(held_up.report("source").unwrap()["bytes"], 0);
    }

    #[test]
    fn a_window_counts_neither_the_warm_up_nor_what_comes_after() {
        let mut window = Window::new(Duration::from_millis(1));
        assert!(window.count(10, 1, 0));
        assert!(window.report("sink").is_err());
        window.started = Some(Instant::now().checked_sub(WARM_UP).unwrap());
        assert!(window.count(20, 1, 0));
        window.opened = window.opened.map(|(at, count)| (at - Duration::from_millis(1), count));
        assert!(!window.count(40, 1, 3));
        assert!(!window.count(80, 1, 0));
        let report = window.report("sink").unwrap();
        assert_eq!(report["bytes"], 20);
        assert_eq!(report["messages"], 1);
        assert_eq!(report["lost"], 0);
    }
}
