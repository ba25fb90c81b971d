//! The table that `cargo xtask limits` prints: the worst of each kind.

use super::size::Size;

/// How many of each kind are shown.
const SHOWN: usize = 5;

/// The table of `sizes`, which are sorted, the largest first.
#[must_use]
pub fn text(sizes: &[Size]) -> String {
    let mut text = String::new();
    let mut kinds: Vec<&'static str> = Vec::new();
    for size in sizes {
        if !kinds.contains(&size.kind.word) {
            kinds.push(size.kind.word);
        }
    }
    kinds.sort_unstable();
    for word in kinds {
        let of_kind: Vec<&Size> = sizes.iter().filter(|size| size.kind.word == word).collect();
        let Some(first) = of_kind.first() else { continue };
        let limit = first.kind.limit;
        let above = of_kind.iter().filter(|size| size.figure > limit).count();
        text.push_str(&format!("{word}: {}, limit {limit}, {above} above\n", first.kind.unit));
        for size in of_kind.iter().take(SHOWN).filter(|size| size.figure > 0) {
            let Size { name, figure, path, line, .. } = size;
            let mark = if *figure > limit { '!' } else { ' ' };
            text.push_str(&format!("  {mark} {figure:>5}  {name:<44} {path}:{line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::size::Kind;
    use super::*;

    #[test]
    fn the_worst_of_each_kind_come_first_and_those_above_are_marked() {
        let kind = |word| Kind { word, unit: "lines", limit: 70, remedy: "" };
        let size = |word, name: &str, figure| Size {
            kind: kind(word),
            name: name.to_owned(),
            figure,
            path: "a.rs".to_owned(),
            line: 3,
        };
        let text =
            text(&[size("function", "f", 71), size("file", "a", 9), size("function", "g", 0)]);
        let expected = [
            "file: lines, limit 70, 0 above",
            "        9  a                                            a.rs:3",
            "function: lines, limit 70, 1 above",
            "  !    71  f                                            a.rs:3",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
