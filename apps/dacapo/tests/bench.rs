//! `dacapo bench` and `dacapo xtp bench` become the program that measures: arguments, streams,
//! signals and exit code are its own. What it measures is tested where it is.
//!
//! ```text
//!   here/dacapo   here/dacapo-eval      path/dacapo-eval
//!        `--- looks beside it ---^ ----- then in PATH --^
//! ```

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{Finished, LONG, Place, Running, dacapo, in_order};
use std::fs;
use std::process::{Command, Stdio};

/// Prints who it is, its arguments and its input, and ends with 42.
const TELLS: &str = "echo \"NAME $$\"; printf '<%s>\\n' \"$@\"; cat; echo sorry >&2; exit 42";

/// The command in a folder of its own.
struct Alone {
    place: Place,
}

impl Alone {
    fn new() -> Self {
        let place = Place::new();
        let script = "mkdir here path && { ln \"$0\" here/ 2>/dev/null || cp \"$0\" here/; }";
        let run = place.start_command(place.program("sh", &["-c", script, dacapo()]));
        run.wait(LONG).expect(0);
        Self { place }
    }

    /// Puts a program in a folder. Another process writes it: while a file is open for writing
    /// anywhere it cannot be started, and any start of a process copies what is open here.
    fn put(&self, folder: &str, script: &str) {
        let script = format!("#!/bin/sh\n{}\n", script.replace("NAME", folder));
        let text = self.place.write("script", script);
        let to = self.place.path(folder).join("dacapo-eval");
        let args = ["-m", "755", text.to_str().unwrap(), to.to_str().unwrap()];
        self.place.start_command(self.place.program("install", &args)).wait(LONG).expect(0);
    }

    /// The command, with `path` before what is usual in PATH.
    fn command(&self, args: &[&str]) -> Command {
        let program = self.place.path("here/dacapo");
        let mut command = self.place.program(program.to_str().unwrap(), args);
        let usual = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{usual}", self.place.path("path").display()));
        command
    }

    fn start(&self, args: &[&str]) -> Running {
        self.place.start_command(self.command(args))
    }

    fn run(&self, args: &[&str]) -> Finished {
        self.start(args).wait(LONG)
    }
}

#[test]
fn arguments_streams_and_exit_code_are_those_of_the_program_that_measures() {
    let alone = Alone::new();
    alone.put("here", TELLS);
    let mut command = alone.command(&["bench", "net", "-h", "--json", "--", "a b", "", "--help"]);
    command.stdin(fs::File::open(alone.place.write("in", "what is read\n")).unwrap());
    let run = alone.place.start_command(command);
    let pid = run.pid();
    let run = run.wait(LONG).expect(42);
    let words = "<net>\n<-h>\n<--json>\n<-->\n<a b>\n<>\n<--help>\n";
    assert_eq!(run.out, format!("here {pid}\n{words}what is read\n"), "the process is the same");
    assert_eq!(run.err, "sorry\n");
    let run = alone.run(&["xtp", "bench", "--help", "--over", "tcp", "192.0.2.7"]).expect(42);
    in_order(&run.out, &["here ", "\n<xtp>\n<--help>\n<--over>\n<tcp>\n<192.0.2.7>\n"]);
}

#[test]
fn it_is_looked_for_beside_the_command_and_then_in_path() {
    let alone = Alone::new();
    alone.put("path", TELLS);
    assert!(alone.run(&["bench", "net"]).expect(42).out.starts_with("path "));
    alone.put("here", TELLS);
    assert!(alone.run(&["bench", "net"]).expect(42).out.starts_with("here "));
}

#[test]
fn a_signal_goes_to_it_and_nothing_is_left() {
    let alone = Alone::new();
    // A shell cannot trap INT where whoever started the tests ignores it, as `nohup` does.
    let waits = "trap 'echo caught; exit 143' TERM; echo ready; while :; do sleep 0.01; done";
    alone.put("here", waits);
    let run = alone.start(&["bench", "net"]);
    run.wait_for_out("ready", LONG);
    run.signal("TERM");
    assert_eq!(run.wait(LONG).expect(143).out, "ready\ncaught\n");
}

#[test]
fn where_there_is_none_it_says_what_to_install_and_what_the_command_knows_is_there() {
    let alone = Alone::new();
    let asked = [&["bench", "net"][..], &["bench", "help"], &["xtp", "bench"], &["bench"]];
    for args in asked {
        let mut command = alone.command(args);
        command.env("PATH", alone.place.path("path"));
        let run = alone.place.start_command(command).wait(LONG).expect(1);
        run.says(&[
            "dacapo: start dacapo-eval: ",
            "neither beside this one nor in PATH",
            "`cargo install --locked --path apps/eval`",
            "`make build`",
        ]);
        assert_eq!(run.out, "");
    }
    let help = alone.run(&["bench", "--help"]).expect(0).out;
    in_order(&help, &["dacapo-eval", "apps/eval", "Examples:", "dacapo bench help", "Exit codes:"]);
}

#[test]
fn one_that_cannot_be_started_is_named_with_the_reason() {
    let alone = Alone::new();
    alone.place.write("here/dacapo-eval", "no program");
    let run = alone.run(&["bench", "net"]).expect(1);
    run.says(&["dacapo: start ", "/here/dacapo-eval: ", "denied"]);
    // A reader that has gone is its reader, too.
    alone.put("here", "yes; exit 7");
    let script = "\"$0\" bench net | head -1";
    let program = alone.place.path("here/dacapo");
    let pipe = alone.place.program("sh", &["-c", script, program.to_str().unwrap()]);
    let run = alone.place.start_command(pipe).wait(LONG).expect(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("y\n", ""));
}

#[test]
fn what_is_typed_reaches_it() {
    let alone = Alone::new();
    alone.put("here", "read -r line && echo \"got $line\"");
    let mut command = alone.command(&["bench", "net"]);
    command.stdin(Stdio::piped());
    let mut run = alone.place.start_command(command);
    std::io::Write::write_all(&mut run.take_stdin(), b"a line\n").unwrap();
    assert_eq!(run.wait(LONG).expect(0).out, "got a line\n");
}
