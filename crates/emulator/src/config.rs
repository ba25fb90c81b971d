//! [`parse_link`]: configuration text of a link whose trace is in a file.
//!
//! Invariant: of a file no more is read than a trace may be long.

use dacapo_link::{LinkConfig, ParseError, Trace, TraceError};
use std::fs::File;
use std::io::{self, Read};

/// Reads configuration text, and the file that its `trace` names.
///
/// # Errors
/// What is wrong with the text, or with the file: then its name, and the line, if it is one.
pub fn parse_link(text: &str) -> Result<LinkConfig, ParseError> {
    LinkConfig::parse_with(text, read_trace)
}

fn read_trace(name: &str) -> Result<Trace, TraceError> {
    let bytes = read(name).map_err(|error| TraceError::Unreadable { why: error.to_string() })?;
    let text = str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|it| **it == b'\n').count();
        TraceError::NotText { line }
    })?;
    Trace::parse(text)
}

fn read(name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A byte more than allowed, by which the trace sees that it is too long.
    File::open(name)?.take(Trace::TEXT_LEN_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file of the test's own, which goes with the value.
    struct Written(PathBuf);

    impl Written {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let name = format!("dacapo-trace-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, bytes).unwrap();
            Self(path)
        }

        fn config(&self) -> Result<LinkConfig, ParseError> {
            parse_link(&format!("delay=20ms,trace={},aqm=codel", self.0.display()))
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_trace_is_read_from_its_file() {
        let file = Written::new("good", b"5\n10\n10\n");
        let config = file.config().unwrap();
        assert_eq!(config.trace.as_ref().unwrap().trace().at_ms(), [5, 10, 10]);
        assert_eq!(parse_link(&config.to_string()), Ok(config));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name_and_line() {
        for (name, bytes, part) in [
            ("word", &b"5\nten\n"[..], ": line 2: `ten` is not a number"),
            ("order", b"5\n7\n6\n", ": line 3: 6 ms after 7 ms"),
            ("binary", b"5\n1\xFF\n", ": line 2 is not UTF-8; a trace is text"),
            ("latin", b"5\n\n\xE9", ": line 3 is not UTF-8; a trace is text"),
            ("empty", b"", ": no line"),
            ("still", b"0\n", ": the last line is 0"),
        ] {
            let file = Written::new(name, bytes);
            let message = file.config().unwrap_err().to_string();
            assert!(message.starts_with("link: trace=") && message.contains(part), "{message}");
        }
        let file = Written::new("long", &vec![b' '; Trace::TEXT_LEN_MAX + 5_000]);
        let message = file.config().unwrap_err().to_string();
        assert!(message.contains(": longer than 50331648 bytes, "), "{message}");
        for name in ["none/there", "."] {
            let message = parse_link(&format!("trace={name}")).unwrap_err().to_string();
            assert!(message.starts_with(&format!("link: trace={name}: ")), "{message}");
        }
        assert!(parse_link("trace=cellular:3").is_ok() && parse_link("delay=20").is_err());
    }
}
