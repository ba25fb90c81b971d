//! A run for programs.

use crate::experiment::Load;
use crate::outcome::{Outcome, Rounds};
use crate::stats::Estimate;
use crate::store::Run;
use serde_json::{Map, Value, json};

/// The run, its figures, ratios and goals, of loaded and of quiet rounds.
pub fn of(run: &Run) -> Value {
    let header = &run.header;
    let sets: Map<String, Value> = Outcome::all(run)
        .iter()
        .map(|outcome| (outcome.load.word().to_owned(), of_load(run, outcome)))
        .collect();
    json!({
        "id": header.id, "what": header.spec.what, "date": header.date, "commit": header.commit,
        "is_clean": header.is_clean, "place": header.place, "machine": header.machine,
        "missing": header.missing, "rounds": sets,
    })
}

fn of_load(run: &Run, outcome: &Outcome<'_>) -> Value {
    let spec = &run.header.spec;
    let rows = spec.rows.iter().map(|row| {
        let figures: Map<String, Value> = spec
            .figures_of(&row.group)
            .map(|figure| {
                let all = |which| outcome.figure(&row.name, &figure.name, which).map(estimate);
                let ratio = outcome.ratio(row, &figure.name, Rounds::All).map(estimate);
                let value = json!({ "all": all(Rounds::All), "quiet": all(Rounds::Quiet),
                    "ratio": ratio.filter(|_| figure.is_compared) });
                (figure.name.clone(), value)
            })
            .collect();
        let (failures, why) = outcome.failures(&row.name);
        json!({ "row": row.name, "what": row.what, "table": row.group, "control": row.control,
            "figures": figures, "failures": failures, "failure": why })
    });
    let goals = spec.goals.iter().map(|goal| {
        let verdict = outcome.judge(goal);
        json!({ "row": goal.row, "figure": goal.figure, "goal": goal.what,
            "aim": goal.bound_text(), "seen": verdict.estimate().map(estimate),
            "verdict": verdict.word() })
    });
    let noisy: Vec<u32> = outcome.rounds.iter().filter(|it| it.1).map(|it| it.0).collect();
    json!({
        "is_loaded": outcome.load == Load::Loaded, "count": outcome.rounds.len(), "noisy": noisy,
        "rows": rows.collect::<Vec<_>>(), "goals": goals.collect::<Vec<_>>(),
    })
}

/// A median, and what it was made of.
pub fn estimate(it: Estimate) -> Value {
    let Estimate { median, low, high, least, greatest, count } = it;
    json!({ "median": median, "low": low, "high": high, "min": least, "max": greatest, "n": count })
}
