//! The targets, and the table of them.

pub mod address;
pub mod agreement;
pub mod au;
pub mod avi;
pub mod commands;
pub mod core_datagram;
pub mod core_dialer;
pub mod core_listener;
pub mod core_quic;
pub mod dacapo;
pub mod events;
pub mod link;
pub mod messages;
pub mod mjpeg;
pub mod modules;
pub mod playout;
pub mod qos;
pub mod safenet;
pub mod samples;
pub mod script;
pub mod security;
pub mod sequence;
pub mod shm;
pub mod stream;
pub mod wav;
pub mod way;
pub mod wire;
pub mod wire_headers;
pub mod xtp;
pub mod xtp_label;
pub mod xtp_net;
mod xtp_scripts;

use crate::Target;

/// Inputs that say few things, each of which takes long.
const BRIEF: usize = 512;

/// Inputs of a few kilobytes: enough for every bound but those of whole records.
const SHORT: usize = 4_096;

/// Inputs long enough for what grows with them to show.
const LONG: usize = 64 << 10;

macro_rules! targets {
    ($(
        $name:literal $module:ident::$run:ident seeds $seeds:ident up_to $len_max:ident
        $about:literal;
    )*) => {
        /// Every target, in the order in which they are run.
        pub const TARGETS: &[Target] = &[$(Target {
            name: $name,
            about: $about,
            run: $module::$run,
            seeds: $module::$seeds,
            len_max: $len_max,
        },)*];
    };
}

targets! {
    "wire_record" wire::record seeds record_seeds up_to SHORT
        "records on a stream, in pieces: the same messages however it is cut";
    "wire_message" wire::message seeds message_seeds up_to SHORT
        "the body of every control message: what decodes encodes and decodes to the same";
    "wire_graph" wire::graph seeds graph_seeds up_to SHORT
        "graphs: one graph has one encoding; legality; what is legal is built and carries a unit";
    "wire_datagram" wire_headers::datagram seeds datagram_seeds up_to SHORT
        "whom a datagram belongs to, the data header, probes";
    "wire_unit" wire_headers::unit seeds unit_seeds up_to SHORT
        "unit headers and marks, places that wrap against a model";
    "wire_headers" wire_headers::headers seeds headers_seeds up_to SHORT
        "sequence, segment and medium headers, numbers that wrap against a model";
    "wire_forms" wire_headers::forms seeds forms_seeds up_to SHORT
        "attributes and media as bytes";
    "wire_text" wire_headers::text seeds text_seeds up_to SHORT
        "texts made safe for terminals; names, as two crates check them";
    "stream_end" stream::end seeds end_seeds up_to SHORT
        "preface and records of a byte stream in any pieces, against a plain reading of the bytes";
    "stream_listener" stream::listener seeds listener_seeds up_to SHORT
        "streams that come to a listener: tokens, time, floods; what is kept is bounded";
    "shm_rings" shm::rings seeds rings_seeds up_to SHORT
        "rings of bytes in memory that the other end writes at any time, under a stream";
    "modules_up" modules::up seeds up_seeds up_to SHORT
        "hostile packets, trains, controls and time through every graph of modules";
    "modules_way" way::way seeds way_seeds up_to SHORT
        "a way that loses, repeats, reorders and alters between two ends: promises of the graph";
    "modules_sequence" sequence::window seeds window_seeds up_to SHORT
        "the window of `sequence` against a set";
    "qos_session_file" qos::session_file seeds session_file_seeds up_to SHORT
        "session files, strict and lenient; a protocol is chosen for what they ask";
    "qos_attributes" qos::attributes seeds attributes_seeds up_to SHORT
        "attributes and paths as people write them, and attributes as numbers from a peer";
    "qos_units" qos::units seeds units_seeds up_to SHORT
        "durations, rates, sizes, ratios, frequencies: what is printed reads back";
    "dacapo_words" dacapo::words seeds words_seeds up_to SHORT
        "addresses of sessions, commands to media and their answers";
    "address" address::address seeds address_seeds up_to BRIEF
        "addresses of hosts, sessions and groups in words, and of groups in records";
    "dacapo_messages" messages::inbox seeds inbox_seeds up_to SHORT
        "units of messages with heads that lie, in any order: bounds hold, what is given was sent";
    "link_config" link::config seeds config_seeds up_to SHORT
        "the link emulator's configuration: what is printed reads back to the same link";
    "link_trace" link::trace seeds trace_seeds up_to SHORT
        "traces of a link: what is read is printed as the same lines, and what is sent arrives";
    "media_avi" avi::avi seeds avi_seeds up_to LONG
        "AVI files: index, pictures, sound";
    "media_wav" wav::wav seeds wav_seeds up_to LONG
        "WAV files";
    "media_au" au::au seeds au_seeds up_to LONG
        "AU files";
    "media_mjpeg" mjpeg::mjpeg seeds mjpeg_seeds up_to LONG
        "Motion JPEG files and stills: index, pictures, sizes; sniffing of all kinds";
    "media_playout" playout::playout seeds playout_seeds up_to SHORT
        "the playout clock and hostile medium headers: nothing old, nothing twice, nothing early";
    "security_identity" security::identity seeds identity_seeds up_to SHORT
        "the identity file, and fingerprints";
    "core_datagram" core_datagram::datagram seeds datagram_seeds up_to LONG
        "datagrams of anybody at a core: answers at most three times as long, state bounded";
    "core_quic" core_quic::quic seeds quic_seeds up_to SHORT
        "any QUIC frames in sealed packets, before and after a peer is let in";
    "core_listener" core_listener::listener seeds listener_seeds up_to SHORT
        "a participant that says anything in any order to a creator; then nothing is left";
    "core_dialer" core_dialer::dialer seeds dialer_seeds up_to SHORT
        "a creator that says anything in any order to a participant; then nothing is left";
    "agreement" agreement::agreement seeds agreement_seeds up_to BRIEF
        "changes from here and from the peer: what is admitted keeps what was agreed";
    "commands" commands::commands seeds commands_seeds up_to BRIEF
        "commands and time in any order at two cores: done or refused; then nothing is left";
    "events" events::events seeds events_seeds up_to BRIEF
        "reports of the network that lie, between commands, at two cores; then nothing is left";
    "xtp_packet" xtp::packet seeds packet_seeds up_to SHORT
        "packets of XTP: what is read is written as the same bytes, but for reserved bits";
    "xtp_engine" xtp::engine seeds engine_seeds up_to SHORT
        "hostile packets, users and time at an engine of XTP: state, memory and answers bounded";
    "xtp_label" xtp_label::label seeds label_seeds up_to SHORT
        "datagrams of anybody at a listener over XTP: labels, prefaces, data; state bounded";
    "xtp_net_frames" xtp_net::frames seeds frame_seeds up_to SHORT
        "frames of an interface: packets of XTP are found, and taken apart where they were joined";
    "xtp_net_records" xtp_net::records seeds record_seeds up_to SHORT
        "preface and records of a connection, in any pieces: the same packets however it is cut";
    "safenet_service" safenet::service seeds service_seeds up_to SHORT
        "a message service and a peer that writes anything: bounds hold, each message ends once";
}
