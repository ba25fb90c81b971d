//! [`Script`]: `scenes.txt`, read. What may stand in it is said at its top.

/// All scenes.
pub struct Script {
    /// What is typed instead where the network of the documents is not there.
    pub replacements: Vec<(String, String)>,
    /// The scenes.
    pub scenes: Vec<Scene>,
    /// Lines of the documents that are run by something else, and by what.
    pub elsewhere: Vec<(String, String)>,
}

/// Something that persons do, one step after the other.
pub struct Scene {
    /// Its name.
    pub name: String,
    /// Why it is played at night.
    pub night: Option<String>,
    /// The shells are in the folder of the sources.
    pub in_sources: bool,
    /// What is done.
    pub steps: Vec<Step>,
}

/// One step.
pub struct Step {
    /// Its line in `scenes.txt`.
    pub line: usize,
    /// What is done.
    pub act: Act,
}

/// What is done; `who` is a window.
#[derive(Clone)]
pub enum Act {
    /// A file is put into the folder.
    Give(String),
    /// A session of the documents is put there.
    Take(String),
    /// Two files have the same bytes.
    Same(String, String),
    /// A file is there, and not empty.
    Has(String),
    /// A line is typed; `is_shown` where a document shows it.
    Type { who: String, line: String, is_shown: bool },
    /// Keys are pressed.
    Press { who: String, keys: String },
    /// Words come.
    Shows { who: String, words: String },
    /// Words come, and then nothing is done for a while.
    Waits { who: String, words: String },
    /// Nothing is done for a while, from a second after it was begun on.
    Rests { who: String },
    /// It ends with one of these codes, having shown these words.
    Ends { who: String, codes: Vec<i32>, words: Vec<String> },
    /// It is ended by a key or a signal, with this code, at once.
    EndedBy { who: String, how: String, code: i32 },
}

impl Script {
    /// Reads it.
    pub fn read() -> Self {
        let mut script =
            Self { replacements: Vec::new(), scenes: Vec::new(), elsewhere: Vec::new() };
        for (at, line) in include_str!("scenes.txt").lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with("##") {
                let read = script.read_line(at + 1, line);
                assert!(read.is_some(), "scenes.txt:{}: what is this: {line}", at + 1);
            }
        }
        script
    }

    fn read_line(&mut self, at: usize, line: &str) -> Option<()> {
        let (first, rest) = line.split_once(' ')?;
        let rest = rest.trim();
        match first {
            "replace" => {
                let (from, to) = rest.split_once(" => ")?;
                self.replacements.push((from.trim().to_owned(), to.trim().to_owned()));
            }
            "elsewhere" => {
                let (command, why) = rest.split_once(" -- ")?;
                self.elsewhere.push((command.trim().to_owned(), why.trim().to_owned()));
            }
            "scene" => {
                let (head, night) = match rest.split_once(" at night: ") {
                    Some((head, why)) => (head, Some(why.to_owned())),
                    None => (rest, None),
                };
                let in_sources = head.ends_with(" in the sources");
                let name = head.trim_end_matches(" in the sources").to_owned();
                self.scenes.push(Scene { name, night, in_sources, steps: Vec::new() });
            }
            _ => {
                let acts = acts(first, rest)?;
                let steps = &mut self.scenes.last_mut()?.steps;
                steps.extend(acts.into_iter().map(|act| Step { line: at, act }));
            }
        }
        Some(())
    }

    /// The lines of the documents that are typed, or run by something else.
    pub fn shown_lines(&self) -> impl Iterator<Item = &str> {
        let steps = self.scenes.iter().flat_map(|scene| &scene.steps);
        let typed = steps.filter_map(|step| match &step.act {
            Act::Type { line, is_shown: true, .. } => Some(line.as_str()),
            _ => None,
        });
        typed.chain(self.elsewhere.iter().map(|(command, _)| command.as_str()))
    }
}

fn acts(first: &str, rest: &str) -> Option<Vec<Act>> {
    match first {
        "give" => return Some(rest.split(' ').map(|it| Act::Give(it.to_owned())).collect()),
        "take" => return Some(vec![Act::Take(rest.to_owned())]),
        "has" => return Some(rest.split(' ').map(|it| Act::Has(it.to_owned())).collect()),
        "same" => {
            let (one, other) = rest.split_once(' ')?;
            return Some(vec![Act::Same(one.to_owned(), other.to_owned())]);
        }
        _ => {}
    }
    let who = first.to_owned();
    let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let rest = rest.trim().to_owned();
    let act = match verb {
        "$" => Act::Type { who, line: rest, is_shown: true },
        "+" => Act::Type { who, line: rest, is_shown: false },
        "presses" => Act::Press { who, keys: rest },
        "shows" => Act::Shows { who, words: rest },
        "waits" => Act::Waits { who, words: rest },
        "rests" => Act::Rests { who },
        "ends" => ends(who, &rest)?,
        _ => return None,
    };
    Some(vec![act])
}

/// `0 words | words`, `0 or 1`, `130 by ^C`.
fn ends(who: String, text: &str) -> Option<Act> {
    if let Some((code, how)) = text.split_once(" by ") {
        return Some(Act::EndedBy { who, how: how.to_owned(), code: code.parse().ok()? });
    }
    let (first, mut rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut codes = vec![first.parse().ok()?];
    if let Some(more) = rest.strip_prefix("or ") {
        let (code, words) = more.split_once(' ').unwrap_or((more, ""));
        codes.push(code.parse().ok()?);
        rest = words;
    }
    let words = rest.split('|').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    Some(Act::Ends { who, codes, words: words.collect() })
}
