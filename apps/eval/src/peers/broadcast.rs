//! [`Broadcast`]: a film as an MPEG transport stream that is sent while it is shown, by dacapo or
//! by the programs of SRT and RIST; and how many of its pictures are not as they were.
//!
//! ```text
//!   film.ts -> pace -> dacapo send | SRT | RIST  ->  link -> the same -> out.ts
//!      |                                                                        |
//!      '-- ffmpeg: time and MD5 of each picture --> damaged: other, or none <---'
//! ```
//!
//! A picture is damaged when none of its time came, or one with other pixels: a decoder that
//! conceals what is missing does not make it whole.

use super::{Order, Peer, film, words};
use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};
use crate::run::machine;
use std::path::PathBuf;

/// So many pictures do not count: how long it takes to connect is another question.
const BEGINNING: usize = 100;

/// Who broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `dacapo send` and `recv`, which are told what the path is like.
    Dacapo,
    /// `srt-live-transmit`, which sends again what is lost.
    Srt,
    /// The same with parities, 10 packets and one, and what these cannot make good sent again.
    SrtFilter,
    /// `ristsender` and `ristreceiver`, main profile, to and from which it goes by UDP.
    Rist,
}

/// A film over a link.
pub struct Broadcast {
    /// Who.
    pub by: By,
    /// How long after it was given to the sender a packet is of use, in ms, beyond the way there.
    pub hold_ms: u32,
    /// The way there, in ms.
    pub delay_ms: u32,
    /// What the link loses, and in runs of how many packets on average.
    pub loss_percent: u32,
    pub run: u32,
}

impl Broadcast {
    /// What dacapo is told of the path.
    fn path(&self) -> String {
        let Self { delay_ms, loss_percent, run, .. } = self;
        format!(
            "internet,rate=20Mbit/s,delay={delay_ms}ms,jitter=1ms,loss={loss_percent}%,burst={run}"
        )
    }

    fn srt(&self, address: &str, is_listener: bool) -> String {
        let mode = if is_listener { "&mode=listener" } else { "" };
        let filter = match self.by {
            By::SrtFilter => "&packetfilter=fec,cols:10,rows:5,layout:staircase,arq:onreq",
            By::Dacapo | By::Srt | By::Rist => "",
        };
        // It counts from half a round trip, like us.
        format!("srt://{address}?latency={}{mode}{filter}", self.hold_ms)
    }
}

impl Peer for Broadcast {
    fn missing(&self, _: &Rig) -> Option<String> {
        let is_there = |program: &str| machine::output("which", &[program]).is_some();
        let lacks = |program: &str, package: &str| {
            (!is_there(program))
                .then(|| format!("{program} is not there: apt-get install {package}"))
        };
        let own = || match self.by {
            By::Dacapo => None,
            By::Srt | By::SrtFilter => lacks("srt-live-transmit", "srt-tools"),
            By::Rist => lacks("ristreceiver", "rist-tools"),
        };
        lacks("ffmpeg", "ffmpeg").or_else(own)
    }

    fn version(&self, rig: &Rig) -> Option<String> {
        let dacapo = rig.dacapo.to_string_lossy();
        match self.by {
            By::Dacapo => machine::output(&dacapo, &["--version"]),
            By::Srt | By::SrtFilter => machine::output("srt-live-transmit", &["-version"]),
            By::Rist => machine::output("dpkg-query", &["-W", "rist-tools"]),
        }
    }

    fn prepare(&self, rig: &Rig) -> Result<(), String> {
        film::make(rig)
    }

    fn pair(&self, _: &Order, address: &str, rig: &Rig) -> Pair {
        let (own, dacapo) = (rig.own.display(), rig.dacapo.display());
        let (film, out) = (film::of(rig), out(rig));
        let (film, out, rate) = (film.display(), out.display(), film::MBIT_PER_S);
        let pace = format!("{own} pace {film} --mbit-per-s {rate}");
        let (near, far) = match self.by {
            By::Dacapo => {
                let deadline = self.delay_ms + self.hold_ms;
                let ask = "throughput>=4.4Mbit/s, throughput<=5.5Mbit/s";
                let listen = address.split(':').next().unwrap_or_default();
                let port = address.rsplit(':').next().unwrap_or_default();
                let path = self.path();
                (
                    format!(
                        "{pace} | {dacapo} send {address} - --json --format mpegts --deadline \
                         {deadline}ms --ask '{ask}'"
                    ),
                    format!(
                        "exec {dacapo} recv --stdout --format mpegts --json --listen {listen} \
                         --port {port} --path '{path}' 2>&1 >{out}"
                    ),
                )
            }
            By::Srt | By::SrtFilter => {
                let (there, here) = (self.srt(address, false), self.srt(address, true));
                let live = "srt-live-transmit -a no -c 1316 -q";
                // It does not end with its input.
                let time = rig.seconds + 2.0;
                (
                    format!("{pace} | {live} -t:{time:.0} file://con '{there}' >&2; echo '{{}}'"),
                    format!("echo listening; exec {live} '{here}' file://con >{out}"),
                )
            }
            By::Rist => rist(self.hold_ms, &pace, &own.to_string(), address, &out.to_string(), rig),
        };
        let is_ready = |line: &str| line.contains("listening");
        let shell = |command: String| words(["sh", "-c", &command]);
        Pair { near: shell(near), far: shell(far), is_ready, is_near_alone: true }
    }

    fn sample(&self, _: &Order, reports: &Reports, rig: &Rig) -> Result<Sample, String> {
        let sent = film::pictures(&film::of(rig))?;
        let came = film::pictures(&out(rig)).unwrap_or_default();
        let sent: Vec<(i64, String)> = sent.into_iter().skip(BEGINNING).collect();
        let is_whole = |(time, hash): &&(i64, String)| came.get(time) == Some(hash);
        let damaged = sent.iter().filter(|picture| !is_whole(picture)).count();
        let (missing, packets) = film::missing(&film::of(rig), &out(rig), BEGINNING)?;
        let bytes = std::fs::metadata(film::of(rig)).map_or(0, |file| file.len());
        let mut sample = Sample::default()
            .with("pictures", sent.len() as f64)
            .with("damaged", damaged as f64)
            .with("damaged_percent", damaged as f64 * 100.0 / sent.len().max(1) as f64)
            .with("missing_percent", missing as f64 * 100.0 / packets.max(1) as f64)
            .with("cpu_s", reports.near_usage.cpu_s + reports.far_usage.cpu_s);
        if let Some(wire) = reports.wire_bytes {
            sample = sample.with("wire_to_film", wire as f64 / bytes.max(1) as f64);
        }
        Ok(sample)
    }
}

/// Both ends of RIST: it reads and writes datagrams, on ports of each end's own. Where a round trip
/// takes two thirds of what may be held, it repairs hardly anything, whatever is set: a shorter
/// reorder buffer, bounds of the round trip, no congestion control (of 350 pictures 235, 246 and
/// 232 were damaged at 100 and 150 ms; none with 400 ms).
fn rist(
    hold_ms: u32,
    pace: &str,
    own: &str,
    address: &str,
    out: &str,
    rig: &Rig,
) -> (String, String) {
    let quiet = "-S 0 -v 3";
    let to = format!("rist://{address}?buffer={hold_ms}");
    let at = format!("rist://@{address}?buffer={hold_ms}");
    // It does not end with its input, and shows no readiness.
    let time = rig.seconds + 4.0;
    let near = format!(
        "timeout {time:.0} ristsender {quiet} -i udp://@127.0.0.1:5004 -o '{to}' >&2 & sleep 1; \
         {pace} --to 127.0.0.1:5004; wait; echo '{{}}'"
    );
    let far = format!(
        "setpriv --pdeathsig KILL {own} collect 127.0.0.1:5006 >{out} & echo listening; \
         exec ristreceiver {quiet} -i '{at}' -o udp://127.0.0.1:5006 >&2"
    );
    (near, far)
}

fn out(rig: &Rig) -> PathBuf {
    rig.folder.join("out.ts")
}
