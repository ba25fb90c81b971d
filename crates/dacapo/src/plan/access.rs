//! [`Finder`]: what a session file says that flows send and are taken by, looked up and opened.
//!
//! ```text
//!   source = { NAME … }  ->  entry of the catalogue  ->  settings  ->  open  ->  Found
//! ```

use super::Place;
use crate::Catalogue;
use crate::access::{Access, AccessEntry, Found, Settings, Setup, Shared, Wrong};
use dacapo_qos::{AccessUse, Param, Problem, Source, Spanned};
use std::sync::Arc;

/// Looks up and opens the access modules of one plan.
pub(super) struct Finder<'a> {
    pub parts: &'a Catalogue,
    pub shared: Shared,
    /// Something is assumed of media files that are missing.
    pub assumes_missing: bool,
}

impl Finder<'_> {
    /// What a flow sends.
    pub fn find(&mut self, place: Place<'_>, problems: &mut Vec<Problem>) -> Option<Found> {
        let source = &place.spec.source;
        let params = match &source.value {
            Source::Access(of) => of.params.as_slice(),
            Source::File { .. } | Source::Test { .. } | Source::Raw => &[],
        };
        let asked = (source.value.access(), params, Some(&source.value));
        let report = |wrong: Wrong| {
            let at = source.value.place(&wrong.key);
            told(place, "source", at.unwrap_or_else(|| source.with(())), wrong)
        };
        match self.open(place, asked, |entry| entry.spec.sends) {
            Ok(found) => Some(found),
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(report));
                None
            }
        }
    }

    /// What takes a flow at this end; none is the application. Nothing at all when it is wrong.
    pub fn find_sink(
        &mut self,
        place: Place<'_>,
        problems: &mut Vec<Problem>,
    ) -> Option<Option<Arc<dyn Access>>> {
        let Some(sink) = &place.spec.sink else { return Some(None) };
        let AccessUse { access, params } = &sink.value;
        let report = |wrong: Wrong| {
            let at = sink.value.place(&wrong.key);
            told(place, "sink", at.unwrap_or_else(|| sink.with(())), wrong)
        };
        match self.open(place, (access, params, None), |entry| entry.spec.takes) {
            Ok(found) => Some(found.access),
            Err(wrong) => {
                problems.extend(wrong.into_iter().map(report));
                None
            }
        }
    }

    fn open(
        &mut self,
        place: Place<'_>,
        (name, params, source): (&str, &[Param], Option<&Source>),
        fits: impl Fn(&AccessEntry) -> bool,
    ) -> Result<Found, Vec<Wrong>> {
        let unknown = |(text, allowed)| vec![Wrong::at("access", text).allowed(allowed)];
        let entry = self.parts.access(name).map_err(unknown)?;
        if !fits(entry) {
            let way = if source.is_some() { "source" } else { "sink" };
            return Err(vec![Wrong::at("access", format!("\"{name}\" is no {way}"))]);
        }
        let given = params.iter().map(|param| (param.key.as_str(), &param.value.value));
        let settings = Settings::read(entry.spec, given)?;
        let mut setup = Setup {
            settings,
            shared: &mut self.shared,
            asked: source.map(|source| (place.session, source)),
            assumes_missing: self.assumes_missing,
        };
        (entry.open)(&mut setup).map_err(|wrong| vec![wrong])
    }
}

/// What is wrong, where it stands.
fn told(place: Place<'_>, key: &str, at: Spanned<()>, wrong: Wrong) -> Problem {
    let dotted = match wrong.key.as_str() {
        "" => place.key(key),
        param => place.key(&format!("{key}.{param}")),
    };
    let problem = place.session.problem(&at, dotted, wrong.text);
    if wrong.allowed.is_empty() { problem } else { problem.allowed(wrong.allowed) }
}
