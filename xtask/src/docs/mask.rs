//! Masks: what differs from run to run, by name.
//!
//! A text is masked before it is compared, never where it is shown.

/// What is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Digits behind an address and a colon.
    Port,
    /// `SHA256:` and what follows.
    Fingerprint,
    /// Every number, such as counts, times and rates; and the spaces that align it.
    Number,
}

impl Mask {
    /// The mask of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "port" => Self::Port,
            "fingerprint" => Self::Fingerprint,
            "number" => Self::Number,
            _ => return None,
        })
    }

    /// The line with what is masked replaced.
    pub fn apply(self, line: &str) -> String {
        match self {
            Self::Port => replaced(line, is_port, |c| c.is_ascii_digit(), "PORT"),
            Self::Fingerprint => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
                replaced(line, |before| before.ends_with("SHA256:"), is_part, "FINGERPRINT")
            }
            Self::Number => {
                let is_part = |c: char| c.is_ascii_digit() || c == '.';
                let text = replaced(line, |_| true, is_part, "N").replace("-N", "N");
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
        }
    }
}

fn is_port(before: &str) -> bool {
    let address = before.strip_suffix(':').and_then(|address| address.chars().next_back());
    address.is_some_and(|last| last.is_ascii_digit() || last == ']')
}

/// Runs of characters that begin with a digit or letter, where what is before them says so.
fn replaced(
    line: &str,
    is_place: impl Fn(&str) -> bool,
    is_part: impl Fn(char) -> bool,
    by: &str,
) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let after = rest.get(end..).unwrap_or_default();
        if c.is_ascii_alphanumeric() && end > 0 && is_place(&text) {
            text.push_str(by);
            rest = after;
        } else {
            text.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_stand_behind_addresses() {
        let mask = |text| Mask::Port.apply(text);
        assert_eq!(mask("dacapo://127.0.0.1:58863/demo"), "dacapo://127.0.0.1:PORT/demo");
        assert_eq!(mask("[::1]:7 robot.toml:8: at 12:30"), "[::1]:PORT robot.toml:8: at 12:PORT");
    }

    #[test]
    fn fingerprints_end_where_their_characters_do() {
        let text = Mask::Fingerprint.apply("peer SHA256:E4v6Z5s8+/x (unverified)");
        assert_eq!(text, "peer SHA256:FINGERPRINT (unverified)");
    }

    #[test]
    fn numbers_lose_their_length_and_sign() {
        let one = Mask::Number.apply("video  690  4.1 Mbit/s  -98.3/-90.1 ms");
        assert_eq!(one, "video N N Mbit/s N/N ms");
        assert_eq!(one, Mask::Number.apply("video 81 12 Mbit/s 8.3/-100.1 ms"));
    }
}
