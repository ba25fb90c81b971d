//! Arguments that more than one program reads: lengths of time and of files, addresses, choices.

use clap::{Command, CommandFactory, ValueEnum};
use dacapo::text;
use dacapo::{Place, PlaceError};
use std::ffi::OsString;
use std::time::Duration;

/// What is left when an argument is wrong in a way that only shows together with another: the
/// program `P` ends with code 2, and says how its command that was asked for is used.
pub fn or_usage<P: CommandFactory, T>(parsed: Result<T, String>) -> T {
    parsed.unwrap_or_else(|text| {
        let mut command = asked(P::command(), std::env::args_os().skip(1));
        command.error(clap::error::ErrorKind::ArgumentConflict, text).exit()
    })
}

/// The command of a program that these words ask for.
fn asked(mut command: Command, words: impl Iterator<Item = OsString>) -> Command {
    command.build();
    for word in words {
        let Some(found) = command.find_subcommand(&word) else { break };
        command = found.clone();
    }
    command
}

/// The word that is written for a choice.
pub fn word(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reads an address: of one link with its interface, and with a port when one is said.
///
/// # Errors
/// It is none; what is wrong, with examples.
pub fn parse_place(text: &str) -> Result<Place, String> {
    text.parse().map_err(|error: PlaceError| error.to_string())
}

/// Reads a length of time: seconds, or a number with a unit; 1 ms to 24 h.
///
/// # Errors
/// It is none; a sentence with examples.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no length of 1 ms to 24 h, such as 30, 2.5s or 1min");
    let seconds = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    let duration = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?,
        None => Duration::from_nanos(text::parse_duration(text).map_err(|_| wrong())?),
    };
    let allowed = Duration::from_millis(1)..=Duration::from_secs(86_400);
    if allowed.contains(&duration) { Ok(duration) } else { Err(wrong()) }
}

/// Reads a number of bytes: a number, or one with a unit; not 0.
///
/// # Errors
/// It is none.
pub fn parse_len(text: &str) -> Result<u64, String> {
    let len = match text.parse() {
        Ok(len) => len,
        Err(_) => text::parse_size(text).map_err(|error| error.to_string())?,
    };
    if len > 0 { Ok(len) } else { Err("more than nothing".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_seconds_or_have_a_unit() {
        assert_eq!(parse_duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("2.5"), Ok(Duration::from_millis(2_500)));
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("250 ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "-1", "0", "nan", "inf", "1e300", "3 ells", "90000"] {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_wrong_together_is_told_with_the_usage_of_its_command() {
        let said = |words: &[&str]| {
            let program = Command::new("p").subcommand(Command::new("ask").arg(clap::arg!(<WHAT>)));
            let mut command = asked(program, words.iter().map(OsString::from));
            command.error(clap::error::ErrorKind::ArgumentConflict, "no").to_string()
        };
        let usages = [said(&["ask", "ask", "x"]), said(&["--x", "ask"])];
        assert!(usages[0].contains("Usage: p ask <WHAT>"), "{}", usages[0]);
        assert!(usages[1].contains("Usage: p [COMMAND]"), "{}", usages[1]);
    }

    #[test]
    fn addresses_have_a_port_where_they_say_one() {
        let addr = |text: &str| parse_place(text).unwrap().addr(7).to_string();
        assert_eq!(addr("0.0.0.0"), "0.0.0.0:7");
        assert_eq!(addr("[::1]"), "[::1]:7");
        assert_eq!(addr("10.0.0.7:9"), "10.0.0.7:9");
        assert_eq!(addr("fe80::1%lo"), "[fe80::1%1]:7");
        assert_eq!(addr("[fe80::1%lo]:19980"), "[fe80::1%1]:19980");
        assert!(parse_place("example.org").unwrap_err().contains("10.0.0.7:19980"));
        assert!(parse_place("fe80::1%no-such").unwrap_err().contains("no interface \"no-such\""));
    }
}
