//! [`AccessEntry`]: an access module as a catalogue has it: what is known of it, and what opens it.
//!
//! ```text
//!   AccessEntry { spec, open } --open(Setup)--> Found { Access } --+--> Source, each time that
//!       source = { access = "NAME", … }          once for a plan   '--> Sink    somebody joins
//! ```
//!
//! Nothing outside an access module's file and folder knows how it is opened.

use super::found::Found;
use crate::param::{hint, list, quantity, range};
use dacapo_lift::ParamSpec;
use dacapo_qos::{SessionFile, Source, Value};
use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// What an access module carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Units of bytes.
    Bytes,
    /// Pictures.
    Pictures,
    /// Sound.
    Sound,
}

impl fmt::Display for Carries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Pictures => "pictures",
            Self::Sound => "sound",
        })
    }
}

/// The static facts of an access module.
#[derive(Clone, Copy, Debug)]
pub struct AccessSpec {
    /// The name in session files.
    pub name: &'static str,
    /// Its number; 0xF000 to 0xFFFF are for programs and tests, and never assigned.
    pub id: u16,
    /// What it does, in one line.
    pub summary: &'static str,
    /// It can be a source.
    pub sends: bool,
    /// It can be a sink.
    pub takes: bool,
    /// What it carries.
    pub carries: &'static [Carries],
    /// Its parameters.
    pub params: &'static [AccessParam],
}

/// One parameter of an access module.
#[derive(Clone, Copy, Debug)]
pub enum AccessParam {
    /// A text; nothing stands in for one that is left out.
    Text {
        /// Its name in a session file.
        name: &'static str,
        /// What it says, in one line.
        summary: &'static str,
    },
    /// A number, or a quantity with its unit.
    Quantity(ParamSpec),
}

impl AccessParam {
    /// Its name in a session file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Text { name, .. } => name,
            Self::Quantity(spec) => spec.name,
        }
    }
}

/// What opens an access module, as a plan or a participant asks for it: once, before any flow.
///
/// # Errors
/// What is wrong with what it was told.
pub type Open = dyn Fn(&mut Setup<'_>) -> Result<Found, Wrong> + Send + Sync;

/// An access module of a catalogue.
#[derive(Clone)]
pub struct AccessEntry {
    /// What is known of it.
    pub spec: &'static AccessSpec,
    /// What opens it.
    pub open: Arc<Open>,
}

impl AccessEntry {
    /// One that is opened so.
    pub fn new(
        spec: &'static AccessSpec,
        open: impl Fn(&mut Setup<'_>) -> Result<Found, Wrong> + Send + Sync + 'static,
    ) -> Self {
        Self { spec, open: Arc::new(open) }
    }
}

impl fmt::Debug for AccessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessEntry").field(&self.spec.name).finish()
    }
}

/// What an access module is told when it is opened.
pub struct Setup<'a> {
    /// Its parameters.
    pub settings: Settings,
    /// What those keep that are opened for one plan.
    pub shared: &'a mut Shared,
    /// The session file and the source in it; none where a program asks for it.
    pub(crate) asked: Option<(&'a SessionFile, &'a Source)>,
    /// Something is assumed of a file that is missing.
    pub(crate) assumes_missing: bool,
}

/// The parameters of an access module, each within its bounds.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    texts: BTreeMap<&'static str, String>,
    quantities: BTreeMap<&'static str, u64>,
}

impl Settings {
    /// A text that was given.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// A quantity in its unit: the one that was given, or the usual one; 0 where there is no such
    /// parameter.
    #[must_use]
    pub fn quantity(&self, name: &str) -> u64 {
        self.quantities.get(name).copied().unwrap_or(0)
    }

    /// What was given of the parameters of `spec`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read<'v>(
        spec: &AccessSpec,
        given: impl IntoIterator<Item = (&'v str, &'v Value)>,
    ) -> Result<Self, Vec<Wrong>> {
        let mut settings = Self::default();
        for param in spec.params {
            if let AccessParam::Quantity(param) = param {
                settings.quantities.insert(param.name, param.default);
            }
        }
        let given = given.into_iter();
        let wrong = given.filter_map(|(name, value)| settings.set(spec, name, value).err());
        let wrong: Vec<Wrong> = wrong.collect();
        if wrong.is_empty() { Ok(settings) } else { Err(wrong) }
    }

    fn set(&mut self, spec: &AccessSpec, name: &str, value: &Value) -> Result<(), Wrong> {
        match spec.params.iter().find(|param| param.name() == name) {
            None => {
                let names: Vec<&str> = spec.params.iter().map(AccessParam::name).collect();
                let near = hint(name, &names);
                let text = format!("\"{}\" has no parameter \"{name}\"{near}", spec.name);
                return Err(Wrong::at(name, text).allowed(list(&names)));
            }
            Some(AccessParam::Text { name, .. }) => {
                let text = match value {
                    Value::Text(text) => text.clone(),
                    other => other.to_string().trim_matches('"').to_owned(),
                };
                self.texts.insert(name, text);
            }
            Some(AccessParam::Quantity(param)) => {
                let value = quantity(param, value)
                    .map_err(|text| Wrong::at(name, text).allowed(range(param)))?;
                self.quantities.insert(param.name, value);
            }
        }
        Ok(())
    }
}

/// What the access modules of one plan keep until it is made, each kind its own.
#[derive(Default)]
pub struct Shared(HashMap<TypeId, Box<dyn Any>>);

impl Shared {
    /// What is kept of this type; it begins as usual.
    pub fn of<T: Any + Default>(&mut self) -> Option<&mut T> {
        let kept = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        kept.downcast_mut()
    }
}

/// What is wrong with what an access module was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The parameter that it is wrong with; empty where it is with the whole.
    pub key: String,
    /// What is wrong, for people.
    pub text: String,
    /// What is allowed; empty where that cannot be said.
    pub allowed: String,
}

impl Wrong {
    /// Of a parameter.
    #[must_use]
    pub fn at(key: &str, text: impl Into<String>) -> Self {
        Self { key: key.to_owned(), text: text.into(), allowed: String::new() }
    }

    /// Of the whole.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self::at("", text)
    }

    /// The same, with what is allowed.
    #[must_use]
    pub fn allowed(self, allowed: impl Into<String>) -> Self {
        Self { allowed: allowed.into(), ..self }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, text, allowed } = self;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(text)?;
        if allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {allowed}") }
    }
}
