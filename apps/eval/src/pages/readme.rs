//! The block of README.md that is made of the last run of `network`.

use super::{Kept, charts};
use crate::experiment::Row;
use crate::outcome::Outcome;
use crate::show::grid::Grid;
use crate::show::number::with_interval;
use crate::store::Run;

const BEGIN: &str = "<!-- eval -->";
const END: &str = "<!-- /eval -->";

/// README.md with its block as it has to be.
///
/// # Errors
/// The marks are not there, once each.
pub fn page(text: &str, kept: &Kept) -> Result<String, String> {
    let parts = text.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?)));
    let Some((head, (_, tail))) = parts.filter(|_| text.matches(BEGIN).count() == 1) else {
        return Err(format!("README.md: there is no block between {BEGIN} and {END}"));
    };
    Ok(format!("{head}{BEGIN}\n{}{END}{tail}", block(kept)?))
}

fn block(kept: &Kept) -> Result<String, String> {
    let Some(it) = kept.last.get("network") else {
        return Ok("Nothing is measured yet at this commit.\n".to_owned());
    };
    let mut text = String::new();
    // The loaded rounds, where there are any: what holds there holds on a quiet machine.
    if let Some(outcome) = Outcome::all(&it.run).first() {
        let heading = [outcome.load.word(), "what: seen [95 % interval], goal", "missed"];
        let heading = heading.map(str::to_owned).to_vec();
        text += &Grid { heading, rows: rows(&it.run, outcome) }.markdown();
        text.push('\n');
    }
    let chart = charts(&it.run)?.into_iter().find(|(name, _)| name.contains("gbit-per-s"));
    if let Some((name, _)) = chart {
        text += &format!("![goodput beside the controls](docs/charts/{name})\n\n");
    }
    text += &format!(
        "Run `{}`; `dacapo eval run network` measures again. All of it, what is missed first: \
         [docs/performance.md](docs/performance.md), \
         [docs/bad-networks.md](docs/bad-networks.md), [docs/goals.md](docs/goals.md).\n",
        it.cited()
    );
    Ok(text)
}

/// A line for each row of ours, with all of its goals.
fn rows(run: &Run, outcome: &Outcome<'_>) -> Vec<Vec<String>> {
    // What was before is in the whole table.
    let is_now = |row: &&Row| !row.name.starts_with("before");
    let mut rows = Vec::new();
    for row in run.header.spec.rows.iter().filter(is_now) {
        let (mut all, mut missed) = (Vec::new(), 0);
        for goal in run.header.spec.goals.iter().filter(|goal| goal.row == row.name) {
            let verdict = outcome.judge(goal);
            let seen = verdict.estimate();
            let seen = seen.as_ref().map_or_else(|| "not measured".to_owned(), with_interval);
            all.push(format!("{}: {seen}, {}", goal.what, goal.bound_text()));
            missed += usize::from(verdict.word() != "met");
        }
        if !all.is_empty() {
            rows.push(vec![row.what.clone(), all.join("; "), format!("{missed} of {}", all.len())]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::run;
    use crate::pages::KeptRun;

    #[test]
    fn the_block_is_written_between_its_marks_and_nothing_else_is() {
        let it = KeptRun {
            name: "network/2026-01-01-abc1234".to_owned(),
            run: run(),
            age: 0,
            profiles: std::collections::BTreeSet::new(),
        };
        let kept = Kept { last: [("network".to_owned(), it)].into(), ..Kept::default() };
        let text = "# dacapo\n<!-- eval -->\nold\n<!-- /eval -->\nrest\n";
        let page_text = page(text, &kept).unwrap();
        assert!(page_text.starts_with("# dacapo\n<!-- eval -->\n| quiet |"), "{page_text}");
        assert!(page_text.ends_with("<!-- /eval -->\nrest\n") && !page_text.contains("old"));
        assert_eq!(page(&page_text, &kept).unwrap(), page_text);
        assert!(page("# dacapo\n", &kept).unwrap_err().contains("there is no block"));
    }
}
