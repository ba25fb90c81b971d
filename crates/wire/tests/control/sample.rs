//! Random messages: legal ones, and ones that an application may try to send.

use dacapo_wire::attribute::AttributeForm;
use dacapo_wire::change::{Abort, Cannot, Done, Mode, Prepare, Ready, Request, Switched};
use dacapo_wire::graph::{GraphForm, NO_PARENT, NodeForm};
use dacapo_wire::hub::{Goodbye, Hello, List, Listing, Refuse, SessionEntry, Welcome};
use dacapo_wire::limits::{
    FURTHER_MAX, GRAPH_LEN_MAX, GROUP_LEN_MAX, HINTS_LEN_MAX, JOIN_TRANSPORTS_MAX, MODULES_MAX,
    NAME_LEN_MAX, PAYLOAD_LEN_MAX, TEXT_LEN_MAX, TITLE_LEN_MAX,
};
use dacapo_wire::medium::{Medium, SampleEncoding};
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::session::{
    Accept, Activate, Activated, Answer, Close, Closed, Control, ControlAnswer, Deactivate,
    Deactivated, Direction, End, FlowAnswer, FlowOffer, Join, Offer, Report,
};

use crate::random::Random;
use std::num::NonZeroU16;

/// What to make.
#[derive(Clone, Copy)]
pub struct Taste {
    /// How many elements a list has at most.
    pub list_max: usize,
    /// Whether to break rules that the types do not enforce, now and then.
    pub wild: bool,
    /// Whether every list and every optional field has something.
    pub full: bool,
}

impl Taste {
    pub const SMALL: Self = Self { list_max: 3, wild: false, full: false };
    pub const FULL: Self = Self { list_max: 3, wild: false, full: true };
    pub const LARGE: Self = Self { list_max: 20, wild: false, full: false };
    pub const WILD: Self = Self { list_max: 6, wild: true, full: false };
}

/// Makes messages.
pub struct Sample<'a> {
    pub random: &'a mut Random,
    pub taste: Taste,
}

impl Sample<'_> {
    pub fn any(&mut self) -> Message {
        let kind = self.random.pick(MessageKind::ALL);
        self.of(kind)
    }

    pub fn of(&mut self, kind: MessageKind) -> Message {
        match kind {
            MessageKind::Hello => self.hello().into(),
            MessageKind::Welcome => self.welcome().into(),
            MessageKind::Refuse => {
                let (code, text) = (self.random.u16(), self.text());
                Refuse { code, text, port: NonZeroU16::new(self.random.u16()) }.into()
            }
            MessageKind::List => List { request: self.random.u32() }.into(),
            MessageKind::Listing => self.listing().into(),
            MessageKind::Goodbye => Goodbye { code: self.random.u16(), text: self.text() }.into(),
            MessageKind::Join => self.join().into(),
            MessageKind::Offer => self.offer().into(),
            MessageKind::Answer => Answer { flows: self.flow_answers() }.into(),
            MessageKind::Accept => {
                Accept { transcript: self.random.array(), flows: self.flow_answers() }.into()
            }
            MessageKind::Activate => Activate { request: self.random.u32() }.into(),
            MessageKind::Activated => Activated { request: self.random.u32() }.into(),
            MessageKind::Deactivate => Deactivate { request: self.random.u32() }.into(),
            MessageKind::Deactivated => Deactivated { request: self.random.u32() }.into(),
            MessageKind::End => self.end().into(),
            MessageKind::Report => self.report().into(),
            MessageKind::Close => Close { code: self.random.u16(), text: self.text() }.into(),
            MessageKind::Closed => Closed.into(),
            MessageKind::Control => self.control().into(),
            MessageKind::ControlAnswer => self.control_answer().into(),
            MessageKind::Prepare => self.prepare().into(),
            MessageKind::Ready => self.ready().into(),
            MessageKind::Cannot => self.cannot().into(),
            MessageKind::Abort => {
                Abort { flow: self.random.u16(), epoch: self.random.u64() }.into()
            }
            MessageKind::Switched => self.switched().into(),
            MessageKind::Done => self.done().into(),
            MessageKind::Request => self.request().into(),
        }
    }

    fn hello(&mut self) -> Hello {
        Hello {
            version_min: self.random.u16(),
            version_max: self.random.u16(),
            instance: self.random.array(),
            boot: self.random.array(),
            time_namespace: self.random.u64(),
        }
    }

    fn welcome(&mut self) -> Welcome {
        Welcome {
            version: self.random.u16(),
            instance: self.random.array(),
            boot: self.random.array(),
            time_namespace: self.random.u64(),
            path_token: self.random.array(),
        }
    }

    fn listing(&mut self) -> Listing {
        Listing { request: self.random.u32(), sessions: self.list(300, Self::session_entry) }
    }

    fn session_entry(&mut self) -> SessionEntry {
        SessionEntry {
            name: self.name(),
            title: self.text_of(TITLE_LEN_MAX),
            flow_count: self.random.u16(),
            participants: self.random.u32(),
        }
    }

    fn join(&mut self) -> Join {
        let mut transports = self.list(20, |sample| sample.random.u16());
        if !self.taste.wild {
            transports.truncate(JOIN_TRANSPORTS_MAX);
        }
        Join {
            name: self.name(),
            modules: self.list(260, |sample| sample.random.u16()),
            transports,
            attributes: self.list(40, Self::attribute),
            live: self.taste.full || self.random.chance(2),
            follows: self.taste.full || self.random.chance(2),
        }
    }

    fn offer(&mut self) -> Offer {
        let mut further = self.list(5, Self::further);
        if !self.taste.wild {
            further.truncate(FURTHER_MAX);
        }
        Offer {
            session: self.random.u64(),
            title: self.text_of(TITLE_LEN_MAX),
            give_up_ms: self.taste.full.then(|| self.random.u32()),
            further,
            flows: self.list(70, Self::flow_offer),
        }
    }

    fn flow_offer(&mut self) -> FlowOffer {
        FlowOffer {
            flow: self.random.u16(),
            name: self.name(),
            direction: self.random.pick(&[Direction::ToParticipant, Direction::ToCreator]),
            medium: self.medium(),
            group: self.text_of(GROUP_LEN_MAX),
            graph: self.graph(),
            transport: self.random.u16(),
            multicast: (self.taste.full || self.random.chance(2)).then(|| self.group()),
            bound_bps: self.random.u64(),
            unit_len_max: self.random.u32(),
            datagram_len: self.random.u16(),
            playout_ns: self.random.u64(),
            playout_min_ns: self.taste.full.then(|| self.random.u64()),
            digest: self.taste.full || self.random.chance(2),
            attributes: self.list(260, Self::attribute),
        }
    }

    /// The address of a host;
    fn further(&mut self) -> std::net::SocketAddr {
        let [a, b, c, six @ ..] = self.random.array::<18>();
        let port = 1 + self.random.u16() % 0xFFFE;
        match self.random.chance(2) {
            true => ([10, a, b, c], port).into(),
            false => {
                let mut octets = [0x20; 16];
                octets[1..].copy_from_slice(&six);
                (octets, port).into()
            }
        }
    }

    fn group(&mut self) -> std::net::SocketAddr {
        let (four, six) = (self.random.array::<3>(), self.random.array::<15>());
        let ip = if self.random.chance(2) {
            std::net::IpAddr::from([239, four[0], four[1], four[2]])
        } else {
            let mut octets = [0xFF; 16];
            octets[1..].copy_from_slice(&six);
            std::net::IpAddr::from(octets)
        };
        std::net::SocketAddr::new(ip, self.random.u16())
    }

    fn medium(&mut self) -> Medium {
        match self.random.below(3) {
            0 => Medium::Raw,
            1 => Medium::Video {
                fourcc: self.random.array(),
                width: self.random.u32(),
                height: self.random.u32(),
                rate: self.random.u32(),
                scale: self.random.u32(),
            },
            _ => Medium::Audio {
                encoding: self.random.pick(&SampleEncoding::ALL),
                channels: self.random.u16(),
                rate_hz: self.random.u32(),
                channel_mask: self.random.u32(),
                valid_bits: self.random.u16(),
            },
        }
    }

    fn attribute(&mut self) -> AttributeForm {
        AttributeForm {
            key: self.random.u16(),
            min: self.random.chance(2).then(|| self.random.u64().cast_signed()),
            max: self.random.chance(2).then(|| self.random.u64().cast_signed()),
            weight: self.random.chance(2).then(|| self.random.u8()),
        }
    }

    /// Lines and trees, also of the greatest number of modules.
    pub fn graph(&mut self) -> GraphForm {
        let count = if self.breaks_a_rule() { 40 } else { MODULES_MAX };
        let is_line = self.random.chance(2);
        let mut left = GRAPH_LEN_MAX - 1 - 4 * MODULES_MAX;
        let mut nodes = Vec::new();
        for place in 0..self.random.len(count) {
            let above = if is_line { place.wrapping_sub(1) } else { self.random.below(place) };
            let parent = if place == 0 { NO_PARENT } else { above as u8 };
            let parent = if self.breaks_a_rule() { self.random.u8() } else { parent };
            let params = self.params(left / 10);
            left = left.saturating_sub(params.len() * 10);
            nodes.push(NodeForm { parent, module: self.random.u16(), params });
        }
        GraphForm { nodes }
    }

    fn params(&mut self, count_max: usize) -> Vec<(u16, u64)> {
        let count = if self.breaks_a_rule() { 60 } else { self.random.len(32).min(count_max) };
        let mut params: Vec<_> =
            (0..count).map(|_| (self.random.u16(), self.random.u64())).collect();
        if !self.breaks_a_rule() {
            params.sort_unstable();
            params.dedup_by_key(|(number, _)| *number);
        }
        params
    }

    fn flow_answers(&mut self) -> Vec<FlowAnswer> {
        self.list(70, |sample| {
            let reason = (sample.random.u16(), sample.text());
            FlowAnswer {
                flow: sample.random.u16(),
                accepted: if sample.random.chance(2) { Ok(()) } else { Err(reason) },
                label: sample.random.u32(),
                datagram_len: sample.random.u16(),
                stream_token: (sample.taste.full || sample.random.chance(2))
                    .then(|| sample.random.array()),
                base: (sample.taste.full || sample.random.chance(2)).then(|| sample.random.u64()),
                stream_port: (sample.taste.full || sample.random.chance(2))
                    .then(|| NonZeroU16::new(sample.random.u16().max(1)))
                    .flatten(),
            }
        })
    }

    fn end(&mut self) -> End {
        End {
            flow: self.random.u16(),
            epoch: self.random.u64(),
            units: self.random.u64(),
            bytes: self.random.u64(),
            hash: self.random.array(),
            code: self.random.u16(),
            text: self.text(),
        }
    }

    fn report(&mut self) -> Report {
        Report {
            flow: self.random.u16(),
            delivered: self.random.u64(),
            late: self.random.u64(),
            lost: self.random.u64(),
            dropped: self.list(260, |sample| (sample.random.u8(), sample.random.u64())),
            duplicates: self.random.u64(),
            unknown: self.random.u64(),
            bytes: self.random.u64(),
            hash: self.random.array(),
        }
    }

    fn control(&mut self) -> Control {
        Control {
            request: self.random.u32(),
            flow: self.random.u16(),
            epoch: self.random.u64(),
            module: self.random.u16(),
            payload: self.blob(PAYLOAD_LEN_MAX),
        }
    }

    fn control_answer(&mut self) -> ControlAnswer {
        ControlAnswer {
            request: self.random.u32(),
            code: self.random.u16(),
            payload: self.blob(PAYLOAD_LEN_MAX),
        }
    }

    fn prepare(&mut self) -> Prepare {
        Prepare {
            flow: self.random.u16(),
            epoch: self.random.u64(),
            label: self.random.u32(),
            mode: self.random.pick(&[Mode::Make, Mode::Break]),
            graph: self.graph(),
            transcript: self.random.array(),
            hints: self.blob(HINTS_LEN_MAX),
            transport: (self.taste.full || self.random.chance(2)).then(|| self.random.u16()),
        }
    }

    fn ready(&mut self) -> Ready {
        let has_position = self.taste.full || self.random.chance(2);
        Ready {
            flow: self.random.u16(),
            epoch: self.random.u64(),
            label: self.random.u32(),
            position: has_position.then(|| self.random.u64()),
        }
    }

    fn cannot(&mut self) -> Cannot {
        Cannot {
            flow: self.random.u16(),
            epoch: self.random.u64(),
            code: self.random.u16(),
            text: self.text(),
        }
    }

    fn switched(&mut self) -> Switched {
        let epoch = self.random.u64();
        Switched { flow: self.random.u16(), epoch, base: self.random.u64() }
    }

    fn done(&mut self) -> Done {
        Done {
            flow: self.random.u16(),
            epoch: self.random.u64(),
            delivered: self.random.u64(),
            lost: self.random.u64(),
        }
    }

    fn request(&mut self) -> Request {
        Request { flow: self.random.u16(), graph: self.graph(), text: self.text() }
    }

    fn text(&mut self) -> String {
        self.text_of(TEXT_LEN_MAX)
    }

    /// A text that is sent as it is, with characters of 1 to 4 bytes.
    fn text_of(&mut self, len_max: usize) -> String {
        let wild = self.breaks_a_rule();
        let len_max = if wild { len_max * 2 } else { self.random.len(len_max) };
        let mut text = String::new();
        loop {
            let character = self.random.pick(&['a', ' ', '~', 'é', 'Ж', '會', '\u{FFFD}', '🎥']);
            let wilder = self.random.pick(&['\x1B', '\n', '\u{9B}', '\u{202E}', 'x', '🎥']);
            let character = if wild { wilder } else { character };
            if text.len() + character.len_utf8() > len_max {
                return text;
            }
            text.push(character);
        }
    }

    fn name(&mut self) -> String {
        if self.breaks_a_rule() {
            return self.random.pick(&["", "A", "a b", "ä", "a\0", "..", "-x"]).to_owned();
        }
        let len = self.random.len(NAME_LEN_MAX).max(1);
        let first = char::from(self.random.pick(b"abcxyz0189"));
        let rest = (1..len).map(|_| char::from(self.random.pick(b"abcxyz0189._-")));
        std::iter::once(first).chain(rest).collect()
    }

    fn blob(&mut self, len_max: usize) -> Vec<u8> {
        let len = if self.breaks_a_rule() { len_max + 1 } else { self.random.len(len_max) };
        self.random.bytes(len)
    }

    fn list<T>(&mut self, beyond: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let wild = self.taste.wild && self.random.chance(40);
        let least = usize::from(self.taste.full);
        let list_max = self.taste.list_max;
        let count = if wild { beyond } else { self.random.len(list_max).max(least) };
        (0..count).map(|_| make(self)).collect()
    }

    fn breaks_a_rule(&mut self) -> bool {
        self.taste.wild && self.random.chance(60)
    }
}
