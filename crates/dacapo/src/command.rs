//! [`MediaCommand`]: what the access modules of a session are told out of band, and [`Answer`].
//!
//! The control commands of the A-modules of 1998, as the payload of `dacapo_core::Command::Control`
//! to `MODULE_ACCESS` of all flows, and as words of a command line.
//!
//! ```text
//!   command   code u8 | argument u32                                            5 bytes
//!   answer    state u8 | position u64 | generation u32 | speed i32 | fps u32   21 bytes
//! ```
//!
//! Invariants: what `encode` writes, `decode` reads back; everything else is refused. Integers are
//! big-endian; an argument that a command does not have is 0.
//!
//! Decoder: of bytes from a peer, and of text from a user.
//!
//! Source: Da CaPo++ (ETH Zürich, TIK Report 42, 1998), the control interface of the A-modules.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// Length of a command in bytes.
pub const COMMAND_LEN: usize = 5;

/// Length of an answer in bytes.
pub const ANSWER_LEN: usize = 21;

/// The most media frames per second that can be asked for, in thousandths (1,000 per second).
pub const FPS_MILLIHERTZ_MAX: u32 = 1_000_000;

/// What an access module is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaCommand {
    /// Be ready: always true here, kept for its number.
    Init,
    /// Open the medium: always done here, kept for its number.
    Open,
    /// Begin to send: the activation of the session does it, kept for its number.
    StartTransmission,
    /// Play at the rate of the medium, or go on after STOP, FF and FR.
    Play,
    /// Stay where it is.
    Stop,
    /// Step forwards fast.
    Ff,
    /// Step backwards fast.
    Fr,
    /// Jump to the end and stop there.
    Fwd,
    /// Jump to the start.
    Rwd,
    /// Show so many media frames per second, in thousandths; 0 is the rate of the medium.
    Fps(u32),
    /// Do nothing, answer.
    Status,
}

impl MediaCommand {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Init => 1,
            Self::Open => 2,
            Self::StartTransmission => 3,
            Self::Play => 4,
            Self::Stop => 5,
            Self::Ff => 6,
            Self::Fr => 7,
            Self::Fwd => 8,
            Self::Rwd => 9,
            Self::Fps(_) => 10,
            Self::Status => 11,
        }
    }

    /// The bytes.
    #[must_use]
    pub fn encode(self) -> [u8; COMMAND_LEN] {
        let argument = if let Self::Fps(millihertz) = self { millihertz } else { 0 };
        let [a, b, c, d] = argument.to_be_bytes();
        [self.code(), a, b, c, d]
    }

    /// Reads a command that fills `bytes`.
    ///
    /// # Errors
    /// [`CommandFault`]: the length, the code or the argument is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, CommandFault> {
        let &[code, a, b, c, d] = bytes else {
            return Err(CommandFault::Length { len: bytes.len() });
        };
        let argument = u32::from_be_bytes([a, b, c, d]);
        let command = match code {
            10 if argument <= FPS_MILLIHERTZ_MAX => return Ok(Self::Fps(argument)),
            10 => return Err(CommandFault::Argument { code, argument }),
            1 => Self::Init,
            2 => Self::Open,
            3 => Self::StartTransmission,
            4 => Self::Play,
            5 => Self::Stop,
            6 => Self::Ff,
            7 => Self::Fr,
            8 => Self::Fwd,
            9 => Self::Rwd,
            11 => Self::Status,
            _ => return Err(CommandFault::Code { code }),
        };
        if argument == 0 { Ok(command) } else { Err(CommandFault::Argument { code, argument }) }
    }
}

impl fmt::Display for MediaCommand {
    /// The words that [`MediaCommand::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Init => f.write_str("init"),
            Self::Open => f.write_str("open"),
            Self::StartTransmission => f.write_str("start"),
            Self::Play => f.write_str("play"),
            Self::Stop => f.write_str("stop"),
            Self::Ff => f.write_str("ff"),
            Self::Fr => f.write_str("fr"),
            Self::Fwd => f.write_str("fwd"),
            Self::Rwd => f.write_str("rwd"),
            Self::Fps(0) => f.write_str("fps nominal"),
            Self::Fps(millihertz) => write!(f, "fps {}", Thousandths(*millihertz)),
            Self::Status => f.write_str("status"),
        }
    }
}

impl FromStr for MediaCommand {
    type Err = CommandFault;

    /// Reads a line of a command line: "play", "FF", "fps 12.5", "fps nominal".
    fn from_str(text: &str) -> Result<Self, CommandFault> {
        let words: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["init"] => Ok(Self::Init),
            ["open"] => Ok(Self::Open),
            ["start" | "start_transmission"] => Ok(Self::StartTransmission),
            ["play"] => Ok(Self::Play),
            ["stop" | "pause"] => Ok(Self::Stop),
            ["ff"] => Ok(Self::Ff),
            ["fr"] => Ok(Self::Fr),
            ["fwd"] => Ok(Self::Fwd),
            ["rwd"] => Ok(Self::Rwd),
            ["status"] => Ok(Self::Status),
            ["fps", "nominal"] => Ok(Self::Fps(0)),
            ["fps", rate] => {
                let rate = parse_thousandths(rate);
                let rate = rate.filter(|rate| (1..=FPS_MILLIHERTZ_MAX).contains(rate));
                rate.map(Self::Fps).ok_or(CommandFault::Fps)
            }
            ["fps"] => Err(CommandFault::Fps),
            _ => Err(CommandFault::Word { text: text.chars().take(40).collect() }),
        }
    }
}

/// Thousandths as people write them: 12500 is "12.5".
struct Thousandths(u32);

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:03}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// A number with at most three decimals, in thousandths.
fn parse_thousandths(text: &str) -> Option<u32> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(rest) || rest.len() > 3 {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let rest: u32 = format!("{rest:0<3}").parse().ok()?;
    whole.checked_mul(1_000)?.checked_add(rest)
}

/// Why something is no command or no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandFault {
    /// It has another length.
    Length {
        /// Its length in bytes.
        len: usize,
    },
    /// Nothing has this code.
    Code {
        /// The code.
        code: u8,
    },
    /// The argument is out of range, or there is one where there must be none.
    Argument {
        /// The command's code.
        code: u8,
        /// The argument.
        argument: u32,
    },
    /// The word is no command.
    Word {
        /// The text, cut.
        text: String,
    },
    /// `fps` without a rate that is one.
    Fps,
}

impl fmt::Display for CommandFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len } => write!(f, "a command or answer of {len} bytes"),
            Self::Code { code } => write!(f, "code {code} is not known"),
            Self::Argument { code, argument } => {
                write!(f, "the argument {argument} of command {code} is not allowed")
            }
            Self::Word { text } => write!(
                f,
                "\"{}\" is no command; there are play, stop, ff, fr, fwd, rwd, fps RATE, status",
                text.escape_debug()
            ),
            Self::Fps => write!(
                f,
                "fps wants a rate of 0.001 to {}, such as \"fps 12.5\", or \"fps nominal\"",
                FPS_MILLIHERTZ_MAX / 1_000
            ),
        }
    }
}

impl Error for CommandFault {}

/// What a medium is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// It stays where it is.
    Stopped,
    /// It plays.
    #[default]
    Playing,
    /// It steps forwards fast.
    FastForward,
    /// It steps backwards fast.
    FastReverse,
}

impl State {
    /// All of them; the index is the number on the wire.
    pub const ALL: [Self; 4] = [Self::Stopped, Self::Playing, Self::FastForward, Self::FastReverse];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Playing => "playing",
            Self::FastForward => "fast forward",
            Self::FastReverse => "fast reverse",
        })
    }
}

/// What an access module answers to every command: how it stands after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Answer {
    /// What it is doing.
    pub state: State,
    /// Where it is, in nanoseconds from the start of the medium.
    pub position_ns: u64,
    /// The generation of what it sends from now on.
    pub generation: u32,
    /// How fast the position moves, in thousandths of real time; negative for backwards.
    pub speed_permille: i32,
    /// Media frames per second that are shown, in thousandths; 0 for a medium without pictures.
    pub fps: u32,
}

impl Answer {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ANSWER_LEN);
        bytes.push(self.state as u8);
        bytes.extend_from_slice(&self.position_ns.to_be_bytes());
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        bytes.extend_from_slice(&self.speed_permille.to_be_bytes());
        bytes.extend_from_slice(&self.fps.to_be_bytes());
        bytes
    }

    /// Reads an answer that fills `bytes`.
    ///
    /// # Errors
    /// [`CommandFault`]: the length or the state is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, CommandFault> {
        let fault = CommandFault::Length { len: bytes.len() };
        let (code, answer) = Self::parts(bytes).ok_or(fault)?;
        let state = State::ALL.get(usize::from(code)).ok_or(CommandFault::Code { code })?;
        Ok(Self { state: *state, ..answer })
    }

    /// The number of the state, and everything else.
    fn parts(mut bytes: &[u8]) -> Option<(u8, Self)> {
        let [code] = take(&mut bytes)?;
        let answer = Self {
            state: State::Stopped,
            position_ns: u64::from_be_bytes(take(&mut bytes)?),
            generation: u32::from_be_bytes(take(&mut bytes)?),
            speed_permille: i32::from_be_bytes(take(&mut bytes)?),
            fps: u32::from_be_bytes(take(&mut bytes)?),
        };
        bytes.is_empty().then_some((code, answer))
    }
}

/// Takes the first bytes off.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.position_ns / 1_000_000;
        write!(f, "{} at {}.{:03} s", self.state, ms / 1_000, ms % 1_000)?;
        let speed = Thousandths(self.speed_permille.unsigned_abs());
        let sign = if self.speed_permille < 0 { "-" } else { "" };
        write!(f, ", speed {sign}{speed}")?;
        if self.fps > 0 { write!(f, ", {} fps", Thousandths(self.fps)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_base::Random;

    const ALL: [MediaCommand; 12] = [
        MediaCommand::Init,
        MediaCommand::Open,
        MediaCommand::StartTransmission,
        MediaCommand::Play,
        MediaCommand::Stop,
        MediaCommand::Ff,
        MediaCommand::Fr,
        MediaCommand::Fwd,
        MediaCommand::Rwd,
        MediaCommand::Fps(0),
        MediaCommand::Fps(12_500),
        MediaCommand::Status,
    ];

    #[test]
    fn every_command_comes_back_from_its_bytes_and_from_its_words() {
        for command in ALL {
            assert_eq!(MediaCommand::decode(&command.encode()), Ok(command));
            assert_eq!(command.to_string().parse(), Ok(command), "{command}");
        }
        assert_eq!(MediaCommand::Fps(12_500).encode(), [10, 0, 0, 0x30, 0xD4]);
        assert_eq!(MediaCommand::Fps(29_970).to_string(), "fps 29.97");
        assert_eq!(" FPS  25 ".parse(), Ok(MediaCommand::Fps(25_000)));
    }

    #[test]
    fn what_is_no_command_is_refused_with_what_is_allowed() {
        assert_eq!(MediaCommand::decode(&[]), Err(CommandFault::Length { len: 0 }));
        assert_eq!(MediaCommand::decode(&[4, 0, 0, 0]), Err(CommandFault::Length { len: 4 }));
        assert_eq!(MediaCommand::decode(&[0; 5]), Err(CommandFault::Code { code: 0 }));
        let argument = CommandFault::Argument { code: 4, argument: 1 };
        assert_eq!(MediaCommand::decode(&[4, 0, 0, 0, 1]), Err(argument));
        assert!(MediaCommand::decode(&[10, 0xFF, 0, 0, 0]).is_err());
        for text in ["fps", "fps 0", "fps -1", "fps 1.2345", "fps 1001", "fps 5000000", "fps x"] {
            assert_eq!(text.parse::<MediaCommand>(), Err(CommandFault::Fps), "{text}");
        }
        let text = "rewind\x1b".parse::<MediaCommand>().unwrap_err().to_string();
        assert!(text.starts_with("\"rewind\\u{1b}\" is no command; there are play"), "{text}");
    }

    #[test]
    fn an_answer_comes_back_and_other_bytes_never_panic() {
        let answer = Answer {
            state: State::FastReverse,
            position_ns: 12_340_000_000,
            generation: 7,
            speed_permille: -8_000,
            fps: 25_000,
        };
        let bytes = answer.encode();
        assert_eq!(bytes.len(), ANSWER_LEN);
        assert_eq!(Answer::decode(&bytes), Ok(answer));
        assert_eq!(answer.to_string(), "fast reverse at 12.340 s, speed -8, 25 fps");
        assert!(Answer::decode(&bytes[1..]).is_err());
        assert_eq!(Answer::decode(&[9; ANSWER_LEN]), Err(CommandFault::Code { code: 9 }));
        for seed in 0..2_000 {
            let mut random = Random::from_number(seed);
            let mut bytes = vec![0; random.below(30) as usize];
            random.fill(&mut bytes);
            if let Ok(answer) = Answer::decode(&bytes) {
                assert_eq!(answer.encode(), bytes, "seed {seed}");
            }
            if let Ok(command) = MediaCommand::decode(&bytes) {
                assert_eq!(command.encode().as_slice(), bytes, "seed {seed}");
            }
        }
    }
}
