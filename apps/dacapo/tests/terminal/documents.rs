//! What README.md and docs/ show in fenced blocks.
//!
//! A block says what it is: `sh` is typed, `text` is a picture or, below `<!-- shown: NAME -->`,
//! output that `cargo xtask docs` writes; others are languages. A line of `sh` ends with a comment,
//! if it likes, and goes on behind `\`.

use std::fs;
use std::path::{Path, PathBuf};

/// Programs that a person types: a `text` block does not begin a line with one.
const PROGRAMS: [&str; 6] = ["dacapo", "make", "cargo", "sudo", "tar", "$"];

/// Languages of blocks that nobody types.
const LANGUAGES: [&str; 6] = ["toml", "rust", "lua", "mermaid", "json", "c"];

/// A line that somebody is told to type.
pub struct Line {
    /// File and line.
    pub place: String,
    /// What is typed.
    pub text: String,
}

struct Block {
    file: String,
    line: usize,
    language: String,
    is_output: bool,
    lines: Vec<String>,
}

/// Every line that somebody is told to type, in the order of the documents.
pub fn command_lines() -> Vec<Line> {
    let blocks = blocks().into_iter().filter(|block| block.language == "sh");
    blocks.flat_map(|block| typed(&block)).collect()
}

/// The session file of this name that the documents show.
pub fn session(name: &str) -> String {
    let named = format!("name = {name:?}");
    let is_it = |block: &Block| block.language == "toml" && block.lines.contains(&named);
    let found = blocks().into_iter().find(is_it);
    found.unwrap_or_else(|| panic!("no document has a session {name:?}")).lines.join("\n")
}

/// Blocks that do not say what they are.
pub fn problems() -> Vec<String> {
    let mut problems = Vec::new();
    for block in blocks() {
        let place = format!("{}:{}", block.file, block.line);
        let is_typed =
            |line: &&String| PROGRAMS.contains(&line.split_whitespace().next().unwrap_or_default());
        match block.language.as_str() {
            "sh" => {}
            "text" if block.is_output => {}
            "text" => {
                let found = block.lines.iter().find(is_typed);
                problems.extend(found.map(|line| {
                    format!(
                        "{place}: `{line}` is typed: the block is `sh`, or output that is shown"
                    )
                }));
            }
            known if LANGUAGES.contains(&known) => {}
            other => problems.push(format!("{place}: a block of {other:?}: say `sh` or `text`")),
        }
    }
    problems
}

fn typed(block: &Block) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut goes_on = false;
    for (at, line) in block.lines.iter().enumerate() {
        let text = without_comment(line).trim().to_owned();
        let (text, goes_on_next) = match text.strip_suffix('\\') {
            Some(text) => (text.trim_end().to_owned(), true),
            None => (text, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.text = format!("{} {text}", last.text),
            None if text.is_empty() => {}
            None => {
                let place = format!("{}:{}", block.file, block.line + 1 + at);
                lines.push(Line { place, text });
            }
        }
        goes_on = goes_on_next;
    }
    lines
}

/// A comment begins with `#` after a space, outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}

fn blocks() -> Vec<Block> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut files);
    files.iter().flat_map(|file| blocks_of(root, file)).collect()
}

fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            pages(&path, into);
        } else if path.extension().is_some_and(|it| it == "md") {
            into.push(path);
        }
    }
}

fn blocks_of(root: &Path, path: &Path) -> Vec<Block> {
    let file = path.strip_prefix(root).unwrap().display().to_string();
    let text = fs::read_to_string(path).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (at, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => {
                let language = language.trim().to_owned();
                let is_output = before.starts_with("<!-- shown: ");
                open = Some(Block {
                    file: file.clone(),
                    line: at + 1,
                    language,
                    is_output,
                    lines: Vec::new(),
                });
            }
            (None, Some(mut block)) => {
                block.lines.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => before = line,
        }
    }
    assert!(open.is_none(), "{file}: a block is not closed");
    blocks
}

#[test]
fn comments_end_lines_and_backslashes_do_not() {
    let block = Block {
        file: "a.md".to_owned(),
        line: 4,
        language: "sh".to_owned(),
        is_output: false,
        lines: ["# all of it", "a 'b # c'   # d", "", "e \\", "  f #g", "h#i"]
            .map(str::to_owned)
            .into(),
    };
    let lines = typed(&block);
    let found: Vec<(&str, &str)> =
        lines.iter().map(|line| (line.place.as_str(), line.text.as_str())).collect();
    assert_eq!(found, [("a.md:6", "a 'b # c'"), ("a.md:8", "e f"), ("a.md:10", "h#i")]);
}
