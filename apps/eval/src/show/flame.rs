//! A flame graph: where the time of both ends goes, as nested bars, widest where most is.
//!
//! ```text
//!   perf script:  a sample, its frames from the innermost out -> Flame: a tree with counts -> SVG
//! ```
//!
//! Invariants: a bar is as wide as its share of all samples and stands on what called it; bars
//! narrower than [`SHARE_MIN`] are left out, so that a graph has a bound.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A share below which a bar is left out.
const SHARE_MIN: f64 = 0.004;

/// How deep it goes.
const DEPTH_MAX: usize = 60;

const WIDTH: f64 = 1_200.0;
const BAR_HEIGHT: usize = 16;
const HEAD: usize = 24;

/// A letter is so wide.
const LETTER: f64 = 6.4;

/// A frame, those that it called, and in how many samples it is.
#[derive(Debug, Default)]
pub struct Flame {
    count: u64,
    called: BTreeMap<String, Self>,
}

impl Flame {
    /// Adds what `perf script -F ip,sym` prints: samples of an end, which stand on its name.
    pub fn add(&mut self, end: &str, text: &str) {
        for sample in text.split("\n\n") {
            let frames: Vec<String> = sample.lines().filter_map(frame).collect();
            if !frames.is_empty() {
                let outermost_first = frames.iter().rev().map(String::as_str);
                self.book(std::iter::once(end).chain(outermost_first).take(DEPTH_MAX));
            }
        }
    }

    /// How many samples there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    fn book<'a>(&mut self, mut frames: impl Iterator<Item = &'a str>) {
        self.count += 1;
        if let Some(first) = frames.next() {
            self.called.entry(first.to_owned()).or_default().book(frames);
        }
    }

    fn depth(&self, all: u64) -> usize {
        let shown = self.called.values().filter(|it| share(it.count, all) >= SHARE_MIN);
        shown.map(|it| 1 + it.depth(all)).max().unwrap_or(0)
    }

    /// The picture.
    pub fn svg(&self, title: &str) -> String {
        let height = HEAD + BAR_HEIGHT * (self.depth(self.count) + 1);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"4\" y=\"16\" font-size=\"13\">{}</text>\n",
            escaped(title)
        );
        self.bars(&mut svg, 0.0, height - BAR_HEIGHT, self.count);
        svg + "</svg>\n"
    }

    /// The bars of those that it called, from the place `x` on, and what stands on them.
    fn bars(&self, svg: &mut String, x: f64, y: usize, all: u64) {
        let mut x = x;
        for (name, it) in &self.called {
            let share = share(it.count, all);
            let width = share * WIDTH;
            if share >= SHARE_MIN {
                bar(svg, (x, y, width), name, share);
                it.bars(svg, x, y.saturating_sub(BAR_HEIGHT), all);
            }
            x += width;
        }
    }
}

fn share(count: u64, all: u64) -> f64 {
    count as f64 / all.max(1) as f64
}

fn bar(svg: &mut String, (x, y, width): (f64, usize, f64), name: &str, share: f64) {
    let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
    let text = if letters < 3 { String::new() } else { shortened(name, letters) };
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<g><title>{} {:.1} %</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" \
         height=\"15\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{}</text></g>",
        escaped(name),
        share * 100.0,
        colour(name),
        x + 3.0,
        y + 12,
        escaped(&text),
    );
}

/// What is the kernel's is blue, the libraries' grey, ours orange, the rest yellow.
fn colour(name: &str) -> &'static str {
    match name {
        _ if name.ends_with("_[k]") => "#9ecae9",
        _ if name.contains("dacapo") => "#f58518",
        _ if name.contains("::") => "#fbd48a",
        _ => "#d5d5d5",
    }
}

/// The end of a path says most.
fn shortened(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.to_owned();
    }
    std::iter::once('…').chain(name.chars().skip(count - letters + 1)).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The frame of a line: its symbol, and whether it is the kernel's. What perf has no name for is
/// left out, and what it called stands on what is below.
fn frame(line: &str) -> Option<String> {
    let (address, symbol) = line.trim_start().split_once(' ')?;
    let is_address = address.len() >= 4 && address.chars().all(|c| c.is_ascii_hexdigit());
    let kernel = if address.starts_with("ffff") { "_[k]" } else { "" };
    let is_known = is_address && symbol.trim() != "[unknown]";
    is_known.then(|| format!("{}{kernel}", symbol.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
            55e0 dacapo_core::poll\n            55f0 main\n        ffffffffffff [unknown]\n\n\
        ffffffff8110 sock_sendmsg\n            55e0 dacapo_core::poll\n            55f0 main\n\n\
            55f0 main\n\n";

    #[test]
    fn samples_stand_on_what_called_them() {
        let mut flame = Flame::default();
        flame.add("near", TEXT);
        let near = &flame.called["near"];
        let main = &near.called["main"];
        assert_eq!((flame.count(), near.count, main.count), (3, 3, 3));
        assert_eq!(main.called["dacapo_core::poll"].called["sock_sendmsg_[k]"].count, 1);
        assert_eq!(flame.depth(3), 4);
    }

    #[test]
    fn a_picture_has_a_bar_for_each_frame_and_nothing_that_is_no_text() {
        let mut flame = Flame::default();
        flame.add("near", &TEXT.replace("main", "<a & b>"));
        let svg = flame.svg("ours-udp");
        assert_eq!(svg.matches("<rect x=").count(), 4);
        assert!(svg.contains("&lt;a &amp; b&gt; 100.0 %") && !svg.contains("<a "), "{svg}");
        assert!(svg.contains("dacapo_core::poll 66.7 %"), "{svg}");
    }

    #[test]
    fn what_is_too_narrow_or_too_deep_is_left_out() {
        let mut flame = Flame::default();
        for number in 0..1_000 {
            flame.add("near", &format!("    55e0 name{number}\n\n"));
        }
        assert_eq!(flame.svg("t").matches("<rect x=").count(), 1, "the end alone");
        let mut flame = Flame::default();
        flame.add("near", &"    55e0 again\n".repeat(1_000));
        assert_eq!(flame.svg("t").matches("<rect x=").count(), DEPTH_MAX);
    }
}
