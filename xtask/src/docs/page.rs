//! Blocks of a page that show output.

/// Output that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// The line of its mark, from 1.
    pub line: usize,
    /// What is shown, with a newline behind each line.
    pub text: String,
}

const MARK: &str = "<!-- shown: ";
const FENCE: &str = "```";

fn name_of(line: &str) -> Option<&str> {
    line.strip_prefix(MARK)?.strip_suffix(" -->")
}

/// Every block that shows output.
pub fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line) else { continue };
        let inside = lines.iter().skip(at + 2).take_while(|line| !line.starts_with(FENCE));
        let text: String = inside.flat_map(|line| [line, "\n"]).collect();
        blocks.push(Block { name: name.to_owned(), line: at + 1, text });
    }
    blocks
}

/// The page with another text in the block of this name.
pub fn with_block(text: &str, name: &str, output: &str) -> String {
    let mut page = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        page.extend([line, "\n"]);
        if name_of(line) == Some(name) {
            page.extend(lines.next().into_iter().flat_map(|fence| [fence, "\n"]));
            page.push_str(output);
            let fence = lines.find(|line| line.starts_with(FENCE));
            page.extend(fence.into_iter().flat_map(|fence| [fence, "\n"]));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n<!-- shown: x -->\n```text\nold\nolder\n```\nb\n```sh\nc\n```\n";

    #[test]
    fn a_block_is_found_and_changed_alone() {
        let found = blocks(PAGE);
        let block = Block { name: "x".to_owned(), line: 2, text: "old\nolder\n".to_owned() };
        assert_eq!(found, [block]);
        let changed = with_block(PAGE, "x", "new\n");
        assert_eq!(changed, "# A\n<!-- shown: x -->\n```text\nnew\n```\nb\n```sh\nc\n```\n");
        assert_eq!(with_block(PAGE, "y", "new\n"), PAGE);
    }
}
