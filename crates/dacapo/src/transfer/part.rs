//! [`Part`]: the hidden file beside its final name that a file is received into.
//!
//! ```text
//!   .NAME.N.part, locked while it is written
//!        | whole: link, which fails when the name is taken      NAME
//!        | not whole: rename                                    NAME.incomplete
//!        '-- its process was killed: nobody has the lock; recover, at the next run:
//!            something came                                     NAME.incomplete
//!            nothing came, or it is NAME already                removed
//! ```
//!
//! Invariants: NAME never stands for less than a whole file, whenever the process ends; nothing
//! that exists is touched without leave; what came is never thrown away; of two processes that
//! receive the same name without leave to overwrite, the second is refused at once.

use dacapo_base::failpoint;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of one name that may be received at the same time, with leave to overwrite.
const PARTS_MAX: u16 = 1_000;

/// A file beside its final name.
pub(super) struct Part {
    pub file: File,
    part: PathBuf,
    path: PathBuf,
    force: bool,
    is_placed: bool,
}

impl Part {
    /// Makes the file. Without `force` nothing may have its name, and nobody else receive it.
    ///
    /// # Errors
    /// With the file and what to do.
    pub fn create(dir: &Path, name: &str, force: bool) -> Result<Self, String> {
        failpoint!("file.create");
        let path = dir.join(name);
        if path.is_dir() {
            return Err(format!("{}: is a folder", path.display()));
        }
        if !force && path.symlink_metadata().is_ok() {
            return Err(exists(&path));
        }
        for number in 0..PARTS_MAX {
            let part = dir.join(format!(".{name}.{number}.part"));
            recover_one(&part, &path);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&part) {
                Ok(file) if !is_ours(&file, &part) => {}
                Ok(file) => {
                    failpoint!("file.part");
                    return Ok(Self { file, part, path, force, is_placed: false });
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(format!("{}: {error}", dir.display()));
                }
                Err(_) if !force => {
                    let text = "another process receives it now; wait, or use --force";
                    return Err(format!("{}: {text}", path.display()));
                }
                Err(_) => {}
            }
        }
        Err(format!("{}: {PARTS_MAX} files .{name}.*.part exist", dir.display()))
    }

    /// Its final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its final name: it is whole.
    ///
    /// # Errors
    /// With the file and where it is now.
    pub fn place(&mut self) -> Result<PathBuf, String> {
        failpoint!("file.place");
        let placed = match self.force {
            true => std::fs::rename(&self.part, &self.path),
            false => self.link(),
        };
        match placed {
            Ok(()) => {
                self.is_placed = true;
                Ok(self.path.clone())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let (found, kept) = (exists(&self.path), self.keep()?);
                Err(format!("{found}; what came meanwhile is in {}", kept.display()))
            }
            Err(error) => Err(self.stays(&self.path, &error)),
        }
    }

    fn link(&self) -> io::Result<()> {
        match std::fs::hard_link(&self.part, &self.path) {
            Ok(()) => {
                failpoint!("file.placed");
                // A second name that stays is removed by the next run.
                let _ = std::fs::remove_file(&self.part);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // A file system without links: the name is taken first, empty for a moment.
            Err(_) => {
                OpenOptions::new().write(true).create_new(true).open(&self.path)?;
                std::fs::rename(&self.part, &self.path)
            }
        }
    }

    /// Gives it a name that says that it is not whole.
    ///
    /// # Errors
    /// With the file and where it is now.
    pub fn keep(&mut self) -> Result<PathBuf, String> {
        let to = incomplete(&self.path);
        std::fs::rename(&self.part, &to).map_err(|error| self.stays(&to, &error))?;
        self.is_placed = true;
        Ok(to)
    }

    fn stays(&self, to: &Path, error: &io::Error) -> String {
        format!("{}: {error}; it is in {}", to.display(), self.part.display())
    }

    /// Nothing came: it is not to be left behind.
    pub fn discard(&self) {
        if !self.is_placed {
            // Left behind it is removed by the next run.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

fn exists(path: &Path) -> String {
    format!("{}: exists; `dacapo recv --force` overwrites it", path.display())
}

/// Locks a file that was just made; false when another process took it for one left behind.
fn is_ours(file: &File, part: &Path) -> bool {
    // Where there are no locks, nobody takes it for left behind.
    let is_locked = !matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    is_locked && is_same(file, part)
}

fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(found)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (found.dev(), found.ino())
}

/// Puts in order what processes that were killed have left in a folder; returns what was kept under
/// another name.
#[must_use]
pub fn recover(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let parts = entries.filter_map(|entry| Some((entry.path(), name_of(&entry.path())?)));
    parts.filter_map(|(part, name)| recover_one(&part, &dir.join(name))).collect()
}

/// The final name of `.NAME.N.part`.
fn name_of(part: &Path) -> Option<String> {
    let name = part.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(".part")?;
    let (name, number) = name.rsplit_once('.')?;
    let is_ours = !name.is_empty() && number.parse().is_ok_and(|number: u16| number < PARTS_MAX);
    is_ours.then(|| name.to_owned())
}

/// Puts a file in order that nobody writes any more; its new name when it was kept.
fn recover_one(part: &Path, path: &Path) -> Option<PathBuf> {
    let found = part.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let file = OpenOptions::new().write(true).open(part).ok()?;
    // Where it cannot be said whether somebody writes it, it is left alone.
    file.try_lock().ok()?;
    if found.len() == 0 || is_same(&file, path) {
        let _ = std::fs::remove_file(part);
        return None;
    }
    let to = incomplete(path);
    std::fs::rename(part, &to).ok().map(|()| to)
}

/// A name for what is not whole that nothing has yet.
fn incomplete(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let first = path.with_file_name(format!("{name}.incomplete"));
    let others = (2..1_000).map(|at| path.with_file_name(format!("{name}.incomplete-{at}")));
    std::iter::once(first.clone()).chain(others).find(|it| !it.exists()).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("dacapo-part-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_stands_for_a_whole_file_only_and_never_for_another() {
        let dir = folder("whole");
        let mut part = Part::create(&dir, "a", false).unwrap();
        assert_eq!(names(&dir), [".a.0.part"], "the name itself comes last");
        fs::write(dir.join(".a.0.part"), "whole").unwrap();
        assert_eq!(part.place().unwrap(), dir.join("a"));
        assert_eq!(names(&dir), ["a"]);
        let text = Part::create(&dir, "a", false).err().unwrap();
        assert!(text.contains("exists; `dacapo recv --force`"), "{text}");
        let mut other = Part::create(&dir, "b", false).unwrap();
        fs::write(dir.join("b"), "mine").unwrap();
        let text = other.place().unwrap_err();
        assert!(text.contains("exists") && text.contains("b.incomplete"), "{text}");
        assert_eq!(fs::read(dir.join("b")).unwrap(), b"mine");
        let mut forced = Part::create(&dir, "b", true).unwrap();
        forced.place().unwrap();
        assert_eq!(names(&dir), ["a", "b", "b.incomplete"]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn who_receives_a_name_has_it_and_what_is_written_is_not_taken_for_left_behind() {
        let dir = folder("locked");
        let first = Part::create(&dir, "a", false).unwrap();
        fs::write(dir.join(".a.0.part"), "some").unwrap();
        let text = Part::create(&dir, "a", false).err().unwrap();
        assert!(text.contains("another process receives it"), "{text}");
        let second = Part::create(&dir, "a", true).unwrap();
        assert!(recover(&dir).is_empty());
        assert_eq!(names(&dir), [".a.0.part", ".a.1.part"]);
        drop((first, second));
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn what_was_left_behind_is_kept_where_something_came_and_else_removed() {
        let dir = folder("left");
        let files = [
            (".a.0.part", "some"),
            (".b.0.part", ""),
            (".c.7.part", "more"),
            ("c.incomplete", "earlier"),
            (".d.part", "not ours"),
            (".e.x.part", "not ours"),
            ("f.0.part", "not ours"),
            ("whole", "whole"),
        ];
        files.iter().for_each(|(name, text)| fs::write(dir.join(name), text).unwrap());
        fs::hard_link(dir.join("whole"), dir.join(".whole.0.part")).unwrap();
        let mut kept = recover(&dir);
        kept.sort();
        assert_eq!(kept, [dir.join("a.incomplete"), dir.join("c.incomplete-2")]);
        let left = [".d.part", ".e.x.part", "a.incomplete", "c.incomplete", "c.incomplete-2"];
        assert_eq!(names(&dir), [&left[..], &["f.0.part", "whole"]].concat());
        assert_eq!(fs::read(dir.join("c.incomplete-2")).unwrap(), b"more");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_file_that_is_received_again_finds_what_came_the_first_time_kept() {
        let dir = folder("again");
        fs::write(dir.join(".a.0.part"), "half").unwrap();
        let part = Part::create(&dir, "a", false).unwrap();
        assert_eq!(names(&dir), [".a.0.part", "a.incomplete"]);
        part.discard();
        assert_eq!(names(&dir), ["a.incomplete"]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
