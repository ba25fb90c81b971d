//! Playing a scene of the script.

use crate::common::LONG;
use crate::documents;
use crate::process;
use crate::script::{Act, Scene};
use crate::stage::{PAUSE, Piece, Stage};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Who is asked to end ends within this time.
pub const END_MAX: Duration = Duration::from_secs(1);

/// A scene in windows of so many columns; without replacements it has the network of the documents,
/// and every line is typed as it stands there.
pub fn piece(scene: &Scene, columns: u16, replace: Option<&[(String, String)]>) -> Piece {
    let name = format!("{}/{columns}", scene.name);
    let replace = replace.map(<[_]>::to_vec);
    let (title, is_sources) = (name.clone(), scene.in_sources);
    let steps: Vec<(usize, Act)> = scene.steps.iter().map(|it| (it.line, it.act.clone())).collect();
    let play = Box::new(move || {
        let mut stage = Stage::new(&title, columns);
        if replace.is_none() && !is_sources {
            stage = stage.with_network();
        }
        if is_sources {
            stage = stage.in_sources();
        }
        let replace = replace.unwrap_or_default();
        for (line, act) in &steps {
            stage.name = format!("{title}, scenes.txt:{line}");
            perform(&mut stage, act, &replace);
        }
    });
    Piece { name, play }
}

fn perform(stage: &mut Stage, act: &Act, replace: &[(String, String)]) {
    match act {
        Act::Give(name) => stage.give(name),
        Act::Take(name) => {
            let text = documents::session(name.trim_end_matches(".toml"));
            stage.place.write(name, text);
        }
        Act::Same(one, other) => {
            let read = |name: &str| fs::read(stage.place.path(name));
            let (one_is, other_is) = (read(one), read(other));
            assert!(one_is.is_ok() && other_is.is_ok(), "{}: {one}, {other}", stage.name);
            assert!(one_is.unwrap() == other_is.unwrap(), "{}: {one} is not {other}", stage.name);
        }
        Act::Has(name) => {
            assert!(has(&stage.place.path(name)), "{}: there is no {name}", stage.name);
        }
        Act::Type { who, line, .. } => {
            let mut line = line.clone();
            for (from, to) in replace {
                line = line.replace(from, to);
            }
            let line = stage.fill(&line);
            stage.window(who);
            std::thread::sleep(PAUSE);
            stage.window(who).types(&line);
        }
        Act::Press { who, keys } => stage.window(who).keys(&bytes(keys)),
        Act::Shows { who, words } => {
            let words = stage.fill(words);
            stage.window(who).shows(&words);
        }
        Act::Waits { who, words } => {
            let words = stage.fill(words);
            let window = stage.window(who);
            window.shows(&words);
            window.is_whole();
            let pid = window.program();
            stage.rests(pid);
        }
        Act::Rests { who } => {
            let pid = stage.window(who).program();
            std::thread::sleep(Duration::from_secs(1));
            stage.rests(pid);
        }
        Act::Ends { who, codes, words } => {
            let words: Vec<String> = words.iter().map(|it| stage.fill(it)).collect();
            let window = stage.window(who);
            window.ends(codes, LONG);
            words.iter().for_each(|it| window.shows(it));
            window.is_whole();
        }
        Act::EndedBy { who, how, code } => end_by(stage, who, how, *code),
    }
}

fn end_by(stage: &mut Stage, who: &str, how: &str, code: i32) {
    let window = stage.window(who);
    match how.strip_prefix("SIG") {
        Some(signal) => process::signal(window.program(), signal),
        None => window.keys(&bytes(how)),
    }
    window.ends(&[code], END_MAX);
}

/// Keys: `^C` is Control and C, `\n` is Enter, `space` is one.
fn bytes(keys: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = keys.replace("space", " ").replace("\\n", "\n");
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '^' => bytes.extend(chars.next().map(|key| key as u8 & 0x1f)),
            _ => bytes.extend(c.to_string().bytes()),
        }
    }
    bytes
}

/// A file that is not empty, or a folder that is not.
fn has(path: &Path) -> bool {
    let is_full = |dir: fs::ReadDir| dir.count() > 0;
    fs::read_dir(path)
        .map(is_full)
        .unwrap_or_else(|_| fs::metadata(path).is_ok_and(|it| it.len() > 0))
}
