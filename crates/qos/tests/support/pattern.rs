//! Regular expressions, as far as the schema of session files needs them.
//!
//! A backtracking matcher of whole texts for anchored patterns of literals, `\s`, `\.`, classes,
//! groups with alternatives and the repetitions `?`, `*`, `+`, `{m,n}`.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug)]
enum Atom {
    Char(char),
    Space,
    Class { negated: bool, ranges: Vec<(char, char)> },
    Group(Vec<Sequence>),
}

type Sequence = Vec<(Atom, usize, usize)>;

/// Whether all of `text` matches `pattern`, which is anchored at both ends.
pub fn matches(pattern: &str, text: &str) -> bool {
    let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    let mut chars =
        inner.unwrap_or_else(|| panic!("{pattern:?} is not anchored")).chars().peekable();
    let alternatives = parse_alternatives(&mut chars, pattern);
    assert!(chars.next().is_none(), "{pattern:?}: what is left is not understood");
    let text: Vec<char> = text.chars().collect();
    alternatives.iter().any(|sequence| run(sequence, &text, 0, &mut |at| at == text.len()))
}

fn parse_alternatives(chars: &mut Peekable<Chars<'_>>, pattern: &str) -> Vec<Sequence> {
    let mut alternatives = vec![Sequence::new()];
    while let Some(&next) = chars.peek() {
        match next {
            ')' => break,
            '|' => {
                chars.next();
                alternatives.push(Sequence::new());
            }
            _ => {
                let atom = parse_atom(chars, pattern);
                let (least, most) = parse_repetition(chars, pattern);
                alternatives.last_mut().unwrap().push((atom, least, most));
            }
        }
    }
    alternatives
}

fn parse_atom(chars: &mut Peekable<Chars<'_>>, pattern: &str) -> Atom {
    match chars.next().unwrap() {
        '(' => {
            let alternatives = parse_alternatives(chars, pattern);
            assert_eq!(chars.next(), Some(')'), "{pattern:?}");
            Atom::Group(alternatives)
        }
        '[' => parse_class(chars, pattern),
        '\\' if chars.peek() == Some(&'s') => {
            chars.next();
            Atom::Space
        }
        '\\' => Atom::Char(parse_escape(chars, pattern)),
        c if "^$.*+?{}]".contains(c) => panic!("{pattern:?}: {c} is not understood"),
        c => Atom::Char(c),
    }
}

fn parse_class(chars: &mut Peekable<Chars<'_>>, pattern: &str) -> Atom {
    let negated = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    let one = |chars: &mut Peekable<Chars<'_>>| match chars.next() {
        Some('\\') => parse_escape(chars, pattern),
        Some(c) => c,
        None => panic!("{pattern:?}: a class has no end"),
    };
    while chars.next_if_eq(&']').is_none() {
        let low = one(chars);
        let mut ahead = chars.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']');
        let high = if is_range {
            chars.next();
            one(chars)
        } else {
            low
        };
        ranges.push((low, high));
    }
    Atom::Class { negated, ranges }
}

fn parse_escape(chars: &mut Peekable<Chars<'_>>, pattern: &str) -> char {
    match chars.next() {
        Some('u') => {
            let digits: String = chars.take(4).collect();
            char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap()
        }
        Some(c @ ('.' | '+')) => c,
        other => panic!("{pattern:?}: \\{other:?} is not understood"),
    }
}

fn parse_repetition(chars: &mut Peekable<Chars<'_>>, pattern: &str) -> (usize, usize) {
    let range = match chars.peek() {
        Some('?') => (0, 1),
        Some('*') => (0, usize::MAX),
        Some('+') => (1, usize::MAX),
        Some('{') => {
            let inner: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
            let (least, most) = inner.split_once(',').unwrap_or_else(|| panic!("{pattern:?}"));
            return (least.parse().unwrap(), most.parse().unwrap());
        }
        _ => return (1, 1),
    };
    chars.next();
    range
}

fn run(
    sequence: &[(Atom, usize, usize)],
    text: &[char],
    at: usize,
    then: &mut dyn FnMut(usize) -> bool,
) -> bool {
    match sequence.split_first() {
        None => then(at),
        Some(((atom, least, most), rest)) => {
            repeat(atom, (*least, *most), text, at, &mut |at| run(rest, text, at, then))
        }
    }
}

fn repeat(
    atom: &Atom,
    (least, most): (usize, usize),
    text: &[char],
    at: usize,
    then: &mut dyn FnMut(usize) -> bool,
) -> bool {
    let more = most > 0
        && once(atom, text, at, &mut |next| {
            // What matched nothing would match it for ever.
            next > at && repeat(atom, (least.saturating_sub(1), most - 1), text, next, then)
        });
    more || least == 0 && then(at)
}

fn once(atom: &Atom, text: &[char], at: usize, then: &mut dyn FnMut(usize) -> bool) -> bool {
    if let Atom::Group(alternatives) = atom {
        return alternatives.iter().any(|sequence| run(sequence, text, at, then));
    }
    let Some(&c) = text.get(at) else { return false };
    let fits = match atom {
        Atom::Char(wanted) => c == *wanted,
        Atom::Space => c.is_whitespace(),
        Atom::Class { negated, ranges } => {
            ranges.iter().any(|&(low, high)| (low..=high).contains(&c)) != *negated
        }
        Atom::Group(_) => false,
    };
    fits && then(at + 1)
}

/// The matcher itself, on patterns whose outcome is known.
pub fn check_matcher() {
    for (pattern, good, bad) in [
        ("^a?b+$", vec!["b", "ab", "abbb"], vec!["", "a", "aab", "ba"]),
        ("^(x|yz)*$", vec!["", "x", "yzx", "xxyz"], vec!["y", "xy", "zy"]),
        ("^[a-c.-]{1,3}$", vec!["a", "-.", "cba"], vec!["", "d", "abca"]),
        (r"^[^\u0000-\u001f]*$", vec!["", "ä b"], vec!["\u{1}", "a\n"]),
        (r"^\s*\+?1\.5\s*(m|ms)?$", vec!["1.5", " +1.5 ms", "1.5m"], vec!["1x5", "1.5 s"]),
        ("^a+ab$", vec!["aab", "aaaab"], vec!["ab", "aaa"]),
    ] {
        assert!(good.iter().all(|text| matches(pattern, text)), "{pattern} {good:?}");
        assert!(bad.iter().all(|text| !matches(pattern, text)), "{pattern} {bad:?}");
    }
}
