//! What came of a run, for people and for programs.

use super::Found;

/// A table with a row for each target, and the command that repeats each crash.
#[must_use]
pub fn text(found: &[Found]) -> String {
    let mut text = format!(
        "\n  {:<18} {:>7} {:>12} {:>10} {:>8} {:>9}   result\n",
        "target", "seconds", "executions", "per s", "new", "coverage"
    );
    for one in found {
        let Found { name, executions, seconds, coverage, new_inputs, crashes, .. } = one;
        let rate = executions / (*seconds).max(1);
        let result = match (one.is_passed(), crashes.len()) {
            (true, _) => "ok".to_owned(),
            (false, 0) => "ENDED BADLY".to_owned(),
            (false, count) => format!("{count} CRASHES"),
        };
        text.push_str(&format!(
            "  {name:<18} {seconds:>7} {executions:>12} {rate:>10} {new_inputs:>8} {coverage:>9}   \
             {result}\n"
        ));
    }
    let executions: u64 = found.iter().map(|one| one.executions).sum();
    let seconds: u64 = found.iter().map(|one| one.seconds).sum();
    text.push_str(&format!("  {:<18} {seconds:>7} {executions:>12}\n", "all"));
    for one in found {
        for path in &one.crashes {
            let name = &one.name;
            text.push_str(&format!(
                "\n{}: repeat it with\n  \
                 cargo test -p dacapo-fuzz --test replay -- --exact {name}\n",
                path.display()
            ));
        }
    }
    text
}

/// The same as one JSON object.
#[must_use]
pub fn json(found: &[Found]) -> String {
    let one = |found: &Found| {
        let crashes = found.crashes.iter().map(|path| quoted(&path.display().to_string()));
        format!(
            "{{\"name\":{},\"executions\":{},\"seconds\":{},\"new_inputs\":{},\"coverage\":{},\
             \"passed\":{},\"crashes\":[{}]}}",
            quoted(&found.name),
            found.executions,
            found.seconds,
            found.new_inputs,
            found.coverage,
            found.is_passed(),
            crashes.collect::<Vec<_>>().join(",")
        )
    };
    let all: Vec<String> = found.iter().map(one).collect();
    format!("{{\"targets\":[{}]}}", all.join(","))
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if u32::from(control) < 0x20 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Vec<Found> {
        let passed = Found {
            name: "a".into(),
            executions: 3_000,
            seconds: 15,
            coverage: 9,
            new_inputs: 2,
            has_ended: true,
            ..Found::default()
        };
        let crashed = Found {
            name: "b".into(),
            crashes: vec!["fuzz/corpus/b/crash-1".into()],
            ..Found::default()
        };
        vec![passed, crashed]
    }

    #[test]
    fn a_crash_is_in_the_table_with_the_command_that_repeats_it() {
        let text = text(&found());
        assert!(text.contains("15         3000        200        2         9   ok"), "{text}");
        assert!(text.contains("1 CRASHES"), "{text}");
        assert!(text.ends_with(
            "fuzz/corpus/b/crash-1: repeat it with\n  \
             cargo test -p dacapo-fuzz --test replay -- --exact b\n"
        ));
    }

    #[test]
    fn the_json_is_one_object() {
        assert_eq!(
            json(&found()),
            "{\"targets\":[{\"name\":\"a\",\"executions\":3000,\"seconds\":15,\"new_inputs\":2,\
             \"coverage\":9,\"passed\":true,\"crashes\":[]},{\"name\":\"b\",\"executions\":0,\
             \"seconds\":0,\"new_inputs\":0,\"coverage\":0,\"passed\":false,\
             \"crashes\":[\"fuzz/corpus/b/crash-1\"]}]}"
        );
        assert_eq!(quoted("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
    }
}
