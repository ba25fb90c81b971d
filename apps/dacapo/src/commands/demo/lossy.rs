//! A demo over a link: what can be said of a transfer from which things are missing.
//!
//! ```text
//!   sender's ledger == receiver's ledger        what became of every unit, in the words of both
//!   source.avi      ~= received/demo.avi        each picture, each sample: as sent, stood in for
//!                                               (repeated, silent), or ALTERED
//! ```
//!
//! That something is missing and no ledger says so, or that something arrived altered, is a
//! mismatch.

use super::super::link::LinkAccount;
use super::super::play::Played;
use super::server_failed;
use crate::account::Account;
use crate::exit::{Exit, Failure};
use crate::output::{self, Cell, Ink, Table, line};
use dacapo::emulator::{LinkConfig, Loss};
use dacapo::media::{FileInput, Format, avi};
use serde_json::Value;
use std::path::Path;

/// Bytes of sound that are compared at once.
const PIECE_LEN: usize = 1 << 18;

/// The columns of an account that both ends must agree on.
const COLUMNS: [&str; 6] =
    ["units_sent", "units_delivered", "units_late", "units_lost", "units_dropped", "units_unknown"];

/// What was found.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Both ends have the same account of every flow.
    agree: bool,
    /// Pictures and samples that are not as they were sent.
    altered: u64,
    /// Something of every stream arrived.
    is_there: bool,
}

/// How many packets a second the demo's video has.
const PACKETS_PER_S: f64 = 375.0;

/// What a protocol is to assume of a network that is this link, as `--path` has it.
pub fn path_of(link: &LinkConfig) -> String {
    let reach = link.jitter_shape.reach(link.jitter);
    let gone = |share: f64| 1.0 - share;
    let corrupted = link.corrupt + link.corrupt_undetected;
    let loss = gone(gone(link.loss.mean_loss()) * gone(corrupted));
    let mut text = format!(
        "loopback,delay={}ns,jitter={}ns,loss={:.6}",
        link.delay.saturating_sub(reach).as_nanos() + 50_000,
        reach.as_nanos() * 2 + 50_000,
        loss.clamp(0.0, 1.0),
    );
    if let Some(burst) = link.loss.mean_burst_len().or_else(|| burst_in_time(&link.loss)) {
        text += &format!(",burst={:.3}", burst.clamp(1.0, 1_000.0));
    }
    let of_trace = || link.trace.as_ref().map(|trace| trace.trace().mean_bits_per_s());
    if let Some(rate) = link.rate_bits_per_s.or_else(of_trace) {
        text += &format!(",rate={rate}bit/s");
    }
    text
}

/// How many packets of the demo a burst in time takes on average.
fn burst_in_time(loss: &Loss) -> Option<f64> {
    let Loss::Timed { mean, .. } = loss else { return None };
    Some(mean.as_secs_f64() * PACKETS_PER_S)
}

/// Compares the accounts of both ends, and what arrived with what was sent.
pub fn compare(source: &Path, played: &Played, served: &[Value]) -> Result<Outcome, Failure> {
    line("\nThe accounts of both ends, in units:");
    let agree = compare_accounts(&played.accounts, served);
    line("\nThe files (what is missing is stood in for: the picture before it again, or silence):");
    let mut table =
        Table::new(&["stream", "sent", "= as sent", "+ stood in for", "+ altered", "+ not there"]);
    let (mut altered, mut is_there) = (0, true);
    for mut stream in streams(source, played.first_saved().as_deref())? {
        stream.missing = stream.sent.saturating_sub(stream.equal + stream.filled + stream.altered);
        is_there &= stream.equal > 0;
        altered += stream.altered;
        let ink = if stream.altered == 0 { Ink::Good } else { Ink::Bad };
        table.row(vec![
            stream.kind.into(),
            stream.sent.into(),
            stream.equal.into(),
            stream.filled.into(),
            Cell::new(stream.altered.to_string(), ink),
            stream.missing.into(),
        ]);
    }
    table.print();
    Ok(Outcome { agree, altered, is_there })
}

fn compare_accounts(accounts: &[Account], served: &[Value]) -> bool {
    let mut heading = vec!["flow", "end"];
    heading.extend(["sent", "= delivered", "+ late", "+ lost", "+ dropped", "+ unknown", ""]);
    let mut table = Table::new(&heading);
    let mut all_agree = !accounts.is_empty();
    let mut accounts: Vec<&Account> = accounts.iter().collect();
    accounts.sort_by_key(|account| account.place);
    for account in accounts {
        let here = account.to_json();
        let there = served.iter().find(|it| it["flow"] == here["flow"]);
        let agree = there.is_some_and(|there| COLUMNS.iter().all(|key| there[key] == here[key]));
        all_agree &= agree;
        let (word, ink) = if agree { ("agree", Ink::Good) } else { ("DISAGREE", Ink::Bad) };
        let cells = |end: &str, json: Option<&Value>| {
            let figure = |key: &&str| json.map_or(Value::Null, |it| it[*key].clone());
            let text = COLUMNS.iter().map(figure).map(|it| it.to_string().replace("null", "-"));
            let mut row: Vec<Cell> = vec![account.flow.as_str().into(), end.into()];
            row.extend(text.map(Cell::from));
            row
        };
        table.row(cells("sender", there));
        let mut last = cells("receiver", Some(&here));
        last.push(Cell::new(word, ink));
        table.row(last);
    }
    table.print();
    all_agree
}

/// How a stream arrived, in pictures or samples.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    kind: &'static str,
    sent: u64,
    equal: u64,
    filled: u64,
    altered: u64,
    missing: u64,
}

fn streams(source: &Path, received: Option<&Path>) -> Result<Vec<Arrived>, Failure> {
    let open = |path: &Path| {
        let failed = |text: String| Failure::new(Exit::Invalid, "demo: compare", text);
        let file = std::fs::File::open(path).and_then(FileInput::new);
        let input = file.map_err(|error| failed(format!("{}: {error}", path.display())))?;
        avi::Reader::open(input).map_err(|error| failed(format!("{}: {error}", path.display())))
    };
    let mut sent = open(source)?;
    let mut got = received.map(open).transpose()?;
    let mut all = Vec::new();
    let formats: Vec<_> = sent.streams().iter().map(|stream| stream.format.clone()).collect();
    for (stream, format) in formats.into_iter().enumerate() {
        let arrived = match format {
            Some(Format::Video(_)) => pictures(&mut sent, stream, got.as_mut()),
            Some(Format::Audio(audio)) => {
                let block = usize::try_from(audio.block_len()).unwrap_or(1).max(1);
                sound(&mut sent, stream, got.as_mut(), block, audio.encoding.silence())
            }
            None => continue,
        };
        all.push(arrived.map_err(|error| Failure::run_time("demo: compare", error))?);
    }
    Ok(all)
}

type Reader = avi::Reader<FileInput>;

/// Picture n of the one file is picture n of the other, or empty there: the one before again.
fn pictures(
    sent: &mut Reader,
    stream: usize,
    got: Option<&mut Reader>,
) -> Result<Arrived, avi::AviError> {
    let mut arrived =
        Arrived { kind: "video", sent: sent.video_count(stream), ..Arrived::default() };
    let Some((got, place)) = got.and_then(|got| got.first_video().map(|place| (got, place))) else {
        return Ok(arrived);
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for index in 0..got.video_count(place) {
        got.video_frame(place, index, &mut after)?;
        before.clear();
        if index < arrived.sent {
            sent.video_frame(stream, index, &mut before)?;
        }
        match after.is_empty() {
            true if !before.is_empty() => arrived.filled += 1,
            _ if after == before => arrived.equal += 1,
            _ => arrived.altered += 1,
        }
    }
    Ok(arrived)
}

/// Sample n of the one file is sample n of the other, or silence there.
fn sound(
    sent: &mut Reader,
    stream: usize,
    got: Option<&mut Reader>,
    block: usize,
    silence: u8,
) -> Result<Arrived, avi::AviError> {
    let len = sent.audio_len(stream);
    let mut arrived = Arrived { kind: "audio", sent: len / block as u64, ..Arrived::default() };
    let Some((got, place)) = got.and_then(|got| got.first_audio().map(|place| (got, place))) else {
        return Ok(arrived);
    };
    let (mut before, mut after, mut from) = (Vec::new(), Vec::new(), 0);
    let piece = PIECE_LEN / block * block;
    loop {
        got.audio_bytes(place, from, piece, &mut after)?;
        sent.audio_bytes(stream, from, piece, &mut before)?;
        if after.is_empty() {
            return Ok(arrived);
        }
        from += after.len() as u64;
        for (at, sample) in after.chunks(block).enumerate() {
            let original = before.get(at * block..).and_then(|rest| rest.get(..sample.len()));
            match original {
                Some(original) if original == sample => arrived.equal += 1,
                Some(_) if sample.iter().all(|byte| *byte == silence) => arrived.filled += 1,
                _ => arrived.altered += 1,
            }
        }
    }
}

/// How the demo ends.
pub fn verdict(played: &Played, served: Option<i32>, outcome: Outcome, link: &LinkAccount) -> Exit {
    let exit = played.exit();
    if exit != Exit::Success {
        return exit;
    }
    if !matches!(served, Some(0 | 6)) {
        return server_failed(served);
    }
    let is_right = served == Some(0) && link.is_right() && outcome.agree;
    if !is_right || outcome.altered > 0 || !outcome.is_there {
        let text =
            "an account is wrong, or what arrived is not what was sent; see the tables above";
        output::note(format_args!("dacapo: demo: {text}"));
        return Exit::Mismatch;
    }
    line(format_args!("\n{}", summary(&played.accounts)));
    Exit::Success
}

/// Where all units of all flows went.
fn summary(accounts: &[Account]) -> String {
    let sum = |pick: fn(&Account) -> u64| accounts.iter().map(pick).sum::<u64>();
    let ends = [
        ("delivered", sum(|it| it.ledger.delivered)),
        ("late", sum(|it| it.ledger.late)),
        ("lost", sum(|it| it.ledger.lost)),
        ("dropped", sum(|it| it.ledger.dropped_count())),
    ];
    let ends = ends.iter().filter(|(_, count)| *count > 0);
    let ends: Vec<String> = ends.map(|(name, count)| format!("{count} {name}")).collect();
    let (sent, ends) = (sum(|it| it.ledger.sent), ends.join(" + "));
    let account = format!("Every unit is accounted for, at both ends: {sent} sent = {ends}");
    account + "; what arrived is as it was sent."
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo::Ledger;
    use dacapo::attributes::PathAssumption;
    use dacapo::media::TestMovie;
    use serde_json::json;
    use std::io::Cursor;
    use std::time::Duration;

    #[test]
    fn what_arrived_altered_is_told_from_what_is_missing() {
        let duration = Duration::from_millis(400);
        let movie = TestMovie { width: 64, height: 48, duration, ..TestMovie::default() };
        let file = movie.write_avi(Cursor::new(Vec::new())).unwrap().into_inner();
        let path = |name: &str| {
            std::env::temp_dir().join(format!("dacapo-lossy-{}-{name}", std::process::id()))
        };
        let (sent, got) = (path("sent.avi"), path("got.avi"));
        std::fs::write(&sent, &file).unwrap();
        let mut reader = avi::Reader::open(file).unwrap();
        let formats: Vec<_> = reader.streams().iter().filter_map(|it| it.format.clone()).collect();
        let mut writer = avi::Writer::create(Cursor::new(Vec::new()), &formats).unwrap();
        let mut bytes = Vec::new();
        // Of ten pictures one is altered, two are missing, one more at the end.
        for index in 0..9 {
            reader.video_frame(0, index, &mut bytes).unwrap();
            match index {
                4 => bytes[30] ^= 1,
                2 | 7 => bytes.clear(),
                _ => {}
            }
            writer.video_frame(0, &bytes).unwrap();
        }
        reader.audio_bytes(1, 0, 1 << 30, &mut bytes).unwrap();
        bytes[4_000..8_000].fill(0);
        bytes[8_001] ^= 1;
        writer.audio(1, &bytes).unwrap();
        std::fs::write(&got, writer.finish().unwrap().into_inner()).unwrap();
        let found = streams(&sent, Some(&got)).unwrap();
        let video = found[0];
        assert_eq!((video.sent, video.equal, video.filled, video.altered), (10, 6, 2, 1));
        let audio = found[1];
        assert_eq!((audio.sent, audio.altered), (19_200, 1));
        assert!((990..=1_000).contains(&audio.filled), "{audio:?}");
        assert_eq!(audio.equal + audio.filled + audio.altered, audio.sent);
        let nothing = streams(&sent, None).unwrap();
        assert!(nothing.iter().all(|stream| stream.equal + stream.altered == 0));
        for path in [sent, got] {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn two_ends_agree_only_in_every_column_of_every_flow() {
        let account = |flow: &str, lost| Account {
            place: 0,
            flow: flow.to_owned(),
            ledger: Ledger { sent: 10, delivered: 10 - lost, lost, ..Ledger::default() },
            hash: None,
            modules: Vec::new(),
        };
        let here = [account("video", 1), account("audio", 0)];
        let there: Vec<Value> = here.iter().map(Account::to_json).collect();
        assert!(compare_accounts(&here, &there));
        assert!(!compare_accounts(&here, &there[..1]), "an account is missing");
        assert!(!compare_accounts(&[], &[]), "nothing is no account");
        let mut other = there.clone();
        other[0]["units_lost"] = json!(2);
        assert!(!compare_accounts(&here, &other));
        assert_eq!(
            summary(&here),
            "Every unit is accounted for, at both ends: 20 sent = 19 delivered + 1 lost; what \
             arrived is as it was sent."
        );
    }

    #[test]
    fn what_is_assumed_is_what_the_link_does() {
        let link: LinkConfig =
            "loss=5%,burst=4,delay=20ms,jitter=5ms,rate=8Mbit/s".parse().unwrap();
        let path = PathAssumption::parse(&path_of(&link)).unwrap().path();
        assert_eq!((path.delay_ns, path.jitter_ns), (15_050_000, 10_050_000));
        assert_eq!((path.loss_ppb, path.burst_milli), (50_000_000, 4_000));
        assert_eq!(path.rate_bps, 8_000_000);
        for text in ["perfect", "loss=100%", "delay=60s,jitter=60s,shape=normal", "corrupt=30%"] {
            let link: LinkConfig = text.parse().unwrap();
            assert!(PathAssumption::parse(&path_of(&link)).is_ok(), "{}", path_of(&link));
        }
    }
}
