//! [`Mentions`]: where subjects are named, by path, id and text.

use std::collections::{BTreeMap, BTreeSet};

use super::Places;
use super::subject::{Subject, is_of_the_product};
use crate::code::Code;
use crate::code::paths::Paths;
use crate::tidy::lexer::Kind;
use crate::tidy::source::Source;

/// Crates in which a name that begins or ends with a transport's is the transport.
const OF_FLOWS: [&str; 3] = ["dacapo", "qos", "session-file"];

/// Where everything is named.
#[derive(Debug)]
pub struct Mentions<'a> {
    code: &'a Code<'a>,
    /// By file: the files it leads to, each with the first line.
    leads: Vec<BTreeMap<usize, usize>>,
    /// Enums that list transports, by name.
    lists: BTreeSet<String>,
}

impl<'a> Mentions<'a> {
    /// Reads `code`.
    #[must_use]
    pub fn new(code: &'a Code<'a>, paths: &Paths<'_>, subjects: &[Subject]) -> Self {
        let leads = (0..code.files.len()).map(|file| leads(code, paths, file)).collect();
        let transports: Vec<Vec<String>> =
            subjects.iter().filter(|it| it.kind == "transport").map(variants).collect();
        let product = code.tree.sources.iter().filter(|source| is_of_the_product(&source.path));
        let lists = product.flat_map(|source| lists(source, &transports)).collect();
        Self { code, leads, lists }
    }

    /// The files outside its folder that name `subject`.
    #[must_use]
    pub fn of(&self, subject: &Subject) -> Places {
        let mut places = Places::new();
        for (file, source) in self.code.tree.sources.iter().enumerate() {
            if source.is_test_file || !is_of_the_product(&source.path) || subject.has(&source.path)
            {
                continue;
            }
            let ways = [
                self.path_line(file, subject).map(|line| (line, "path")),
                self.id_line(file, source, subject).map(|line| (line, "id")),
                text_line(source, subject).map(|line| (line, "text")),
            ];
            let ways: Vec<(usize, &'static str)> = ways.into_iter().flatten().collect();
            if !ways.is_empty() {
                places.insert(file, ways);
            }
        }
        places
    }

    fn path_line(&self, file: usize, subject: &Subject) -> Option<usize> {
        let leads = self.leads.get(file)?.iter();
        let is_its = |to: &usize| {
            let path = self.code.tree.sources.get(*to).map_or("", |source| source.path.as_str());
            subject.has(path)
        };
        leads.filter(|(to, _)| is_its(to)).map(|(_, line)| *line).min()
    }

    fn id_line(&self, file: usize, source: &Source, subject: &Subject) -> Option<usize> {
        if subject.kind != "transport" {
            return None;
        }
        let variants = variants(subject);
        let package = self.code.files.get(file).map_or("", |file| file.place.package.as_str());
        let is_of_flows = OF_FLOWS.contains(&package);
        let is_id = |&at: &usize| {
            if source.kind(at) != Some(Kind::Ident) {
                return false;
            }
            let word = source.word(at);
            let of = |enumeration: &str| self.lists.contains(enumeration);
            let is_variant = variants.iter().any(|it| it == word)
                && source.matches(at.wrapping_sub(2), &[":", ":"])
                && of(source.word(at.wrapping_sub(3)));
            is_variant || (is_of_flows && is_named_after(word, &subject.name))
        };
        let declared = || {
            lists_at(source).into_iter().find(|(name, _, words)| {
                self.lists.contains(*name)
                    && words.iter().any(|it| variants.iter().any(|v| v == it))
            })
        };
        let line = source.live().find(is_id).map(|at| source.line(at));
        line.or_else(|| declared().map(|(_, line, _)| line))
    }
}

/// The files that `file` leads to, declares or hands on, each with its first line.
fn leads(code: &Code<'_>, paths: &Paths<'_>, file: usize) -> BTreeMap<usize, usize> {
    let mut leads = BTreeMap::new();
    for (target, line) in paths.leads(file) {
        leads.entry(target.file).or_insert(line);
    }
    let Some(items) = code.files.get(file).map(|file| &file.items) else { return leads };
    for module in items.modules.iter().filter(|it| it.within.is_empty()) {
        if let Some(target) = paths.target(file, &["self".to_owned(), module.name.clone()]) {
            leads.entry(target.file).or_insert(module.line);
        }
    }
    for it in &items.uses {
        if let Some(target) = paths.target(file, &it.path) {
            leads.entry(target.file).or_insert(it.line);
        }
    }
    leads
}

/// The names of a subject as variants of an enum: `UdpMulticast`.
fn variants(subject: &Subject) -> Vec<String> {
    let camel = |name: &String| {
        name.split('-')
            .map(|word| {
                let (first, rest) = word.split_at(word.len().min(1));
                format!("{}{rest}", first.to_uppercase())
            })
            .collect()
    };
    subject.names.iter().map(camel).collect()
}

/// `xtp_flows`, `listen_xtp`, `XTP_PORT`, `XtpFlows`, of `xtp`.
fn is_named_after(word: &str, name: &str) -> bool {
    let lower = word.to_lowercase();
    let parts: Vec<&str> = lower.split('_').collect();
    let is_snake = parts.first() == Some(&name) || parts.last() == Some(&name);
    let mut letters = name.chars();
    let camel: String =
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let follows = |rest: &str| rest.chars().next().is_none_or(char::is_uppercase);
    is_snake || word.strip_prefix(&camel).is_some_and(follows)
}

/// The enums of `source` outside tests: name, line and the words that begin variants.
fn lists_at(source: &Source) -> Vec<(&str, usize, Vec<&str>)> {
    let mut lists = Vec::new();
    for at in source.live().filter(|&at| source.word(at) == "enum") {
        let Some(open) = (at..at + 20).find(|&it| source.word(it) == "{") else { continue };
        let close = source.closing(open);
        let is_variant = |&it: &usize| {
            source.kind(it) == Some(Kind::Ident) && matches!(source.word(it - 1), "{" | "," | "]")
        };
        let words = (open + 1..close).filter(is_variant).map(|it| source.word(it)).collect();
        lists.push((source.word(at + 1), source.line(at), words));
    }
    lists
}

/// The enums of `source` that list three of the transports and more.
fn lists(source: &Source, transports: &[Vec<String>]) -> Vec<String> {
    let is_named = |words: &[&str], of: &[String]| of.iter().any(|it| words.contains(&it.as_str()));
    let count = |words: &[&str]| transports.iter().filter(|of| is_named(words, of)).count();
    let lists = lists_at(source).into_iter();
    lists.filter(|(_, _, words)| count(words) > 2).map(|(name, ..)| name.to_owned()).collect()
}

fn text_line(source: &Source, subject: &Subject) -> Option<usize> {
    let is_text = |&at: &usize| {
        source.kind(at) == Some(Kind::Str) && has_name(source.word(at), &subject.names)
    };
    source.live().find(is_text).map(|at| source.line(at))
}

/// Whether the literal is one of `names`, or a list of words with one.
fn has_name(literal: &str, names: &[String]) -> bool {
    let text = literal.trim_start_matches(['r', 'b', 'c', '#']).trim_end_matches('#');
    let text = text.trim_matches('"');
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    let words: Vec<&str> = text.split([',', '|']).map(str::trim).collect();
    words.iter().all(|word| is_word(word))
        && words.iter().any(|word| names.iter().any(|it| it == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_after_a_transport_begin_or_end_with_it() {
        for word in ["xtp_flows", "listen_xtp", "xtp", "XTP_PORT", "XtpFlows", "Xtp"] {
            assert!(is_named_after(word, "xtp"), "{word}");
        }
        for word in ["xtps", "a_xtp_b", "Xtper", "NotXtp"] {
            assert!(!is_named_after(word, "xtp"), "{word}");
        }
    }

    #[test]
    fn texts_are_names_and_lists_but_no_sentences() {
        let names = ["udp".to_owned(), "udp-multicast".to_owned()];
        for text in ["\"udp\"", "\"tcp, udp\"", "r#\"udp-multicast\"#", "\"tcp|udp\""] {
            assert!(has_name(text, &names), "{text}");
        }
        for text in ["\"over udp\"", "\"udps\"", "\"\"", "\"the udp, of tcp\""] {
            assert!(!has_name(text, &names), "{text}");
        }
    }
}
