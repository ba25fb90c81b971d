//! [`causes`]: what went wrong in a session, each cause once, with the flows that it befell.
//!
//! ```text
//!   video  out/movie.avi: no space left         --+
//!   audio  out/movie.avi: no space left         --+--> video, audio: out/movie.avi: no space left
//!   audio  out/movie.avi: cannot go on after …  --'
//! ```
//!
//! After the first error of a file nothing is written to it, so whatever else is said of that file
//! follows from the first.

use dacapo::access::Snapshot;
use std::path::Path;

/// A cause, and the flows that it befell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    flows: Vec<String>,
    text: String,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.flows.join(", "), self.text)
    }
}

/// Forgets the errors of a flow that follow from an earlier one of the same flow.
pub fn keep_causes(flow: &mut Snapshot) {
    let mut kept: Vec<String> = Vec::new();
    for error in std::mem::take(&mut flow.errors) {
        if !kept.iter().any(|known| is_same(known, &error, flow.saved.as_deref())) {
            kept.push(error);
        }
    }
    flow.errors = kept;
}

/// The causes in the order in which the flows name them.
pub fn causes(flows: &[Snapshot]) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for flow in flows {
        for error in &flow.errors {
            let known =
                causes.iter_mut().find(|cause| is_same(&cause.text, error, flow.saved.as_deref()));
            match known {
                Some(cause) if cause.flows.contains(&flow.flow) => {}
                Some(cause) => cause.flows.push(flow.flow.clone()),
                None => {
                    causes.push(Cause { flows: vec![flow.flow.clone()], text: error.clone() });
                }
            }
        }
    }
    causes
}

/// Both say the same, or both are of the file that is written.
fn is_same(one: &str, other: &str, file: Option<&Path>) -> bool {
    let file = file.map(|path| format!("{}: ", path.display()));
    one == other || file.is_some_and(|file| one.starts_with(&file) && other.starts_with(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, saved: &str, errors: &[&str]) -> Snapshot {
        Snapshot {
            flow: name.to_owned(),
            saved: Some(saved.into()),
            errors: errors.iter().map(|text| (*text).to_owned()).collect(),
            ..Snapshot::default()
        }
    }

    fn shown(flows: &[Snapshot]) -> Vec<String> {
        causes(flows).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_follows_from_the_first_error_of_a_file_is_not_shown() {
        let flows = [
            flow("video", "out/a.avi", &["out/a.avi: full"]),
            flow("audio", "out/a.avi", &["out/a.avi: full", "out/a.avi: cannot go on"]),
        ];
        assert_eq!(shown(&flows), ["video, audio: out/a.avi: full"]);
        let mut audio = flows[1].clone();
        keep_causes(&mut audio);
        assert_eq!(audio.errors, ["out/a.avi: full"]);
    }

    #[test]
    fn other_causes_and_other_files_stay() {
        let flows = [
            flow("video", "a.avi", &["a.avi: full", "the peer's source failed"]),
            flow("talk", "a.avi.wav", &["a.avi.wav: full", "the peer's source failed"]),
        ];
        assert_eq!(
            shown(&flows),
            [
                "video: a.avi: full",
                "video, talk: the peer's source failed",
                "talk: a.avi.wav: full"
            ]
        );
        let mut video = flows[0].clone();
        keep_causes(&mut video);
        assert_eq!(video.errors.len(), 2);
    }
}
