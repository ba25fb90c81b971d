//! `docs/performance.md`, `docs/bad-networks.md`: what is missed, and then every table and chart.

use super::{Kept, KeptRun, charts, histories, in_order};
use crate::outcome::Outcome;
use crate::show::grid::{Grid, figures, goals};
use crate::show::{LEGEND, rounds_in_words};

const HEAD: &str = "\
# Performance

Written by `dacapo-eval check --write` from the runs in `eval/runs`; `dacapo eval run ID`
measures again. Goals are ratios, measured side by side in one run, as absolute figures move
with the machine. Loaded rounds, beside a process that spins and one that copies memory, are
judged first. What was slow, what was done about it, and what was tried and left:
[tuning.md](tuning.md). What comes through links that lose and delay:
[bad-networks.md](bad-networks.md).

";

const NETWORKS_HEAD: &str = "\
# Bad networks

What comes through links that lose, delay, reorder and are shared: everybody over the same link
emulator, in rounds in which each has its turn. Written by `dacapo-eval check --write` from the
runs in `eval/runs`; `dacapo-eval run wan` and `dacapo-eval run media` measure again. A round in
which the emulator was more than 1 ms late is not counted. All else:
[performance.md](performance.md).

";

const OVER_COMMITS: &str = "
## Over commits

By the number of the commit; `dacapo eval history ROW --charts DIR` draws any row.

";

/// Whether the tables of this experiment are of bad networks.
fn is_network(it: &&KeptRun) -> bool {
    let id = it.run.header.id.as_str();
    ["links", "rtt", "long"].contains(&id) || id.starts_with("wan-") || id.starts_with("media-")
}

/// The page of bad networks.
///
/// # Errors
/// A chart cannot be drawn.
pub fn networks(kept: &Kept) -> Result<String, String> {
    let mut text = NETWORKS_HEAD.to_owned();
    text += "## Missed\n\n";
    text += &missed(in_order(kept).filter(is_network));
    text += &format!("\n{}\n", wrapped(LEGEND));
    for it in in_order(kept).filter(is_network) {
        text += &section(it)?;
    }
    Ok(text)
}

/// The page of all that is missed, and of the rest.
///
/// # Errors
/// A chart cannot be drawn.
pub fn page(kept: &Kept) -> Result<String, String> {
    let mut text = HEAD.to_owned();
    text += "## Missed\n\n";
    text += &missed(in_order(kept));
    text += &format!("\n{}\n", wrapped(LEGEND));
    for it in in_order(kept).filter(|it| !is_network(it)) {
        text += &section(it)?;
    }
    let all = histories(kept)?;
    if !all.is_empty() {
        text += OVER_COMMITS;
        all.iter().for_each(|(name, _)| text += &shown(name));
    }
    Ok(text)
}

/// Goals that are not met for sure, of these runs.
fn missed<'a>(runs: impl Iterator<Item = &'a KeptRun>) -> String {
    let mut grid = Grid::default();
    for it in runs {
        for outcome in Outcome::all(&it.run) {
            let mut all = goals(&it.run, &outcome);
            all.rows.retain(|row| row.last().is_some_and(|word| word != "met"));
            all.put_first("rounds", outcome.load.word());
            all.put_first("experiment", &it.run.header.id);
            grid.heading = all.heading;
            grid.rows.append(&mut all.rows);
        }
    }
    if grid.rows.is_empty() { "Nothing.\n".to_owned() } else { grid.markdown() }
}

fn section(it: &KeptRun) -> Result<String, String> {
    let header = &it.run.header;
    let mut text = format!("\n## {}\n\n{}.\n", header.id, sentence(&header.spec.what));
    let processor = header.machine["processor"].as_str().unwrap_or("an unknown processor");
    let system = header.machine["system"].as_str().unwrap_or("an unknown system");
    text += &wrapped(&format!(
        "Run `{}`, commit {} of the project, {} s a row, {}; {processor}, {} processors, {system}.",
        it.name,
        header.commit_count,
        header.spec.seconds,
        header.place,
        header.machine["processors"],
    ));
    text.push('\n');
    if let Some(note) = &header.note {
        text += &format!("{}\n", wrapped(note));
    }
    if !header.missing.is_empty() {
        let all: Vec<String> =
            header.missing.iter().map(|(row, why)| format!("{row} ({why})")).collect();
        text += &format!("{}\n", wrapped(&format!("Left out: {}.", all.join("; "))));
    }
    for outcome in Outcome::all(&it.run) {
        let old = if it.is_old() { super::OLD } else { "" };
        text += &format!("\n### {}, {}{old}\n\n", header.id, outcome.load.word());
        text += &format!("{}.\n\n", wrapped(&rounds_in_words(&outcome)));
        let met = goals(&it.run, &outcome);
        if !met.rows.is_empty() {
            text += &met.markdown();
            text.push('\n');
        }
        for group in header.spec.groups() {
            text += &format!("{}:\n\n", sentence(group));
            text += &figures(&it.run, &outcome, group).markdown();
            text.push('\n');
        }
    }
    for (name, _) in charts(&it.run)? {
        text += &shown(&name);
    }
    Ok(text)
}

/// A chart, by the name of its file.
fn shown(name: &str) -> String {
    format!("![{}](charts/{name})\n", name.trim_end_matches(".svg").replace('-', " "))
}

/// With a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

/// In lines of 110 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > 110 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
