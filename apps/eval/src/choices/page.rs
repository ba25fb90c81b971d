//! The page of cells, `docs/choices.md`, as this program was built with it.
//!
//! ```text
//!   ## fec-rs: state of a vehicle
//!   ```toml … ```                      a session file without its `[session]`
//!   **Expected:** `fec-rs ! udp`
//!
//!   ### Only by name
//!   | `dedup` | why |                  a module that no request is for
//! ```

use super::cell::Cell;
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../docs/choices.md");

/// Every cell of the page, in its order; a section that is none is left out, which the test of the
/// page would find.
pub fn cells() -> Vec<Cell> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let sections = PAGE.split("\n## ").skip(1);
    sections.filter_map(|section| cell(section, &mut counts)).collect()
}

fn cell<'a>(section: &'a str, counts: &mut BTreeMap<&'a str, usize>) -> Option<Cell> {
    let (module, title) = section.lines().next()?.split_once(": ")?;
    let (_, rest) = section.split_once("```toml\n")?;
    let (file, rest) = rest.split_once("```\n")?;
    let expected = rest.lines().find_map(|line| line.strip_prefix("**Expected:** "))?;
    let count = counts.entry(module).or_default();
    *count += 1;
    Some(Cell {
        name: format!("{module}-{count}"),
        module: module.to_owned(),
        title: title.to_owned(),
        session: format!("[session]\nname = \"cell\"\n\n{file}"),
        expected: expected.trim_matches('`').to_owned(),
    })
}

/// The modules of which the page says that they are taken where a session file names them, and why.
#[cfg(test)]
pub fn only_by_name() -> BTreeMap<&'static str, &'static str> {
    let part = PAGE.split("\n### Only by name\n").nth(1).unwrap_or_default();
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    rows.filter_map(|row| row.split_once("` | ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_of_the_page_is_a_cell() {
        let cells = cells();
        assert_eq!(cells.len(), PAGE.matches("\n## ").count());
        assert_eq!(cells.len(), PAGE.matches("\n```toml\n").count());
    }
}
