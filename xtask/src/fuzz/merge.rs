//! The best of what was found goes into the corpora of the tree: few files, small ones.
//!
//! ```text
//!   fuzz/corpus/NAME + target/fuzz/work/NAME --libFuzzer -merge=1--> what reaches everything
//!        --at most so many, small and large in turn--> fuzz/corpus/NAME/found-NN
//! ```

use super::{Binary, work_folder};
use std::fs;
use std::io;
use std::path::Path;

/// Files of a corpus in the tree, seeds included.
const FILES_MAX: usize = 40;

/// The longest input in bytes that is kept in the tree.
const LEN_MAX: u64 = 2_048;

/// Merges each target; true when all could be.
///
/// # Errors
/// A folder or file cannot be read or written, or the fuzzer cannot be run.
pub fn all(binary: &Binary, chosen: &[(String, usize)]) -> io::Result<bool> {
    let mut is_whole = true;
    for (name, len_max) in chosen {
        let count = one(binary, name, *len_max)?;
        match count {
            Some(count) => println!("{name:<18} {count:>3} found inputs kept"),
            None => eprintln!("{name:<18} could not be merged: an input fails"),
        }
        is_whole &= count.is_some();
    }
    Ok(is_whole)
}

fn one(binary: &Binary, name: &str, len_max: usize) -> io::Result<Option<usize>> {
    let corpus = binary.corpora.join(name);
    let merged = binary.target_dir.join("merged").join(name);
    if merged.exists() {
        fs::remove_dir_all(&merged)?;
    }
    fs::create_dir_all(&merged)?;
    let work = work_folder(&binary.target_dir, name);
    fs::create_dir_all(&work)?;
    let mut command = binary.command(name);
    command.args(["-merge=1", "-timeout=10", "-rss_limit_mb=256"]);
    command.arg(format!("-max_len={len_max}"));
    command.arg(&merged).arg(&corpus).arg(work);
    if !command.output()?.status.success() {
        return Ok(None);
    }
    remove_found(&corpus)?;
    let kept = kept_of(&corpus)?;
    let fresh = fresh_inputs(&merged, &kept)?;
    let room = FILES_MAX.saturating_sub(kept.len());
    let chosen = spread(&fresh, room);
    for (number, input) in chosen.iter().enumerate() {
        fs::write(corpus.join(format!("found-{number:02}")), input)?;
    }
    Ok(Some(chosen.len()))
}

fn remove_found(corpus: &Path) -> io::Result<()> {
    for entry in fs::read_dir(corpus)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("found-") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn kept_of(corpus: &Path) -> io::Result<Vec<Vec<u8>>> {
    fs::read_dir(corpus)?.map(|entry| fs::read(entry?.path())).collect()
}

/// What is new and short enough, the shortest first.
fn fresh_inputs(merged: &Path, kept: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(merged)? {
        let entry = entry?;
        if entry.metadata()?.len() <= LEN_MAX {
            inputs.push(fs::read(entry.path())?);
        }
    }
    inputs.retain(|input| !kept.contains(input));
    inputs.sort_by_key(|input| (input.len(), input.clone()));
    Ok(inputs)
}

/// At most `count` of them, evenly over their lengths.
fn spread(inputs: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
    if inputs.len() <= count {
        return inputs.to_vec();
    }
    (0..count).filter_map(|at| inputs.get(at * inputs.len() / count).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_spread_over_all_lengths() {
        let inputs: Vec<Vec<u8>> = (0..100).map(|len| vec![0; len]).collect();
        let lens: Vec<usize> = spread(&inputs, 4).iter().map(Vec::len).collect();
        assert_eq!(lens, [0, 25, 50, 75]);
        assert_eq!(spread(&inputs, 200).len(), 100);
        assert_eq!(spread(&inputs, 0), [[0_u8; 0]; 0]);
    }
}
