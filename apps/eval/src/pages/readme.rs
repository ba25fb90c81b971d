//! The block of README.md that is made of the last run of `network`.

use super::{Kept, charts};
use crate::outcome::Outcome;
use crate::show::grid::{Grid, goals};

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
        let rows = goals(&it.run, outcome).rows.into_iter().map(|row| {
            let cell = |at: usize| row.get(at).cloned().unwrap_or_default();
            vec![outcome.load.word().to_owned(), cell(0), cell(1), cell(2), cell(3)]
        });
        let heading = ["machine", "row", "what", "goal", "seen [95 % interval]"];
        let heading = heading.map(str::to_owned).to_vec();
        text += &Grid { heading, rows: rows.collect() }.markdown();
        text.push('\n');
    }
    let chart = charts(&it.run)?.into_iter().find(|(name, _)| name.contains("gbit-per-s"));
    if let Some((name, _)) = chart {
        text += &format!("![goodput beside the controls](docs/charts/{name})\n\n");
    }
    text += &format!(
        "Run `{}`; `dacapo eval run network` measures again. All of it, what is missed first: \
         [docs/performance.md](docs/performance.md), [docs/goals.md](docs/goals.md).\n",
        it.name
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::run;
    use crate::pages::KeptRun;

    #[test]
    fn the_block_is_written_between_its_marks_and_nothing_else_is() {
        let it = KeptRun { name: "network/2026-01-01-abc1234".to_owned(), run: run() };
        let kept = Kept { last: [("network".to_owned(), it)].into(), ..Kept::default() };
        let text = "# dacapo\n<!-- eval -->\nold\n<!-- /eval -->\nrest\n";
        let page_text = page(text, &kept).unwrap();
        assert!(page_text.starts_with("# dacapo\n<!-- eval -->\n| machine |"), "{page_text}");
        assert!(page_text.ends_with("<!-- /eval -->\nrest\n") && !page_text.contains("old"));
        assert_eq!(page(&page_text, &kept).unwrap(), page_text);
        assert!(page("# dacapo\n", &kept).unwrap_err().contains("there is no block"));
    }
}
