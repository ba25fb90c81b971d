//! The names of the files that a recording is saved in: from names that a peer chose, and safe.
//!
//! ```text
//!   session "movie", group "video"   ->  movie.avi          one group
//!                                        movie-video.avi    several
//!   session "..", flow "a/b"         ->  _.-a_b.bin
//! ```
//!
//! Invariants: a name has only `a-z A-Z 0-9 . _ -`, does not begin with a dot or a dash, is at most
//! [`LEN_MAX`] bytes and never one that another flow of the session has.

use std::collections::BTreeSet;

/// The longest name without its ending, in bytes.
const LEN_MAX: usize = 120;

/// Gives out names for the files of one session.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// A name from those of the session and of what is saved; none for the whole session.
    pub fn name(&mut self, session: &str, part: Option<&str>, ending: &str) -> String {
        let stem = match part {
            Some(part) => format!("{}-{}", sanitise(session), sanitise(part)),
            None => sanitise(session),
        };
        let first = format!("{stem}.{ending}");
        let others = (2..).map(|number: u32| format!("{stem}-{number}.{ending}"));
        let free = std::iter::once(first).chain(others).find(|name| !self.0.contains(name));
        let name = free.unwrap_or_default();
        self.0.insert(name.clone());
        name
    }
}

fn sanitise(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain = text.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(LEN_MAX / 2 - 1).collect();
    match plain.chars().next() {
        None => "_".to_owned(),
        Some('.' | '-') => plain.replacen(['.', '-'], "_", 1),
        Some(_) => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_peer_become_plain_names_of_files() {
        let mut names = Names::default();
        assert_eq!(names.name("movie", None, "avi"), "movie.avi");
        assert_eq!(names.name("movie", None, "avi"), "movie-2.avi");
        assert_eq!(names.name("movie", None, "avi"), "movie-3.avi");
        assert_eq!(names.name("..", Some("../../etc/passwd"), "bin"), "_.-_._.._etc_passwd.bin");
        assert_eq!(names.name("-rf", Some("ü\n\0"), "bin"), "_rf-___.bin");
        assert_eq!(names.name("", Some(""), "bin"), "_-_.bin");
        let long = names.name(&"x".repeat(500), Some(&"y".repeat(500)), "avi");
        assert!(long.len() <= LEN_MAX + 4);
    }
}
