//! Keys of a player: the terminal without echo, and what each key means.
//!
//! Keys that make signals (Ctrl-C) stay signals.

use crate::app::App;
use dacapo::command::{Answer, FPS_MILLIHERTZ_MAX, MediaCommand, State};
use dacapo_sys::term::{self, RawMode};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Something of the peer.
    Command(MediaCommand),
    /// The end.
    Quit,
}

/// The keys of a terminal.
pub struct Keys {
    input: File,
    raw: RawMode,
}

impl Keys {
    /// The keys of standard input, when it is a terminal and this process is in its foreground: in
    /// the background a change of the terminal would stop it.
    pub fn open(app: &App, token: u32) -> Option<Self> {
        let stdin = io::stdin();
        if !term::is_terminal(stdin.as_fd()) || !is_foreground() {
            return None;
        }
        let input = File::from(stdin.as_fd().try_clone_to_owned().ok()?);
        let raw = RawMode::enter(stdin.as_fd()).ok()?;
        app.watch(input.as_fd(), token).ok()?;
        Some(Self { input, raw })
    }

    /// A shell has given the terminal its own settings while this process was stopped: keys come
    /// one by one again once it is back in the foreground.
    pub fn renew(&self) {
        if is_foreground() {
            self.raw.renew();
        }
    }

    /// What was pressed; nothing when the terminal is gone.
    pub fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 64];
        let len = self.input.read(&mut buffer).ok().filter(|len| *len > 0)?;
        buffer.get(..len).map(<[u8]>::to_vec)
    }

    /// The terminal is gone: it is not watched any more.
    pub fn forget(&self, app: &App) {
        app.unwatch(self.input.as_fd());
    }
}

/// What a key means, given how the medium stands and how many pictures it has per second, in
/// thousandths.
pub fn meaning(key: u8, stands: &Answer, nominal_fps: u32) -> Option<Key> {
    let command = match key {
        b' ' | b'p' if stands.state == State::Stopped => MediaCommand::Play,
        b' ' | b'p' => MediaCommand::Stop,
        b'f' => MediaCommand::Ff,
        b'r' => MediaCommand::Fr,
        b'>' => MediaCommand::Fwd,
        b'<' => MediaCommand::Rwd,
        b'+' | b'=' => MediaCommand::Fps(scaled(stands, nominal_fps, 5, 4)),
        b'-' => MediaCommand::Fps(scaled(stands, nominal_fps, 4, 5)),
        b'q' => return Some(Key::Quit),
        _ => return None,
    };
    Some(Key::Command(command))
}

fn scaled(stands: &Answer, nominal_fps: u32, times: u64, by: u64) -> u32 {
    let now = if stands.fps == 0 { nominal_fps } else { stands.fps };
    let fps = u64::from(now) * times / by;
    u32::try_from(fps).unwrap_or(u32::MAX).clamp(1, FPS_MILLIHERTZ_MAX)
}

/// Whether the terminal's keys are for this process: its group is the terminal's.
///
/// Source: proc_pid_stat(5), fields 5 (pgrp) and 8 (tpgid).
fn is_foreground() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    groups(&stat).is_none_or(|(own, terminal)| own == terminal)
}

fn groups(stat: &str) -> Option<(i64, i64)> {
    // The name of the program stands in brackets and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let own = fields.nth(2)?.parse().ok()?;
    let terminal = fields.nth(2)?.parse().ok()?;
    Some((own, terminal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_stops_and_goes_on() {
        let stands = |state| Answer { state, ..Answer::default() };
        let stop = Some(Key::Command(MediaCommand::Stop));
        assert_eq!(meaning(b' ', &stands(State::Playing), 25_000), stop);
        assert_eq!(meaning(b'p', &stands(State::FastForward), 25_000), stop);
        let play = Some(Key::Command(MediaCommand::Play));
        assert_eq!(meaning(b' ', &stands(State::Stopped), 25_000), play);
        assert_eq!(meaning(b'q', &stands(State::Stopped), 25_000), Some(Key::Quit));
        assert_eq!(meaning(b'x', &stands(State::Stopped), 25_000), None);
    }

    #[test]
    fn plus_and_minus_change_the_rate_within_its_bounds() {
        let fps = |key, fps, nominal| {
            let stands = Answer { fps, ..Answer::default() };
            match meaning(key, &stands, nominal) {
                Some(Key::Command(MediaCommand::Fps(fps))) => fps,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(fps(b'+', 20_000, 25_000), 25_000);
        assert_eq!(fps(b'+', 0, 20_000), 25_000);
        assert_eq!(fps(b'-', 25_000, 25_000), 20_000);
        assert_eq!(fps(b'-', 1, 25_000), 1);
        assert_eq!(fps(b'+', FPS_MILLIHERTZ_MAX, 25_000), FPS_MILLIHERTZ_MAX);
    }

    #[test]
    fn process_groups_are_read_past_any_name() {
        let stat = "12 (a) b) S 1 77 12 34816 78 4194304 1 0";
        assert_eq!(groups(stat), Some((77, 78)));
        assert_eq!(groups("nonsense"), None);
        assert!(groups(&std::fs::read_to_string("/proc/self/stat").unwrap()).is_some());
    }
}
