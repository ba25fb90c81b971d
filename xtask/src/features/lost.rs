//! [`Losses`]: what was promised and is no more, each with its reason.
//!
//! ```text
//!   # a comment
//!   renamed Door => JoinQueue: it is where those wait who join
//!   lost option serve --old: nobody has used it since 1998
//! ```
//!
//! A rename is of whole words, wherever they stand in a line: `Door` is one in `method Door::open`,
//! and so is `host::Host` in `item dacapo::host::Host`. A line that is gone needs renames that lead
//! to a line that is there, or a loss of its own; and what is listed must be needed.

use std::collections::BTreeSet;

/// What was promised, or what there is.
pub type Lines = BTreeSet<String>;

/// How many lines a line that is gone may lead to.
const FORMS_MAX: usize = 256;

/// The entries of the list.
#[derive(Debug, Default)]
pub struct Losses {
    /// Old, new.
    renamed: Vec<(String, String)>,
    lost: Vec<String>,
}

impl Losses {
    /// Reads `text`.
    ///
    /// # Errors
    /// The lines that are no entries, or have no reason.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut losses = Self::default();
        let mut problems = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let entry = line.split_once(": ").filter(|(_, reason)| reason.trim().contains(' '));
            let Some((entry, _)) = entry else {
                problems.push(format!("`{line}` has no reason; write `lost LINE: a sentence`"));
                continue;
            };
            let renamed = entry.strip_prefix("renamed ").and_then(|it| it.split_once(" => "));
            match (renamed, entry.strip_prefix("lost ")) {
                (Some((old, new)), _) => losses.renamed.push((old.to_owned(), new.to_owned())),
                (None, Some(lost)) => losses.lost.push(lost.to_owned()),
                (None, None) => {
                    problems.push(format!("`{line}` is neither `lost …` nor `renamed … => …`"));
                }
            }
        }
        if problems.is_empty() { Ok(losses) } else { Err(problems) }
    }

    /// Compares what was promised with what there is.
    ///
    /// # Errors
    /// What is gone without a reason, and what is listed without need.
    pub fn judge(&self, promised: &Lines, present: &Lines) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let mut used = BTreeSet::new();
        for gone in promised.difference(present) {
            if self.lost.contains(gone) {
                continue;
            }
            match self.way(gone, present) {
                Some(way) => used.extend(way),
                None => problems.push(format!(
                    "`{gone}` is gone; bring it back, or say `lost {gone}: why` or \
                     `renamed old => new: why`"
                )),
            }
        }
        for lost in &self.lost {
            if present.contains(lost) {
                problems.push(format!("`{lost}` is not lost; remove the line"));
            } else if !promised.contains(lost) {
                problems.push(format!("`{lost}` was never promised; remove or correct the line"));
            }
        }
        for (index, (old, new)) in self.renamed.iter().enumerate() {
            if !used.contains(&index) {
                problems.push(format!("nothing needs `renamed {old} => {new}`; remove the line"));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The renames that lead from a line that is gone to one that is there.
    fn way(&self, gone: &str, present: &Lines) -> Option<Vec<usize>> {
        let mut forms = vec![(gone.to_owned(), Vec::new())];
        let mut next = 0;
        while let Some((form, way)) = forms.get(next).cloned() {
            next += 1;
            for (index, (old, new)) in self.renamed.iter().enumerate() {
                let renamed = rename(&form, old, new);
                let way = [&way[..], &[index]].concat();
                if present.contains(&renamed) {
                    return Some(way);
                }
                if forms.len() < FORMS_MAX && forms.iter().all(|(form, _)| *form != renamed) {
                    forms.push((renamed, way));
                }
            }
        }
        None
    }
}

/// `line` with `new` for every `old` that stands there as a whole word.
fn rename(line: &str, old: &str, new: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut renamed = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(old) {
        let goes_on = before.is_empty() && renamed.ends_with(is_word);
        let is_part = goes_on || before.ends_with(is_word) || after.starts_with(is_word);
        renamed.push_str(before);
        renamed.push_str(if is_part { old } else { new });
        rest = after;
        if old.is_empty() {
            break;
        }
    }
    renamed.push_str(rest);
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> Lines {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn problems(list: &str, promised: &[&str], present: &[&str]) -> Vec<String> {
        let losses = Losses::parse(list);
        losses.and_then(|it| it.judge(&set(promised), &set(present))).err().unwrap_or_default()
    }

    #[test]
    fn what_is_gone_needs_a_reason() {
        let promised = ["command ls", "option ls --json"];
        let found = problems("", &promised, &["command ls"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("`option ls --json` is gone"), "{found:?}");
        let list = "# why\nlost option ls --json: it is always so\n";
        assert_eq!(problems(list, &promised, &["command ls"]), [""; 0]);
        assert!(problems("lost option ls --json: x\n", &promised, &[])[0].contains("no reason"));
    }

    #[test]
    fn a_loss_that_is_none_fails() {
        let list = "lost command ls: it is gone\nlost command la: it is gone\n";
        let found = problems(list, &["command ls"], &["command ls"]);
        assert!(found[0].contains("`command ls` is not lost"), "{found:?}");
        assert!(found[1].contains("`command la` was never promised"), "{found:?}");
    }

    #[test]
    fn a_rename_explains_every_line_that_it_leads_from() {
        let promised = ["item dacapo::Door", "method Door::open", "method Doorway::open"];
        let present = ["item dacapo::JoinQueue", "method Doorway::open", "method JoinQueue::open"];
        let list = "renamed Door => JoinQueue: those wait there who join\n";
        assert_eq!(problems(list, &promised, &present), [""; 0]);
        let two = "renamed Door => JoinQueue: those wait there\nrenamed open => take: it does so\n";
        let present = ["item dacapo::JoinQueue", "method Doorway::open", "method JoinQueue::take"];
        assert_eq!(problems(two, &promised, &present), [""; 0]);
    }

    #[test]
    fn one_name_may_become_two_and_a_rename_that_nothing_needs_fails() {
        let list = "renamed Gate => Acceptor: it accepts\nrenamed Gate => TokenTable: it is one\n";
        let promised = ["method a::Gate", "method b::Gate"];
        let present = ["method a::Acceptor", "method b::TokenTable"];
        assert_eq!(problems(list, &promised, &present), [""; 0]);
        let found = problems(list, &promised[..1], &present);
        assert_eq!(found, ["nothing needs `renamed Gate => TokenTable`; remove the line"]);
    }
}
