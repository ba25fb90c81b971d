//! Figures that people have written: each stands in a section that says at which commit, or by
//! which run, it was measured. What is so today is in the documents that are made of runs.

use std::fs;
use std::path::Path;

/// What stands behind the number of a figure.
const UNITS: [&str; 5] = ["Gbit/s", "Mbit/s", "µs", "s/GB", "×"];

/// The same where times and rates are settings, too.
const MEASURED: [&str; 3] = ["Gbit/s", "s/GB", "×"];

/// The documents that have figures in their prose, of which units, and what begins a section.
const DOCUMENTS: [(&str, &[&str], &str); 4] = [
    ("docs/tuning.md", &UNITS, HEADING),
    ("docs/xtp.md", &UNITS, HEADING),
    ("docs/safenet.md", &UNITS, HEADING),
    ("docs/decisions.md", &MEASURED, ENTRY),
];

const HEADING: &str = "#";

/// An entry of a list that begins in bold.
const ENTRY: &str = "- **";

/// The sections with figures of which no commit and no run is said, and documents that cannot be
/// read.
pub fn faults(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for (path, units, begin) in DOCUMENTS {
        let text = match fs::read_to_string(root.join(path)) {
            Ok(text) => text,
            Err(error) => {
                all.push(format!("{path}: {error}"));
                continue;
            }
        };
        let sections = sections(&text, begin)
            .into_iter()
            .filter(|(_, it)| has_figure(it, units) && !is_dated(it));
        let why = "has figures, and says neither commit nor run: say it, or link to performance.md";
        let titles = sections.map(|(title, _)| title.chars().take(60).collect::<String>());
        all.extend(titles.map(|title| format!("{path}: `{title}` {why}")));
    }
    all
}

/// Each line that begins so, and from there on all up to the next; code is left out.
fn sections<'a>(text: &'a str, begin: &str) -> Vec<(&'a str, String)> {
    let mut all = vec![("", String::new())];
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        match all.last_mut() {
            _ if !is_code && line.starts_with(begin) => all.push((line, format!("{line}\n"))),
            Some((_, section)) if !is_code => section.extend([line, "\n"]),
            _ => {}
        }
    }
    all
}

fn has_figure(section: &str, units: &[&str]) -> bool {
    units.iter().any(|unit| {
        section.match_indices(unit).any(|(at, _)| {
            let before = section[..at].trim_end_matches(' ');
            before.ends_with(|c: char| c.is_ascii_digit())
        })
    })
}

/// Whether a commit, in seven digits, stands there by itself or in the name of a run.
fn is_dated(section: &str) -> bool {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let words = section.split(|c: char| !c.is_ascii_alphanumeric());
    let is_commit = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        word.len() == 7 && word.chars().all(is_hex) && (1..7).contains(&digits)
    };
    words.into_iter().any(is_commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_with_figures_needs_a_commit_or_a_run() {
        let has = |text: &str| (has_figure(text, &UNITS), is_dated(text));
        assert_eq!(has("from 12 to 13.5 Gbit/s at 430c638"), (true, true));
        assert_eq!(has("`network/2026-11-24-b8cfde3`: 0.9 × bare GSO"), (true, true));
        assert_eq!(has("3.25 s/GB, 1000000 units, a decade"), (true, false));
        assert_eq!(has("it is measured in Gbit/s, 512 B to 64 KiB"), (false, false));
        let text = "top\n# a\n5 µs\n```\n7 µs\n```\n## b\nat 430c638\n";
        let titles: Vec<&str> = sections(text, HEADING).iter().map(|it| it.0).collect();
        assert_eq!(titles, ["", "# a", "## b"]);
        assert!(!sections(text, HEADING)[1].1.contains('7'));
        let list = sections("- **one** at 430c638\n  it is 2 × that\n- **two** is 3 ×\n", ENTRY);
        let faulty = |it: &&(&str, String)| has_figure(&it.1, &MEASURED) && !is_dated(&it.1);
        assert_eq!(list.iter().filter(faulty).count(), 1);
    }

    #[test]
    fn a_document_that_is_not_there_is_a_fault() {
        let faults = faults(Path::new("/nowhere"));
        assert_eq!(faults.len(), DOCUMENTS.len());
        assert!(faults[0].starts_with("docs/tuning.md: No such file"), "{}", faults[0]);
    }

    #[test]
    fn every_figure_in_the_prose_of_the_project_says_when_it_was_measured() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        assert_eq!(faults(root), [""; 0]);
    }
}
