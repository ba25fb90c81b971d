//! The tables of a session file as types, for their schema.
//!
//! One type per table, with the keys that the reader takes; the doc comments are what an editor
//! shows.
//!
//! Invariant: each has the keys of the reader and no other.

// The fields are looked at by schemars only.
#![allow(dead_code)]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::path::{PathKey, PathPreset};
use crate::session_file::{
    MAX_FLOWS, MAX_MODULES, MAX_PARAM_TEXT_LEN, MAX_PARAMS, MAX_TITLE_LEN, Passes, Role, TestMedia,
};

use super::attributes::AttributesTable;
use super::quantity::{Duration, Frequency, Rate, Share, Size};

/// A session as its creator describes it: a name, and the flows between creator and participants.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "dacapo session file")]
pub(super) struct SessionDocument {
    /// What the session is called.
    session: SessionTable,
    /// What is assumed of the network; all flows are planned with it. Left out, what is measured of
    /// the path to who joins counts, and "internet" for what is not.
    path: Option<PathTable>,
    /// The flows, one [[flow]] each, with different names.
    #[schemars(length(min = 1, max = MAX_FLOWS))]
    flow: Vec<FlowTable>,
}

/// What the session is called.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Session")]
struct SessionTable {
    /// How others ask for the session: dacapo://HOST/name.
    name: Name,
    /// What people see of it.
    title: Option<Title>,
    /// How long contact may be lost before the session is given up, at most 24 h; "5 min" when left
    /// out, "0 s" ends it as soon as contact is lost.
    give_up: Option<Duration>,
}

/// What is assumed of the network between the two ends of a flow, one way.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Path")]
struct PathTable {
    /// Where the figures come from that are not given here; "internet" when left out.
    assume: Option<PathPreset>,
    /// What it carries, 1 bit/s to 1000 Gbit/s.
    rate: Option<Rate>,
    /// The shortest one-way delay, at most 60 min.
    delay: Option<Duration>,
    /// By how much 99 of 100 packets exceed that at most, at most 60 min.
    jitter: Option<Duration>,
    /// The share of packets that is lost.
    loss: Option<Share>,
    /// How many packets are lost one after the other, on average; at most 3 decimals.
    burst: Option<Burst>,
}

/// One flow of units in one direction.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Flow")]
struct FlowTable {
    /// The name of the flow, different from those of the other flows.
    name: Name,
    /// Who sends it.
    from: Role,
    /// What is sent.
    source: SourceTable,
    /// What takes the bytes of a participant at the creator's end, instead of the application; only
    /// with from = "participant" and source = { raw = true }.
    sink: Option<AccessTable>,
    /// The C-modules from the application down to the network; left out, they are chosen from the
    /// attributes.
    #[schemars(length(max = MAX_MODULES))]
    graph: Option<Vec<ModuleUse>>,
    /// The T-module, of those that `dacapo modules` lists; left out, it is chosen from the
    /// attributes.
    transport: Option<Name>,
    /// The multicast group and the port that it is sent to once for all participants,
    /// such as "239.1.2.3:5004" or "[ff15::1:2]:5004"; only from the creator.
    multicast: Option<String>,
    /// The flow never sends faster than this; above 0.
    bound: Option<Rate>,
    /// The receiver holds units so long to even out their delay.
    playout: Option<Duration>,
    /// The receiver keeps no more of `playout` than what comes uses, and at least so much.
    playout_min: Option<Duration>,
    /// The largest unit that the application hands over, 1 B to 64 MiB; only with
    /// source = { raw = true } or { access = … }.
    unit_max: Option<Size>,
    /// Whether both ends hash every unit (SHA-256) and compare at the end; left out, media are
    /// hashed and bytes of the application are not.
    digest: Option<bool>,
    /// What the flow must be.
    attributes: Option<AttributesTable>,
}

/// What is sent: a media file, generated media, bytes of the application, or what another access
/// module gives.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Source")]
enum SourceTable {
    File(FileSource),
    Test(TestSource),
    Raw(RawSource),
    Access(AccessTable),
}

/// A media file of the creator.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct FileSource {
    /// Its path, relative to the folder of the session file.
    #[schemars(length(min = 1, max = 4096))]
    file: String,
    /// Which of its streams; files with only one need none.
    stream: Option<Stream>,
    /// Pictures per second, above 0 and at most 1000 /s; for files that do not say it themselves,
    /// such as JPEG pictures one after the other.
    rate: Option<Frequency>,
    /// Whether it is played again from its start when it is at its end, or how often it is played.
    /// All media of a session are repeated together.
    #[schemars(rename = "loop")]
    passes: Option<Loop>,
}

/// Again and again, or so often.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Loop {
    /// Until somebody ends it, or once.
    Again(bool),
    /// How often.
    Times(#[schemars(range(min = 1, max = Passes::MAX))] u32),
}

/// Generated media.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TestSource {
    /// What is generated.
    test: TestMedia,
    /// Which of its streams.
    stream: Stream,
    /// How long it lasts, above 0; left out, the generator decides.
    duration: Option<Duration>,
}

/// Bytes that the application hands over; its units keep their boundaries.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RawSource {
    /// Always true.
    raw: True,
}

/// One module of a graph: its name, or a table of its name and its parameters.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Module")]
enum ModuleUse {
    Name(Name),
    Table(ModuleTable),
}

/// A name: a letter or a digit first, 64 characters at most.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Name(#[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]{0,63}$"))] String);

/// A text without control characters.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Title(
    #[schemars(
        length(max = MAX_TITLE_LEN),
        regex(pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")
    )]
    String,
);

/// The first or a numbered stream of a medium: "video", "audio:1".
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Stream(
    #[schemars(regex(
        pattern = r"^(video|audio)(:0*(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[0-9][0-9]?))?$"
    ))]
    String,
);

/// Always true.
struct True;

impl JsonSchema for True {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "True".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": true })
    }
}

/// A mean run of lost packets.
struct Burst;

impl JsonSchema for Burst {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Burst".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (low, high) = PathKey::Burst.range();
        let (low, high) = (low.div_ceil(1_000), high.div_ceil(1_000));
        json_schema!({ "type": "number", "minimum": low, "maximum": high })
    }
}

/// A module with parameters, whose names only the catalogue knows.
struct ModuleTable;

impl JsonSchema for ModuleTable {
    fn schema_name() -> Cow<'static, str> {
        "ModuleTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        named(generator, "module", "A module with parameters; docs/modules.md lists them.")
    }
}

/// An access module with parameters, whose names only the catalogue knows.
struct AccessTable;

impl JsonSchema for AccessTable {
    fn schema_name() -> Cow<'static, str> {
        "AccessTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = "An access module that the program has in its catalogue, with parameters.";
        named(generator, "access", text)
    }
}

/// A table of a name, under `key`, and of parameters.
fn named(generator: &mut SchemaGenerator, key: &str, description: &str) -> Schema {
    let name = generator.subschema_for::<Name>();
    json_schema!({
        "description": description,
        "type": "object",
        "properties": { key: name },
        "required": [key],
        "additionalProperties": {
            "description": "A parameter of the module.",
            "type": ["string", "number", "boolean"],
            "maxLength": MAX_PARAM_TEXT_LEN,
        },
        "propertyNames": name,
        "maxProperties": MAX_PARAMS.saturating_add(1),
    })
}
