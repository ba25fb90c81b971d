//! Circles of imports: files of one crate of which each leads to each other.
//!
//! ```text
//!   a -> b -> c -> a     a circle of three: none can be read, tested or moved without the others
//! ```
//!
//! A file leads to where what it names is declared, whoever hands the name on; declaring a module
//! leads nowhere.

use std::collections::{BTreeMap, BTreeSet};

use super::size::{Kind, Size};
use crate::code::Code;
use crate::code::paths::Paths;

const CIRCLE: Kind = Kind {
    word: "circle",
    unit: "files in circles of imports over the limit",
    limit: 4,
    remedy: "move what two of them share to a file that names neither",
};

/// How many files of each crate are in circles that are too large, or in its largest circle.
#[must_use]
pub fn sizes(code: &Code<'_>, paths: &Paths<'_>) -> Vec<Size> {
    let mut crates: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, file) in code.files.iter().enumerate() {
        if !file.place.folder.is_empty() {
            crates.entry(file.place.folder.as_str()).or_default().push(index);
        }
    }
    crates.into_iter().filter_map(|(folder, files)| size(code, paths, folder, &files)).collect()
}

fn size(code: &Code<'_>, paths: &Paths<'_>, folder: &str, files: &[usize]) -> Option<Size> {
    let edges: BTreeMap<usize, Vec<usize>> = files
        .iter()
        .map(|&from| {
            let to = paths.leads(from).into_keys().map(|target| target.file);
            (from, to.filter(|to| files.contains(to)).collect())
        })
        .collect();
    let circles = circles(&edges);
    let above: usize = circles.iter().map(Vec::len).filter(|len| *len > CIRCLE.limit).sum();
    let largest = circles.iter().max_by_key(|circle| circle.len())?;
    let first = largest.first()?;
    let path = code.tree.sources.get(*first)?.path.clone();
    Some(Size {
        kind: CIRCLE,
        name: folder.to_owned(),
        figure: above.max(largest.len()),
        path,
        line: 1,
    })
}

/// The circles of two files and more, each in order.
fn circles(edges: &BTreeMap<usize, Vec<usize>>) -> Vec<Vec<usize>> {
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        edges.keys().map(|&from| (from, reached(edges, from))).collect();
    let leads = |from: usize, to: usize| reached.get(&from).is_some_and(|it| it.contains(&to));
    let mut circles: Vec<Vec<usize>> = Vec::new();
    for &file in edges.keys().filter(|&&file| leads(file, file)) {
        if !circles.iter().any(|circle| circle.contains(&file)) {
            let others = edges.keys().copied();
            circles.push(others.filter(|&it| leads(file, it) && leads(it, file)).collect());
        }
    }
    circles
}

/// The files that the ways from `from` lead to; itself if one leads back.
fn reached(edges: &BTreeMap<usize, Vec<usize>>, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let next = edges.get(&file).into_iter().flatten();
        open.extend(next.copied().filter(|&to| reached.insert(to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::tree;

    /// The figure of a crate whose file `n` names things of the files `edges` says.
    fn figure(count: usize, edges: &[(usize, usize)]) -> usize {
        let mut files = vec![
            ("crates/a/Cargo.toml".to_owned(), "[package]\nname = \"a\"\n".to_owned()),
            ("crates/a/src/lib.rs".to_owned(), (0..count).map(|n| format!("mod f{n};")).collect()),
        ];
        for n in 0..count {
            let uses = edges.iter().filter(|edge| edge.0 == n);
            let text: String = uses.map(|(_, to)| format!("use super::f{to}::T;")).collect();
            files.push((format!("crates/a/src/f{n}.rs"), format!("{text} pub struct T;")));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let tree = tree(&files);
        let code = Code::new(&tree);
        sizes(&code, &Paths::new(&code)).iter().map(|size| size.figure).sum()
    }

    #[test]
    fn a_line_of_files_is_no_circle_and_one_edge_back_makes_it_one() {
        let line: Vec<(usize, usize)> = (0..5).map(|n| (n, n + 1)).collect();
        assert_eq!(figure(6, &line), 0);
        assert_eq!(figure(6, &[line, vec![(5, 1)]].concat()), 5);
    }

    #[test]
    fn circles_over_the_limit_are_added_and_small_ones_are_not() {
        let circle = |from: usize, len: usize| -> Vec<(usize, usize)> {
            (0..len).map(|n| (from + n, from + (n + 1) % len)).collect()
        };
        assert_eq!(figure(8, &[circle(0, 4), circle(4, 4)].concat()), 4);
        assert_eq!(figure(12, &[circle(0, 5), circle(5, 7)].concat()), 12);
        assert_eq!(figure(12, &[circle(0, 5), circle(5, 4)].concat()), 5);
    }
}
