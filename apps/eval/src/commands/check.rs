//! `check`: whether every figure in the documents is one that was measured.

use super::root;
use crate::cli::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::pages::{self, Kept};
use crate::store::{KEPT, budget, short};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks.
///
/// # Errors
/// A document or the store cannot be read or written.
pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let failed = |text: String| Failure::run_time("eval check", text);
    let root = root("eval check")?;
    let kept = pages::read(&root).map_err(failed)?;
    let mut faults = kept.faults.clone();
    faults.extend(pages::undated_figures(&root));
    let wanted = pages::all(&root, &kept).map_err(failed)?;
    let differing = differing(&root, &wanted, args.write);
    if args.write {
        write(&root, &wanted, &differing).map_err(failed)?;
        tidy_up(&root, &kept).map_err(failed)?;
    } else {
        faults.extend(differing.iter().map(|path| {
            let path = path.display();
            format!("{path}: is not what the runs give: dacapo-eval check --write, and look at it")
        }));
    }
    faults.extend(too_large(&root, &kept).map_err(failed)?);
    let old = old(&kept);
    old.iter().for_each(|text| output::line(format_args!("old: {text}")));
    faults.iter().for_each(output::line);
    let is_wrong = !faults.is_empty() || (args.night && !old.is_empty());
    let runs = kept.last.len();
    if !is_wrong {
        output::line(format_args!(
            "{} documents and charts are what {runs} runs give",
            wanted.len()
        ));
    }
    Ok(if is_wrong { Exit::Failure } else { Exit::Success })
}

/// The documents that are not as they have to be, and charts that nothing makes. What is old by now
/// is marked in what `is_exact`.
fn differing(root: &Path, wanted: &BTreeMap<PathBuf, String>, is_exact: bool) -> Vec<PathBuf> {
    let of = |text: &str| if is_exact { text.to_owned() } else { pages::undated(text) };
    let is_other = |(path, text): &(&PathBuf, &String)| {
        fs::read_to_string(root.join(path)).ok().is_none_or(|it| of(&it) != of(text))
    };
    let mut all: Vec<PathBuf> = wanted.iter().filter(is_other).map(|it| it.0.clone()).collect();
    let charts = Path::new(pages::CHARTS);
    for entry in fs::read_dir(root.join(charts)).into_iter().flatten().flatten() {
        let path = charts.join(entry.file_name());
        if !wanted.contains_key(&path) {
            all.push(path);
        }
    }
    all
}

fn write(
    root: &Path,
    wanted: &BTreeMap<PathBuf, String>,
    differing: &[PathBuf],
) -> Result<(), String> {
    for path in differing {
        let full = root.join(path);
        let written = match wanted.get(path) {
            Some(text) => full
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&full, text)),
            None => fs::remove_file(&full),
        };
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        output::line(format_args!("{}", path.display()));
    }
    Ok(())
}

fn cited(kept: &Kept) -> Vec<String> {
    kept.last.values().map(|it| it.name.clone()).collect()
}

/// Removes runs that nothing cites until the store fits.
fn tidy_up(root: &Path, kept: &Kept) -> Result<(), String> {
    let going = budget::to_go(&root.join(KEPT), budget::ALL_LEN_MAX, &cited(kept));
    for run in going.map_err(|error| error.to_string())? {
        fs::remove_dir_all(&run).map_err(|error| format!("{}: {error}", run.display()))?;
        output::line(format_args!("removed, as the store is full: {}", short(&run)));
    }
    Ok(())
}

fn too_large(root: &Path, kept: &Kept) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    for (run, _) in &kept.all {
        let len = budget::len_of(run).map_err(|error| format!("{}: {error}", run.display()))?;
        if len > budget::RUN_LEN_MAX {
            let most = budget::RUN_LEN_MAX;
            faults.push(format!("{}: {len} bytes, and {most} are kept of a run", short(run)));
        }
    }
    let going = budget::to_go(&root.join(KEPT), budget::ALL_LEN_MAX, &cited(kept));
    let going = going.map_err(|error| error.to_string())?;
    faults.extend(going.iter().map(|run| {
        format!(
            "{}: the store is full, and nothing cites it: dacapo-eval check --write",
            short(run)
        )
    }));
    Ok(faults)
}

/// Runs that documents cite and that are old.
fn old(kept: &Kept) -> Vec<String> {
    let all = kept.last.values().filter(|it| it.is_old());
    all.map(|it| format!("{}: {} commits ago", it.name, it.age)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::run;
    use crate::store::Run;

    /// A checkout with a run of `network`, its documents written.
    struct Checkout(PathBuf);

    impl Checkout {
        fn new(name: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("dacapo-eval-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("docs")).unwrap();
            fs::create_dir_all(root.join("eval")).unwrap();
            fs::write(root.join("README.md"), "# x\n<!-- eval -->\n<!-- /eval -->\n").unwrap();
            fs::write(root.join("eval/goals.json"), "[]").unwrap();
            let checkout = Self(root);
            checkout.keep(&mut run());
            checkout.write();
            checkout
        }

        fn folder(&self) -> PathBuf {
            self.0.join(KEPT).join("network/2026-01-01-abc1234")
        }

        fn keep(&self, run: &mut Run) {
            run.header.id = "network".to_owned();
            run.write(&self.folder()).unwrap();
        }

        fn write(&self) {
            let wanted = pages::all(&self.0, &pages::read(&self.0).unwrap()).unwrap();
            write(&self.0, &wanted, &differing(&self.0, &wanted, true)).unwrap();
        }

        /// What is wrong with it.
        fn faults(&self) -> Vec<String> {
            let kept = pages::read(&self.0).unwrap();
            let wanted = pages::all(&self.0, &kept).unwrap();
            let paths = differing(&self.0, &wanted, false);
            let paths = paths.iter().map(|path| path.display().to_string());
            kept.faults.iter().cloned().chain(paths).collect()
        }
    }

    impl Drop for Checkout {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_written_is_what_the_runs_give() {
        let checkout = Checkout::new("written");
        assert_eq!(checkout.faults(), [""; 0]);
        let page = fs::read_to_string(checkout.0.join("docs/performance.md")).unwrap();
        assert!(page.contains("network/2026-01-01-abc1234") && page.contains("0.925 ["), "{page}");
        assert!(checkout.0.join("docs/charts/network-bulk-gbit-per-s.svg").is_file());
    }

    #[test]
    fn what_has_become_old_is_marked_when_it_is_written_and_is_no_fault_before() {
        let checkout = Checkout::new("old");
        let mut kept = pages::read(&checkout.0).unwrap();
        kept.last.values_mut().for_each(|it| it.age = 201);
        assert_eq!(old(&kept), ["network/2026-01-01-abc1234: 201 commits ago"]);
        let wanted = pages::all(&checkout.0, &kept).unwrap();
        assert!(differing(&checkout.0, &wanted, false).is_empty());
        write(&checkout.0, &wanted, &differing(&checkout.0, &wanted, true)).unwrap();
        let page = fs::read_to_string(checkout.0.join("docs/performance.md")).unwrap();
        assert!(page.contains("### network, quiet (old)"), "{page}");
        assert_eq!(checkout.faults(), [""; 0]);
    }

    #[test]
    fn a_table_that_is_edited_by_hand_is_found() {
        let checkout = Checkout::new("edited");
        for path in ["docs/performance.md", "README.md", "docs/charts/network-bulk-gbit-per-s.svg"]
        {
            let text = fs::read_to_string(checkout.0.join(path)).unwrap();
            let other = text.replace("0.925", "0.999").replace("ours / gso", "ours / tcp");
            fs::write(checkout.0.join(path), other).unwrap();
        }
        let faults = checkout.faults();
        let wanted =
            ["README.md", "docs/charts/network-bulk-gbit-per-s.svg", "docs/performance.md"];
        assert_eq!(faults, wanted);
    }

    #[test]
    fn samples_that_do_not_give_the_figure_are_found() {
        let checkout = Checkout::new("samples");
        let mut other = run();
        for entry in other.entries.iter_mut().filter(|entry| entry.row == "ours") {
            if let Some(figures) = &mut entry.figures {
                figures.insert("gbit_per_s".to_owned(), 39.9);
            }
        }
        checkout.keep(&mut other);
        assert!(checkout.faults().contains(&"docs/performance.md".to_owned()));
    }

    #[test]
    fn a_figure_without_its_run_is_found() {
        let checkout = Checkout::new("without");
        fs::remove_dir_all(checkout.folder()).unwrap();
        let faults = checkout.faults();
        assert!(faults.contains(&"docs/performance.md".to_owned()), "{faults:?}");
        let chart = "docs/charts/network-bulk-gbit-per-s.svg".to_owned();
        assert!(faults.contains(&chart), "a chart that nothing makes: {faults:?}");
    }

    #[test]
    fn a_run_of_a_tree_with_changes_is_found_and_not_used() {
        let checkout = Checkout::new("changed");
        let mut other = run();
        other.header.is_clean = false;
        checkout.keep(&mut other);
        let faults = checkout.faults();
        assert!(faults[0].contains("of a tree with changes"), "{faults:?}");
        assert!(faults.contains(&"docs/performance.md".to_owned()), "{faults:?}");
    }

    #[test]
    fn a_command_with_a_folder_of_the_machine_is_found() {
        let checkout = Checkout::new("place");
        let mut other = run();
        other.entries[0].commands = vec!["taskset -c 0 /somewhere/peer gso".to_owned()];
        checkout.keep(&mut other);
        assert_eq!(
            checkout.faults()[0],
            "network/2026-01-01-abc1234: a command has /somewhere/peer"
        );
    }

    #[test]
    fn documents_are_made_of_no_part_of_an_experiment() {
        let checkout = Checkout::new("part");
        let mut part = run();
        (part.header.id, part.header.is_whole) = ("network".to_owned(), false);
        part.entries.truncate(2);
        part.write(&checkout.0.join(KEPT).join("network/2026-01-02-abc1235")).unwrap();
        assert_eq!(checkout.faults(), [""; 0]);
    }

    #[test]
    fn a_damaged_file_of_samples_is_named_and_excluded() {
        let checkout = Checkout::new("damage");
        let path = checkout.folder().join(crate::store::SAMPLES);
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(bytes.len() / 2);
        fs::write(&path, bytes).unwrap();
        let faults = checkout.faults();
        assert!(faults[0].contains("samples.jsonl.gz: is not what was measured"), "{faults:?}");
        assert!(faults[0].ends_with("the run is excluded"), "{faults:?}");
    }
}
