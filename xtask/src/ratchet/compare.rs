//! What has become of the recorded counts, and whether that passes.

use super::record::{HOTTEST, Record, Work};

/// More than this fails, less than this is said, in parts per thousand.
const LIMIT: u64 = 30;

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// For people.
    pub text: String,
    /// Nothing costs more.
    pub is_passed: bool,
}

/// What has become of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Equal,
    Within,
    More,
    Less,
}

impl Change {
    fn new(before: u64, now: u64) -> Self {
        let (before, now) = (u128::from(before), u128::from(now));
        let limit = u128::from(LIMIT);
        if now == before {
            Self::Equal
        } else if now * 1_000 > before * (1_000 + limit) {
            Self::More
        } else if now * 1_000 < before * (1_000 - limit) {
            Self::Less
        } else {
            Self::Within
        }
    }
}

/// Compares what is recorded with what was counted just now.
#[must_use]
pub fn compare(before: &Record, now: &Record) -> Comparison {
    let mut comparison = Comparison { text: String::new(), is_passed: true };
    let mut is_lower = false;
    for work in &now.works {
        match before.works.iter().find(|it| it.name == work.name) {
            Some(recorded) => is_lower |= comparison.add(recorded, work),
            None => comparison.fail(&format!("{}: no record of this work", work.name)),
        }
    }
    for recorded in &before.works {
        if !now.works.iter().any(|it| it.name == recorded.name) {
            comparison.fail(&format!("{}: recorded, but there is no such work", recorded.name));
        }
    }
    if is_lower {
        comparison.say("tighten the record: cargo xtask ratchet --accept");
    }
    comparison
}

impl Comparison {
    fn say(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn fail(&mut self, line: &str) {
        self.is_passed = false;
        self.say(&format!("FAILED {line}"));
    }

    /// Compares a work; true when something costs so much less that the record is too high.
    fn add(&mut self, before: &Work, now: &Work) -> bool {
        let name = &now.name;
        let total = Change::new(before.total, now.total);
        let line = shown(name, "total", before.total, now.total);
        match total {
            Change::More => self.fail(&line),
            _ => self.say(&line),
        }
        let mut is_lower = total == Change::Less;
        let is_gone = |(function, _): &&(String, u64)| now.of(function).is_none();
        let gone: Vec<_> = before.functions.iter().filter(is_gone).collect();
        for (function, count) in &gone {
            let text = "is gone or inlined elsewhere: the total decides";
            self.say(&format!("  {name}: {function} ({}) {text}", with_commas(*count)));
        }
        for (function, recorded) in &before.functions {
            let Some(count) = now.of(function) else { continue };
            let line = shown(name, function, *recorded, count);
            match Change::new(*recorded, count) {
                Change::More if gone.is_empty() => self.fail(&line),
                Change::More => self.say(&format!("  {line}; it may have taken in what is gone")),
                Change::Less => {
                    is_lower = true;
                    self.say(&format!("  {line}"));
                }
                Change::Equal | Change::Within => {}
            }
        }
        for (function, count) in now.functions.iter().take(HOTTEST) {
            if before.of(function).is_none() {
                let count = with_commas(*count);
                self.say(&format!("  {name}: {function} ({count}) is among the ten hottest now"));
            }
        }
        is_lower
    }
}

fn shown(work: &str, function: &str, before: u64, now: u64) -> String {
    let percent = (now as f64 / before.max(1) as f64 - 1.0) * 100.0;
    let (before, now) = (with_commas(before), with_commas(now));
    format!("{work}: {function}: {before} -> {now} ({percent:+.2} %)")
}

fn with_commas(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(total: u64, functions: &[(&str, u64)]) -> Record {
        let functions = functions.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let functions = functions.collect();
        let work = Work { name: "tcp".into(), total, functions };
        Record { tools: String::new(), works: vec![work] }
    }

    #[test]
    fn three_percent_more_pass_and_a_bit_more_than_that_fails_with_both_counts() {
        let before = record(2_000_000, &[("a", 1_000), ("b", 500)]);
        assert!(compare(&before, &record(2_060_000, &[("a", 1_030), ("b", 515)])).is_passed);
        let more = compare(&before, &record(2_000_000, &[("a", 1_031), ("b", 500)]));
        assert!(!more.is_passed);
        assert!(more.text.contains("FAILED tcp: a: 1,000 -> 1,031 (+3.10 %)\n"), "{}", more.text);
        let more = compare(&before, &record(2_060_001, &[("a", 1_000), ("b", 500)]));
        assert!(!more.is_passed);
        assert!(more.text.contains("FAILED tcp: total: 2,000,000 -> 2,060,001"), "{}", more.text);
    }

    #[test]
    fn less_than_three_percent_below_asks_to_tighten_and_passes() {
        let before = record(2_000, &[("a", 1_000)]);
        let less = compare(&before, &record(1_900, &[("a", 900)]));
        assert!(less.is_passed && less.text.ends_with("cargo xtask ratchet --accept\n"));
        let same = compare(&before, &record(1_990, &[("a", 975)]));
        assert!(same.is_passed && !same.text.contains("tighten"), "{}", same.text);
    }

    #[test]
    fn where_a_function_is_gone_the_total_decides() {
        let before = record(2_000, &[("a", 1_000), ("b", 500)]);
        let moved = compare(&before, &record(2_010, &[("a", 1_500)]));
        assert!(moved.is_passed);
        assert!(moved.text.contains("b (500) is gone or inlined elsewhere"), "{}", moved.text);
        assert!(moved.text.contains("it may have taken in what is gone"), "{}", moved.text);
        assert!(!compare(&before, &record(2_100, &[("a", 1_500)])).is_passed);
    }

    #[test]
    fn a_function_that_has_become_hot_is_named() {
        let before = record(2_000, &[("a", 1_000)]);
        let now = compare(&before, &record(2_000, &[("new", 1_200), ("a", 1_000)]));
        assert!(now.is_passed);
        assert!(now.text.contains("new (1,200) is among the ten hottest now"), "{}", now.text);
    }

    #[test]
    fn a_work_without_a_record_and_a_record_without_work_fail() {
        let work = record(2_000, &[]);
        assert!(!compare(&Record::default(), &work).is_passed);
        assert!(!compare(&work, &Record::default()).is_passed);
    }
}
