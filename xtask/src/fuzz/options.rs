//! [`Options`]: the words after `cargo xtask fuzz`.

use std::io;
use std::path::PathBuf;

/// How long each target runs when nothing is said, in seconds.
const SECONDS: u64 = 15;

/// How many run at a time when nothing is said: as many as the machine that checks has cores.
const JOBS: usize = 2;

/// Of so many targets one is taken where it is said whose turn it is.
pub const TURNS: u64 = 3;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    names: Vec<String>,
    is_all: bool,
    pub seconds: u64,
    pub jobs: usize,
    pub is_json: bool,
    pub is_list: bool,
    pub is_merge: bool,
    pub totals: Option<PathBuf>,
    /// What the fuzzer's chances are drawn from; fresh each time without one.
    pub seed: Option<u64>,
    /// Of the targets every third, from this one on.
    turn: Option<u64>,
}

fn wrong(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{text}; see `cargo xtask fuzz --help`"))
}

fn number(word: &str, value: Option<&&str>) -> io::Result<u64> {
    let value = value.ok_or_else(|| wrong(format!("{word} needs a number")))?;
    let number = value.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    number.ok_or_else(|| wrong(format!("{word} {value}: expected 1 to 1000000")))
}

impl Options {
    /// Reads the words.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn read(words: &[&str]) -> io::Result<Self> {
        let mut options = Self {
            names: Vec::new(),
            is_all: false,
            seconds: SECONDS,
            jobs: JOBS,
            is_json: false,
            is_list: false,
            is_merge: false,
            totals: None,
            seed: None,
            turn: None,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--all" => options.is_all = true,
                "--json" => options.is_json = true,
                "--list" => options.is_list = true,
                "--merge" => options.is_merge = true,
                "--seconds" => options.seconds = number(word, words.next())?,
                "--seed" => options.seed = Some(number(word, words.next())?),
                "--turn" => options.turn = Some(number(word, words.next())?),
                "--jobs" => options.jobs = number(word, words.next())?.min(64) as usize,
                "--totals" => {
                    let path = words.next().ok_or_else(|| wrong("--totals needs a file".into()))?;
                    options.totals = Some(path.into());
                }
                name if name.starts_with('-') => {
                    return Err(wrong(format!("`{name}` is no option")));
                }
                name => options.names.push(name.to_owned()),
            }
        }
        if !options.is_all && !options.is_list && options.names.is_empty() {
            return Err(wrong("name a target, or --all".into()));
        }
        Ok(options)
    }

    /// The targets that are meant, of those that there are.
    ///
    /// # Errors
    /// A name that is none.
    pub fn choose(&self, known: &[(String, usize)]) -> io::Result<Vec<(String, usize)>> {
        let is_known = |name: &&String| known.iter().any(|(one, _)| one == *name);
        if let Some(name) = self.names.iter().find(|name| !is_known(name)) {
            return Err(wrong(format!("no target is called `{name}`, --list shows them")));
        }
        let is_meant = |name: &String| self.is_all || self.names.contains(name);
        let has_turn = |place: u64| self.turn.is_none_or(|turn| place % TURNS == turn % TURNS);
        let meant = known.iter().filter(|(name, _)| is_meant(name));
        Ok((0..).zip(meant).filter(|(at, _)| has_turn(*at)).map(|(_, it)| it.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_what_is_missing_is_usual() {
        let options = Options::read(&["wire_record", "--seconds", "60", "--json"]).unwrap();
        assert_eq!((options.seconds, options.jobs, options.is_json), (60, 2, true));
        let known = [("wire_record".to_owned(), 4_096), ("wire_text".to_owned(), 100)];
        assert_eq!(options.choose(&known).unwrap(), [("wire_record".to_owned(), 4_096)]);
        let all = Options::read(&["--all", "--totals", "out/f.json"]).unwrap();
        assert_eq!(all.choose(&known).unwrap().len(), 2);
        assert_eq!(all.totals, Some("out/f.json".into()));
    }

    #[test]
    fn every_target_has_its_turn_once() {
        let known: Vec<_> = (0..40).map(|at| (format!("target_{at}"), 9)).collect();
        let chosen = |turn: u64| {
            let turn = turn.to_string();
            Options::read(&["--all", "--turn", &turn]).unwrap().choose(&known).unwrap()
        };
        let mut all: Vec<_> = (1..=TURNS).flat_map(chosen).collect();
        assert!((1..=TURNS).all(|turn| (13..=14).contains(&chosen(turn).len())));
        assert_eq!(chosen(1), chosen(1 + TURNS));
        all.sort();
        let mut sorted = known.clone();
        sorted.sort();
        assert_eq!(all, sorted);
    }

    #[test]
    fn wrong_words_are_named() {
        for (words, part) in [
            (&["--fast"][..], "--fast"),
            (&[], "name a target"),
            (&["a", "--seconds"], "needs a number"),
            (&["a", "--seconds", "0"], "expected 1"),
            (&["a", "--jobs", "x"], "expected 1"),
            (&["--all", "--turn", "0"], "expected 1"),
            (&["--all", "--totals"], "needs a file"),
        ] {
            let error = Options::read(words).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("--help"), "{error}");
        }
        let error = Options::read(&["b"]).unwrap().choose(&[]).unwrap_err().to_string();
        assert!(error.contains("`b`"), "{error}");
    }
}
