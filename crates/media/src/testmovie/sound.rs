//! The sound of a test movie: a tone per channel and a click each second.
//!
//! ```text
//!   channel 0  440 Hz, channel 1  660 Hz, channel 2  880 Hz …
//!   |!~~~~~~~~~~~~~~~~~~~~~|!~~~~~~~~~~~~~~~~~~~~~|!~~~    ! = 5 ms of 2 kHz, fading out
//! ```

use super::sine;
use crate::format::AudioFormat;

const TONE_HZ: u64 = 440;
const CLICK_HZ: u64 = 2_000;
/// The click lasts one 200th of a second.
const CLICKS_PER_SECOND: u64 = 200;

/// Appends the samples from `from` until before `until`, interleaved, 16 bit.
pub(super) fn render(audio: &AudioFormat, from: u64, until: u64, out: &mut Vec<u8>) {
    let rate_hz = u64::from(audio.rate_hz);
    for sample in from..until {
        // Every frequency is a whole number of hertz, so a second later everything repeats.
        let within = sample % rate_hz;
        let click = click(within, rate_hz);
        for channel in 0..u64::from(audio.channels) {
            let tone_hz = TONE_HZ * (2 + channel) / 2;
            let value = sine(phase(within, tone_hz, rate_hz)) / 6 + click;
            out.extend_from_slice(&(value as i16).to_le_bytes());
        }
    }
}

fn click(within: u64, rate_hz: u64) -> i32 {
    let len = rate_hz / CLICKS_PER_SECOND;
    if within >= len {
        return 0;
    }
    let loudness = ((len - within) * 24_000 / len) as i32;
    sine(phase(within, CLICK_HZ, rate_hz)) * loudness / 32_767
}

/// The phase of a tone, 2^32 to a turn.
fn phase(within: u64, tone_hz: u64, rate_hz: u64) -> u32 {
    (((within * tone_hz % rate_hz) << 32) / rate_hz) as u32
}
