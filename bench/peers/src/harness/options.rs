//! The command line of the harness.

use std::path::PathBuf;

use peers::Failure;

/// What `--help` prints.
pub const HELP: &str = "\
peers: dacapo beside its peers, in interleaved rounds, as ratios

usage: peers [OPTIONS]

  --rounds N        rounds, each row once per round (default 5)
  --seconds S       what is counted of a run, after a warm-up of 0.3 s (default 2)
  --only NAME,…     these rows, and the controls that they are compared with
  --loopback        over 127.0.0.1; without it over veth between two network namespaces, made
                    and deleted here (needs root). Loopback is not judged: its MTU is another
  --link            over the link emulator instead (needs root): 500 Mbit/s, 10 ms each way, losses
                    of 0, 1 and 5 %, rows of its own; the default is then 3 rounds of 5 s
  --no-pin          leave it to the system which processor runs an end (usually 0 and 1)
  --programs DIR    where the programs are (default: beside this one); DIR/NAME.why says why one
                    is not there
  --dacapo PATH     the command `dacapo` (default: target/release/dacapo)
  --out DIR         where to keep raw data, machine facts and commands
                    (default: bench/runs/DATE-COMMIT)
  --list            the rows, and end
  --json            print JSON

examples:
  peers --rounds 7
  peers --only ours-udp --seconds 5
  peers --only ours-udp-64,quinn-64 --json
  peers --link --rounds 1
";

/// The command line, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub rounds: usize,
    pub seconds: f64,
    pub only: Vec<String>,
    pub is_loopback: bool,
    pub is_link: bool,
    pub is_pinned: bool,
    pub programs: Option<PathBuf>,
    pub dacapo: PathBuf,
    pub out: Option<PathBuf>,
    pub is_json: bool,
    pub is_list: bool,
    pub is_help: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rounds: 5,
            seconds: 2.0,
            only: Vec::new(),
            is_loopback: false,
            is_link: false,
            is_pinned: true,
            programs: None,
            dacapo: PathBuf::from("target/release/dacapo"),
            out: None,
            is_json: false,
            is_list: false,
            is_help: false,
        }
    }
}

impl Options {
    /// Reads the arguments after the name of the program.
    ///
    /// # Errors
    /// The word that cannot be read, and what would be right.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let words: Vec<String> = words.into_iter().collect();
        let mut options = Self::default();
        if words.iter().any(|word| word == "--link") {
            (options.is_link, options.rounds, options.seconds) = (true, 3, 5.0);
        }
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().ok_or_else(|| Failure(format!("`{word}` needs a value")));
            match word.as_str() {
                "--rounds" => options.rounds = number(&value()?, 1.0, 1000.0)? as usize,
                "--seconds" => options.seconds = number(&value()?, 0.2, 600.0)?,
                "--only" => options.only.extend(value()?.split(',').map(str::to_owned)),
                "--programs" => options.programs = Some(value()?.into()),
                "--dacapo" => options.dacapo = value()?.into(),
                "--out" => options.out = Some(value()?.into()),
                "--loopback" => options.is_loopback = true,
                "--link" => options.is_link = true,
                "--no-pin" => options.is_pinned = false,
                "--json" => options.is_json = true,
                "--list" => options.is_list = true,
                "--help" | "-h" => options.is_help = true,
                _ => return Err(Failure(format!("`{word}` is no option; see --help"))),
            }
        }
        if options.is_link && options.is_loopback {
            return Err(Failure("`--link` and `--loopback` are two places; say one".to_owned()));
        }
        Ok(options)
    }
}

fn number(word: &str, least: f64, most: f64) -> Result<f64, Failure> {
    let number = word.parse().ok().filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| Failure(format!("`{word}` is no number from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Options, Failure> {
        Options::read(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read_and_what_is_not_given_is_the_default() {
        let options = read("--rounds 7 --only a,b --only c --json").unwrap();
        assert_eq!(options.rounds, 7);
        assert_eq!(options.only, ["a", "b", "c"]);
        assert!(options.is_json && options.is_pinned && !options.is_loopback);
        assert_eq!(read("").unwrap(), Options::default());
        let link = read("--rounds 4 --link").unwrap();
        assert_eq!((link.is_link, link.rounds, link.seconds), (true, 4, 5.0));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for text in ["--rounds 0", "--seconds x", "--fast", "--only", "--link --loopback"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains('`'), "{error}");
        }
    }
}
