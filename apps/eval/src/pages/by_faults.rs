//! Goals that a fault shows, of which `docs/faults.jsonl` has what was seen: `dacapo-lab faults`
//! writes it, `dacapo-lab check` holds it to its rules.

use crate::experiments::number;
use crate::show::number::three;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Where they are.
const FAULTS: &str = "docs/faults.jsonl";

/// The letters of a commit that are shown.
const COMMIT_LEN: usize = 7;

/// A fault, and the figure of what was seen that is judged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownBy {
    /// The fault.
    pub fault: String,
    /// Where the figure is, as places of reports are written.
    pub figure: String,
    /// At least this.
    pub at_least: Option<f64>,
    /// At most this.
    pub at_most: Option<f64>,
}

/// What was seen of each fault.
#[derive(Debug, Default)]
pub struct Faults(BTreeMap<String, Seen>);

/// What was seen of a fault.
#[derive(Debug, Deserialize)]
struct Seen {
    id: String,
    commit: String,
    /// What was not as it must be.
    failed: Option<Value>,
    seen: Value,
}

/// Whether a goal is met by a fault, what was seen, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Judged {
    pub is_met: bool,
    pub seen: String,
    pub place: String,
}

impl Faults {
    /// Reads them; there are none where the file is missing.
    ///
    /// # Errors
    /// The file cannot be read, or a line is none of its form.
    pub fn read(root: &Path) -> Result<Self, String> {
        match fs::read_to_string(root.join(FAULTS)) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{FAULTS}: {error}")),
        }
    }

    /// # Errors
    /// A line is none of its form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let of = |(at, line): (usize, &str)| {
            let seen: Seen = serde_json::from_str(line)
                .map_err(|error| format!("{FAULTS}: line {}: {error}", at + 1))?;
            Ok((seen.id.clone(), seen))
        };
        text.lines().enumerate().map(of).collect::<Result<_, String>>().map(Self)
    }

    /// Judges a goal.
    ///
    /// # Errors
    /// There is no such fault or figure, or the goal has not one bound; without where it stands.
    pub fn judge(&self, by: &ShownBy) -> Result<Judged, String> {
        let ShownBy { fault, figure, .. } = by;
        let it = self.0.get(fault).ok_or_else(|| format!("{FAULTS} has no fault `{fault}`"))?;
        let value = number(&it.seen, figure);
        let value = value.ok_or_else(|| format!("{FAULTS}: {fault} has no figure `{figure}`"))?;
        let is_within = match (by.at_least, by.at_most) {
            (Some(bound), None) => value >= bound,
            (None, Some(bound)) => value <= bound,
            _ => return Err(format!("{fault} needs one of at_least and at_most")),
        };
        let commit: String = it.commit.chars().take(COMMIT_LEN).collect();
        Ok(Judged {
            is_met: is_within && it.failed.is_none(),
            seen: three(value),
            place: format!("[faults](faults.md), `{fault}`, {commit}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"id":"a","commit":"0123456789ab","seen":{"of":10,"open":{"count":9}}}
{"id":"b","commit":"0123456789ab","failed":"it fell","seconds":1.0,"seen":{"of":10}}
"#;

    fn by(fault: &str, figure: &str, at_least: Option<f64>) -> ShownBy {
        let (fault, figure) = (fault.to_owned(), figure.to_owned());
        ShownBy { fault, figure, at_least, at_most: None }
    }

    #[test]
    fn a_goal_is_met_by_what_was_seen_of_a_fault_that_did_not_fail() {
        let faults = Faults::parse(TEXT).unwrap();
        let judged = faults.judge(&by("a", "open.count / of", Some(0.9))).unwrap();
        let place = "[faults](faults.md), `a`, 0123456".to_owned();
        assert_eq!(judged, Judged { is_met: true, seen: "0.900".to_owned(), place });
        assert!(!faults.judge(&by("a", "open.count", Some(10.0))).unwrap().is_met);
        assert!(!faults.judge(&by("b", "of", Some(10.0))).unwrap().is_met, "it failed");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let faults = Faults::parse(TEXT).unwrap();
        let said = |by: ShownBy| faults.judge(&by).unwrap_err();
        assert!(said(by("c", "of", Some(1.0))).contains("has no fault `c`"));
        assert!(said(by("a", "off", Some(1.0))).contains("a has no figure `off`"));
        assert!(said(by("a", "of", None)).contains("needs one of"));
        assert!(Faults::parse("{}").unwrap_err().contains("line 1"));
    }
}
