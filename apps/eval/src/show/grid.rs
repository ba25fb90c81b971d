//! [`Grid`]: a table as words, before it is printed as one thing or another.

use super::number::{three, with_interval};
use crate::experiment::Row;
use crate::outcome::{Outcome, Rounds};
use crate::output::{Cell, Ink, Table};
use crate::store::Run;

/// A heading, and rows of as many words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// What stands above each column.
    pub heading: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// How much of a reason stands in a table.
const WHY_LEN_MAX: usize = 100;

/// The figures of a group.
pub fn figures(run: &Run, outcome: &Outcome<'_>, group: &str) -> Grid {
    let spec = &run.header.spec;
    let columns: Vec<_> = spec.figures_of(group).collect();
    let mut heading = vec!["row".to_owned(), "what".to_owned()];
    for figure in &columns {
        heading.push(figure.heading.clone());
        heading.extend(figure.is_compared.then(|| "×".to_owned()));
    }
    heading.push("to".to_owned());
    let rows = spec.rows.iter().filter(|row| row.group == group);
    Grid { heading, rows: rows.map(|row| figures_of(run, outcome, row, &columns)).collect() }
}

fn figures_of(
    run: &Run,
    outcome: &Outcome<'_>,
    row: &Row,
    columns: &[&crate::experiment::FigureSpec],
) -> Vec<String> {
    let mut words = vec![row.name.clone(), row.what.clone()];
    let missing = run.header.missing.get(&row.name);
    let failures = outcome.failures(&row.name);
    for figure in columns {
        let seen = outcome.figure(&row.name, &figure.name, Rounds::All);
        words.push(seen.as_ref().map_or_else(|| "–".to_owned(), with_interval));
        if figure.is_compared {
            let ratio = outcome.ratio(row, &figure.name, Rounds::All);
            let sign = match outcome.is_ahead(row, figure) {
                Some(true) => " +",
                Some(false) => " -",
                None => "",
            };
            let text = ratio.as_ref().map_or_else(|| "–".to_owned(), with_interval);
            words.push(format!("{text}{sign}"));
        }
    }
    let control = row.control.clone().unwrap_or_default();
    words.push(match (missing, failures) {
        (Some(why), _) => format!("left out: {}", short(why)),
        (None, (0, _)) => control,
        (None, (count, why)) => {
            format!("{control} ({count} failed: {})", short(why.unwrap_or_default()))
        }
    });
    words
}

/// A reason as far as it fits, in one line.
fn short(why: &str) -> String {
    let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WHY_LEN_MAX) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// The goals, the missed ones first.
pub fn goals(run: &Run, outcome: &Outcome<'_>) -> Grid {
    let heading = ["row", "goal", "aim", "seen", "quiet rounds only", ""];
    let mut rows: Vec<(u8, Vec<String>)> = Vec::new();
    for goal in &run.header.spec.goals {
        let verdict = outcome.judge(goal);
        let quiet = match (goal.is_absolute, run.header.spec.row(&goal.row)) {
            (false, Some(row)) => outcome.ratio(row, &goal.figure, Rounds::Quiet),
            _ => outcome.figure(&goal.row, &goal.figure, Rounds::Quiet),
        };
        let words = [
            goal.row.clone(),
            goal.what.clone(),
            goal.bound_text(),
            verdict.estimate().as_ref().map_or_else(|| "–".to_owned(), with_interval),
            quiet.map_or_else(|| "–".to_owned(), |it| three(it.median)),
            verdict.word().to_owned(),
        ];
        let rank = ["missed", "not sure", "met", "not measured"];
        let rank = rank.iter().position(|word| *word == verdict.word()).unwrap_or(0);
        rows.push((rank as u8, words.to_vec()));
    }
    rows.sort_by_key(|row| row.0);
    let rows = rows.into_iter().map(|row| row.1).collect();
    Grid { heading: heading.map(str::to_owned).to_vec(), rows }
}

impl Grid {
    /// With a column before the others that says the same in each row.
    pub fn put_first(&mut self, heading: &str, value: &str) {
        self.heading.insert(0, heading.to_owned());
        self.rows.iter_mut().for_each(|row| row.insert(0, value.to_owned()));
    }

    /// For people, on standard output.
    pub fn print(&self) {
        let heading: Vec<&str> = self.heading.iter().map(String::as_str).collect();
        let mut table = Table::new(&heading);
        for row in &self.rows {
            let ink = |word: &str| match word {
                "missed" => Ink::Bad,
                "not sure" => Ink::Fair,
                "met" => Ink::Good,
                _ => Ink::Plain,
            };
            table.row(row.iter().map(|word| Cell::new(word.as_str(), ink(word))).collect());
        }
        table.print();
    }

    /// As RFC 4180 has it.
    pub fn csv(&self) -> String {
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().map(|word| quoted(word)).collect();
            cells.join(",") + "\n"
        };
        std::iter::once(&self.heading).chain(&self.rows).map(line).collect()
    }

    /// As a table of Markdown.
    pub fn markdown(&self) -> String {
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|word| word.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = self.heading.iter().map(|_| "---").collect::<Vec<_>>().join("|");
        let mut text = line(&self.heading) + &format!("|{rule}|\n");
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}

fn quoted(word: &str) -> String {
    if word.contains([',', '"', '\n']) {
        return format!("\"{}\"", word.replace('"', "\"\""));
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Load;
    use crate::outcome::tests::run;

    #[test]
    fn a_table_has_figures_ratios_and_what_failed() {
        let run = run();
        let outcome = Outcome::new(&run, Load::Quiet).unwrap();
        let grid = figures(&run, &outcome, "bulk");
        assert_eq!(grid.heading, ["row", "what", "Gbit/s", "×", "to"]);
        assert_eq!(grid.rows[0][..4], ["gso", "what gso is", "40.0", "1.00"]);
        assert!(
            grid.rows[1][3].starts_with("0.925 [") && grid.rows[1][3].ends_with("] -"),
            "{grid:?}"
        );
        assert_eq!(grid.rows[1][4], "gso (1 failed: it hung)");
    }

    #[test]
    fn goals_show_what_was_seen_in_all_rounds_and_in_quiet_ones() {
        let mut run = run();
        let met = run.header.spec.goals[0].clone();
        run.header.spec.goals.push(crate::experiment::Goal { bound: 0.99, ..met });
        let outcome = Outcome::new(&run, Load::Quiet).unwrap();
        let goals = goals(&run, &outcome);
        let words: Vec<&str> = goals.rows.iter().map(|row| row[5].as_str()).collect();
        assert_eq!(words, ["missed", "not sure"], "the missed one first");
        assert_eq!(goals.rows[0][2], "≥ 0.99");
        assert_eq!(goals.rows[0][4], "0.925", "of quiet rounds");
    }

    #[test]
    fn cells_are_quoted_where_a_format_needs_it() {
        let words = |it: &[&str]| it.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let grid = Grid { heading: words(&["a", "b"]), rows: vec![words(&["1,5", "x|\"y\""])] };
        assert_eq!(grid.csv(), "a,b\n\"1,5\",\"x|\"\"y\"\"\"\n");
        assert_eq!(grid.markdown(), "| a | b |\n|---|---|\n| 1,5 | x\\|\"y\" |\n");
    }
}
