//! Manual pages of a program and of everything it does.
//!
//! ```text
//!   its arguments (names, options) --+--> NAME SYNOPSIS DESCRIPTION OPTIONS SUBCOMMANDS
//!   their notes and examples --------+--> paragraphs of DESCRIPTION, EXAMPLES
//!   exit (codes) --------------------+--> EXIT STATUS
//! ```
//!
//! Source: man-pages(7) on the sections of a page and their order, man(7) on the macros.

use crate::exit::{Exit, Failure, USAGE};
use crate::folder;
use crate::output;
use clap::{Args, ValueHint};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;
use std::path::{Path, PathBuf};

/// The block of a help text that is the same in all, and that EXIT STATUS says better.
const EXIT_CODES: &str = "Exit codes:";
const EXAMPLES: &str = "Examples:";

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this folder, which is made when it is missing.
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Prints the page of this program, or writes all pages.
///
/// # Errors
/// They cannot be written.
pub fn run(program: clap::Command, args: &ManArgs) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::run_time("man", error);
    let pages = pages(program).map_err(failed)?;
    match &args.dir {
        Some(dir) => {
            write(dir, &pages)?;
            let (count, dir) = (pages.len(), dir.display());
            let two: Vec<&str> = pages.iter().take(2).map(|page| page.file_name.as_str()).collect();
            output::line(format_args!("{count} pages in {dir}: {}, …", two.join(", ")));
        }
        None => {
            let main = pages.first().map_or("", |page| page.text.as_str());
            output::document(main).map_err(failed)?;
        }
    }
    Ok(Exit::Success)
}

/// The commands of a program whose `--help` shows no examples, or no exit codes.
#[must_use]
pub fn incomplete(mut program: clap::Command) -> Vec<String> {
    program.build();
    let is_complete = |command: &clap::Command| {
        let help = command.clone().render_help().to_string();
        help.contains(EXAMPLES) && help.contains(EXIT_CODES)
    };
    let commands = program.get_subcommands().filter(|it| it.get_name() != "help");
    commands.filter(|it| !is_complete(it)).map(|it| it.get_name().to_owned()).collect()
}

/// A manual page.
struct Page {
    /// Such as `dacapo-serve.1`.
    file_name: String,
    text: String,
}

fn write(dir: &Path, pages: &[Page]) -> Result<(), Failure> {
    let failed =
        |path: &Path, error| Failure::run_time("man", format!("{}: {error}", path.display()));
    folder::make(dir).map_err(|text| Failure::run_time("man", text))?;
    for page in pages {
        let path = dir.join(&page.file_name);
        std::fs::write(&path, &page.text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// The page of the program, and after it those of what it does.
fn pages(program: clap::Command) -> io::Result<Vec<Page>> {
    // `help` says nothing that the pages do not say.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let subcommands = program.get_subcommands().filter(|it| !it.is_hide_set());
    let of = |command| page(command, program.get_name());
    std::iter::once(&program).chain(subcommands).map(of).collect()
}

fn page(command: &clap::Command, program: &str) -> io::Result<Page> {
    let version = command.get_version().unwrap_or_default();
    // An empty date would be left out, and what follows it would take its place.
    let man = Man::new(command.clone()).date("\"\"").source(format!("dacapo {version}"));
    let man = man.manual("dacapo manual");
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    notes(&help).to_writer(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    exit_status().to_writer(&mut text)?;
    examples(&help).to_writer(&mut text)?;
    if command.get_name() != program {
        see_also(program).to_writer(&mut text)?;
    }
    let text = only_first(&String::from_utf8_lossy(&text), &Roff::new().render());
    Ok(Page { file_name: man.get_filename(), text })
}

/// Every section brings the definitions that it needs; once is enough.
fn only_first(text: &str, definitions: &str) -> String {
    format!("{definitions}{}", text.replace(definitions, ""))
}

/// What a help says after its options, but for exit codes and examples.
fn notes(help: &str) -> Roff {
    let mut roff = Roff::new();
    let is_note = |block: &&str| !block.starts_with(EXIT_CODES) && !block.starts_with(EXAMPLES);
    for block in help.split("\n\n").filter(is_note) {
        roff.control("PP", []);
        match block.split_once('\n') {
            Some((heading, list)) if heading.ends_with(':') => {
                roff.text([roman(heading)]);
                as_it_is(&mut roff, list);
            }
            _ => {
                roff.text([roman(block.replace('\n', " "))]);
            }
        }
    }
    roff
}

fn examples(help: &str) -> Roff {
    let mut roff = Roff::new();
    let examples = help.split("\n\n").find_map(|block| block.strip_prefix(EXAMPLES));
    if let Some(list) = examples {
        roff.control("SH", ["EXAMPLES"]);
        as_it_is(&mut roff, list.trim_start_matches('\n'));
    }
    roff
}

/// Lines that are not filled.
fn as_it_is(roff: &mut Roff, list: &str) {
    roff.control("PP", []);
    roff.control("nf", []);
    for line in list.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

fn exit_status() -> Roff {
    let mut all = Exit::ALL.map(|exit| (exit.code(), exit.meaning())).to_vec();
    all.push(USAGE);
    all.sort_unstable();
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in all {
        roff.control("TP", []);
        roff.text([bold(code.to_string())]);
        roff.text([roman(meaning)]);
    }
    roff
}

fn see_also(program: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold(program), roman("(1)")]);
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_and_each_of_its_commands_have_a_page_with_its_sections() {
        let help = format!("A note.\n\nExamples:\n  it does\n\n{EXIT_CODES}\n  0  done");
        let does = clap::Command::new("does").about("Does it.").after_help(help.clone());
        let program = clap::Command::new("it").version("7").about("It.").after_help(help);
        let pages = pages(program.subcommand(does)).unwrap();
        let names: Vec<&str> = pages.iter().map(|page| page.file_name.as_str()).collect();
        assert_eq!(names, ["it.1", "it-does.1"]);
        for (Page { file_name, text }, refers) in pages.iter().zip([0, 1]) {
            for section in
                ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"EXIT STATUS\"", "EXAMPLES"]
            {
                let heading = format!("\n.SH {section}\n");
                assert_eq!(text.matches(&heading).count(), 1, "{section} in {file_name}");
            }
            assert!(!text.contains(EXIT_CODES), "{file_name}");
            assert_eq!(text.matches(".SH \"SEE ALSO\"\n\\fBit\\fR(1)\n").count(), refers, "{text}");
        }
    }

    #[test]
    fn a_command_without_examples_or_exit_codes_is_named() {
        let help = format!("Examples:\n  it does\n\n{EXIT_CODES}\n  0  done");
        let helps = [("a", "Examples:"), ("b", EXIT_CODES), ("c", help.as_str())];
        let command = |(name, help)| clap::Command::new(name).after_help(String::from(help));
        let commands = helps.map(command);
        assert_eq!(incomplete(clap::Command::new("it").subcommands(commands)), ["a", "b"]);
    }

    #[test]
    fn notes_are_filled_and_lists_are_not() {
        let help = "One\ntwo.\n\nKeys:\n  .a  b\n  c\n\nExamples:\n  x\n\nExit codes:\n  0";
        let text = notes(help).to_roff();
        assert!(text.contains(".PP\nOne two.\n"), "{text}");
        assert!(text.contains("Keys:\n.PP\n.nf\n  .a  b\n  c\n.fi\n"), "{text}");
        assert!(!text.contains("Ex"), "{text}");
        assert!(examples(help).to_roff().contains(".nf\n  x\n.fi\n"));
    }
}
