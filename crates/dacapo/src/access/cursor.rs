//! [`Cursor`]: which unit of a medium is due, by a [`Timeline`].
//!
//! The place of one source in its medium. A medium is a [`Grid`]: units at rising times.
//!
//! ```text
//!   playing        0 1 2 3 4 5 …        every unit once, in order, none before its time
//!   fast forward   4     12     20      every 8th at the rate of the medium; the late ones are
//!   fast reverse   20    12     4  0    left out; the unit at the end is shown when it stops there
//! ```
//!
//! Invariants: between two jumps every unit is sent once and in order, also over STOP and PLAY and
//! when the sender falls behind its timeline; the flow ends when the *session* is at its end, so
//! the flows of a session end together and none of them ends while RWD could still bring it back;
//! of a medium that is repeated every unit of every pass is sent.

use super::timeline::{TRICK_STEP, Timeline};
use crate::command::State;
use dacapo_base::Time;

/// A medium as units at rising times.
pub trait Grid {
    /// How many units there are.
    fn count(&self) -> u64;

    /// When a unit begins, in nanoseconds from the start of the medium.
    fn time_ns(&self, index: u64) -> u64;

    /// The unit within which a time lies; possibly beyond the last one.
    fn index_at(&self, time_ns: u64) -> u64;

    /// The first unit that does not begin before a time.
    fn first_from(&self, time_ns: u64) -> u64 {
        let index = self.index_at(time_ns);
        if self.time_ns(index) < time_ns { index + 1 } else { index }
    }
}

/// What a source is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send this unit, then call [`Cursor::advance`].
    Unit {
        /// Which.
        index: u64,
        /// It is shown out of the course of the medium: FF or FR.
        trick: bool,
    },
    /// Nothing before this time.
    Wait(Time),
    /// Nothing until the next command.
    Idle,
    /// The medium is over.
    End,
}

/// The place of a source in its medium.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// The next unit; none when a stretch of FF or FR is through.
    next: Option<u64>,
    jumps: Option<u64>,
    resounds: u64,
    /// `next` is of FF or FR.
    stepping: bool,
}

impl Cursor {
    /// What is due. `silent` says that the medium is one that is not sent in FF, in FR and at
    /// other rates: sound.
    pub fn poll(
        &mut self,
        now: Time,
        timeline: &mut Timeline,
        grid: &impl Grid,
        silent: bool,
    ) -> Due {
        timeline.settle(now);
        self.follow(timeline, grid, silent);
        match timeline.state() {
            State::Playing => self.poll_passes(now, timeline, grid, silent),
            _ if silent => Due::Idle,
            State::Stopped => match self.next.filter(|_| self.stepping) {
                Some(index) => Due::Unit { index, trick: true },
                None => Due::Idle,
            },
            State::FastForward | State::FastReverse => self.poll_stepping(now, timeline, grid),
        }
    }

    /// Finds its place anew after a jump.
    fn follow(&mut self, timeline: &Timeline, grid: &impl Grid, silent: bool) {
        if self.jumps.replace(timeline.jumps()) == Some(timeline.jumps()) {
            return;
        }
        let at = timeline.anchor_ns();
        let last = grid.count().checked_sub(1);
        let stepped = !silent
            && (timeline.is_parked()
                || matches!(timeline.state(), State::FastForward | State::FastReverse));
        self.stepping = stepped;
        self.next = if stepped {
            last.map(|last| grid.index_at(at).min(last))
        } else {
            Some(grid.first_from(at))
        };
    }

    /// What is due of this pass, or of the next one when all of this has been sent.
    fn poll_passes(
        &mut self,
        now: Time,
        timeline: &mut Timeline,
        grid: &impl Grid,
        silent: bool,
    ) -> Due {
        loop {
            match self.poll_playing(now, timeline, grid, silent) {
                // Each takes a whole pass of the time that has gone by.
                Due::End if timeline.repeat(now) => self.follow(timeline, grid, silent),
                due => return due,
            }
        }
    }

    fn poll_playing(
        &mut self,
        now: Time,
        timeline: &Timeline,
        grid: &impl Grid,
        silent: bool,
    ) -> Due {
        self.leave_stepping(timeline, grid);
        let end = timeline.time_of_end();
        if silent && !timeline.sounds() {
            return end_or_wait(now, end);
        }
        if silent && self.resounds != timeline.resounds() {
            // Sound that was not heard is not made up for.
            self.resounds = timeline.resounds();
            self.next = self.next.max(Some(grid.first_from(timeline.anchor_ns())));
        }
        let Some(index) = self.next.filter(|index| *index < grid.count()) else {
            return end_or_wait(now, end);
        };
        match timeline.time_of(grid.time_ns(index)) {
            Some(due) if due <= now => Due::Unit { index, trick: false },
            Some(due) => Due::Wait(due),
            None => Due::Idle,
        }
    }

    /// A stretch that stopped by itself may be played on from without a jump.
    fn leave_stepping(&mut self, timeline: &Timeline, grid: &impl Grid) {
        if self.stepping {
            self.stepping = false;
            self.next = Some(grid.first_from(timeline.anchor_ns()));
        }
    }

    fn poll_stepping(&mut self, now: Time, timeline: &Timeline, grid: &impl Grid) -> Due {
        let Some(mut index) = self.next else {
            return timeline.time_of_end().map_or(Due::Idle, Due::Wait);
        };
        // What came to be late is left out.
        let here = grid.index_at(timeline.position_ns(now));
        if timeline.state() == State::FastForward {
            index += here.saturating_sub(index) / TRICK_STEP * TRICK_STEP;
            index = index.min(grid.count().saturating_sub(1));
        } else {
            index -= index.saturating_sub(here) / TRICK_STEP * TRICK_STEP;
        }
        self.next = Some(index);
        match timeline.time_of(grid.time_ns(index)) {
            Some(due) if due <= now => Due::Unit { index, trick: true },
            Some(due) => Due::Wait(due),
            None => Due::Idle,
        }
    }

    /// The unit that was due has been sent.
    pub fn advance(&mut self, timeline: &Timeline, grid: &impl Grid) {
        let Some(index) = self.next else { return };
        self.next = match timeline.state() {
            State::Playing => Some(index + 1),
            State::FastForward => Some(index + TRICK_STEP).filter(|next| *next < grid.count()),
            State::FastReverse => index.checked_sub(TRICK_STEP),
            State::Stopped => None,
        };
    }
}

/// At its end the session ends; until then a medium that has nothing left waits.
fn end_or_wait(now: Time, end: Option<Time>) -> Due {
    match end {
        Some(end) if end <= now => Due::End,
        Some(end) => Due::Wait(end),
        None => Due::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{Extent, Speed};
    use super::*;
    use crate::command::MediaCommand;
    use dacapo_qos::Passes;

    const MS: u64 = 1_000_000;

    /// Units of so many milliseconds.
    struct Even {
        count: u64,
        ms: u64,
    }

    impl Grid for Even {
        fn count(&self) -> u64 {
            self.count
        }

        fn time_ns(&self, index: u64) -> u64 {
            index * self.ms * MS
        }

        fn index_at(&self, time_ns: u64) -> u64 {
            time_ns / (self.ms * MS)
        }
    }

    const VIDEO: Even = Even { count: 250, ms: 40 };
    const AUDIO: Even = Even { count: 490, ms: 20 };

    struct Player {
        timeline: Timeline,
        cursor: Cursor,
        grid: Even,
        silent: bool,
        now: Time,
        end: bool,
    }

    impl Player {
        fn new(grid: Even, silent: bool, speed: f64) -> Self {
            let (nominal, passes) = (Some((25, 1)), Passes::ONCE);
            Self::repeated(
                grid,
                silent,
                speed,
                Extent { duration_ns: 10_000 * MS, nominal, passes },
            )
        }

        fn repeated(grid: Even, silent: bool, speed: f64, extent: Extent) -> Self {
            let mut timeline = Timeline::new(extent, Speed::from_factor(speed));
            timeline.start(Time::ZERO);
            let (cursor, now) = (Cursor::default(), Time::ZERO);
            Self { timeline, cursor, grid, silent, now, end: false }
        }

        /// What is sent until a time: (index, trick, milliseconds).
        fn until(&mut self, ms: u64) -> Vec<(u64, bool, u64)> {
            let mut sent = Vec::new();
            loop {
                match self.cursor.poll(self.now, &mut self.timeline, &self.grid, self.silent) {
                    Due::Unit { index, trick } => {
                        sent.push((index, trick, self.now.as_nanos() / MS));
                        self.cursor.advance(&self.timeline, &self.grid);
                    }
                    Due::Wait(at) if at < Time::from_millis(ms) => self.now = at,
                    Due::End => {
                        self.end = true;
                        return sent;
                    }
                    Due::Wait(_) | Due::Idle => {
                        self.now = Time::from_millis(ms);
                        return sent;
                    }
                }
            }
        }

        fn command(&mut self, command: MediaCommand) {
            self.timeline.command(self.now, command).unwrap();
        }
    }

    fn indexes(sent: &[(u64, bool, u64)]) -> Vec<u64> {
        sent.iter().map(|(index, ..)| *index).collect()
    }

    #[test]
    fn playing_sends_every_unit_once_when_it_is_due_and_ends_with_the_session() {
        let mut video = Player::new(VIDEO, false, 1.0);
        let sent = video.until(60_000);
        assert_eq!(indexes(&sent), (0..250).collect::<Vec<_>>());
        assert!(sent.iter().all(|(index, trick, ms)| *ms == index * 40 && !trick));
        assert!(video.end && video.now == Time::from_millis(10_000));
        let mut audio = Player::new(AUDIO, true, 4.0);
        let sent = audio.until(60_000);
        assert_eq!(indexes(&sent), (0..490).collect::<Vec<_>>());
        assert!(audio.end && audio.now == Time::from_millis(2_500));
    }

    fn thrice(grid: Even, silent: bool, ms: u64) -> Player {
        let passes = Passes::Times(3);
        let extent = Extent { duration_ns: ms * MS, nominal: Some((25, 1)), passes };
        Player::repeated(grid, silent, 1.0, extent)
    }

    #[test]
    fn a_medium_that_is_repeated_begins_again_when_the_session_ends() {
        let mut video = thrice(Even { count: 5, ms: 40 }, false, 250);
        let sent = video.until(60_000);
        let times = |from: u64| (0..5).map(move |index| (index, false, from + index * 40));
        let expected: Vec<_> = times(0).chain(times(250)).chain(times(500)).collect();
        assert_eq!(sent, expected);
        assert_eq!((video.timeline.generation(), video.end), (2, true));
        assert_eq!(video.now, Time::from_millis(750));
    }

    #[test]
    fn who_falls_behind_a_medium_that_is_repeated_leaves_nothing_out() {
        let mut video = thrice(Even { count: 5, ms: 40 }, false, 250);
        video.until(100);
        video.now = Time::from_millis(700);
        let sent = indexes(&video.until(60_000));
        assert_eq!(sent, [3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn sources_of_one_session_repeat_it_together_whoever_is_behind() {
        for (command, ms) in
            [(MediaCommand::Stop, 601), (MediaCommand::Rwd, 601), (MediaCommand::Ff, 1_203)]
        {
            let mut video = thrice(Even { count: 15, ms: 40 }, false, 600);
            let mut audio = thrice(Even { count: 20, ms: 20 }, true, 600);
            video.until(ms);
            audio.until(560);
            (video.now, audio.now) = (Time::from_millis(ms), Time::from_millis(ms));
            let answers = [&mut video, &mut audio]
                .map(|player| player.timeline.command(player.now, command).unwrap());
            assert_eq!(answers[0], answers[1], "{command:?}");
            assert_eq!(
                answers[0].position_ns,
                if ms == 1_203 { 3 * MS } else { 0 }
                    + match command {
                        MediaCommand::Stop => MS,
                        _ => 0,
                    }
            );
        }
    }

    #[test]
    fn who_jumps_stays_in_the_pass() {
        let mut video = thrice(Even { count: 5, ms: 40 }, false, 200);
        video.until(290);
        video.command(MediaCommand::Fwd);
        assert_eq!(video.until(1_000), []);
        video.command(MediaCommand::Play);
        assert_eq!(indexes(&video.until(60_000)), [0, 1, 2, 3, 4], "the third and last");
        assert!(video.end);
    }

    #[test]
    fn stop_and_play_miss_nothing_and_repeat_nothing() {
        let mut video = Player::new(VIDEO, false, 1.0);
        let mut sent = indexes(&video.until(1_010));
        video.now = Time::from_millis(1_041);
        video.command(MediaCommand::Stop);
        assert_eq!(video.until(5_000), []);
        video.command(MediaCommand::Play);
        sent.extend(indexes(&video.until(60_000)));
        assert_eq!(sent, (0..250).collect::<Vec<_>>());
    }

    #[test]
    fn fast_forward_and_reverse_show_every_8th_at_the_rate_of_the_medium() {
        let mut video = Player::new(VIDEO, false, 1.0);
        video.until(1_000);
        video.command(MediaCommand::Ff);
        let sent = video.until(1_200);
        assert_eq!(indexes(&sent), [25, 33, 41, 49, 57]);
        assert!(sent.iter().zip([1_000, 1_040, 1_080, 1_120, 1_160]).all(|(s, ms)| s.2 == ms));
        assert!(sent.iter().all(|(_, trick, _)| *trick));
        video.command(MediaCommand::Fr);
        assert_eq!(indexes(&video.until(1_320)), [65, 57, 49]);
        video.command(MediaCommand::Play);
        let sent = video.until(1_400);
        assert_eq!((indexes(&sent), sent[0].1), (vec![41, 42], false));
        let mut audio = Player::new(AUDIO, true, 1.0);
        audio.until(1_000);
        audio.command(MediaCommand::Ff);
        assert_eq!(audio.until(1_200), []);
        audio.command(MediaCommand::Fr);
        audio.until(1_320);
        audio.command(MediaCommand::Play);
        assert_eq!(indexes(&audio.until(1_380)), [82, 83, 84]);
    }

    #[test]
    fn stretches_stop_at_the_ends_and_show_the_unit_there() {
        let mut video = Player::new(VIDEO, false, 1.0);
        video.until(9_000);
        video.command(MediaCommand::Ff);
        assert_eq!(indexes(&video.until(20_000)), [225, 233, 241, 249, 249]);
        assert_eq!(video.timeline.state(), State::Stopped);
        video.command(MediaCommand::Fr);
        let sent = indexes(&video.until(40_000));
        assert_eq!((sent[0], *sent.last().unwrap()), (249, 0));
        assert_eq!(sent.len(), 33);
        video.command(MediaCommand::Play);
        assert_eq!(indexes(&video.until(40_090)), [0, 1, 2]);
    }

    #[test]
    fn fwd_stays_at_the_end_and_rwd_comes_back() {
        let mut video = Player::new(VIDEO, false, 1.0);
        video.until(1_000);
        video.command(MediaCommand::Fwd);
        assert_eq!(video.until(50_000), []);
        assert!(!video.end);
        video.command(MediaCommand::Rwd);
        assert_eq!(video.until(60_000), []);
        video.command(MediaCommand::Play);
        assert_eq!(indexes(&video.until(60_100)), [0, 1, 2]);
        video.command(MediaCommand::Rwd);
        assert_eq!(indexes(&video.until(60_150)), [0, 1]);
        video.command(MediaCommand::Fwd);
        video.command(MediaCommand::Play);
        video.until(70_000);
        assert!(video.end);
    }

    #[test]
    fn another_frame_rate_shows_every_picture_slower_and_skips_the_sound() {
        let (mut video, mut audio) =
            (Player::new(VIDEO, false, 1.0), Player::new(AUDIO, true, 1.0));
        for player in [&mut video, &mut audio] {
            player.until(1_000);
            player.command(MediaCommand::Fps(12_500));
        }
        assert_eq!(indexes(&video.until(1_400)), [25, 26, 27, 28, 29]);
        assert_eq!(audio.until(1_400), []);
        for player in [&mut video, &mut audio] {
            player.command(MediaCommand::Fps(0));
        }
        assert_eq!(indexes(&video.until(1_500)), [30, 31, 32]);
        assert_eq!(indexes(&audio.until(1_440)), [60, 61]);
    }

    #[test]
    fn a_sender_that_falls_behind_misses_no_unit_while_playing_and_skips_while_stepping() {
        let mut video = Player::new(VIDEO, false, 1.0);
        video.now = Time::from_millis(500);
        assert_eq!(indexes(&video.until(501)), (0..=12).collect::<Vec<_>>());
        video.command(MediaCommand::Ff);
        video.now = Time::from_millis(900);
        assert_eq!(indexes(&video.until(901)), [92]);
    }
}
