//! [`Record`]: the counts of each work, as they stand in the file.
//!
//! ```text
//!   # with rustc …, valgrind-…, glibc …
//!   tcp 135592622 total
//!   tcp 30575920 libc.so.6: memcpy           and nine more, the hottest first
//! ```

use super::callgrind::Profile;
use std::io;

/// How many functions of a work are kept.
pub const HOTTEST: usize = 10;

const HEAD: &str = "\
# Instructions of fixed work: the total of each, and the ten hottest functions by their own.
# `cargo xtask ratchet` compares with this and fails at over 3 % more; what a change is worth is
# said in its commit, and `cargo xtask ratchet --accept` writes this file anew.
";

/// What stands before the versions of the tools.
const WITH: &str = "# with ";

/// The counts of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub name: String,
    pub total: u64,
    /// The recorded functions; of a fresh count all.
    pub functions: Vec<(String, u64)>,
}

impl Work {
    /// The instructions of a function, if it is here.
    #[must_use]
    pub fn of(&self, function: &str) -> Option<u64> {
        self.functions.iter().find(|(name, _)| name == function).map(|(_, count)| *count)
    }
}

/// The counts of each work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What the counts depend on besides the sources.
    pub tools: String,
    pub works: Vec<Work>,
}

impl Record {
    /// A record without counts.
    #[must_use]
    pub fn new(tools: &str) -> Self {
        Self { tools: tools.to_owned(), works: Vec::new() }
    }

    /// Adds all counts of a work.
    pub fn add(&mut self, name: &str, profile: &Profile) {
        let hottest = profile.hottest().into_iter();
        let functions = hottest.map(|(name, count)| (name.to_owned(), count)).collect();
        self.works.push(Work { name: name.to_owned(), total: profile.total(), functions });
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The first line that is none of this form.
    pub fn parse(text: &str) -> io::Result<Self> {
        let mut record = Self::default();
        for (index, line) in text.lines().enumerate() {
            if let Some(tools) = line.strip_prefix(WITH) {
                record.tools = tools.to_owned();
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let entry = (words.next(), words.next().and_then(|it| it.parse().ok()), words.next());
            let (Some(work), Some(count), Some(function)) = entry else {
                let text = format!("{}:{}: not `WORK COUNT FUNCTION`", super::PATH, index + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            if record.works.last().is_none_or(|last| last.name != work) {
                record.works.push(Work { name: work.to_owned(), ..Work::default() });
            }
            if let Some(last) = record.works.last_mut() {
                match function {
                    "total" => last.total = count,
                    _ => last.functions.push((function.to_owned(), count)),
                }
            }
        }
        Ok(record)
    }

    /// The file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}{WITH}{}\n", self.tools);
        for Work { name, total, functions } in &self.works {
            text.push_str(&format!("\n{name} {total} total\n"));
            for (function, count) in functions.iter().take(HOTTEST) {
                text.push_str(&format!("{name} {count} {function}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_with_names_that_have_spaces() {
        let work = Work {
            name: "tcp".into(),
            total: 90,
            functions: vec![("<a::B as c::D>::e".into(), 50), ("libc.so.6: free".into(), 3)],
        };
        let record = Record { tools: "rustc 1, valgrind-2".into(), works: vec![work] };
        assert_eq!(Record::parse(&record.to_text()).unwrap(), record);
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        let error = Record::parse("# x\ntcp many total\n").unwrap_err();
        assert_eq!(error.to_string(), "xtask/instructions.txt:2: not `WORK COUNT FUNCTION`");
    }
}
