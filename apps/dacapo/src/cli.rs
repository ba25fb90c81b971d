//! The arguments of every command, with their help.
//!
//! Wrong usage ends with code 2 here already.

mod link;
mod texts;
mod transfer;
mod xtp;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use dacapo::Place;
use dacapo::attributes::{Attributes, MAX_GIVE_UP_NS, PathAssumption};
use dacapo::media::{SIDE_MAX, SIDE_MIN};
use dacapo::text;
use dacapo::uri::Uri;
use dacapo_term::args::{self, parse_duration, parse_place};
use dacapo_term::completions::CompletionsArgs;
use dacapo_term::manual::ManArgs;
pub use link::{Addresses, LinkArgs, Namespaces, OverLink};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use texts::*;
pub use transfer::{ExplainArgs, Format, ModulesArgs, RecvArgs, SendArgs};
pub use xtp::{
    Xtp, XtpArgs, XtpBenchArgs, XtpCaptureArgs, XtpListenArgs, XtpPingArgs, XtpSendArgs,
};

/// Composes a protocol for each flow of media out of small modules, and runs it.
#[derive(Debug, Parser)]
#[command(name = "dacapo", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"), max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The arguments of this process; wrong ones end it, as does a wish for help. The paragraphs of
    /// helps are as wide as the window.
    pub fn read() -> Self {
        let matches = filled(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

fn filled(command: clap::Command) -> clap::Command {
    let help = command.get_after_help().map(|help| texts::filled(&help.to_string()));
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    command.mut_subcommands(filled)
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the sessions of these files until interrupted.
    #[command(after_help = format!("{SERVE}\n\n{EXIT_CODES}"))]
    Serve(ServeArgs),
    /// List the sessions that a host serves.
    #[command(after_help = format!("{LS}\n\n{EXIT_CODES}"))]
    Ls(LsArgs),
    /// Join a session: show it, or save it.
    #[command(after_help = format!("{PLAY}\n\n{EXIT_CODES}"))]
    Play(PlayArgs),
    /// Send files, or standard input, to a host where `dacapo recv` listens.
    #[command(after_help = format!("{SEND}\n\n{EXIT_CODES}"))]
    Send(SendArgs),
    /// Listen, and save the files that somebody sends.
    #[command(after_help = format!("{RECV}\n\n{EXIT_CODES}"))]
    Recv(RecvArgs),
    /// Give a command to a player that runs on this host.
    #[command(after_help = format!("{CONTROL}\n\n{EXIT_CODES}"))]
    Control(ControlArgs),
    /// Check a session file and describe it, or name everything that is wrong with it.
    #[command(after_help = format!("{CHECK}\n\n{EXIT_CODES}"))]
    Check(CheckArgs),
    /// Say which protocol each flow of a session file gets, and why.
    #[command(after_help = format!("{EXPLAIN}\n\n{EXIT_CODES}"))]
    Explain(ExplainArgs),
    /// List what protocols are composed of: functions, mechanisms, modules, transports.
    #[command(after_help = format!("{MODULES}\n\n{EXIT_CODES}"))]
    Modules(ModulesArgs),
    /// Write a test movie: pictures and sound that are made, not filmed.
    #[command(after_help = format!("{TESTMOVIE}\n\n{EXIT_CODES}"))]
    Testmovie(TestmovieArgs),
    /// Say what is in a media file: formats, counts, and a hash of each stream.
    #[command(after_help = format!("{INSPECT}\n\n{EXIT_CODES}"))]
    Inspect(InspectArgs),
    /// Make a movie, serve it, play it over loopback, and compare what arrived.
    #[command(after_help = format!("{DEMO}\n\n{EXIT_CODES}"))]
    Demo(DemoArgs),
    /// Emulate a bad network: losses, delays and more, between UDP sockets or namespaces.
    #[command(after_help = format!("{LINK}\n\n{EXIT_CODES}"))]
    Link(Box<LinkArgs>),
    /// Measure this host, beside figures of 1998 or a plain program (by `dacapo-eval`).
    #[command(after_help = format!("{BENCH}\n\n{EXIT_CODES}"))]
    Bench(BenchArgs),
    /// Run experiments beside other programs, keep every sample, check the documents' figures (by
    /// `dacapo-eval`).
    #[command(after_help = format!("{EVALUATE}\n\n{EXIT_CODES}"))]
    Eval(BenchArgs),
    /// Speak XTP 4.0 itself, over UDP, IP, Ethernet or TCP: listen, send files, ping, capture.
    #[command(after_help = format!("{XTP}\n\n{EXIT_CODES}"))]
    Xtp(Box<XtpArgs>),
    /// Check whether this host is fit: ports, network, clocks, limits, identity, programs.
    #[command(after_help = format!("{DOCTOR}\n\n{EXIT_CODES}"))]
    Doctor(DoctorArgs),
    /// Print a script with which a shell completes this command.
    #[command(after_help = format!("{COMPLETIONS}\n\n{EXIT_CODES}"))]
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands into a folder.
    #[command(after_help = format!("{MAN}\n\n{EXIT_CODES}"))]
    Man(ManArgs),
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Session files.
    #[arg(required = true, value_name = "SESSION.toml")]
    pub files: Vec<PathBuf>,
    /// Listen at this address (IP or IP:PORT) instead of loopback; may be repeated.
    #[arg(long, short, value_name = "ADDR", value_parser = parse_place)]
    pub listen: Vec<Place>,
    /// The UDP port; 0 lets the system choose and prints it first: `ready dacapo://HOST:PORT/`.
    #[arg(long, short, value_name = "N", default_value_t = dacapo::host::PORT)]
    pub port: u16,
    /// Send so many times faster than the media play: 0.1 to 1000. What the flows may send follows;
    /// a bound in a session file that is too low for it is an error.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_speed)]
    pub speed: f64,
    /// What is assumed of the network, such as lan or "wireless,loss=1%", whatever the files say.
    #[arg(long, value_name = "PATH", value_parser = transfer::parse_path)]
    pub path: Option<PathAssumption>,
    /// Give sessions up after so long without contact, 0s to 24h, whatever the files say; usually
    /// 5min.
    #[arg(long, value_name = "DURATION", value_parser = parse_give_up)]
    pub give_up: Option<Duration>,
    /// End after the first session has ended.
    #[arg(long)]
    pub once: bool,
    /// Print JSON, one event per line.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// The host; IPv6 addresses in brackets.
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,
    /// Keep trying for so long when nothing listens there yet, 1 ms to 24 h; without it that ends
    /// the command at once on this host, and in a second or two elsewhere.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `play`.
#[derive(Debug, Args)]
pub struct PlayArgs {
    /// The session.
    #[arg(value_name = "dacapo://HOST[:PORT]/NAME")]
    pub uri: Uri,
    /// Save what arrives in this folder, which is made when it is missing.
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Write over files that are there.
    #[arg(long, requires = "save")]
    pub force: bool,
    /// Begin where those are who watch already, not at the start.
    #[arg(long)]
    pub live: bool,
    /// What every flow must be besides what the session file asks, such as "delay<=100ms"; may be
    /// repeated.
    #[arg(long, value_name = "ATTRIBUTES", value_parser = transfer::parse_attributes)]
    ask: Vec<Attributes>,
    /// Give the session up after so long without contact, 0s to 24h; else what its creator says
    /// counts, usually 5min.
    #[arg(long, value_name = "DURATION", value_parser = parse_give_up)]
    pub give_up: Option<Duration>,
    /// Keep trying for so long when nothing listens there yet, 1 ms to 24 h; without it that ends
    /// the command at once on this host, and in a second or two elsewhere.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,
    /// Join again when the peer was started anew or contact did not come back; Ctrl-C ends it.
    #[arg(long, conflicts_with = "save")]
    pub reconnect: bool,
    /// Where an emulated link is put on the way.
    #[command(flatten)]
    pub over: OverLink,
    /// Print the account as JSON at the end.
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors, and JSON when asked for.
    #[arg(long, short)]
    pub quiet: bool,
}

impl PlayArgs {
    /// What is asked.
    ///
    /// # Errors
    /// Two askings contradict each other.
    pub fn asked(&self) -> Result<Attributes, String> {
        transfer::all(&self.ask, false).map(Option::unwrap_or_default)
    }
}

/// What is left when an argument is wrong in a way that only shows together with another.
pub fn or_usage<T>(parsed: Result<T, String>) -> T {
    args::or_usage::<Cli, T>(parsed)
}

/// Arguments of `control`.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// The command: play, stop, ff, fr, fwd, rwd, fps, status.
    pub command: String,
    /// Its argument, when it takes one.
    #[arg(value_name = "ARG")]
    pub argument: Option<String>,
    /// The player, when several run.
    #[arg(long, value_name = "N")]
    pub pid: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The session file.
    #[arg(value_name = "SESSION.toml")]
    pub file: PathBuf,
}

/// Arguments of `testmovie`.
#[derive(Debug, Args)]
pub struct TestmovieArgs {
    /// The file to write.
    pub file: PathBuf,
    /// Its length: seconds, or a number with a unit.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub duration: Duration,
    /// Width and height of the pictures, in pixels.
    #[arg(long, value_name = "WxH", default_value = "640x360", value_parser = parse_size)]
    pub size: (u32, u32),
    /// Pictures per second: a number or a fraction.
    #[arg(long, default_value = "25", value_parser = parse_rate)]
    pub fps: (u32, u32),
    /// Leave the sound out.
    #[arg(long, conflicts_with = "wav")]
    pub no_sound: bool,
    /// Write the sound only, as a WAV file.
    #[arg(long)]
    pub wav: bool,
    /// Write over a file that is there.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// An AVI or WAV file.
    pub file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The length of the movie: seconds, or a number with a unit.
    #[arg(long, default_value = "30", value_parser = parse_duration)]
    pub duration: Duration,
    /// Send so many times faster than the movie plays: 0.1 to 1000.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_speed)]
    pub speed: f64,
    /// The folder for the movie, the session file and what arrives.
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    pub out: PathBuf,
    /// Keep files of an earlier demo and stop, instead of writing over them.
    #[arg(long)]
    pub keep: bool,
    /// Where an emulated link is put on the way.
    #[command(flatten)]
    pub over: OverLink,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// The port that is to be served at, UDP and TCP.
    #[arg(long, short, value_name = "N", default_value_t = dacapo::host::PORT)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
}

/// Arguments of `bench` and `eval`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What is to be done, and its options.
    #[arg(value_name = "NAME", trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "a number, such as 2 or 0.5")?;
    let is_allowed = (0.1..=1_000.0).contains(&speed);
    if is_allowed { Ok(speed) } else { Err("a number from 0.1 to 1000".to_owned()) }
}

fn parse_give_up(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time of 0s to 24h, such as 0s, 30s or 5min");
    let ns = text::parse_duration(text).map_err(|_| wrong())?;
    if ns <= MAX_GIVE_UP_NS { Ok(Duration::from_nanos(ns)) } else { Err(wrong()) }
}

fn parse_size(text: &str) -> Result<(u32, u32), String> {
    let wrong = || "width and height in pixels, such as 640x360".to_owned();
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let size = (width.parse().map_err(|_| wrong())?, height.parse().map_err(|_| wrong())?);
    let sides = SIDE_MIN..=SIDE_MAX;
    if sides.contains(&size.0) && sides.contains(&size.1) {
        Ok(size)
    } else {
        Err(format!("sides of {SIDE_MIN} to {SIDE_MAX} pixels"))
    }
}

/// Pictures per second as a fraction: `25`, `12.5`, `30000/1001`.
fn parse_rate(text: &str) -> Result<(u32, u32), String> {
    let wrong = || "pictures per second, such as 25, 12.5 or 30000/1001".to_owned();
    let rate = if let Some((rate, scale)) = text.split_once('/') {
        (rate.parse().map_err(|_| wrong())?, scale.parse().map_err(|_| wrong())?)
    } else if let Ok(rate) = text.parse::<u32>() {
        (rate, 1)
    } else {
        let rate: f64 = text.parse().map_err(|_| wrong())?;
        ((rate * 1_000.0).round() as u32, 1_000)
    };
    let is_allowed = rate.1 > 0 && rate.0 >= 1 && u64::from(rate.0) <= 1_000 * u64::from(rate.1);
    if is_allowed { Ok(rate) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound_and_every_help_has_examples() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        assert_eq!(dacapo_term::manual::incomplete(command), [""; 0]);
    }

    #[test]
    fn rates_are_numbers_or_fractions() {
        assert_eq!(parse_rate("25"), Ok((25, 1)));
        assert_eq!(parse_rate("12.5"), Ok((12_500, 1_000)));
        assert_eq!(parse_rate("30000/1001"), Ok((30_000, 1_001)));
        for wrong in ["0", "-3", "x", "1/0", "1001", "nan", "inf"] {
            assert!(parse_rate(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_and_speeds_are_checked() {
        assert_eq!(parse_size("640x360"), Ok((640, 360)));
        assert!(parse_size("640*360").is_err() && parse_size("640x").is_err());
        assert!(parse_size("8x8").is_err() && parse_size("640x9999999999").is_err());
        assert!(parse_speed("0").is_err() && parse_speed("nan").is_err());
        assert_eq!(parse_speed("8"), Ok(8.0));
    }
}
