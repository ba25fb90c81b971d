//! [`Timeline`]: where in its medium a session is, as a function of time and of the commands it
//! got.
//!
//! Sans-IO. Every source of a session has a timeline of its own, made with the same [`Extent`] and
//! speed; the core gives a command to all of them at one `now`, so they stay in step to the
//! nanosecond without knowing each other.
//!
//! ```text
//!   position(now) = anchor + rate * (now - anchor time)          0 <= position <= duration
//!
//!   state          rate                        audio    at the end of the medium
//!   Playing        speed * fps / nominal fps   sounds*  the flow ends, or it begins again
//!   FastForward    +8 * speed                  silent   Stopped there
//!   FastReverse    -8 * speed                  silent   (at the start) Stopped there
//!   Stopped        0                           silent   stays
//!
//!   * silent while fps differs from the nominal rate: sound at another rate would be another pitch
//! ```
//!
//! | command | what it does |
//! |---|---|
//! | PLAY | plays from where it is; after FF and FR from the position that they reached |
//! | STOP | stays where it is; PLAY goes on without a media frame missed or repeated |
//! | FF, FR | steps through every 8th media frame at the rate of the medium |
//! | FWD | jumps to the end and stops there; PLAY from there ends the flow |
//! | RWD | jumps to the start; plays on from there, or stays stopped |
//! | FPS | shows so many media frames per second; 0 is the nominal rate |
//!
//! A medium that is repeated begins again at the very moment at which it ends, and counts its
//! passes; jumps stay within the pass.
//!
//! Invariants: every command that changes position or direction, every continuation after a stop,
//! and every pass counts the generation up, by the same number in every source; FPS does not,
//! because nothing that is on its way is wrong after it; equal inputs give equal timelines, however
//! often they are polled.

use super::live::Begin;
use crate::command::{Answer, MediaCommand, State};
use dacapo_base::Time;
use dacapo_qos::Passes;
use dacapo_wire::media::GENERATION_BITS;
use std::fmt;
use std::time::Duration;

/// How much faster than playing FF and FR move: they show every k-th media frame.
pub const TRICK_STEP: u64 = 8;

const PERMILLE: i128 = 1_000;
const GENERATION_MASK: u32 = (1 << GENERATION_BITS) - 1;

/// The speed of a source in thousandths of real time, of everything that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speed(u32);

impl Speed {
    /// Real time.
    pub const NORMAL: Self = Self(1_000);

    /// A factor as a user gives it, 0.001 to 1000; what is outside is brought inside, and what is
    /// not a number is 1.
    #[must_use]
    pub fn from_factor(factor: f64) -> Self {
        if factor.is_nan() {
            return Self::NORMAL;
        }
        Self((factor * 1_000.0).round().clamp(1.0, 1_000_000.0) as u32)
    }

    /// Thousandths of real time.
    #[must_use]
    pub const fn permille(self) -> u32 {
        self.0
    }

    /// So many times faster still, within the same bounds.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::from_factor(f64::from(self.0) / 1_000.0 * factor)
    }

    /// What `per_second` becomes when a medium is sent at this speed; a slow one keeps its rate,
    /// because a unit of it is to be on its way no longer than at the normal speed.
    #[must_use]
    pub const fn raise(self, per_second: u64) -> u64 {
        if self.0 <= Self::NORMAL.0 {
            return per_second;
        }
        let raised = per_second as u128 * self.0 as u128 / Self::NORMAL.0 as u128;
        if raised > u64::MAX as u128 { u64::MAX } else { raised as u64 }
    }
}

impl Default for Speed {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl fmt::Display for Speed {
    /// The factor, as a user gives it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1_000.0)
    }
}

/// What all sources of a session know of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The length of the longest medium, in nanoseconds: where the session ends.
    pub duration_ns: u64,
    /// The nominal rate of media frames, `rate / scale` per second; none without pictures.
    pub nominal: Option<(u32, u32)>,
    /// How often the session is played.
    pub passes: Passes,
}

impl Extent {
    /// The nominal rate in thousandths of a media frame per second; 0 without pictures.
    #[must_use]
    pub fn nominal_millihertz(&self) -> u32 {
        let Some((rate, scale)) = self.nominal.filter(|(rate, scale)| *rate > 0 && *scale > 0)
        else {
            return 0;
        };
        let scale = u64::from(scale);
        let millihertz = (u64::from(rate) * 1_000 + scale / 2) / scale;
        u32::try_from(millihertz).unwrap_or(u32::MAX)
    }
}

/// How fast the position moves: a fraction, so that nothing drifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate {
    num: i128,
    den: i128,
}

impl Rate {
    const ZERO: Self = Self { num: 0, den: 1 };
}

/// Where in its medium a session is.
#[derive(Clone, Debug)]
pub struct Timeline {
    extent: Extent,
    speed: Speed,
    state: State,
    /// What FPS asked for; 0 is the nominal rate.
    fps: u32,
    /// False before the flow runs and while it is deactivated: the position stands still.
    running: bool,
    begun: bool,
    anchor: Time,
    anchor_ns: u64,
    generation: u32,
    jumps: u64,
    resounds: u64,
    parked: bool,
    /// The number of this pass, from 0.
    pass: u32,
    /// Where it begins; none is the start.
    begin: Option<Begin>,
}

impl Timeline {
    /// A timeline at the start of the medium that plays as soon as it is started.
    #[must_use]
    pub fn new(extent: Extent, speed: Speed) -> Self {
        Self {
            extent,
            speed,
            state: State::Playing,
            fps: 0,
            running: false,
            begun: false,
            anchor: Time::ZERO,
            anchor_ns: 0,
            generation: 0,
            jumps: 0,
            resounds: 0,
            parked: false,
            pass: 0,
            begin: None,
        }
    }

    /// The same, beginning there.
    #[must_use]
    pub fn beginning(mut self, begin: Begin) -> Self {
        self.begin = Some(begin);
        self
    }

    /// The flow runs: time counts.
    pub fn start(&mut self, now: Time) {
        if self.running {
            return;
        }
        self.running = true;
        self.anchor = now;
        if let Some(begin) = self.begin.take() {
            (self.pass, self.anchor_ns) = begin.place(now, self.extent, self.speed);
        }
        if self.begun && self.state != State::Stopped {
            self.bump();
        }
        self.begun = true;
    }

    /// The flow pauses: the position stands still until it is started again.
    pub fn stop(&mut self, now: Time) {
        self.settle(now);
        while self.repeat(now) {}
        self.anchor_at(now, self.position_ns(now));
        self.running = false;
    }

    /// Follows a command.
    ///
    /// # Errors
    /// FPS where there are no pictures, in the words for its user; nothing has changed then.
    pub fn command(&mut self, now: Time, command: MediaCommand) -> Result<Answer, &'static str> {
        self.settle(now);
        // Sources that are behind go along, so that all are at one place.
        while self.repeat(now) {}
        let position = self.position_ns(now);
        match command {
            MediaCommand::Init
            | MediaCommand::Open
            | MediaCommand::StartTransmission
            | MediaCommand::Status => {}
            MediaCommand::Play => self.play(now, position),
            MediaCommand::Stop => self.halt(now, position),
            MediaCommand::Ff => self.step(now, position, State::FastForward),
            MediaCommand::Fr => self.step(now, position, State::FastReverse),
            MediaCommand::Fwd => {
                self.state = State::Stopped;
                self.jump(now, self.extent.duration_ns);
            }
            MediaCommand::Rwd => {
                if self.state != State::Stopped {
                    self.state = State::Playing;
                }
                self.jump(now, 0);
            }
            MediaCommand::Fps(_) if self.extent.nominal.is_none() => {
                return Err("this session has no pictures, so it has no frame rate");
            }
            MediaCommand::Fps(millihertz) => {
                let nominal = millihertz == self.extent.nominal_millihertz();
                let fps = if nominal { 0 } else { millihertz };
                self.anchor_at(now, position);
                self.resounds += u64::from(self.fps > 0 && fps == 0);
                self.fps = fps;
            }
        }
        self.settle(now);
        Ok(self.answer(now))
    }

    fn play(&mut self, now: Time, position: u64) {
        match self.state {
            State::Playing => {}
            State::Stopped => {
                self.state = State::Playing;
                self.anchor_at(now, position);
                self.bump();
            }
            State::FastForward | State::FastReverse => {
                self.state = State::Playing;
                self.jump(now, position);
            }
        }
    }

    fn halt(&mut self, now: Time, position: u64) {
        match self.state {
            State::Stopped => {}
            State::Playing => {
                self.state = State::Stopped;
                self.anchor_at(now, position);
            }
            State::FastForward | State::FastReverse => {
                self.state = State::Stopped;
                self.jump(now, position);
            }
        }
    }

    fn step(&mut self, now: Time, position: u64, state: State) {
        if self.state != state {
            self.state = state;
            self.jump(now, position);
        }
    }

    /// FF and FR that have reached an end have stopped there.
    pub fn settle(&mut self, now: Time) {
        let position = self.position_ns(now);
        let at_end = match self.state {
            State::FastForward => position >= self.extent.duration_ns,
            State::FastReverse => position == 0,
            State::Playing | State::Stopped => false,
        };
        if at_end {
            self.state = State::Stopped;
            self.jump(now, position);
            self.parked = true;
        }
    }

    /// Begins again, at the time of the end, when playing has got there and another pass follows;
    /// false, and nothing has changed, else.
    pub(crate) fn repeat(&mut self, now: Time) -> bool {
        let may = self.state == State::Playing
            && self.extent.duration_ns > 0
            && self.extent.passes.go_on_after(self.pass);
        let end = self.time_of_end().filter(|at| may && *at <= now);
        if let Some(end) = end {
            self.pass = self.pass.saturating_add(1);
            self.jump(end, 0);
        }
        end.is_some()
    }

    /// Whether the medium is played more than once.
    #[must_use]
    pub(crate) fn is_repeated(&self) -> bool {
        self.extent.passes.go_on_after(0)
    }

    fn anchor_at(&mut self, now: Time, position_ns: u64) {
        self.anchor = now;
        self.anchor_ns = position_ns;
    }

    fn jump(&mut self, now: Time, position_ns: u64) {
        self.anchor_at(now, position_ns);
        self.jumps += 1;
        self.parked = false;
        self.bump();
    }

    fn bump(&mut self) {
        self.generation = self.generation.wrapping_add(1) & GENERATION_MASK;
    }

    fn rate(&self) -> Rate {
        let speed = i128::from(self.speed.0);
        let trick = i128::from(TRICK_STEP) * speed;
        match self.state {
            _ if !self.running => Rate::ZERO,
            State::Stopped => Rate::ZERO,
            State::FastForward => Rate { num: trick, den: PERMILLE },
            State::FastReverse => Rate { num: -trick, den: PERMILLE },
            State::Playing => match self.extent.nominal {
                Some((rate, scale)) if self.fps > 0 => Rate {
                    num: speed * i128::from(self.fps) * i128::from(scale),
                    den: PERMILLE * PERMILLE * i128::from(rate.max(1)),
                },
                _ => Rate { num: speed, den: PERMILLE },
            },
        }
    }

    /// Where it is, in nanoseconds from the start.
    #[must_use]
    pub fn position_ns(&self, now: Time) -> u64 {
        let rate = self.rate();
        let passed = i128::from(self.anchor.nanos_until(now).max(0));
        let moved = passed * rate.num.abs() / rate.den;
        let at = i128::from(self.anchor_ns) + moved * rate.num.signum();
        at.clamp(0, i128::from(self.extent.duration_ns.max(self.anchor_ns))) as u64
    }

    /// When the position is or was reached; `None` when it will not be as things are.
    #[must_use]
    pub fn time_of(&self, position_ns: u64) -> Option<Time> {
        let rate = self.rate();
        let ahead = i128::from(position_ns) - i128::from(self.anchor_ns);
        if rate.num == 0 {
            return None;
        }
        if ahead * rate.num.signum() <= 0 {
            return Some(self.anchor);
        }
        let passed = (ahead.abs() * rate.den + rate.num.abs() - 1) / rate.num.abs();
        Some(self.anchor + Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    /// When FF, FR or playing gets to the end of the medium in its direction.
    #[must_use]
    pub fn time_of_end(&self) -> Option<Time> {
        match self.state {
            State::FastReverse => self.time_of(0),
            _ => self.time_of(self.extent.duration_ns),
        }
    }

    /// Where it was when it got its last command that moved it.
    #[must_use]
    pub(crate) fn anchor_ns(&self) -> u64 {
        self.anchor_ns
    }

    /// What it is doing.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether sound is heard as things are.
    #[must_use]
    pub fn sounds(&self) -> bool {
        self.state == State::Playing && self.fps == 0
    }

    /// The generation of what is sent now.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// How often the position has jumped: who follows it looks for its place anew.
    #[must_use]
    pub(crate) fn jumps(&self) -> u64 {
        self.jumps
    }

    /// How often the nominal rate of pictures has come back: sound goes on where the position is
    /// then.
    #[must_use]
    pub(crate) fn resounds(&self) -> u64 {
        self.resounds
    }

    /// FF or FR stopped by itself at an end: the media frame there has not been shown.
    #[must_use]
    pub(crate) fn is_parked(&self) -> bool {
        self.parked
    }

    /// How it stands.
    #[must_use]
    pub fn answer(&self, now: Time) -> Answer {
        let rate = self.rate();
        let permille = rate.num * PERMILLE / rate.den;
        let nominal = self.extent.nominal_millihertz();
        Answer {
            state: self.state,
            position_ns: self.position_ns(now),
            generation: self.generation,
            speed_permille: permille.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32,
            fps: if self.fps > 0 { self.fps } else { nominal },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    const SECOND: u64 = 1_000_000_000;

    fn timeline(speed: f64) -> Timeline {
        let extent =
            Extent { duration_ns: 100 * SECOND, nominal: Some((25, 1)), passes: Passes::ONCE };
        let mut timeline = Timeline::new(extent, Speed::from_factor(speed));
        timeline.start(Time::from_millis(1_000));
        timeline
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(1_000 + ms)
    }

    #[test]
    fn commands_move_the_position_as_documented() {
        let mut timeline = timeline(1.0);
        assert_eq!(timeline.position_ns(at(2_000)), 2 * SECOND);
        let answer = timeline.command(at(10_000), MediaCommand::Ff).unwrap();
        assert_eq!((answer.state, answer.speed_permille), (State::FastForward, 8_000));
        assert_eq!((answer.generation, answer.position_ns), (1, 10 * SECOND));
        assert_eq!(timeline.position_ns(at(11_000)), 18 * SECOND);
        let answer = timeline.command(at(11_000), MediaCommand::Fr).unwrap();
        assert_eq!((answer.state, answer.generation), (State::FastReverse, 2));
        assert_eq!(timeline.position_ns(at(12_000)), 10 * SECOND);
        timeline.command(at(12_000), MediaCommand::Play).unwrap();
        assert_eq!((timeline.position_ns(at(13_000)), timeline.generation()), (11 * SECOND, 3));
        timeline.command(at(13_000), MediaCommand::Stop).unwrap();
        assert_eq!((timeline.position_ns(at(60_000)), timeline.generation()), (11 * SECOND, 3));
        timeline.command(at(60_000), MediaCommand::Fwd).unwrap();
        assert_eq!(timeline.position_ns(at(61_000)), 100 * SECOND);
        let answer = timeline.command(at(61_000), MediaCommand::Rwd).unwrap();
        assert_eq!((answer.state, answer.position_ns, answer.generation), (State::Stopped, 0, 5));
        timeline.command(at(62_000), MediaCommand::Play).unwrap();
        let answer = timeline.command(at(63_000), MediaCommand::Rwd).unwrap();
        assert_eq!((answer.state, answer.position_ns, answer.generation), (State::Playing, 0, 7));
    }

    #[test]
    fn fps_slows_the_position_down_and_the_sound_away_without_a_new_generation() {
        let mut timeline = timeline(1.0);
        let answer = timeline.command(at(4_000), MediaCommand::Fps(5_000)).unwrap();
        assert_eq!((answer.speed_permille, answer.fps, answer.generation), (200, 5_000, 0));
        assert!(!timeline.sounds());
        assert_eq!(timeline.position_ns(at(9_000)), 5 * SECOND);
        timeline.command(at(9_000), MediaCommand::Fps(25_000)).unwrap();
        assert!(timeline.sounds());
        assert_eq!(timeline.position_ns(at(10_000)), 6 * SECOND);
        let extent = Extent { duration_ns: SECOND, nominal: None, passes: Passes::ONCE };
        let mut radio = Timeline::new(extent, Speed::NORMAL);
        assert!(
            radio.command(at(0), MediaCommand::Fps(5_000)).unwrap_err().contains("no pictures")
        );
    }

    #[test]
    fn the_speed_of_the_server_multiplies_everything() {
        let mut timeline = timeline(4.0);
        assert_eq!(timeline.position_ns(at(1_000)), 4 * SECOND);
        timeline.command(at(1_000), MediaCommand::Ff).unwrap();
        assert_eq!(timeline.position_ns(at(2_000)), 36 * SECOND);
        assert_eq!(Speed::from_factor(f64::NAN), Speed::NORMAL);
        assert_eq!(Speed::from_factor(-1.0).permille(), 1);
    }

    #[test]
    fn ff_and_fr_stop_at_the_ends() {
        let mut timeline = timeline(1.0);
        timeline.command(at(4_000), MediaCommand::Ff).unwrap();
        assert_eq!(timeline.time_of_end(), Some(at(16_000)));
        let answer = timeline.command(at(20_000), MediaCommand::Status).unwrap();
        assert_eq!((answer.state, answer.position_ns), (State::Stopped, 100 * SECOND));
        timeline.command(at(20_000), MediaCommand::Fr).unwrap();
        timeline.settle(at(40_000));
        assert_eq!((timeline.state(), timeline.position_ns(at(50_000))), (State::Stopped, 0));
        assert!(timeline.is_parked());
    }

    #[test]
    fn a_pause_of_the_flow_stops_time() {
        let mut timeline = timeline(1.0);
        timeline.stop(at(3_000));
        assert_eq!(timeline.position_ns(at(9_000)), 3 * SECOND);
        assert_eq!(timeline.time_of(4 * SECOND), None);
        timeline.start(at(10_000));
        assert_eq!((timeline.position_ns(at(11_000)), timeline.generation()), (4 * SECOND, 1));
    }

    #[test]
    fn the_time_of_a_position_is_when_it_is_reached() {
        for seed in 0..500 {
            let mut random = Random::from_number(seed);
            let mut timeline = timeline(0.25 * (1 + random.below(16)) as f64);
            let fps = 1 + random.below(60_000) as u32;
            timeline.command(at(random.below(2_000)), MediaCommand::Fps(fps)).unwrap();
            let ahead = timeline.anchor_ns() + random.below(50 * SECOND);
            let reached = timeline.time_of(ahead).unwrap();
            assert!(timeline.position_ns(reached) >= ahead, "seed {seed}");
            let before = reached - Duration::from_nanos(1);
            assert!(timeline.position_ns(before) < ahead || ahead == timeline.anchor_ns());
        }
    }

    #[test]
    fn timelines_that_get_the_same_commands_stay_in_step_however_they_are_polled() {
        for seed in 0..300 {
            let mut random = Random::from_number(seed);
            let (mut one, mut other) = (timeline(1.0), timeline(1.0));
            let mut ms = 0;
            for _ in 0..40 {
                ms += random.below(5_000);
                if random.chance(0.5) {
                    other.settle(at(ms));
                }
                ms += random.below(5_000);
                let command = match random.below(7) {
                    0 => MediaCommand::Play,
                    1 => MediaCommand::Stop,
                    2 => MediaCommand::Ff,
                    3 => MediaCommand::Fr,
                    4 => MediaCommand::Fwd,
                    5 => MediaCommand::Rwd,
                    _ => MediaCommand::Fps(random.below(50_000) as u32),
                };
                let answers = (one.command(at(ms), command), other.command(at(ms), command));
                assert_eq!(answers.0, answers.1, "seed {seed}");
            }
        }
    }
}
