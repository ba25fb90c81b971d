//! [`Manifest`]: what the rules need of a `Cargo.toml`: the package's name and what it depends on.
//!
//! It reads lines, which is exact for manifests that keep one dependency per line, in a table or
//! under a heading of its own.

use super::tree::Tree;

/// One line that names a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package, whatever it is renamed to.
    pub package: String,
    /// Only for tests, benches and examples.
    pub is_dev: bool,
    /// Its line, from 1.
    pub line: usize,
}

/// One package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The path of its `Cargo.toml`.
    pub path: String,
    /// The package's name.
    pub package: String,
    /// The line of the name, from 1.
    pub line: usize,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// A package's name without `dacapo-`.
#[must_use]
pub fn short_name(package: &str) -> &str {
    package.strip_prefix("dacapo-").unwrap_or(package)
}

impl Manifest {
    /// Every package of `tree`, by path.
    #[must_use]
    pub fn all(tree: &Tree) -> Vec<Self> {
        let is_manifest = |path: &str| path == "Cargo.toml" || path.ends_with("/Cargo.toml");
        let files = tree.texts.iter().filter(|file| is_manifest(&file.path));
        files.filter_map(|file| Self::parse(&file.path, &file.text)).collect()
    }

    /// The package's name without `dacapo-`.
    #[must_use]
    pub fn short_name(&self) -> &str {
        short_name(&self.package)
    }

    /// Nothing for a manifest without a package.
    fn parse(path: &str, text: &str) -> Option<Self> {
        let mut section = "";
        let mut package = None;
        let mut dependencies = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), index + 1);
            if let Some(heading) = line.strip_prefix('[') {
                section = heading.split(']').next().unwrap_or_default().trim();
                dependencies.extend(from_heading(section, number));
            } else if section == "package" && key(line) == "name" {
                package = quoted(line).map(|name| (name.to_owned(), number));
            } else if let Some(is_dev) = dependency_section(section) {
                dependencies.extend(from_line(line, is_dev, number));
            }
        }
        let (package, line) = package?;
        Some(Self { path: path.to_owned(), package, line, dependencies })
    }
}

/// Whether `section` lists dependencies, and whether only those of tests.
fn dependency_section(section: &str) -> Option<bool> {
    match section.rsplit('.').next() {
        Some("dependencies" | "build-dependencies") if !section.starts_with("workspace") => {
            Some(false)
        }
        Some("dev-dependencies") => Some(true),
        _ => None,
    }
}

/// `[dependencies.name]`.
fn from_heading(section: &str, line: usize) -> Option<Dependency> {
    let (parent, name) = section.rsplit_once('.')?;
    let is_dev = dependency_section(parent)?;
    Some(Dependency { package: name.trim_matches('"').to_owned(), is_dev, line })
}

/// `name.workspace = true`, `name = "1"`, `other = { package = "name" }`.
fn from_line(text: &str, is_dev: bool, line: usize) -> Option<Dependency> {
    let name = key(text);
    if name.is_empty() || name.starts_with('#') {
        return None;
    }
    let renamed = text.split_once("package = ").and_then(|(_, rest)| quoted(rest));
    Some(Dependency { package: renamed.unwrap_or(name).to_owned(), is_dev, line })
}

fn key(line: &str) -> &str {
    let end = line.find(['=', '.', ' ']).unwrap_or(line.len());
    line.get(..end).unwrap_or_default().trim_matches('"')
}

fn quoted(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[package]\nname = \"dacapo-x\"\n[dependencies]\n# why\n\
        dacapo-base.workspace = true\nother = { package = \"dacapo-wire\", path = \"../wire\" }\n\n\
        [dependencies.bytes]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\n\
        \"libc\" = \"0\"\n\
        [dev-dependencies]\nproptest.workspace = true\n[lints]\nworkspace = true\n";

    #[test]
    fn every_form_of_a_dependency_is_seen() {
        let manifest = Manifest::parse("crates/x/Cargo.toml", TEXT).unwrap();
        assert_eq!((manifest.short_name(), manifest.line), ("x", 2));
        let seen: Vec<(&str, bool, usize)> =
            manifest.dependencies.iter().map(|d| (d.package.as_str(), d.is_dev, d.line)).collect();
        assert_eq!(
            seen,
            [
                ("dacapo-base", false, 5),
                ("dacapo-wire", false, 6),
                ("bytes", false, 8),
                ("libc", false, 11),
                ("proptest", true, 13),
            ]
        );
    }

    #[test]
    fn a_manifest_of_a_workspace_alone_is_no_package() {
        let text =
            "[workspace]\n[workspace.package]\nname = \"x\"\n[workspace.dependencies]\na = \"1\"\n";
        assert_eq!(Manifest::parse("Cargo.toml", text), None);
    }
}
