//! The film that is broadcast: made by `ffmpeg`, and what of it comes out of a decoder.

use crate::rig::Rig;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the film takes on the wire, with its padding: an even rate.
pub const MBIT_PER_S: &str = "4.4";

/// Pictures a second, and from one that needs no other to the next.
const PICTURES: (u32, u32) = (25, 50);

/// Where it is.
pub fn of(rig: &Rig) -> PathBuf {
    rig.folder.join("film.ts")
}

/// Makes the film, where it is not there yet: at an even rate, so that time can be told by bytes.
///
/// # Errors
/// What `ffmpeg` says.
pub fn make(rig: &Rig) -> Result<(), String> {
    let film = of(rig);
    if film.is_file() {
        return Ok(());
    }
    let (rate, group) = PICTURES;
    let source = format!("testsrc2=size=640x360:rate={rate}");
    let (seconds, group) = (rig.seconds.to_string(), group.to_string());
    let args = [
        "-f",
        "lavfi",
        "-i",
        &source,
        "-t",
        &seconds,
        "-vf",
        "noise=alls=20:allf=t",
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-threads",
        "2",
        "-b:v",
        "4M",
        "-minrate",
        "4M",
        "-maxrate",
        "4M",
        "-bufsize",
        "1M",
        "-x264-params",
        "nal-hrd=cbr",
        "-g",
        &group,
        "-bf",
        "0",
        "-pix_fmt",
        "yuv420p",
        "-f",
        "mpegts",
        "-muxrate",
        "4.4M",
    ];
    ffmpeg(&args, Some(&film)).map(drop)
}

/// The MD5 of each picture of a file by its time.
///
/// # Errors
/// What `ffmpeg` says.
pub fn pictures(file: &Path) -> Result<BTreeMap<i64, String>, String> {
    let path = file.to_string_lossy();
    let args =
        ["-copyts", "-i", &*path, "-map", "0:v:0", "-vsync", "passthrough", "-f", "framemd5"];
    let text = ffmpeg(&[&args[..], &["-"]].concat(), None)?;
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let picture = |line: &str| {
        let mut columns = line.split(',').map(str::trim);
        let time = columns.nth(2)?.parse().ok()?;
        Some((time, columns.next_back()?.to_owned()))
    };
    Ok(rows.filter_map(picture).collect())
}

/// Bytes of a packet of a transport stream (ISO/IEC 13818-1).
const PACKET: usize = 188;

/// Packets that hold nothing, and are all alike.
const PADDING: [u8; 2] = [0x1F, 0xFF];

/// How many packets of what was sent, behind its first pictures, did not come, and how many there
/// are. Padding does not count; of others that are alike the first came.
///
/// # Errors
/// What the system says of a file.
pub fn missing(sent: &Path, came: &Path, pictures: usize) -> Result<(u64, u64), String> {
    let read =
        |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let (sent, came) = (read(sent)?, read(came).unwrap_or_default());
    let rate: f64 = MBIT_PER_S.parse().unwrap_or_default();
    let first = rate * 1e6 / 8.0 * pictures as f64 / f64::from(PICTURES.0);
    let is_full = |packet: &&[u8]| {
        let pid = packet.get(1..3).map(|bytes| [bytes[0] & PADDING[0], bytes[1]]);
        pid != Some(PADDING)
    };
    let packets: Vec<&[u8]> = sent.chunks(PACKET).filter(is_full).collect();
    let begins = sent.chunks(PACKET).take(first as usize / PACKET).filter(is_full).count();
    let (first, counted) = packets.split_at(begins);
    let (mut begun, mut missing) = (times(first), times(counted));
    for packet in came.chunks(PACKET) {
        // Of those that are alike the first came.
        let at_beginning = begun.get_mut(packet).filter(|left| **left > 0);
        if let Some(left) = at_beginning.or(missing.get_mut(packet)) {
            *left -= 1;
        }
    }
    let missing: i64 = missing.values().map(|it| *it.max(&0)).sum();
    Ok((missing.unsigned_abs(), counted.len() as u64))
}

/// How often each is there.
fn times<'a>(packets: &[&'a [u8]]) -> HashMap<&'a [u8], i64> {
    let mut times = HashMap::new();
    packets.iter().for_each(|packet| *times.entry(*packet).or_default() += 1);
    times
}

fn ffmpeg(args: &[&str], to: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new("ffmpeg");
    command.args(["-hide_banner", "-loglevel", "error", "-y"]).args(args).args(to);
    let output = command.output().map_err(|error| format!("ffmpeg: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("ffmpeg: {}", said.lines().last().unwrap_or_default()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    // Functions that tests share are not tests to clippy.
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn packets_that_did_not_come_are_counted_and_the_first_are_not() {
        let folder = std::env::temp_dir().join(format!("dacapo-film-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (sent, came) = (folder.join("sent"), folder.join("came"));
        let packet = |number: u64| {
            let mut packet = [0; PACKET];
            packet[8..16].copy_from_slice(&number.to_be_bytes());
            packet[1..3].copy_from_slice(if number == 0 { &PADDING } else { &[0; 2] });
            packet
        };
        // One picture is 117 packets of 188 bytes at 4.4 Mbit/s. 0 is padding; 7 and 9 are sent
        // again behind the beginning.
        let numbers: Vec<u64> = (1..=200).chain([0, 0, 0, 7, 9]).collect();
        let write = |path: &Path, numbers: &[u64]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| packet(*number)).collect();
            std::fs::write(path, bytes).unwrap();
        };
        write(&sent, &numbers);
        let kept = |number: &u64| ![1, 50, 150, 170].contains(number);
        let mut left: Vec<u64> = numbers.iter().copied().filter(kept).collect();
        // The 9 at the end, and two that are padding.
        left.truncate(left.len() - 1);
        left.retain(|number| *number != 0);
        write(&came, &left);
        assert_eq!(missing(&sent, &came, 1), Ok((3, 202 - 117)));
        assert_eq!(missing(&sent, &folder.join("none"), 0), Ok((202, 202)));
        assert!(missing(&folder.join("none"), &came, 0).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
