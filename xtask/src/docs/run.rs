//! Running what is shown: all at once, each in a folder of its own.

use super::recipe::Recipe;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// What each has printed, standard error included, as it is shown; or how it failed.
///
/// # Errors
/// A folder cannot be made, or a command not be started.
pub fn all(root: &Path, recipes: &[&Recipe]) -> io::Result<Vec<Result<String, String>>> {
    thread::scope(|scope| {
        let runs: Vec<_> =
            recipes.iter().map(|recipe| scope.spawn(move || one(root, recipe))).collect();
        let join = |run: thread::ScopedJoinHandle<'_, _>| {
            run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        runs.into_iter().map(join).collect()
    })
}

fn one(root: &Path, recipe: &Recipe) -> io::Result<Result<String, String>> {
    let target = root.join("target");
    let folder = target.join("shown").join(&recipe.name);
    // What an earlier run has left.
    let _ = fs::remove_dir_all(&folder);
    for name in ["here", "state", "run"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let here = folder.join("here");
    for (name, text) in &recipe.files {
        fs::write(here.join(name), text)?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let printed = folder.join("printed");
    let out = File::create(&printed)?;
    let mut command = Command::new("sh");
    command
        .args(["-c", &recipe.run])
        .current_dir(if recipe.in_sources { root } else { &here })
        .env("PATH", format!("{}:{path}", target.join("debug").display()))
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("XDG_RUNTIME_DIR", folder.join("run"))
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out);
    let status = command.status()?;
    let text = String::from_utf8_lossy(&fs::read(&printed)?).into_owned();
    if status.code() == Some(recipe.exit) {
        return Ok(Ok(recipe.shown(&text)));
    }
    let (name, run, exit) = (&recipe.name, &recipe.run, recipe.exit);
    Ok(Err(format!("{name}: `{run}` ends with {status} and not with {exit}:\n{text}")))
}
