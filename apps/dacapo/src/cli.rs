//! The arguments of every command, with their help.
//!
//! What it is not: what the commands do (`commands/`). Wrong usage ends with code 2 here already.

use clap::{Args, Parser, Subcommand};
use dacapo::uri::Uri;
use dacapo_media::testmovie::{SIDE_MAX, SIDE_MIN};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "\
Exit codes:
  0  done                               5  a session or media file is invalid
  1  a failure while it ran             6  a ledger did not close, or a hash differs
  2  wrong usage                        130, 143  ended by SIGINT, SIGTERM,
  3  the peer cannot be reached                   after closing in order

Colours appear on terminals only, and not with NO_COLOR. See docs/exit-codes.md.";

const EXAMPLES: &str = "\
Examples:
  dacapo demo                              see it work, on this host alone
  dacapo serve conf/testcard.toml          then, in another terminal:
  dacapo play dacapo://127.0.0.1/testcard --save out";

/// Composes a protocol for each flow of media out of small modules, and runs it.
#[derive(Debug, Parser)]
#[command(name = "dacapo", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"), max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
    /// Give a command to a player that runs on this host.
    #[command(after_help = format!("{CONTROL}\n\n{EXIT_CODES}"))]
    Control(ControlArgs),
    /// Check a session file and describe it, or name everything that is wrong with it.
    #[command(after_help = format!("{CHECK}\n\n{EXIT_CODES}"))]
    Check(CheckArgs),
    /// Write a test movie: pictures and sound that are made, not filmed.
    #[command(after_help = format!("{TESTMOVIE}\n\n{EXIT_CODES}"))]
    Testmovie(TestmovieArgs),
    /// Say what is in a media file: formats, counts, and a hash of each stream.
    #[command(after_help = format!("{INSPECT}\n\n{EXIT_CODES}"))]
    Inspect(InspectArgs),
    /// Make a movie, serve it, play it over loopback, and compare what arrived.
    #[command(after_help = format!("{DEMO}\n\n{EXIT_CODES}"))]
    Demo(DemoArgs),
}

const SERVE: &str = "\
Without --listen only this host can join. Every session is at dacapo://HOST:PORT/NAME, NAME being
that of its file. Files other than AVI (Motion JPEG, PCM) and WAV are refused with the ffmpeg line
that converts them.

Examples:
  dacapo serve conf/movie.toml
  dacapo serve conf/movie.toml conf/radio.toml --listen 0.0.0.0 --listen ::
  dacapo serve conf/testcard.toml --port 0 --once     # the first line: ready dacapo://…";

const LS: &str = "\
Examples:
  dacapo ls 127.0.0.1
  dacapo ls media.example:19980 --json
  dacapo ls '[2001:db8::7]'";

const PLAY: &str = "\
Keys, when the input is a terminal:
  space, p  stop and go on        >  to the end         +, -  faster, slower
  f         fast forward          <  to the start       q     quit
  r         fast reverse

Without --save the pictures and the sound go to ffplay, when it is installed; else they are counted.

Examples:
  dacapo play dacapo://127.0.0.1/movie
  dacapo play dacapo://media.example/movie --save recordings --quiet
  dacapo play dacapo://127.0.0.1/radio --save out --json | jq '.flows[].account.units_lost'";

const CONTROL: &str = "\
Commands:
  play      go on                 fwd       jump to the end and stop there
  stop      stay where it is      rwd       jump to the start
  ff        fast forward          fps N     N pictures per second, or nominal
  fr        fast reverse          status    what it does and where it is

Every player listens at $XDG_RUNTIME_DIR/dacapo/PID.sock, for its own user only.

Examples:
  dacapo control ff
  dacapo control fps 12.5
  dacapo control status --pid 4711";

const CHECK: &str = "\
Examples:
  dacapo check conf/movie.toml
  dacapo check conf/movie.toml && dacapo serve conf/movie.toml";

const TESTMOVIE: &str = "\
The same options give the same bytes on every machine.

Examples:
  dacapo testmovie movie.avi
  dacapo testmovie short.avi --duration 5s --size 320x240 --fps 30000/1001
  dacapo testmovie tone.wav --wav --duration 1min";

const INSPECT: &str = "\
Two files with equal hashes of a stream hold the same pictures or sound, whatever the container.

Examples:
  dacapo inspect movie.avi
  dacapo inspect tone.wav --json";

const DEMO: &str = "\
The server runs as a second process of this program, on loopback, at a port that the system chooses.

Examples:
  dacapo demo
  dacapo demo --duration 10 --speed 4 --out out/demo";

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Session files.
    #[arg(required = true, value_name = "SESSION.toml")]
    pub files: Vec<PathBuf>,
    /// Listen at this address (IP or IP:PORT) instead of loopback; may be repeated.
    #[arg(long, short, value_name = "ADDR", value_parser = parse_listen)]
    pub listen: Vec<Listen>,
    /// The UDP port; 0 lets the system choose and prints it first: `ready dacapo://HOST:PORT/`.
    #[arg(long, short, value_name = "N", default_value_t = dacapo::host::PORT)]
    pub port: u16,
    /// Send so many times faster than the media play: 0.1 to 1000.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_speed)]
    pub speed: f64,
    /// End after the first session has ended.
    #[arg(long)]
    pub once: bool,
}

/// Arguments of `ls`.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// The host; IPv6 addresses in brackets.
    #[arg(value_name = "HOST[:PORT]")]
    pub host: String,
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
    /// Print the account as JSON at the end.
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors, and JSON when asked for.
    #[arg(long, short)]
    pub quiet: bool,
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
}

/// Where to listen: an address, and a port when it differs from `--port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    ip: IpAddr,
    port: Option<u16>,
}

impl Listen {
    /// The whole address, with this port where none was given.
    pub fn addr(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(port))
    }
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    if let Ok(addr) = text.parse::<SocketAddr>() {
        return Ok(Listen { ip: addr.ip(), port: Some(addr.port()) });
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let ip = bare.parse().map_err(|_| "an IP address, such as 0.0.0.0, ::1 or 10.0.0.7:19980")?;
    Ok(Listen { ip, port: None })
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "a number, such as 2 or 0.5")?;
    let is_allowed = (0.1..=1_000.0).contains(&speed);
    if is_allowed { Ok(speed) } else { Err("a number from 0.1 to 1000".to_owned()) }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no length of 1 ms to 24 h, such as 30, 2.5s or 1min");
    let seconds = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    let duration = match seconds {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?,
        None => Duration::from_nanos(dacapo_qos::parse_duration(text).map_err(|_| wrong())?),
    };
    let allowed = Duration::from_millis(1)..=Duration::from_secs(86_400);
    if allowed.contains(&duration) { Ok(duration) } else { Err(wrong()) }
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
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let help = sub.clone().render_help().to_string();
            assert!(help.contains("Examples:"), "{}", sub.get_name());
            assert!(help.contains("Exit codes:"), "{}", sub.get_name());
        }
    }

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
    fn rates_are_numbers_or_fractions() {
        assert_eq!(parse_rate("25"), Ok((25, 1)));
        assert_eq!(parse_rate("12.5"), Ok((12_500, 1_000)));
        assert_eq!(parse_rate("30000/1001"), Ok((30_000, 1_001)));
        for wrong in ["0", "-3", "x", "1/0", "1001", "nan", "inf"] {
            assert!(parse_rate(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_speeds_and_addresses_are_checked() {
        assert_eq!(parse_size("640x360"), Ok((640, 360)));
        assert!(parse_size("640*360").is_err() && parse_size("640x").is_err());
        assert!(parse_size("8x8").is_err() && parse_size("640x9999999999").is_err());
        assert!(parse_speed("0").is_err() && parse_speed("nan").is_err());
        assert_eq!(parse_speed("8"), Ok(8.0));
        let addr = |text: &str| parse_listen(text).unwrap().addr(7).to_string();
        assert_eq!(addr("0.0.0.0"), "0.0.0.0:7");
        assert_eq!(addr("[::1]"), "[::1]:7");
        assert_eq!(addr("10.0.0.7:9"), "10.0.0.7:9");
        assert!(parse_listen("example.org").is_err());
    }
}
