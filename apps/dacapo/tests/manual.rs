//! `dacapo completions` and `man`: what shells and readers of manuals get.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::{LONG, Place, in_order};
use std::collections::BTreeSet;

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// The commands that `dacapo --help` lists, `help` itself left out.
fn commands(place: &Place) -> Vec<String> {
    let help = place.run(&["--help"]).expect(0).out;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    let place = Place::new();
    let commands = commands(&place);
    for command in ["send", "recv", "explain", "modules", "bench"] {
        assert!(commands.iter().any(|name| name == command), "{command} is not in {commands:?}");
    }
    assert!(commands.len() >= 16, "{commands:?}");
    for shell in SHELLS {
        let script = place.run(&["completions", shell]).expect(0).out;
        for word in commands.iter().map(String::as_str).chain(["save", "listen"]) {
            assert!(script.contains(word), "{word:?} is not in the script for {shell}");
        }
    }
}

#[test]
fn bash_accepts_its_script_and_completes_with_it() {
    let place = Place::new();
    let script = place.run(&["completions", "bash"]).expect(0).out;
    place.write("dacapo.bash", &script);
    let check = place.program("bash", &["-n", "dacapo.bash"]);
    let run = place.start_command(check).wait(LONG).expect(0);
    assert_eq!(run.err, "", "{}", run.all());
    let ask = "source dacapo.bash; COMP_WORDS=(dacapo doc); COMP_CWORD=1; \
               _dacapo dacapo doc dacapo; echo \"${COMPREPLY[@]}\"";
    let run = place.start_command(place.program("bash", &["-c", ask])).wait(LONG).expect(0);
    assert_eq!(run.out.trim(), "doctor", "{}", run.all());
}

#[test]
fn a_script_that_cannot_be_written_whole_is_a_failure() {
    let place = Place::new();
    let mut command = place.command(&["completions", "bash"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    command.stdout(full).stderr(std::process::Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("dacapo: completions: "));
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    let run = place.run(&["man", "share/man1"]).expect(0);
    assert!(run.out.contains("share/man1"), "{}", run.all());
    let mut expected: BTreeSet<String> =
        commands(&place).into_iter().map(|name| format!("dacapo-{name}.1")).collect();
    expected.insert("dacapo.1".to_owned());
    let files = common::files(&place.path("share/man1"), "1");
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(files.iter().map(name).collect::<BTreeSet<_>>(), expected);
    for path in &files {
        let page = std::fs::read_to_string(path).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let title = format!(".TH {stem} 1 \"\" \"dacapo {version}\" \"dacapo manual\"\n");
        let sections = [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH \"EXIT STATUS\""];
        in_order(&page, &[&[title.as_str()], &sections[..], &["\\fB143\\fR"]].concat());
        assert!(page.contains(".SH EXAMPLES\n"), "{stem}");
    }
    let listed = std::fs::read_to_string(place.path("share/man1/dacapo.1")).unwrap();
    for name in commands(&place) {
        assert!(listed.contains(&format!("dacapo\\-{name}(1)")), "{name}");
    }
    assert_eq!(place.run(&["man"]).expect(0).out, listed, "the main page goes to the output");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let place = Place::new();
    place.write("file", "precious");
    place.run(&["man", "file/man1"]).expect(1).says(&["dacapo: man: ", "file/man1"]);
}

#[test]
fn output_that_a_full_disk_does_not_take_is_an_error_and_a_reader_that_went_away_is_none() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let into = |to: std::process::Stdio| {
        place.command(&["modules"]).stdout(to).stderr(std::process::Stdio::piped()).output()
    };
    let lost = into(full.into()).unwrap();
    let said = String::from_utf8(lost.stderr).unwrap();
    assert_eq!(lost.status.code(), Some(1), "{said}");
    assert!(said.starts_with("dacapo: standard output: No space left"), "{said}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let unread = into(writer.into()).unwrap();
    assert_eq!((unread.status.code(), unread.stderr), (Some(0), Vec::new()));
}
