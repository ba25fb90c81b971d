//! [`Sinks`]: the access modules with which a participant answers an offer.
//!
//! ```text
//!   offer: video, audio (one group), raw back          save         play           count
//!      video  Port::Sink   --+                         NAME.avi     ffplay         figures
//!      audio  Port::Sink   --+
//!      back   Port::Source <- RawSender
//! ```

use super::budget::{Budget, Budgets};
use super::count::{CountSink, RawCountSink};
use super::names::Names;
use super::player::{PlayerHandle, find_player, play};
use super::progress::Progress;
use super::raw::RawSender;
use super::record::{FileKind, Part, RawRecordSink, is_still, record};
use dacapo_core::{Port, Sink};
use dacapo_media::{AudioFormat, Format, FourCc, SampleEncoding, VideoFormat};
use dacapo_wire::medium::{self, Medium};
use dacapo_wire::session::{Direction, FlowOffer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The largest unit that is taken, in bytes: more than any picture, less than memory.
pub const UNIT_LEN_MAX: u32 = 32 << 20;

/// Players at a time: what a peer offers must not fill the screen.
const PLAYERS_MAX: usize = 4;

/// What is to be done with what comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Save it.
    Save {
        /// The folder, which exists.
        dir: PathBuf,
        /// Write over files that exist.
        force: bool,
    },
    /// Show it in `ffplay`, or count when that is not there.
    Player,
    /// Count it.
    Count,
}

/// The access modules with which a participant answers an offer.
pub struct Sinks {
    /// One per flow of the offer, for `Core::answer`; none for flows that are declined.
    pub ports: Vec<Option<Port>>,
    /// The figures of the flows that are received, in the order of the offer.
    pub progress: Vec<Progress>,
    /// What feeds the flows that this end sends: the flow's name and its sender. A flow ends when
    /// its sender is dropped.
    pub senders: Vec<(String, RawSender)>,
    /// The players that were started.
    pub players: Vec<PlayerHandle>,
    /// What a user should know: flows that are declined and why, a player that is missing.
    pub notes: Vec<String>,
}

/// A flow of the offer that is taken as media.
struct Wish<'a> {
    index: usize,
    offer: &'a FlowOffer,
    format: Format,
    progress: Progress,
    budget: Budget,
}

impl Sinks {
    /// Access modules for the flows of an offer of the session with this name.
    ///
    /// # Errors
    /// With what to do, when a file or a player cannot be opened; nothing is left behind.
    pub fn for_offer(
        session_name: &str,
        offer: &[FlowOffer],
        wanted: &Wanted,
    ) -> Result<Self, String> {
        let mut sinks = Self {
            ports: offer.iter().map(|_| None).collect(),
            progress: Vec::new(),
            senders: Vec::new(),
            players: Vec::new(),
            notes: Vec::new(),
        };
        let mut names = Names::default();
        let (mut wishes, mut budgets) = (Vec::new(), Budgets::default());
        for (index, flow) in offer.iter().enumerate() {
            match (flow.direction, &flow.medium) {
                _ if flow.unit_len_max > UNIT_LEN_MAX => {
                    sinks.decline(flow, "its units may be larger than 32 MiB");
                }
                (Direction::ToCreator, Medium::Raw) => sinks.add_sender(index, flow),
                (Direction::ToCreator, _) => {
                    sinks.decline(flow, "only flows of bytes are sent to a creator");
                }
                (Direction::ToParticipant, Medium::Raw) => {
                    sinks.add_raw(index, flow, session_name, wanted, &mut names)?;
                }
                (Direction::ToParticipant, medium) => match format_of(medium) {
                    Ok(format) => {
                        let progress = Progress::new(&flow.name);
                        sinks.progress.push(progress.clone());
                        let budget = budgets.of(flow);
                        wishes.push(Wish { index, offer: flow, format, progress, budget });
                    }
                    Err(error) => sinks.decline(flow, &error.to_string()),
                },
            }
        }
        sinks.add_media(session_name, wanted, wishes, &mut names)?;
        Ok(sinks)
    }

    fn decline(&mut self, flow: &FlowOffer, why: &str) {
        self.notes.push(format!("{}: declined, {why}", flow.name));
    }

    fn put(&mut self, index: usize, sink: Box<dyn Sink>) {
        if let Some(port) = self.ports.get_mut(index) {
            *port = Some(Port::Sink(sink));
        }
    }

    fn add_sender(&mut self, index: usize, flow: &FlowOffer) {
        let (sender, source) = RawSender::pair();
        self.senders.push((flow.name.clone(), sender));
        if let Some(port) = self.ports.get_mut(index) {
            *port = Some(Port::Source(Box::new(source)));
        }
    }

    fn add_raw(
        &mut self,
        index: usize,
        flow: &FlowOffer,
        session_name: &str,
        wanted: &Wanted,
        names: &mut Names,
    ) -> Result<(), String> {
        let progress = Progress::new(&flow.name);
        self.progress.push(progress.clone());
        let Wanted::Save { dir, force } = wanted else {
            self.put(index, Box::new(RawCountSink::new(progress)));
            return Ok(());
        };
        let path = dir.join(names.name(session_name, Some(&flow.name), "bin"));
        self.put(index, Box::new(RawRecordSink::create(&path, *force, progress)?));
        Ok(())
    }

    fn add_media(
        &mut self,
        session_name: &str,
        wanted: &Wanted,
        wishes: Vec<Wish<'_>>,
        names: &mut Names,
    ) -> Result<(), String> {
        match wanted {
            Wanted::Save { dir, force } => self.save(session_name, dir, *force, wishes, names),
            Wanted::Player => match find_player(std::env::var_os("PATH").as_deref()) {
                Some(program) => self.play(session_name, &program, wishes),
                None => {
                    let note = "ffplay is not installed (it comes with ffmpeg): only counting";
                    self.notes.push(note.to_owned());
                    self.count(wishes);
                    Ok(())
                }
            },
            Wanted::Count => {
                self.count(wishes);
                Ok(())
            }
        }
    }

    fn save(
        &mut self,
        session_name: &str,
        dir: &Path,
        force: bool,
        wishes: Vec<Wish<'_>>,
        names: &mut Names,
    ) -> Result<(), String> {
        let groups = groups(wishes);
        let kinds: Vec<FileKind> = groups.iter().map(|group| kind(group)).collect();
        for group in groups {
            let Some(first) = group.first() else { continue };
            let kind = kind(&group);
            let is_only = kinds.iter().filter(|other| **other == kind).count() == 1;
            let (part, ending) = match has_pictures(&group) {
                true => ((!is_only).then(|| label(first)), kind.ending()),
                false => (Some(first.offer.name.as_str()), kind.ending()),
            };
            let path = dir.join(names.name(session_name, part, ending));
            let (places, parts) = split(group);
            for (index, sink) in places.into_iter().zip(record(&path, force, parts)?) {
                self.put(index, Box::new(sink));
            }
        }
        Ok(())
    }

    fn play(
        &mut self,
        session_name: &str,
        program: &Path,
        wishes: Vec<Wish<'_>>,
    ) -> Result<(), String> {
        for group in groups(wishes) {
            if self.players.len() >= PLAYERS_MAX {
                self.notes.push(format!("more than {PLAYERS_MAX} players: the rest is counted"));
                self.count(group);
                continue;
            }
            let (places, parts) = split(group);
            let (sinks, handle) = play(program, session_name, parts)?;
            self.players.push(handle);
            for (index, sink) in places.into_iter().zip(sinks) {
                self.put(index, Box::new(sink));
            }
        }
        Ok(())
    }

    fn count(&mut self, wishes: Vec<Wish<'_>>) {
        for wish in wishes {
            let (index, part) = (wish.index, wish.into_part());
            let sink = CountSink::of(part.progress, part.budget);
            let sink = match &part.format {
                Format::Audio(_) => sink.of_sound(),
                still if is_still(still) => sink.never_late(),
                Format::Video(_) => sink,
            };
            self.put(index, Box::new(sink));
        }
    }
}

/// The places of flows in the offer, and what they are to sinks.
fn split(group: Vec<Wish<'_>>) -> (Vec<usize>, Vec<Part>) {
    group.into_iter().map(|wish| (wish.index, wish.into_part())).unzip()
}

impl Wish<'_> {
    fn into_part(self) -> Part {
        Part { format: self.format, progress: self.progress, budget: self.budget }
    }
}

fn has_pictures(group: &[Wish<'_>]) -> bool {
    group.iter().any(|wish| matches!(wish.format, Format::Video(_)))
}

fn kind(group: &[Wish<'_>]) -> FileKind {
    let formats: Vec<_> = group.iter().map(|wish| wish.format.clone()).collect();
    FileKind::of(&formats)
}

fn label<'a>(wish: &Wish<'a>) -> &'a str {
    if wish.offer.group.is_empty() { &wish.offer.name } else { &wish.offer.group }
}

/// The flows that belong into one file or player: those of a group with pictures; all others alone.
fn groups(wishes: Vec<Wish<'_>>) -> Vec<Vec<Wish<'_>>> {
    let mut named: BTreeMap<&str, Vec<Wish<'_>>> = BTreeMap::new();
    let mut groups = Vec::new();
    for wish in wishes {
        if wish.offer.group.is_empty() {
            groups.push(vec![wish]);
        } else {
            named.entry(wish.offer.group.as_str()).or_default().push(wish);
        }
    }
    for group in named.into_values() {
        if has_pictures(&group) {
            groups.push(group);
        } else {
            groups.extend(group.into_iter().map(|wish| vec![wish]));
        }
    }
    groups
}

/// What a flow carries, as a format that a file or a player can have.
///
/// # Errors
/// What is out of its bounds.
pub fn format_of(medium: &Medium) -> Result<Format, dacapo_media::FormatError> {
    let format = match *medium {
        Medium::Raw => {
            return Err(dacapo_media::FormatError::Codec { name: "none, just bytes".to_owned() });
        }
        Medium::Video { fourcc, width, height, rate, scale } => {
            let fourcc = FourCc(fourcc);
            Format::Video(VideoFormat { fourcc, ..VideoFormat::new(width, height, rate, scale) })
        }
        Medium::Audio { encoding, channels, rate_hz, channel_mask, valid_bits } => {
            let encoding = encoding_of(encoding);
            Format::Audio(AudioFormat { encoding, channels, rate_hz, channel_mask, valid_bits })
        }
    };
    format.check().map(|()| format)
}

fn encoding_of(encoding: medium::SampleEncoding) -> SampleEncoding {
    match encoding {
        medium::SampleEncoding::U8 => SampleEncoding::U8,
        medium::SampleEncoding::S16 => SampleEncoding::S16,
        medium::SampleEncoding::S24 => SampleEncoding::S24,
        medium::SampleEncoding::S32 => SampleEncoding::S32,
        medium::SampleEncoding::F32 => SampleEncoding::F32,
        medium::SampleEncoding::F64 => SampleEncoding::F64,
        medium::SampleEncoding::MuLaw => SampleEncoding::MuLaw,
        medium::SampleEncoding::ALaw => SampleEncoding::ALaw,
    }
}

/// A format as it is told to peers.
#[must_use]
pub fn medium_of(format: &Format) -> Medium {
    match format {
        Format::Video(video) => Medium::Video {
            fourcc: video.fourcc.0,
            width: video.width,
            height: video.height,
            rate: video.rate,
            scale: video.scale,
        },
        Format::Audio(audio) => Medium::Audio {
            encoding: match audio.encoding {
                SampleEncoding::U8 => medium::SampleEncoding::U8,
                SampleEncoding::S16 => medium::SampleEncoding::S16,
                SampleEncoding::S24 => medium::SampleEncoding::S24,
                SampleEncoding::S32 => medium::SampleEncoding::S32,
                SampleEncoding::F32 => medium::SampleEncoding::F32,
                SampleEncoding::F64 => medium::SampleEncoding::F64,
                SampleEncoding::MuLaw => medium::SampleEncoding::MuLaw,
                SampleEncoding::ALaw => medium::SampleEncoding::ALaw,
            },
            channels: audio.channels,
            rate_hz: audio.rate_hz,
            channel_mask: audio.channel_mask,
            valid_bits: audio.valid_bits,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, group: &str, medium: Medium) -> FlowOffer {
        FlowOffer { name: name.into(), group: group.into(), medium, ..FlowOffer::default() }
    }

    fn video() -> Medium {
        medium_of(&Format::Video(VideoFormat::new(64, 48, 25, 1)))
    }

    fn audio() -> Medium {
        medium_of(&Format::Audio(AudioFormat::new(SampleEncoding::S24, 2, 48_000)))
    }

    #[test]
    fn formats_survive_the_way_to_the_peer() {
        for encoding in SampleEncoding::ALL {
            let mut audio = AudioFormat::new(encoding, 6, 44_100);
            audio.valid_bits = 7;
            let format = Format::Audio(audio);
            assert_eq!(format_of(&medium_of(&format)), Ok(format));
        }
        let format = Format::Video(VideoFormat::new(640, 360, 30_000, 1_001));
        assert_eq!(format_of(&medium_of(&format)), Ok(format));
    }

    #[test]
    fn groups_with_pictures_share_a_file_and_everything_else_has_its_own() {
        let dir = std::env::temp_dir().join(format!("dacapo-sinks-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let back = FlowOffer { direction: Direction::ToCreator, ..flow("back", "", Medium::Raw) };
        let mulaw = AudioFormat::new(SampleEncoding::MuLaw, 1, 8_000);
        let offer = [
            flow("video", "g", video()),
            flow("audio", "g", audio()),
            flow("talk", "", audio()),
            flow("bytes", "", Medium::Raw),
            flow("photo", "", medium_of(&Format::Video(VideoFormat::still(64, 48)))),
            flow("line", "", medium_of(&Format::Audio(mulaw))),
            back,
        ];
        let wanted = Wanted::Save { dir: dir.clone(), force: false };
        let sinks = Sinks::for_offer("show", &offer, &wanted).unwrap();
        let names: Vec<_> = sinks.progress.iter().filter_map(|it| it.snapshot().saved).collect();
        let names: Vec<_> =
            names.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        let media = ["show.avi", "show.avi", "show-talk.wav"];
        let others = ["show-bytes.bin", "show.jpg", "show-line.au"];
        assert_eq!(names, [media, others].concat());
        assert!(matches!(sinks.ports.last(), Some(Some(Port::Source(_)))));
        assert_eq!(sinks.senders[0].0, "back");
        drop(sinks);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing came");
        std::fs::write(dir.join("show-bytes.bin"), b"mine").unwrap();
        assert!(Sinks::for_offer("show", &offer, &wanted).err().unwrap().contains("exists"));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing is left behind");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn flows_that_cannot_be_taken_are_declined_alone() {
        let Medium::Video { width, height, rate, .. } = video() else { panic!("no video") };
        let odd = Medium::Video { fourcc: *b"H264", width, height, rate, scale: 1 };
        let zero = Medium::Video { fourcc: *b"MJPG", width, height, rate, scale: 0 };
        let back = FlowOffer { direction: Direction::ToCreator, ..flow("back", "", audio()) };
        let large = FlowOffer { unit_len_max: u32::MAX, ..flow("large", "", video()) };
        let offer = [flow("a", "", odd), flow("b", "", zero), back, large, flow("c", "", video())];
        let sinks = Sinks::for_offer("show", &offer, &Wanted::Count).unwrap();
        let taken: Vec<_> = sinks.ports.iter().map(Option::is_some).collect();
        assert_eq!(taken, [false, false, false, false, true]);
        assert_eq!((sinks.notes.len(), sinks.progress.len()), (4, 1));
        assert!(sinks.notes[0].contains("H.264"), "{:?}", sinks.notes);
    }
}
