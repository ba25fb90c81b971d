//! The arguments of every measurement, with their help.
//!
//! Wrong usage ends with code 2 here already.

mod choice;
mod choices;
mod copies;
mod cost;
mod drawn;
mod harness;
mod lift;
mod net;
mod safenet;
mod scale;
mod setup;
mod speed;
mod texts;
mod xtp;

use crate::run::burden::Kind;
pub use choice::BenchChoiceArgs;
pub use choices::BenchChoicesArgs;
use clap::{Args, Parser, Subcommand, ValueHint};
pub use copies::{BenchCopiesArgs, CopiesEndArgs, UnitWay};
pub use cost::BenchCostArgs;
pub use dacapo_term::args::word as net_word;
use dacapo_term::args::{self, parse_duration, parse_len, parse_place};
use dacapo_term::completions::CompletionsArgs;
use dacapo_term::manual::ManArgs;
pub use dacapo_term::xtp::args::{Below, Over};
pub use drawn::BenchDrawnArgs;
pub use harness::{
    CheckArgs, CompareArgs, Format, HistoryArgs, ListArgs, ProfileArgs, RunArgs, ShowArgs,
};
pub use lift::BenchLiftArgs;
pub use net::{BenchNetArgs, NetDirection, NetTransport, NetWait, NetWhat};
pub use safenet::{BenchSafenetArgs, MessagesOver};
pub use scale::BenchScaleArgs;
pub use setup::{BenchSetupArgs, Fresh, StartsArgs, THEN};
pub use speed::BenchSpeedArgs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use texts::*;
pub use xtp::{BenchXtpArgs, XtpMode};

/// Measures this host, beside figures of others or a plain program.
#[derive(Debug, Parser)]
#[command(name = "dacapo-eval", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = format!("{EVAL}\n\n{EXIT_CODES}"), max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What is left when an argument is wrong in a way that only shows together with another.
pub fn or_usage<T>(parsed: Result<T, String>) -> T {
    args::or_usage::<Cli, T>(parsed)
}

/// The one of that name; all without one. `what` is said of a name that none has.
///
/// # Errors
/// There is none of that name; those that there are.
pub fn only<T>(
    all: Vec<T>,
    name: Option<&str>,
    name_of: impl Fn(&T) -> &str,
    what: &str,
) -> Result<Vec<T>, String> {
    let Some(name) = name else { return Ok(all) };
    let names = all.iter().map(&name_of).collect::<Vec<_>>().join(", ");
    let only: Vec<T> = all.into_iter().filter(|it| name_of(it) == name).collect();
    match only.is_empty() {
        true => Err(format!("`{name}` is no {what}; there are {names}")),
        false => Ok(only),
    }
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The experiments, and the runs that are kept.
    #[command(after_help = format!("{LIST}\n\n{EXIT_CODES}"))]
    List(ListArgs),
    /// Measure experiments, beside controls and peers, and keep every sample.
    #[command(after_help = format!("{RUN}\n\n{EXIT_CODES}"))]
    Run(RunArgs),
    /// The tables and charts of a run.
    #[command(after_help = format!("{SHOW}\n\n{EXIT_CODES}"))]
    Show(ShowArgs),
    /// Flame graphs of rows that miss a goal, by perf, beside their run.
    #[command(after_help = format!("{PROFILE}\n\n{EXIT_CODES}"))]
    Profile(ProfileArgs),
    /// Two runs, row by row.
    #[command(after_help = format!("{COMPARE}\n\n{EXIT_CODES}"))]
    Compare(CompareArgs),
    /// A row over all runs.
    #[command(after_help = format!("{HISTORY}\n\n{EXIT_CODES}"))]
    History(HistoryArgs),
    /// Whether every figure in the documents is one that was measured.
    #[command(after_help = format!("{CHECK}\n\n{EXIT_CODES}"))]
    Check(CheckArgs),
    /// The load of loaded rounds, for the harness's own use.
    #[command(hide = true, after_help = format!("{BURDEN}\n\n{EXIT_CODES}"))]
    Burden(BurdenArgs),
    /// A live source, for the harness's own use.
    #[command(hide = true, after_help = format!("{PACE}\n\n{EXIT_CODES}"))]
    Pace(PaceArgs),
    /// What comes by UDP, on standard output, until it is ended.
    #[command(hide = true, after_help = format!("{COLLECT}\n\n{EXIT_CODES}"))]
    Collect(CollectArgs),
    /// How long it takes to choose a graph and a transport, with why, or to say why there is none.
    #[command(after_help = format!("{CHOICE}\n\n{EXIT_CODES}"))]
    Choice(BenchChoiceArgs),
    /// What each module is for: the requests of docs/choices.md, with it and without it, and run.
    #[command(after_help = format!("{CHOICES}\n\n{EXIT_CODES}"))]
    Choices(BenchChoicesArgs),
    /// How often each module is chosen, for requests that are drawn.
    #[command(after_help = format!("{DRAWN}\n\n{EXIT_CODES}"))]
    Drawn(BenchDrawnArgs),
    /// The control commands, as Tables 20 and 22 to 24 of the report of 1998 measure them.
    #[command(after_help = format!("{CONTROL}\n\n{EXIT_CODES}"))]
    Control(BenchControlArgs),
    /// How often a unit is copied in user space on its way down and up, by callgrind.
    #[command(after_help = format!("{COPIES}\n\n{EXIT_CODES}"))]
    Copies(BenchCopiesArgs),
    /// An end of `copies`, for its own use.
    #[command(hide = true, after_help = format!("{COPIES_END}\n\n{EXIT_CODES}"))]
    CopiesEnd(CopiesEndArgs),
    /// What each C-module costs per train, packet and byte, beside what its profile says.
    #[command(after_help = format!("{COST}\n\n{EXIT_CODES}"))]
    Cost(BenchCostArgs),
    /// A file from process to process, beside a program of plain sockets, in turn.
    #[command(after_help = format!("{TRANSFER}\n\n{EXIT_CODES}"))]
    Transfer(BenchTransferArgs),
    /// A packet through chains of modules, beside the same modules without a runner, and 1998.
    #[command(after_help = format!("{LIFT}\n\n{EXIT_CODES}"))]
    Lift(BenchLiftArgs),
    /// The ceiling and the delay of the link emulator, beside the same sockets without it, in turn.
    #[command(after_help = format!("{LINK}\n\n{EXIT_CODES}"))]
    Link(BenchLinkArgs),
    /// What the network carries, and how long it takes: between two hosts, or on this one alone.
    #[command(after_help = format!("{NET}\n\n{EXIT_CODES}"))]
    Net(BenchNetArgs),
    /// Messages over XTP, at the levels of the SAFENET document, beside its figures.
    #[command(after_help = format!("{SAFENET}\n\n{EXIT_CODES}"))]
    Safenet(BenchSafenetArgs),
    /// What ten thousand idle sessions cost, and what opening and closing them leaves behind.
    #[command(after_help = format!("{SCALE}\n\n{EXIT_CODES}"))]
    Scale(BenchScaleArgs),
    /// The arithmetic of modules, beside the calls that it could be made of.
    #[command(after_help = format!("{SPEED}\n\n{EXIT_CODES}"))]
    Speed(BenchSpeedArgs),
    /// From nothing to a unit that is there and back, again and again: ends of `eval run setup`.
    #[command(hide = true, after_help = format!("{SETUP}\n\n{EXIT_CODES}"))]
    Setup(BenchSetupArgs),
    /// How long a process takes from its start to its end, again and again: for `eval run setup`.
    #[command(hide = true, after_help = format!("{STARTS}\n\n{EXIT_CODES}"))]
    Starts(StartsArgs),
    /// XTP from process to process, by what is sent at once and how, beside figures of 1995.
    #[command(after_help = format!("{XTP}\n\n{EXIT_CODES}"))]
    Xtp(BenchXtpArgs),
    /// Print a script with which a shell completes this program.
    #[command(after_help = format!("{COMPLETIONS}\n\n{EXIT_CODES}"))]
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all measurements into a folder.
    #[command(after_help = format!("{MAN}\n\n{EXIT_CODES}"))]
    Man(ManArgs),
}

/// Arguments of `pace`.
#[derive(Debug, Args)]
pub struct PaceArgs {
    /// What is written to standard output.
    pub file: PathBuf,
    /// Where it goes by UDP instead, in datagrams of 1,316 bytes.
    #[arg(long, value_name = "HOST:PORT")]
    pub to: Option<SocketAddr>,
    /// How fast.
    #[arg(long, value_name = "MBIT/S", default_value_t = 4.0)]
    pub mbit_per_s: f64,
}

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// Where datagrams come.
    pub at: SocketAddr,
}

/// Arguments of `burden`.
#[derive(Debug, Args)]
pub struct BurdenArgs {
    /// What it does.
    #[arg(value_enum)]
    pub kind: Kind,
    /// For so long.
    #[arg(long)]
    pub seconds: Option<f64>,
}

/// Arguments of `bench link`.
#[derive(Debug, Args)]
pub struct BenchLinkArgs {
    /// How long each rate is measured: seconds, or a number with a unit.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How often everything is measured; the medians are shown.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench control`.
#[derive(Debug, Args)]
pub struct BenchControlArgs {
    /// How often the sequence of commands is sent.
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bench transfer`.
#[derive(Debug, Args)]
pub struct BenchTransferArgs {
    /// The length of the file.
    #[arg(long, value_name = "SIZE", default_value = "1 GiB", value_parser = parse_len)]
    pub size: u64,
    /// How often each program sends it.
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// The folder for the files, which are removed.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// The other end of a plain transfer, or this one: for the command's own use.
    #[arg(long, hide = true, value_name = "ROLE")]
    pub plain: Option<String>,
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
}
