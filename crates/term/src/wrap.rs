//! [`wrapped`]: long lines broken at words, so that a terminal breaks none inside of one.
//!
//! ```text
//!   "  asks for: delay at most 150 ms, loss …"      a line that is too long
//!   "  asks for: delay at most 150 ms,"             broken where a word would not fit;
//!   "    loss at most 1 %"                          what follows stands further in
//! ```
//!
//! What goes to files and programs is not broken: scripts read lines.
//!
//! Invariant: no character but spaces is added or left out.

/// What follows a break stands so much further in than what is before it.
const HANG: usize = 2;

/// Lines of at most so many characters, where their words allow it. What is JSON stays whole.
pub fn wrapped(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| line_wrapped(line, columns)).collect();
    lines.join("\n")
}

/// The columns that a text takes; colours take none.
pub fn width(text: &str) -> usize {
    let mut width = 0;
    let mut is_escape = false;
    for c in text.chars() {
        match (is_escape, c) {
            (false, '\x1b') => is_escape = true,
            (false, _) => width += 1,
            (true, _) => is_escape = !c.is_ascii_alphabetic(),
        }
    }
    width
}

/// Whole words in lines of at most so many characters, where the words allow it.
pub fn words(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        match line.as_str() {
            "" => line.push_str(word),
            _ if width(line) + 1 + width(word) > columns => lines.push(word.to_owned()),
            _ => line.extend([" ", word]),
        }
    }
    lines
}

fn line_wrapped(line: &str, columns: usize) -> String {
    let is_json = line.starts_with('{') && line.ends_with('}');
    if is_json || width(line) <= columns {
        return line.to_owned();
    }
    let hang = hang(line, columns);
    let mut text = String::new();
    let mut used = 0;
    for (gap, word) in gaps_and_words(line) {
        let len = width(word);
        let is_first = text.trim().is_empty();
        if is_first || used + gap + len <= columns {
            // A word that fits no line is not pushed further by what is before it.
            let gap = if is_first { gap.min(columns.saturating_sub(len)) } else { gap };
            text.push_str(&" ".repeat(gap));
            used += gap;
        } else {
            let indent = hang.min(columns.saturating_sub(len));
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        }
        text.push_str(word);
        used += len;
    }
    text
}

/// Where a line goes on: below the second column of `word   text`, where that leaves room, else a
/// little further in than it begins.
fn hang(line: &str, columns: usize) -> usize {
    let mut words = gaps_and_words(line);
    let (indent, first) = words.next().unwrap_or_default();
    let mut at = indent + width(first);
    let wide = words.find_map(|(gap, word)| {
        at += gap + if gap >= 2 { 0 } else { width(word) };
        (gap >= 2).then_some(at)
    });
    wide.filter(|at| *at <= columns / 3).unwrap_or((indent + HANG).min(columns / 3))
}

/// Each word with the spaces before it.
fn gaps_and_words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let text = rest.trim_start_matches(' ');
        let gap = rest.len() - text.len();
        let end = text.find(' ').unwrap_or(text.len());
        let (word, after) = text.split_at(end);
        rest = after;
        (!word.is_empty()).then_some((gap, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_at_words_and_goes_on_further_in() {
        let line = "  asks for: delay at most 150 ms, loss at most 1 %";
        assert_eq!(wrapped(line, 80), line);
        assert_eq!(wrapped(line, 30), "  asks for: delay at most 150\n    ms, loss at most 1 %");
        assert_eq!(wrapped("a b\n\nc d", 2), "a\nb\n\nc\nd");
    }

    #[test]
    fn what_has_columns_goes_on_below_the_second() {
        let line = "  cost   6 ns per train, 4 ns per packet";
        assert_eq!(wrapped(line, 30), "  cost   6 ns per train, 4 ns\n         per packet");
    }

    #[test]
    fn words_and_gaps_stay_whatever_the_width() {
        let line = "  peer SHA256:aKTtgFZ0khrC1L  (unverified)   é → \x1b[32mok\x1b[0m";
        let bare = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for columns in 1..60 {
            let text = wrapped(line, columns);
            assert_eq!(bare(&text), bare(line), "{columns}");
            let longest = bare(line).iter().map(|word| width(word)).max().unwrap();
            assert!(text.lines().all(|it| width(it) <= columns.max(longest)), "{columns}: {text}");
        }
    }

    #[test]
    fn json_stays_whole_and_colours_take_no_room() {
        let json = "{\"event\":\"listening on 127.0.0.1\"}";
        assert_eq!(wrapped(json, 10), json);
        let coloured = "\x1b[1mflow\x1b[0m sent";
        assert_eq!((width(coloured), wrapped(coloured, 9)), (9, coloured.to_owned()));
    }
}
