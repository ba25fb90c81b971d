//! A script with which a shell completes a program.

use crate::exit::{Exit, Failure};
use crate::output;
use clap::Args;
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that the script is for.
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// It cannot be written whole.
pub fn run(mut program: clap::Command, args: &CompletionsArgs) -> Result<Exit, Failure> {
    let (mut script, name) = (Vec::new(), program.get_name().to_owned());
    clap_complete::generate(args.shell, &mut program, &name, &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Bash && name.contains('-') {
        // The generator calls a program with a dash by two names, and then knows no options.
        script = script.replace(&name.replace('-', "__"), &name.replace('-', "__subcmd__"));
    }
    let printed = output::document(&script);
    printed.map_err(|error| Failure::run_time("completions", error))?;
    Ok(Exit::Success)
}
