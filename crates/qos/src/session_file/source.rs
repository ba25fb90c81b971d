//! What a flow sends, `source = { … }`, and by what the creator takes one, `sink = { … }`.
//!
//! [`Source`], [`AccessUse`] and their reading.
//!
//! ```text
//!   { file = "movie.avi", stream = "video" }      a file and, unless it has only one, its stream
//!   { file = "cam.mjpg", rate = "15 /s" }         JPEG pictures one after the other and their rate
//!   { file = "radio.wav", loop = true }           again and again; or loop = 3: three times
//!   { test = "movie", stream = "audio", duration = "30 s" }         generated
//!   { raw = true }                                                  bytes of the application
//!   { access = "numbers", count = 1000 }          any other access module, by its name
//! ```
//!
//! Which access modules there are only the catalogue knows; each source is of one, by its name.

use std::fmt;

use schemars::JsonSchema;

use crate::problem::{Problems, quoted};
use crate::spanned::Spanned;
use crate::units::Dimension;

use super::flow::{Word, read_dimension, read_word};
use super::graph::{Param, read_use};
use super::reader::{Node, Section};

/// What a flow sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A media file.
    File {
        /// Its path, relative to the session file's folder; see
        /// [`SessionFile::resolve`](super::SessionFile::resolve).
        path: Spanned<String>,
        /// The stream in it; none for files with only one.
        stream: Option<Spanned<StreamSelector>>,
        /// Pictures per second, in millionths, above 0 and at most 1,000 per second; for files that
        /// do not say it themselves.
        rate: Option<Spanned<u64>>,
        /// How often it is played; once where nothing is said.
        passes: Option<Spanned<Passes>>,
    },
    /// Generated media.
    Test {
        /// Which.
        media: Spanned<TestMedia>,
        /// Its stream.
        stream: Spanned<StreamSelector>,
        /// How long, in ns, above 0; none leaves it to the generator.
        duration: Option<Spanned<u64>>,
    },
    /// Bytes that the application hands over.
    Raw,
    /// What any other access module gives.
    Access(AccessUse),
}

/// An access module and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessUse {
    /// Its name, which follows the rule of names; the catalogue may not know it.
    pub access: Spanned<String>,
    /// Its parameters, in the order of the file.
    pub params: Vec<Param>,
}

impl Source {
    /// The name of the access module.
    #[must_use]
    pub fn access(&self) -> &str {
        match self {
            Self::File { .. } => "file",
            Self::Test { .. } => "test",
            Self::Raw => "raw",
            Self::Access(of) => &of.access,
        }
    }

    /// Whether it gives units of bytes, whose lengths only the application knows.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        matches!(self, Self::Raw | Self::Access(_))
    }

    /// Where a key of it stands that was given.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<Spanned<()>> {
        match (self, key) {
            (Self::File { path, .. }, "file") => Some(path.with(())),
            (Self::File { stream, .. }, "stream") => stream.as_ref().map(|it| it.with(())),
            (Self::File { rate, .. }, "rate") => rate.as_ref().map(|it| it.with(())),
            (Self::File { passes, .. }, "loop") => passes.as_ref().map(|it| it.with(())),
            (Self::Test { media, .. }, "test") => Some(media.with(())),
            (Self::Test { stream, .. }, "stream") => Some(stream.with(())),
            (Self::Test { duration, .. }, "duration") => duration.as_ref().map(|it| it.with(())),
            (Self::Access(of), key) => of.place(key),
            _ => None,
        }
    }

    /// How often it is played.
    #[must_use]
    pub fn passes(&self) -> Passes {
        match self {
            Self::File { passes: Some(passes), .. } => passes.value,
            _ => Passes::ONCE,
        }
    }
}

impl AccessUse {
    /// Where its name or a parameter stands.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<Spanned<()>> {
        let param = self.params.iter().find(|param| param.key.value == key);
        match param {
            Some(param) => Some(param.value.with(())),
            None => (key == "access").then(|| self.access.with(())),
        }
    }
}

/// How often a medium is played from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// So often, 1 to [`Passes::MAX`] times.
    Times(u32),
    /// Until somebody ends it.
    Forever,
}

impl Passes {
    /// Once, as usual.
    pub const ONCE: Self = Self::Times(1);

    /// The most that can be asked for as a number.
    pub const MAX: u32 = 1_000_000;

    /// Whether another pass follows the one with this number, which counts from 0.
    #[must_use]
    pub const fn go_on_after(self, pass: u32) -> bool {
        match self {
            Self::Times(count) => pass.saturating_add(1) < count,
            Self::Forever => true,
        }
    }
}

/// What media can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum TestMedia {
    /// The test movie: a picture with a frame counter, and a tone.
    Movie,
}

impl Word for TestMedia {
    const ALL: &'static [(&'static str, Self)] = &[("movie", Self::Movie)];
}

/// The medium of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
}

/// One stream of a file: `video`, `audio:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSelector {
    /// Its medium.
    pub kind: StreamKind,
    /// Which of those of its medium, from 0.
    pub index: u8,
}

impl fmt::Display for StreamSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            StreamKind::Video => "video",
            StreamKind::Audio => "audio",
        };
        if self.index == 0 { f.write_str(kind) } else { write!(f, "{kind}:{}", self.index) }
    }
}

const MAX_PATH_LEN: usize = 4_096; // PATH_MAX of Linux
const STREAM_WANTED: &str =
    "\"video\" or \"audio\", or with a number from 0 to 255, such as \"audio:1\"";

/// What a source may be.
pub(super) const WANTED: &str = "{ file = \"…\", stream = \"…\" }, { test = \"movie\", \
    stream = \"…\" }, { raw = true } or { access = \"…\", … }";
/// What a sink may be.
pub(super) const SINK_WANTED: &str = "{ access = \"name\", … } with the parameters of that module";
const ACCESS_WANTED: &str = "the name of an access module";
const LOOP_WANTED: &str = "true, or how often, 1 to 1000000";
const RATE_MAX: u64 = 1_000_000_000; // millionths per second
const RATE_WANTED: &str = "a rate above 0 and at most \"1000 /s\"";

/// Reads a source.
pub(super) fn read(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<Source>> {
    let section = node.section(WANTED, problems)?;
    let kinds: Vec<_> = ["file", "test", "raw", "access"]
        .into_iter()
        .filter_map(|key| section.optional(key))
        .collect();
    let [kind] = kinds.as_slice() else {
        let keys = ["file", "test", "raw", "access", "stream", "rate", "loop", "duration"];
        section.check_keys(&keys, problems);
        let none = "none of file, test, raw and access is given";
        let many = "more than one kind is given";
        section.report(if kinds.is_empty() { none } else { many }, WANTED, problems);
        return None;
    };
    let source = if section.optional("file").is_some() {
        read_file(&section, kind, problems)
    } else if section.optional("test").is_some() {
        read_test(&section, kind, problems)
    } else if section.optional("access").is_some() {
        read_access(&section, kind, problems).map(Source::Access)
    } else {
        read_raw(&section, kind, problems)
    };
    source.map(|source| node.spanned(source, problems))
}

fn read_file(
    section: &Section<'_>,
    kind: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Source> {
    section.check_keys(&["file", "stream", "rate", "loop"], problems);
    let stream = section.optional("stream").map(|node| read_stream(&node, problems));
    let rate = section.optional("rate").map(|node| read_rate(&node, problems));
    let passes = section.optional("loop").map(|node| read_loop(&node, problems));
    let path = kind.text("a path", problems)?;
    if path.is_empty() || path.len() > MAX_PATH_LEN || path.contains('\0') {
        let allowed = format!("1 to {MAX_PATH_LEN} bytes without NUL");
        kind.report(format!("{} is not a path", quoted(&path)), allowed, problems);
        return None;
    }
    // A key that was wrong has been told.
    let (stream, rate, passes) = (given(stream)?, given(rate)?, given(passes)?);
    Some(Source::File { path, stream, rate, passes })
}

/// What a key gives that may be left out; `None` where it is there and wrong.
fn given<T>(key: Option<Option<T>>) -> Option<Option<T>> {
    key.map_or(Some(None), |value| value.map(Some))
}

fn read_loop(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<Passes>> {
    let passes = match node.scalar() {
        Some(toml_edit::Value::Boolean(again)) => {
            Some(if *again.value() { Passes::Forever } else { Passes::ONCE })
        }
        Some(toml_edit::Value::Integer(count)) => {
            let count = u32::try_from(*count.value()).ok();
            count.filter(|count| (1..=Passes::MAX).contains(count)).map(Passes::Times)
        }
        _ => {
            node.report_type(LOOP_WANTED, problems);
            return None;
        }
    };
    if passes.is_none() {
        node.report("is no number of times", LOOP_WANTED, problems);
    }
    passes.map(|passes| node.spanned(passes, problems))
}

fn read_rate(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<u64>> {
    let rate = read_dimension(node, Dimension::Frequency, problems)?;
    if (1..=RATE_MAX).contains(&rate.value) {
        return Some(rate);
    }
    node.report(if rate.value == 0 { "is zero" } else { "is too high" }, RATE_WANTED, problems);
    None
}

fn read_test(
    section: &Section<'_>,
    kind: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Source> {
    section.check_keys(&["test", "stream", "duration"], problems);
    let media = read_word(kind, problems);
    let stream = section
        .require("stream", STREAM_WANTED, problems)
        .and_then(|node| read_stream(&node, problems));
    let duration = section.optional("duration").and_then(|node| {
        let duration = read_dimension(&node, Dimension::Duration, problems)?;
        if duration.value == 0 {
            node.report("is zero", "a duration above 0", problems);
        }
        Some(duration)
    });
    Some(Source::Test { media: media?, stream: stream?, duration })
}

fn read_raw(section: &Section<'_>, kind: &Node<'_>, problems: &mut Problems<'_>) -> Option<Source> {
    section.check_keys(&["raw"], problems);
    if kind.scalar().and_then(toml_edit::Value::as_bool) == Some(true) {
        return Some(Source::Raw);
    }
    kind.report("is not true", "true", problems);
    None
}

fn read_access(
    section: &Section<'_>,
    kind: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<AccessUse> {
    let (access, params) = read_use(section, "access", ACCESS_WANTED, problems)?;
    let written = match access.as_str() {
        "file" => "{ file = \"…\" }",
        "test" => "{ test = \"…\", stream = \"…\" }",
        "raw" => "{ raw = true }",
        _ => return Some(AccessUse { access, params }),
    };
    kind.report(format!("{} has a form of its own", quoted(&access)), written, problems);
    None
}

/// Reads a sink.
pub(super) fn read_sink(
    node: &Node<'_>,
    problems: &mut Problems<'_>,
) -> Option<Spanned<AccessUse>> {
    let section = node.section(SINK_WANTED, problems)?;
    let kind = section.require("access", ACCESS_WANTED, problems)?;
    read_access(&section, &kind, problems).map(|of| node.spanned(of, problems))
}

fn read_stream(node: &Node<'_>, problems: &mut Problems<'_>) -> Option<Spanned<StreamSelector>> {
    let text = node.text(STREAM_WANTED, problems)?;
    let selector = parse_stream(&text);
    if selector.is_none() {
        node.report(format!("{} is not a stream", quoted(&text)), STREAM_WANTED, problems);
    }
    selector.map(|selector| text.with(selector))
}

fn parse_stream(text: &str) -> Option<StreamSelector> {
    let (kind, index) = text.split_once(':').unwrap_or((text, "0"));
    let kind = match kind {
        "video" => StreamKind::Video,
        "audio" => StreamKind::Audio,
        _ => return None,
    };
    // A sign would be accepted by the number's own reader.
    let index = index.bytes().all(|b| b.is_ascii_digit()).then(|| index.parse().ok()).flatten()?;
    Some(StreamSelector { kind, index })
}

#[cfg(test)]
mod tests {
    use crate::SessionFile;

    use super::{Passes, Source};

    fn read(source: &str) -> Result<Source, String> {
        let text = format!(
            "[session]\nname = \"s\"\n[[flow]]\nname = \"f\"\nfrom = \"creator\"\n\
             source = {source}\ngraph = []\ntransport = \"udp\"\n"
        );
        let file = SessionFile::parse(&text, "s.toml").map_err(|errors| errors.to_string())?;
        Ok(file.flows[0].source.value.clone())
    }

    #[test]
    fn a_file_of_pictures_may_be_given_a_rate() {
        for (text, expected) in [
            ("25 /s", 25_000_000),
            ("29.97 /s", 29_970_000),
            ("0.000001 /s", 1),
            ("1000 /s", 1_000_000_000),
        ] {
            let source = read(&format!("{{ file = \"a.mjpg\", rate = \"{text}\" }}")).unwrap();
            let Source::File { rate, stream: None, .. } = source else { panic!("{source:?}") };
            assert_eq!(rate.unwrap().value, expected);
        }
        let plain = read("{ file = \"a.mjpg\" }").unwrap();
        assert!(matches!(plain, Source::File { rate: None, .. }));
    }

    #[test]
    fn a_file_is_played_once_or_so_often_or_for_ever() {
        for (text, expected) in [
            ("", Passes::ONCE),
            (", loop = false", Passes::ONCE),
            (", loop = true", Passes::Forever),
            (", loop = 1", Passes::ONCE),
            (", loop = 1_000_000", Passes::Times(1_000_000)),
        ] {
            let source = read(&format!("{{ file = \"a.wav\"{text} }}")).unwrap();
            assert_eq!(source.passes(), expected, "{text}");
        }
        assert!(Passes::Times(3).go_on_after(1) && !Passes::Times(3).go_on_after(2));
        assert!(Passes::Forever.go_on_after(u32::MAX) && !Passes::Times(0).go_on_after(0));
    }

    #[test]
    fn a_loop_that_is_none_is_told_with_what_is_allowed() {
        for (source, said) in [
            ("{ file = \"a\", loop = 0 }", "source.loop: is no number of times; allowed: true"),
            ("{ file = \"a\", loop = -1 }", "source.loop: is no number of times"),
            ("{ file = \"a\", loop = 1_000_001 }", "source.loop: is no number of times"),
            ("{ file = \"a\", loop = \"yes\" }", "source.loop: is a text; allowed: true, or how"),
            ("{ test = \"movie\", stream = \"audio\", loop = true }", "source.loop: unknown key"),
            ("{ raw = true, loop = true }", "source.loop: unknown key"),
        ] {
            let error = read(source).unwrap_err();
            assert!(error.contains(said), "{source}: {error}");
        }
    }

    #[test]
    fn flows_of_one_session_are_repeated_together() {
        let flow = |name: &str, source: &str| {
            format!(
                "[[flow]]\nname = \"{name}\"\nfrom = \"creator\"\nsource = {source}\n\
                 graph = []\ntransport = \"udp\"\n"
            )
        };
        let parse = |second: &str| {
            let first = flow("a", "{ file = \"a.avi\", stream = \"video\", loop = 2 }");
            let text = format!("[session]\nname = \"s\"\n{first}{}", flow("b", second));
            SessionFile::parse(&text, "s.toml").map(drop).map_err(|errors| errors.to_string())
        };
        for good in ["{ file = \"a.avi\", stream = \"audio\", loop = 2 }", "{ raw = true }"] {
            assert_eq!(parse(good), Ok(()));
        }
        for bad in [
            "{ file = \"a.avi\", stream = \"audio\" }",
            "{ file = \"a.avi\", stream = \"audio\", loop = true }",
            "{ test = \"movie\", stream = \"audio\" }",
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains("flow[1].source"), "{bad}: {error}");
            assert!(error.contains("is repeated otherwise than that of line 6"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_rate_that_is_none_is_told_with_what_is_allowed() {
        for (source, said) in [
            ("{ file = \"a\", rate = \"0 /s\" }", "source.rate: is zero; allowed: a rate above 0"),
            ("{ file = \"a\", rate = \"1001 /s\" }", "source.rate: is too high; allowed: a rate"),
            ("{ file = \"a\", rate = \"25\" }", "for example \"25 /s\""),
            ("{ file = \"a\", rate = 25 }", "source.rate: is a whole number"),
            ("{ file = \"a\", rat = \"25 /s\" }", "did you mean \"rate\"?"),
            ("{ raw = true, rate = \"25 /s\" }", "source.rate: unknown key"),
        ] {
            let error = read(source).unwrap_err();
            assert!(error.contains(said), "{source}: {error}");
        }
    }

    #[test]
    fn a_sink_takes_the_bytes_of_a_participant_only() {
        let flow = |from: &str, source: &str| {
            format!(
                "[session]\nname = \"s\"\n[[flow]]\nname = \"f\"\nfrom = \"{from}\"\n\
                 source = {source}\nsink = {{ access = \"meter\", every = \"1 s\" }}\n"
            )
        };
        let file = SessionFile::parse(&flow("participant", "{ raw = true }"), "s.toml").unwrap();
        let sink = file.flows[0].sink.clone().unwrap();
        assert_eq!((sink.access.as_str(), sink.place("every").unwrap().line), ("meter", 7));
        for (from, source, said) in [
            ("creator", "{ raw = true }", "sink: the creator sends this flow"),
            (
                "participant",
                "{ test = \"movie\", stream = \"audio\" }",
                "sink: the source at line 6",
            ),
            ("participant", "{ access = \"meter\" }", "source: a participant chooses itself"),
        ] {
            let error = SessionFile::parse(&flow(from, source), "s.toml").unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let source = read("{ access = \"numbers\", count = 5, len = \"1 KiB\" }").unwrap();
        assert_eq!((source.access(), source.is_bytes()), ("numbers", true));
        assert!(source.place("len").is_some() && source.place("other").is_none());
    }
}
