//! What failed in a run of the tests, told once more at its end, where one looks first.
//!
//! Invariant: what is told is bounded, [`MAX_BLOCKS`] failures of [`MAX_LINES`] lines each; how
//! many more there were is counted.

/// How many failing tests are told with what they printed.
const MAX_BLOCKS: usize = 20;

/// How many lines of a failing test are told: its first ones, because a panic stands there.
const MAX_LINES: usize = 30;

/// The failures so far.
#[derive(Debug, Default)]
pub struct Failures {
    /// A test that failed, and what it printed.
    blocks: Vec<String>,
    blocks_left_out: usize,
    /// Cargo's words for each program that failed, such as `-p dacapo-cli --test play`.
    programs: Vec<String>,
}

impl Failures {
    /// A program of tests failed, and printed `output`.
    pub fn add(&mut self, words: &str, output: &str) {
        self.programs.push(words.to_owned());
        let mut blocks = blocks(output);
        if blocks.is_empty() {
            // It did not come to its list: it crashed, or was ended.
            let lines: Vec<&str> = output.lines().collect();
            let at = lines.len().saturating_sub(MAX_LINES);
            blocks.push(format!("the end of what {words} printed:\n{}", lines[at..].join("\n")));
        }
        for block in blocks {
            if self.blocks.len() < MAX_BLOCKS {
                self.blocks.push(block);
            } else {
                self.blocks_left_out += 1;
            }
        }
    }

    /// The failures, and the command that repeats each program; empty when there are none.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        if !self.programs.is_empty() {
            let count = self.blocks.len() + self.blocks_left_out;
            out.push_str(&format!("\n  tests that failed: {count}\n"));
        }
        for line in self.blocks.iter().flat_map(|block| block.lines()) {
            out.push_str(&format!("    {line}\n"));
        }
        if !self.programs.is_empty() {
            out.push_str("  to repeat them:\n");
        }
        for words in &self.programs {
            out.push_str(&format!("    cargo test {words}\n"));
        }
        out
    }
}

/// The parts of `output` that failing tests printed, each with the line that names the test.
fn blocks(output: &str) -> Vec<String> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut is_inside = false;
    for line in output.lines().filter(|line| !line.is_empty()) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            blocks.push(vec![line]);
            is_inside = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            is_inside = false;
        } else if let Some(block) = blocks.last_mut().filter(|_| is_inside) {
            block.push(line);
            if block.len() > MAX_LINES {
                *block.last_mut().unwrap_or(&mut "") = "[there is more of it]";
                is_inside = false;
            }
        }
    }
    blocks.into_iter().map(|block| block.join("\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_test_is_told_with_what_it_printed_and_what_repeats_it() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n\
            ---- b stdout ----\n\nthread 'b' panicked at x.rs:7:9:\nseed 3\n\n\n\
            failures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed\n\n";
        let mut failures = Failures::default();
        failures.add("-p dacapo-cli --test play", output);
        assert_eq!(
            failures.text(),
            "\n  tests that failed: 1\n    ---- b stdout ----\n    \
             thread 'b' panicked at x.rs:7:9:\n    seed 3\n  to repeat them:\n    \
             cargo test -p dacapo-cli --test play\n"
        );
    }

    #[test]
    fn of_a_program_that_crashed_the_end_is_told() {
        let mut failures = Failures::default();
        failures.add("-p dacapo --lib", "running 2 tests\ntest a ... ok\nSIGSEGV\n");
        let text = failures.text();
        assert!(text.contains("the end of what -p dacapo --lib printed:\n"), "{text}");
        assert!(text.contains("    SIGSEGV\n"), "{text}");
    }

    #[test]
    fn where_nothing_failed_nothing_is_told() {
        assert_eq!(Failures::default().text(), "");
    }

    #[test]
    fn what_is_told_is_bounded_and_what_is_left_out_is_counted() {
        let block = format!("---- a stdout ----\n{}", "line\n".repeat(MAX_LINES * 2));
        let mut failures = Failures::default();
        failures.add("-p a", &block.repeat(MAX_BLOCKS * 2));
        let text = failures.text();
        assert!(text.starts_with("\n  tests that failed: 40\n"), "{text}");
        assert_eq!(text.lines().count(), 1 + 1 + MAX_BLOCKS * (MAX_LINES + 1) + 2, "{text}");
    }
}
