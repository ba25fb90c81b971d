//! Texts for people: made safe to print in a terminal, whoever wrote them.
//!
//! ```text
//!   "no\x1b[2J such\nflow"   ->   "no�[2J such�flow"
//! ```
//!
//! Invariants: the result has no control character, none that turns the direction of writing or
//! breaks the line, and at most the bytes that were asked for; doing it twice changes nothing.

/// The text with U+FFFD in place of every character that could do something to a terminal, cut at a
/// character's boundary to at most `len_max` bytes.
#[must_use]
pub fn sanitise(text: &str, len_max: usize) -> String {
    let mut clean = String::new();
    for character in text.chars().map(replace) {
        if clean.len().saturating_add(character.len_utf8()) > len_max {
            break;
        }
        clean.push(character);
    }
    clean
}

const fn replace(character: char) -> char {
    if is_safe(character) { character } else { char::REPLACEMENT_CHARACTER }
}

/// Whether a character only shows itself.
const fn is_safe(character: char) -> bool {
    !matches!(
        character,
        // C0 with ESC and newline, DEL and C1 with the one-byte CSI.
        '\0'..='\x1F' | '\x7F'..='\u{9F}'
        // Separators of lines and paragraphs; what embeds, overrides or isolates a direction.
        | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_move_a_cursor_is_replaced() {
        assert_eq!(sanitise("a\x1b[2J\r\nb\tc", 512), "a\u{FFFD}[2J\u{FFFD}\u{FFFD}b\u{FFFD}c");
        assert_eq!(sanitise("\u{9b}31m\u{202E}exe\u{7f}", 512), "\u{FFFD}31m\u{FFFD}exe\u{FFFD}");
        for character in (0..=0xFFFF_u32).filter_map(char::from_u32).filter(|c| c.is_control()) {
            assert_eq!(sanitise(&character.to_string(), 8), "\u{FFFD}", "{character:?}");
        }
    }

    #[test]
    fn what_only_shows_itself_stays() {
        for text in ["", "Zürich, Überwachung", "會議 🎥 naïve", "a b"] {
            assert_eq!(sanitise(text, 512), text);
        }
    }

    #[test]
    fn a_text_is_cut_at_a_boundary_after_the_replacement() {
        assert_eq!(sanitise("äöü", 5), "äö");
        assert_eq!(sanitise("äöü", 6), "äöü");
        assert_eq!(sanitise("\n\n", 5), "\u{FFFD}");
        assert_eq!(sanitise("abc", 0), "");
    }
}
