//! `docs/goals.md`: every goal of the project, met, missed or not measured.
//!
//! What is aimed at is data (`eval/goals.json`); what was seen is worked out from runs.

use super::Kept;
use super::by_faults::{Faults, ShownBy};
use crate::experiment::Goal;
use crate::outcome::{Outcome, Verdict};
use crate::show::number::with_interval;
use crate::store::KEPT;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where they are.
pub const FILE: &str = "eval/goals.json";

/// Goals of a ground.
#[derive(Debug, Deserialize)]
pub struct Ground {
    /// What they are about.
    pub ground: String,
    /// The goals.
    pub goals: Vec<Aim>,
}

/// A goal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aim {
    /// What.
    pub what: String,
    /// How much, in words.
    pub aim: String,
    /// What measures it; none when nothing does yet.
    #[serde(default)]
    pub measured: Vec<Measured>,
    /// Faults that show it, where none of these measures it.
    #[serde(default)]
    pub shown_by: Vec<ShownBy>,
    /// Where the time goes, of one that is missed.
    #[serde(default)]
    pub because: String,
    /// What was tried.
    #[serde(default)]
    pub tried: String,
}

/// A row and a figure of an experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The experiment.
    pub experiment: String,
    /// Its row.
    pub row: String,
    /// The figure.
    pub figure: String,
    /// Whether it is the figure itself, and not its ratio to the control.
    #[serde(default)]
    pub is_absolute: bool,
    /// At least this.
    pub at_least: Option<f64>,
    /// At most this.
    pub at_most: Option<f64>,
}

/// Reads them.
///
/// # Errors
/// The file is missing, or no list of goals.
pub fn read(path: &Path) -> Result<Vec<Ground>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{FILE}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
}

const HEAD: &str = "\
# Goals

Written by `dacapo-eval check --write` from `eval/goals.json`, the runs in `eval/runs` and
`docs/faults.jsonl`. A
goal is met when the median of all rounds is, with the worse end of its 95 % interval within a
twentieth; not sure when the median alone is. Loaded rounds are judged first: a goal is as good
as the worse of both.

";

/// The page.
///
/// # Errors
/// A goal names an experiment, a row or a figure that its last run does not have, or a fault that
/// there is not.
pub fn page(grounds: &[Ground], kept: &Kept, faults: &Faults) -> Result<String, String> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    let mut body = String::new();
    for ground in grounds {
        body += &format!(
            "\n## {}\n\n| what | goal | | seen | run | where the time goes | tried |\n",
            ground.ground
        );
        body += "|---|---|---|---|---|---|---|\n";
        for aim in &ground.goals {
            let (word, seen, run) = judge(aim, kept, faults)?;
            *counts.entry(word).or_insert(0) += 1;
            let cells = [&aim.what, &aim.aim, word, &seen, &run, &aim.because, &aim.tried];
            body += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
    }
    let words = ["missed", "not sure", "not measured", "met"];
    let sums = words.map(|word| format!("{} {word}", counts.get(word).copied().unwrap_or(0)));
    Ok(format!("{HEAD}Of {} goals: {}.\n{body}", counts.values().sum::<usize>(), sums.join(", ")))
}

/// The word, what was seen, and where that stands.
fn judge(
    aim: &Aim,
    kept: &Kept,
    faults: &Faults,
) -> Result<(&'static str, String, String), String> {
    let (mut worst, mut seen, mut runs) = (None::<u8>, Vec::new(), Vec::new());
    let mut profiles = BTreeSet::new();
    for measured in &aim.measured {
        let Some(it) = kept.last.get(&measured.experiment) else { continue };
        let goal = goal(measured)?;
        let spec = &it.run.header.spec;
        let Some(row) = spec.row(&measured.row) else { continue };
        if !spec.figures_of(&row.group).any(|figure| figure.name == measured.figure) {
            let Measured { experiment, row, figure, .. } = measured;
            return Err(format!("{FILE}: {experiment}: {row} has no figure `{figure}`"));
        }
        for outcome in Outcome::all(&it.run) {
            let verdict = outcome.judge(&goal);
            if let Some(estimate) = verdict.estimate() {
                seen.push(format!("{} {}", outcome.load.word(), with_interval(&estimate)));
                worst = worst.max(Some(rank(&verdict)));
            }
        }
        if !runs.contains(&it.cited()) {
            runs.push(it.cited());
        }
        if it.profiles.contains(&measured.row) {
            let Measured { row, .. } = measured;
            profiles.insert(format!("[profile](../{KEPT}/{}/profile-{row}.svg)", it.name));
        }
    }
    for by in &aim.shown_by {
        let judged = faults.judge(by).map_err(|why| format!("{FILE}: {why}"))?;
        worst = worst.max(Some(if judged.is_met { 0 } else { 2 }));
        seen.push(judged.seen);
        runs.push(judged.place);
    }
    let word = match worst {
        Some(2) => "missed",
        Some(1) => "not sure",
        Some(_) => "met",
        None => "not measured",
    };
    runs.extend(profiles);
    let run = if worst.is_some() { runs.join(", ") } else { String::new() };
    Ok((word, seen.join("; "), run))
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Missed(_) => 2,
        Verdict::Unsure(_) => 1,
        Verdict::Met(_) | Verdict::NotMeasured => 0,
    }
}

fn goal(it: &Measured) -> Result<Goal, String> {
    let (is_least, bound) = match (it.at_least, it.at_most) {
        (Some(bound), None) => (true, bound),
        (None, Some(bound)) => (false, bound),
        _ => {
            let text = "needs one of at_least and at_most";
            return Err(format!("{FILE}: {} {} {text}", it.experiment, it.row));
        }
    };
    let (row, figure) = (it.row.clone(), it.figure.clone());
    let what = String::new();
    Ok(Goal { row, figure, what, is_absolute: it.is_absolute, is_least, bound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::run;
    use crate::pages::KeptRun;

    fn kept() -> Kept {
        let it = KeptRun {
            name: "test/2026-01-01-abc1234".to_owned(),
            run: run(),
            age: 0,
            profiles: BTreeSet::new(),
        };
        Kept { last: [("test".to_owned(), it)].into(), ..Kept::default() }
    }

    fn grounds(measured: &str) -> Vec<Ground> {
        let text = format!(
            r#"[{{"ground":"Network","goals":[
                {{"what":"bulk","aim":"much","measured":[{measured}]}}]}}]"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_goal_is_judged_by_the_last_run_that_has_it() {
        let of = |bound: f64, row: &str| {
            format!(
                r#"{{"experiment":"test","row":"{row}","figure":"gbit_per_s","at_least":{bound}}}"#
            )
        };
        let faults = Faults::default();
        let page = |measured: &str| page(&grounds(measured), &kept(), &faults).unwrap();
        assert!(page(&of(0.99, "ours")).contains("Of 1 goals: 1 missed, 0 not sure"));
        assert!(page(&of(0.5, "ours")).contains("| met | quiet 0.925 ["));
        assert!(page(&of(0.5, "theirs")).contains("| not measured |  |  |"), "no such row");
        assert!(page("").contains("1 not measured"));
    }

    #[test]
    fn a_profile_that_is_beside_the_run_is_named() {
        let measured = r#"{"experiment":"test","row":"ours","figure":"gbit_per_s","at_least":1}"#;
        let mut kept = kept();
        kept.last.get_mut("test").unwrap().profiles.insert("ours".to_owned());
        let page = page(&grounds(measured), &kept, &Faults::default()).unwrap();
        let link = "[profile](../eval/runs/test/2026-01-01-abc1234/profile-ours.svg)";
        assert!(page.contains(link), "{page}");
    }

    #[test]
    fn a_goal_of_what_no_run_has_is_an_error() {
        let measured = r#"{"experiment":"test","row":"ours","figure":"speed","at_least":1}"#;
        let page = |measured: &str| page(&grounds(measured), &kept(), &Faults::default());
        let error = page(measured).unwrap_err();
        assert!(error.contains("test: ours has no figure `speed`"), "{error}");
        let measured = r#"{"experiment":"test","row":"ours","figure":"gbit_per_s"}"#;
        assert!(page(measured).unwrap_err().contains("at_least and at_most"));
    }
}
