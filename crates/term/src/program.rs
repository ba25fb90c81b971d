//! How a program begins and ends, and how it starts another one of ours.
//!
//! ```text
//!   dacapo bench net  --> beside dacapo: dacapo-eval? in PATH? --> becomes it: dacapo-eval net
//! ```
//!
//! Invariant: who becomes another program leaves nothing between it and who started this one: its
//! arguments, streams, signals and exit code are the other's.

use crate::exit::{Exit, Failure};
use crate::output;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Runs a program to its end: what it could not do is said on standard error, and how it ended is
/// its exit code.
pub fn run(work: impl FnOnce() -> Result<Exit, Failure>) -> ExitCode {
    #[cfg(debug_assertions)]
    if let Err(text) = crate::faults::arm(|name| env::var_os(name)) {
        output::note(format_args!("dacapo: {text}"));
        return ExitCode::from(crate::exit::USAGE.0);
    }
    dacapo_sys::signal::ignore_file_size_limit();
    let ended = work().and_then(|exit| match output::lost() {
        Some(error) if exit == Exit::Success => Err(Failure::run_time("standard output", error)),
        _ => Ok(exit),
    });
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // A signal needs no words.
            if !failure.text.is_empty() {
                output::note(&failure);
            }
            failure.exit.into()
        }
    }
}

/// Another program of ours.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    name: &'static str,
    /// Where its source is in a checkout.
    folder: &'static str,
}

/// The command.
pub const DACAPO: Other = Other { name: "dacapo", folder: "apps/dacapo" };
/// The program that measures.
pub const EVAL: Other = Other { name: "dacapo-eval", folder: "apps/eval" };

impl Other {
    /// What starts it: the one beside this program, else the one that PATH finds.
    #[must_use]
    pub fn command(&self) -> Command {
        let beside = env::current_exe().map(|own| own.with_file_name(self.name));
        let beside = beside.ok().filter(|path| path.is_file());
        beside.map_or_else(|| Command::new(self.name), Command::new)
    }

    /// Turns this process into it, called `called` and with these arguments. Returns when it cannot
    /// be started, with what to do.
    pub fn become_it<I>(&self, called: &str, args: I) -> Failure
    where
        I: IntoIterator<Item: AsRef<OsStr>>,
    {
        let mut command = self.command();
        let error = command.arg0(called).args(args).exec();
        self.cannot_start(&command, &error)
    }

    /// Why it could not be started.
    #[must_use]
    pub fn cannot_start(&self, command: &Command, error: &io::Error) -> Failure {
        let Self { name, folder } = self;
        if error.kind() != io::ErrorKind::NotFound {
            let program = command.get_program().display();
            return Failure::run_time(&format!("start {program}"), error);
        }
        let text = format!(
            "there is no such program, neither beside this one nor in PATH. In a checkout of \
             dacapo `cargo install --locked --path {folder}` installs it, and `make build` builds \
             all programs into one folder"
        );
        Failure::run_time(&format!("start {name}"), text)
    }
}
