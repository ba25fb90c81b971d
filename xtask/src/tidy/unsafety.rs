//! Rule `unsafe`: unsafe code lives in a few named places, each block with its reason above it.
//!
//! The reason is a comment with `SAFETY:` directly above the block, or above the statement that
//! holds it. The rule looks at tests too.

use super::problem::Problem;
use super::source::Source;
use super::tree::Tree;

const RULE: &str = "unsafe";
const FOLDERS: [&str; 6] =
    ["crates/sys/", "crates/gf256/", "crates/heap/", "crates/ring/", "bindings/c/", "eval/peers/"];
const REASON: &str = "SAFETY:";

/// The problems of `tree`.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in &tree.sources {
        let is_allowed = is_allowed(&source.path);
        for index in (0..source.tokens.len()).filter(|&index| source.word(index) == "unsafe") {
            let (what, remedy) = if !is_allowed {
                ("unsafe code outside its places", "do without it, or move it to crates/sys")
            } else if is_block(source, index) && !has_reason(source, index) {
                ("an unsafe block without its reason", "say why it is sound: `// SAFETY: …` above")
            } else {
                continue;
            };
            problems.push(Problem::new(RULE, &source.path, source.line(index), what, remedy));
        }
    }
    problems
}

fn is_allowed(path: &str) -> bool {
    let is_test_allocator = path
        .rsplit_once('/')
        .is_some_and(|(folder, file)| folder.ends_with("tests") && file.starts_with("alloc"));
    FOLDERS.iter().any(|folder| path.starts_with(folder)) || is_test_allocator
}

fn is_block(source: &Source, index: usize) -> bool {
    matches!(source.word(index + 1), "{" | "impl")
}

fn has_reason(source: &Source, index: usize) -> bool {
    let (line, statement) = (source.line(index), source.line(statement_start(source, index)));
    [line, first_attribute_line(source, line), first_attribute_line(source, statement)]
        .into_iter()
        .any(|line| reason_ends_above(source, line))
}

/// The first token of the statement or item that holds token `index`.
fn statement_start(source: &Source, index: usize) -> usize {
    let ends = |&at: &usize| matches!(source.word(at), ";" | "{" | "}" | ",");
    (0..index).rev().find(ends).map_or(0, |end| end + 1)
}

/// The first line of the attributes directly above `line`; `line` itself without any.
fn first_attribute_line(source: &Source, line: usize) -> usize {
    let lines: Vec<&str> = source.text.lines().collect();
    let is_attribute = |line: usize| {
        let text = line.checked_sub(1).and_then(|index| lines.get(index));
        text.is_some_and(|text| text.trim_start().starts_with("#["))
    };
    let mut first = line;
    while is_attribute(first.saturating_sub(1)) {
        first -= 1;
    }
    first
}

/// Whether the comments that end on the line above `line` hold a reason.
fn reason_ends_above(source: &Source, line: usize) -> bool {
    let mut below = line;
    for comment in source.comments.iter().rev().filter(|comment| comment.line_end < line) {
        if comment.line_end + 1 != below {
            return false;
        }
        if source.comment_text(comment).contains(REASON) {
            return true;
        }
        below = comment.line;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&tree(&[(path, text)])).into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn unsafe_code_is_refused_outside_its_places_even_in_tests() {
        assert_eq!(lines("crates/wire/src/a.rs", "//! a\n// SAFETY: b\nunsafe { c }"), [3]);
        assert_eq!(lines("crates/wire/tests/a.rs", "unsafe fn a() {}"), [1]);
        assert_eq!(lines("crates/wire/src/a.rs", "#![forbid(unsafe_code)] \"unsafe\""), [0; 0]);
    }

    #[test]
    fn a_reason_directly_above_passes() {
        for text in [
            "// SAFETY: a\nunsafe { b }",
            "// SAFETY: a\n// and more\nlet b =\n    unsafe { c };",
            "x();\n// SAFETY: a\n#[allow(b)]\nunsafe impl C for D {}",
            "/* SAFETY: a */\nlet b = unsafe { c };",
            "let a = f(\n    // SAFETY: a\n    unsafe { c },\n);",
        ] {
            assert_eq!(lines("crates/sys/src/a.rs", text), [0; 0], "{text}");
        }
    }

    #[test]
    fn a_block_without_a_reason_or_with_one_further_up_fails() {
        assert_eq!(lines("crates/sys/src/a.rs", "unsafe { a }"), [1]);
        assert_eq!(lines("crates/sys/src/a.rs", "// SAFETY: a\n\nunsafe { b }"), [3]);
        assert_eq!(lines("crates/sys/src/a.rs", "// SAFETY: a\nx();\nunsafe { b }"), [3]);
        assert_eq!(lines("crates/sys/src/a.rs", "// other\nunsafe { b }"), [2]);
    }

    #[test]
    fn allocators_of_tests_are_a_place() {
        let text = "// SAFETY: a\nunsafe impl B for C {}";
        assert_eq!(lines("crates/lift/tests/alloc_count.rs", text), [0; 0]);
        assert_eq!(lines("crates/lift/tests/other.rs", text), [2]);
        assert_eq!(lines("crates/lift/src/alloc.rs", text), [2]);
    }
}
