//! The outcome for people and for programs.

use serde_json::{Value, json};

use crate::judge::{Figure, GOALS, Outcome, ROUNDS_MIN, Series};
use crate::rows::{Measure, Row, row};

/// Goals of the same table that no row here measures yet, so that nobody takes silence for success.
const WITHOUT_A_ROW: [&str; 1] =
    ["protected bulk (AES-GCM): ≥ 2.5 × quinn at ≤ 0.4 of its CPU per GB"];

/// How much of a reason stands in the table.
const WHY_LEN_MAX: usize = 110;

/// The whole outcome as text.
pub fn text(outcome: &Outcome, place: &str, is_judged: bool) -> String {
    let mut text = format!("Network, {place}\n\n");
    for table in [bulk(outcome), latency(outcome)] {
        // The first line is the heading.
        if table.len() > 1 {
            text += &lines(&table);
            text += "\n";
        }
    }
    text += "Figures are medians (least … greatest) over quiet rounds; × is the median of the \
             ratios, within rounds,\nto the row that stands last in the line. CPU is user and \
             system time of both ends; one way is half of\nthe round trip.\n\n";
    text += &rounds(outcome);
    text += "\n";
    text += &lines(&goals(outcome, is_judged));
    for goal in WITHOUT_A_ROW {
        text += &format!("no row yet: {goal}\n");
    }
    text
}

fn rounds(outcome: &Outcome) -> String {
    let all = outcome.is_disturbed.len();
    let numbers = outcome.is_disturbed.iter().enumerate().filter(|&(_, &flag)| flag);
    let discarded: Vec<String> = numbers.map(|(round, _)| (round + 1).to_string()).collect();
    let list = if discarded.is_empty() { "none".to_owned() } else { discarded.join(", ") };
    format!(
        "rounds: {all}, of which {} quiet; discarded (a control off its median by more than 10 %): \
         {list}\n",
        outcome.quiet_count()
    )
}

fn bulk(outcome: &Outcome) -> Vec<Vec<String>> {
    let head = ["bulk", "", "Gbit/s", "×", "CPU s/GB", "×", "lost %", "to"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for series in of(outcome, Measure::Bulk) {
        let row = series.row;
        let mut cells = vec![row.name.to_owned(), what(row)];
        if let Some(why) = absence(series) {
            cells.push(why);
        } else {
            cells.push(wide(outcome.figure(row.name, |it| it.gbit_per_s)));
            cells.push(short(outcome.ratio(row, |it| it.gbit_per_s)));
            cells.push(wide(outcome.figure(row.name, |it| it.cpu_s_per_gb)));
            cells.push(short(outcome.ratio(row, |it| it.cpu_s_per_gb)));
            cells.push(short(outcome.figure(row.name, |it| it.loss.map(|loss| loss * 100.0))));
            cells.push(row.control.unwrap_or_default().to_owned());
        }
        table.push(cells);
    }
    table
}

fn latency(outcome: &Outcome) -> Vec<Vec<String>> {
    let head = ["one way, 64 B", "", "wait", "p50 µs", "×", "p99 µs", "×", "to"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for series in of(outcome, Measure::Latency) {
        let row = series.row;
        let mut cells = vec![row.name.to_owned(), row.what.to_owned(), row.wait.word().to_owned()];
        if let Some(why) = absence(series) {
            cells.push(why);
        } else {
            cells.push(wide(outcome.figure(row.name, |it| it.p50_us)));
            cells.push(short(outcome.ratio(row, |it| it.p50_us)));
            cells.push(wide(outcome.figure(row.name, |it| it.p99_us)));
            cells.push(short(outcome.ratio(row, |it| it.p99_us)));
            cells.push(row.control.unwrap_or_default().to_owned());
        }
        table.push(cells);
    }
    table
}

fn goals(outcome: &Outcome, is_judged: bool) -> Vec<Vec<String>> {
    let mut table = vec![["goal", "", "ratio", "goal", ""].map(str::to_owned).to_vec()];
    for goal in GOALS {
        let judged = outcome.judge(&goal);
        let verdict = match &judged {
            _ if !is_judged => "not judged: loopback is not what the goals are about".to_owned(),
            Some((_, true)) => "met".to_owned(),
            Some((_, false)) => "missed".to_owned(),
            None => unjudged(outcome, goal.row),
        };
        let ratio = short(judged.map(|(ratio, _)| ratio));
        table.push(vec![goal.row.into(), goal.what.into(), ratio, goal.bound_text(), verdict]);
    }
    table
}

fn unjudged(outcome: &Outcome, name: &str) -> String {
    let Some(series) = outcome.series.iter().find(|series| series.row.name == name) else {
        return "not measured: not asked for".to_owned();
    };
    match absence(series) {
        Some(why) => format!("not measured: {why}"),
        None => format!("not judged: fewer than {ROUNDS_MIN} quiet rounds"),
    }
}

fn of(outcome: &Outcome, measure: Measure) -> impl Iterator<Item = &Series> {
    outcome.series.iter().filter(move |series| series.row.measure == measure)
}

/// Why a row has no figures at all.
fn absence(series: &Series) -> Option<String> {
    if let Some(why) = &series.missing {
        return Some(format!("not there: {}", brief(why)));
    }
    let has_any = series.samples.iter().any(Result::is_ok);
    let first = series.samples.iter().find_map(|sample| sample.as_ref().err());
    first.filter(|_| !has_any).map(|why| format!("failed: {}", brief(why)))
}

/// The beginning of a long reason; the whole of it is in the raw data.
fn brief(why: &str) -> String {
    let short: String = why.chars().take(WHY_LEN_MAX).collect();
    if short.len() < why.len() { format!("{short} …") } else { short }
}

fn what(row: &Row) -> String {
    let unit = if row.size.is_multiple_of(1024) {
        format!("{} KiB", row.size / 1024)
    } else {
        format!("{} B", row.size)
    };
    format!("{}, {unit}", row.what)
}

/// Three digits that count.
fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    format!("{value:.*}", usize::try_from(2 - digits).unwrap_or(0).min(4))
}

fn wide(figure: Option<Figure>) -> String {
    figure.map_or_else(
        || "–".to_owned(),
        |it| format!("{} ({} … {})", number(it.median), number(it.least), number(it.greatest)),
    )
}

fn short(figure: Option<Figure>) -> String {
    figure.map_or_else(|| "–".to_owned(), |it| number(it.median))
}

/// Cells at equal widths; what stands last in its line may be as long as it likes.
fn lines(table: &[Vec<String>]) -> String {
    let len = |cell: &String| cell.chars().count();
    let is_last = |cells: &[String], at: usize| at + 1 == cells.len();
    let column_count = table.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..column_count)
        .map(|at| {
            let cells = table.iter().filter(|cells| !is_last(cells, at));
            cells.filter_map(|cells| cells.get(at)).map(len).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for cells in table {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            line += cell;
            line += &" ".repeat(widths[at].saturating_sub(len(cell)) + 2);
        }
        text += line.trim_end();
        text += "\n";
    }
    text
}

/// The whole outcome as JSON.
pub fn json(outcome: &Outcome, is_judged: bool) -> Value {
    let rows: Vec<Value> = outcome.series.iter().map(|series| row_json(outcome, series)).collect();
    let goals: Vec<Value> = GOALS
        .iter()
        .map(|goal| {
            let judged = outcome.judge(goal);
            let is_met = judged.as_ref().filter(|_| is_judged).map(|&(_, is_met)| is_met);
            json!({
                "row": goal.row, "what": goal.what, "goal": goal.bound_text(),
                "control": row(goal.row).and_then(|row| row.control),
                "ratio": judged.map(|(ratio, _)| ratio.json()), "met": is_met,
            })
        })
        .collect();
    let discarded: Vec<usize> = (0..outcome.is_disturbed.len())
        .filter(|&round| outcome.is_disturbed[round])
        .map(|round| round + 1)
        .collect();
    json!({
        "rounds": outcome.is_disturbed.len(), "rounds_discarded": discarded,
        "rows": rows, "goals": goals, "goals_without_a_row": WITHOUT_A_ROW,
    })
}

fn row_json(outcome: &Outcome, series: &Series) -> Value {
    let row = series.row;
    let figure = |pick| outcome.figure(row.name, pick).map(|it: Figure| it.json());
    let ratio = |pick| outcome.ratio(row, pick).map(|it: Figure| it.json());
    json!({
        "row": row.name, "what": row.what, "bytes": row.size, "wait": row.wait.word(),
        "is_ours": row.program.is_ours(), "control": row.control,
        "absent": absence(series),
        "failures": series.samples.iter().filter_map(|s| s.as_ref().err()).collect::<Vec<_>>(),
        "gbit_per_s": figure(|it| it.gbit_per_s), "gbit_per_s_ratio": ratio(|it| it.gbit_per_s),
        "cpu_s_per_gb": figure(|it| it.cpu_s_per_gb),
        "cpu_s_per_gb_ratio": ratio(|it| it.cpu_s_per_gb),
        "loss": figure(|it| it.loss),
        "p50_us": figure(|it| it.p50_us), "p50_ratio": ratio(|it| it.p50_us),
        "p99_us": figure(|it| it.p99_us), "p99_ratio": ratio(|it| it.p99_us),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let texts = [38.25, 2.934, 0.2945, 0.0, 15999.4, 0.05].map(number);
        assert_eq!(texts, ["38.2", "2.93", "0.294", "0.00", "15999", "0.0500"]);
    }

    #[test]
    fn a_row_that_is_not_there_says_why_and_so_do_its_goals() {
        let missing = |name: &str, why: Option<&str>| Series {
            row: row(name).unwrap(),
            missing: why.map(str::to_owned),
            samples: Vec::new(),
        };
        let series = vec![missing("gso", None), missing("ours-udp", Some("no such command"))];
        let text = text(&Outcome::new(series), "somewhere", true);
        assert!(text.contains("not there: no such command"), "{text}");
        assert!(text.contains("not measured: not there: no such command"), "{text}");
        assert!(text.contains("not measured: not asked for"), "{text}");
    }
}
