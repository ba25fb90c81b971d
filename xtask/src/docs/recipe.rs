//! [`Recipe`]: how one output is made; `xtask/shown.txt` says what may stand in it.

use super::mask::Mask;

/// When an output is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// In every check of a change.
    #[default]
    Always,
    /// At night, and why.
    Night(String),
    /// Never: the figures are those of a day; which, and why.
    Measured(String),
}

/// What becomes of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    From(String),
    Cut(String, Option<String>),
    Drop(String),
    Once(String),
    Fold(usize),
}

/// How one output is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    /// The command.
    pub run: String,
    /// It runs in the folder of the sources.
    pub in_sources: bool,
    /// The code that it ends with.
    pub exit: i32,
    /// The files that are there: name and text.
    pub files: Vec<(String, String)>,
    /// When it is compared.
    pub when: When,
    rules: Vec<Rule>,
    masks: Vec<(Mask, Option<String>)>,
}

/// Reads all recipes.
///
/// # Errors
/// The first line that is none.
pub fn read(text: &str) -> Result<Vec<Recipe>, String> {
    let mut recipes: Vec<Recipe> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = || format!("line {}: what is this: {line}", at + 1);
        if line.is_empty() || line.starts_with("##") {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            recipes.push(Recipe { name: name.to_owned(), ..Recipe::default() });
            continue;
        }
        recipes.last_mut().and_then(|recipe| recipe.read_line(line)).ok_or_else(wrong)?;
    }
    match recipes.iter().find(|recipe| recipe.run.is_empty()) {
        Some(recipe) => Err(format!("{}: no line `run`", recipe.name)),
        None => Ok(recipes),
    }
}

impl Recipe {
    fn read_line(&mut self, line: &str) -> Option<()> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = if verb == "|" { rest } else { rest.trim() };
        let mut quoted = rest.split('\'').skip(1).step_by(2).map(str::to_owned);
        match verb {
            "run" => self.run = rest.to_owned(),
            "sources" => self.in_sources = true,
            "exit" => self.exit = rest.parse().ok()?,
            "file" => self.files.push((rest.to_owned(), String::new())),
            "|" => self.files.last_mut()?.1.extend([rest, "\n"]),
            "night" => self.when = When::Night(rest.to_owned()),
            "measured" => self.when = When::Measured(rest.to_owned()),
            "from" => self.rules.push(Rule::From(quoted.next()?)),
            "cut" => {
                let (from, to) = (quoted.next()?, quoted.next()?);
                self.rules.push(Rule::Cut(from, Some(to).filter(|to| !to.is_empty())));
            }
            "drop" => self.rules.push(Rule::Drop(quoted.next()?)),
            "once" => self.rules.push(Rule::Once(quoted.next()?)),
            "fold" => self.rules.push(Rule::Fold(rest.parse().ok()?)),
            "mask" => {
                let (names, words) = match rest.split_once(" in ") {
                    Some((names, _)) => (names, Some(quoted.next()?)),
                    None => (rest, None),
                };
                for name in names.split(' ') {
                    self.masks.push((Mask::named(name)?, words.clone()));
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether its figures are those of a day.
    pub fn is_measured(&self) -> bool {
        matches!(self.when, When::Measured(_))
    }

    /// What is shown of what was printed.
    pub fn shown(&self, printed: &str) -> String {
        let mut lines: Vec<String> = printed.lines().map(|it| it.trim_end().to_owned()).collect();
        for rule in &self.rules {
            lines = rule.apply(lines);
        }
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    /// A text as it is compared.
    pub fn masked(&self, text: &str) -> String {
        let mask = |line: &str| {
            let mut line = line.to_owned();
            for (mask, words) in &self.masks {
                if words.as_ref().is_none_or(|words| line.contains(words.as_str())) {
                    line = mask.apply(&line);
                }
            }
            line
        };
        text.lines().map(mask).collect::<Vec<_>>().join("\n")
    }
}

impl Rule {
    fn apply(&self, lines: Vec<String>) -> Vec<String> {
        let place = |words: &str, from: usize| {
            let found = lines.iter().skip(from).position(|line| line.contains(words));
            found.map(|at| at + from)
        };
        match self {
            Self::From(words) => {
                let at = place(words, 0).unwrap_or(lines.len());
                lines.into_iter().skip(at).collect()
            }
            Self::Cut(from, to) => {
                let Some(begin) = place(from, 0) else { return lines };
                let end = to.as_ref().and_then(|to| place(to, begin + 1));
                let rest = end.map(|end| lines.iter().skip(end).cloned());
                let mut kept: Vec<String> = lines.iter().take(begin).cloned().collect();
                if let Some(rest) = rest {
                    let line = lines.get(begin).map(String::as_str).unwrap_or_default();
                    let indent = line.len() - line.trim_start().len();
                    kept.push(format!("{}…", " ".repeat(indent)));
                    kept.extend(rest);
                }
                kept
            }
            Self::Drop(words) => lines.into_iter().filter(|line| !line.contains(words)).collect(),
            Self::Once(words) => {
                let first = place(words, 0);
                let numbered = lines.into_iter().enumerate();
                let kept = numbered.filter(|(at, it)| Some(*at) == first || !it.contains(words));
                kept.map(|(_, line)| line).collect()
            }
            Self::Fold(columns) => lines.iter().flat_map(|line| folded(line, *columns)).collect(),
        }
    }
}

/// A line in lines of at most so many characters, where its words allow it.
fn folded(line: &str, columns: usize) -> Vec<String> {
    let len = |text: &str| text.chars().count();
    if len(line) <= columns {
        return vec![line.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let Some(last) = lines.last_mut() else { continue };
        if last.is_empty() {
            last.push_str(word);
        } else if len(last) + 1 + len(word) > columns {
            lines.push(word.to_owned());
        } else {
            last.extend([" ", word]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Recipe {
        read(&format!("[a]\nrun b\n{text}")).unwrap().remove(0)
    }

    #[test]
    fn lines_are_left_out_and_what_is_cut_is_marked() {
        let printed = "a\n  b 1\n  c\nd\nb 2\ne \nb 3\n";
        assert_eq!(one("cut 'b' 'd'\n").shown(printed), "a\n  …\nd\nb 2\ne\nb 3\n");
        assert_eq!(one("once 'b '\ndrop 'c'\n").shown(printed), "a\n  b 1\nd\ne\n");
        assert_eq!(one("from 'e'\n").shown(printed), "e\nb 3\n");
        assert_eq!(one("cut 'd' ''\n").shown(printed), "a\n  b 1\n  c\n");
        assert_eq!(one("fold 5\n").shown("aa bb cc\n"), "aa bb\ncc\n");
    }

    #[test]
    fn a_mask_is_for_its_lines() {
        let recipe = one("mask number in 'ms'\nmask port\n");
        assert_eq!(recipe.masked("7 ms\n7 s 1.2.3.4:5\n"), "N ms\n7 s 1.2.3.4:PORT");
    }

    #[test]
    fn files_codes_and_times_are_read() {
        let recipe = one("file x.toml\n| a\n|\n|   b\nexit 5\nnight it is long\n");
        assert_eq!(recipe.files, [("x.toml".to_owned(), "a\n\n  b\n".to_owned())]);
        assert_eq!((recipe.exit, recipe.when), (5, When::Night("it is long".to_owned())));
    }

    #[test]
    fn what_is_none_is_an_error_with_its_line() {
        assert!(read("[a]\nrun b\nmaks port\n").unwrap_err().contains("line 3"));
        assert!(read("[a]\nrun b\nmask prot\n").unwrap_err().contains("line 3"));
        assert!(read("run b\n").unwrap_err().contains("line 1"));
        assert!(read("[a]\n").unwrap_err().contains("no line `run`"));
    }
}
