//! Paints the pictures of a test movie, in RGB.
//!
//! Invariants: a picture depends on size, index and media time only; nothing is painted outside of
//! it, whatever its size.

use super::font;
use super::sine;

type Rgb = [u8; 3];

const WHITE: Rgb = [255, 255, 255];
const BLACK: Rgb = [16, 16, 16];
const BALL: Rgb = [255, 96, 32];
const HAND: Rgb = [255, 64, 64];
const BARS: [Rgb; 8] = [
    [235, 235, 235],
    [219, 219, 16],
    [16, 219, 219],
    [16, 219, 16],
    [219, 16, 219],
    [219, 16, 16],
    [16, 16, 219],
    [24, 24, 24],
];
/// Digits of the counter.
const DIGIT_COUNT: usize = 6;
/// How long the square flashes each second.
const FLASH_NS: u64 = 80_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A canvas that is painted anew for every picture.
#[derive(Debug)]
pub(super) struct Painter {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Painter {
    /// A canvas of that size, in pixels.
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![0; width * height * 3] }
    }

    /// Paints the picture of that number and media time.
    pub(super) fn paint(&mut self, index: u64, time_ns: u64) -> &[u8] {
        self.paint_background(index);
        self.paint_clock(time_ns);
        self.paint_ball(index);
        self.paint_flash(time_ns);
        self.paint_counter(index);
        &self.pixels
    }

    fn paint_background(&mut self, index: u64) {
        let (width, height) = (self.width, self.height);
        let (bars_end, ramp_end) = (height * 2 / 3, height * 3 / 4);
        let shift = (index % (width as u64 * 4)) as usize * 3;
        for (y, row) in self.pixels.chunks_exact_mut(width * 3).enumerate() {
            let mut noise = Noise::new(index, y as u64 / 2);
            let mut grain = 0;
            for (x, pixel) in row.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                let across = (x + shift) % width;
                *pixel = if y < bars_end {
                    BARS[across * 8 / width]
                } else if y < ramp_end {
                    [(across * 255 / width) as u8; 3]
                } else {
                    if x % 2 == 0 {
                        grain = noise.next();
                    }
                    [116 + grain % 24, 112 + grain % 32, 120 + grain % 16]
                };
            }
        }
    }

    fn paint_clock(&mut self, time_ns: u64) {
        let radius = (self.height.min(self.width) / 5) as i64;
        let (cx, cy) = (self.width as i64 / 2, self.height as i64 / 3);
        let phase = ((u128::from(time_ns % SECOND_NS) << 32) / u128::from(SECOND_NS)) as u32;
        // Up at the full second, then to the right.
        let (dx, dy) = (i64::from(sine(phase)), -i64::from(sine(phase.wrapping_add(1 << 30))));
        let (reach, rim) = (radius * radius * 4 / 5, radius * radius * 9 / 10);
        let thickness = (radius / 12).max(1) * 32_767;
        for y in -radius..=radius {
            for x in -radius..=radius {
                let distance = x * x + y * y;
                let is_on_hand = (x * dy - y * dx).abs() <= thickness
                    && x * dx + y * dy >= 0
                    && distance <= reach;
                let colour = match distance {
                    _ if is_on_hand => HAND,
                    _ if distance > radius * radius => continue,
                    _ if distance > rim => WHITE,
                    _ => BLACK,
                };
                self.put(cx + x, cy + y, colour);
            }
        }
    }

    fn paint_ball(&mut self, index: u64) {
        let radius = (self.height.min(self.width) / 16).max(1) as i64;
        let cx = radius + bounce(index * 7, self.width as i64 - 2 * radius);
        let cy = radius + bounce(index * 5, self.height as i64 - 2 * radius);
        for y in -radius..=radius {
            for x in -radius..=radius {
                if x * x + y * y <= radius * radius {
                    self.put(cx + x, cy + y, BALL);
                }
            }
        }
    }

    fn paint_flash(&mut self, time_ns: u64) {
        let side = (self.height.min(self.width) / 8) as i64;
        let colour = if time_ns % SECOND_NS < FLASH_NS { WHITE } else { BLACK };
        let right = self.width as i64;
        self.fill(right - side..right, 0..side, colour);
    }

    fn paint_counter(&mut self, index: u64) {
        // Six digits take half of the width, or a sixth of the height when that is less.
        let columns = DIGIT_COUNT * (font::WIDTH + 1) + 1;
        let block = (self.width / 2 / columns).min(self.height / 6 / (font::HEIGHT + 2)).max(1);
        let rows = font::HEIGHT + 2;
        let top = self.height.saturating_sub(block * (rows + 1));
        let (left, block) = (block as i64, block as i64);
        let area = (columns as i64 * block, rows as i64 * block);
        let top = top as i64;
        self.fill(left..left + area.0, top..top + area.1, BLACK);
        for place in 0..DIGIT_COUNT {
            let power = 10_u64.pow((DIGIT_COUNT - 1 - place) as u32);
            let digit = (index / power % 10) as usize;
            let x0 = left + block * (1 + place * (font::WIDTH + 1)) as i64;
            self.paint_digit(digit, x0, top + block, block);
        }
    }

    fn paint_digit(&mut self, digit: usize, x0: i64, y0: i64, block: i64) {
        for y in 0..font::HEIGHT {
            for x in 0..font::WIDTH {
                if font::is_lit(digit, x, y) {
                    let (x, y) = (x0 + x as i64 * block, y0 + y as i64 * block);
                    self.fill(x..x + block, y..y + block, WHITE);
                }
            }
        }
    }

    fn fill(&mut self, xs: std::ops::Range<i64>, ys: std::ops::Range<i64>, colour: Rgb) {
        for y in ys {
            for x in xs.clone() {
                self.put(x, y, colour);
            }
        }
    }

    fn put(&mut self, x: i64, y: i64, colour: Rgb) {
        let is_inside = (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y);
        if is_inside {
            let at = (y as usize * self.width + x as usize) * 3;
            self.pixels[at..at + 3].copy_from_slice(&colour);
        }
    }
}

/// Goes from 0 to `room` and back.
fn bounce(step: u64, room: i64) -> i64 {
    let room = room.max(1);
    let at = (step % (2 * room as u64)) as i64;
    if at < room { at } else { 2 * room - at }
}

/// Noise of a row, by xorshift.
struct Noise(u64);

impl Noise {
    fn new(index: u64, row: u64) -> Self {
        let seed =
            index.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ row.wrapping_mul(0xD1B5_4A32_D192_ED03);
        Self(seed | 1)
    }

    fn next(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 56) as u8
    }
}
