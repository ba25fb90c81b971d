//! `sizes`: how goodput and cost go with the length of what is sent at once.

use crate::experiment::{Experiment, Point, Row, Sample, Site, Spec, figures};
use crate::peers::{self, Dacapo, Listed, Measure, Order, Peer, Wait, Which};
use crate::rig::Rig;

/// The experiment.
pub struct Sizes;

static TCP: Listed = Listed { program: "peer-plain", kind: "tcp" };
static ZMQ: Listed = Listed { program: "peer-zmq", kind: "tcp" };
static ZENOH: Listed = Listed { program: "peer-zenoh", kind: "tcp" };
static OURS_TCP: Dacapo = Dacapo { which: Which::Now, options: &["--transport", "tcp"] };
static OURS_UDP: Dacapo =
    Dacapo { which: Which::Now, options: &["--transport", "udp", "--graph", "segment,sequence"] };

/// Each at every size: its name, what it is, the program, whether nothing may be lost.
static ROWS: [(&str, &str, &dyn Peer, bool); 5] = [
    ("tcp", "kernel TCP, one write", &TCP, true),
    ("ours-tcp", "dacapo over tcp, a unit", &OURS_TCP, true),
    ("ours-udp", "dacapo udp {sequence, segment}, a unit", &OURS_UDP, false),
    ("zmq", "ZeroMQ over tcp, a message", &ZMQ, true),
    ("zenoh", "Zenoh over tcp, a message", &ZENOH, true),
];

/// In bytes: a command, a packet of sound, a datagram, a train, a picture.
const SIZES: [usize; 5] = [64, 512, 4_096, 32_768, 1 << 20];

const FIGURES: [(&str, &str, bool, bool); 3] = [
    ("gbit_per_s", "Gbit/s", true, true),
    ("cpu_s_per_gb", "CPU s/GB", false, true),
    ("loss_percent", "lost %", false, false),
];

impl Experiment for Sizes {
    fn id(&self) -> &'static str {
        "sizes"
    }

    fn what(&self) -> &'static str {
        "goodput and processor time by the length of what is sent at once, 64 B to 1 MiB"
    }

    fn site(&self) -> Site {
        Site::Veth
    }

    fn spec(&self) -> Spec {
        let row = |size: usize, name: &str, what: &str| Row {
            name: format!("{name}-{size}"),
            what: what.to_owned(),
            group: group(size),
            control: Some(format!("tcp-{size}")),
            point: Some(Point {
                curve: name.to_owned(),
                x: size as f64,
                axis: "bytes sent at once".to_owned(),
            }),
        };
        let rows = SIZES.iter().flat_map(|&size| ROWS.iter().map(move |it| row(size, it.0, it.1)));
        let groups = SIZES.map(group);
        Spec {
            what: self.what().to_owned(),
            rows: rows.collect(),
            figures: figures(&FIGURES, &groups.each_ref().map(String::as_str)),
            controls: vec![("tcp-32768".to_owned(), "gbit_per_s".to_owned())],
            rounds: 5,
            loaded_rounds: 0,
            seconds: 1.0,
            ..Spec::default()
        }
    }

    fn missing(&self, row: &Row, rig: &Rig) -> Option<String> {
        find(row).ok()?.0.missing(rig)
    }

    fn version(&self, row: &Row, rig: &Rig) -> Option<String> {
        find(row).ok()?.0.version(rig)
    }

    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String> {
        let (peer, order) = find(row)?;
        peers::run(peer, &order, rig)
    }
}

fn group(size: usize) -> String {
    format!("{size} B")
}

/// What a row runs.
fn find(row: &Row) -> Result<(&'static dyn Peer, Order), String> {
    let parts = row.name.rsplit_once('-');
    let (name, size) = parts.ok_or("no such row")?;
    let (.., peer, is_reliable) = ROWS.iter().find(|it| it.0 == name).ok_or("no such row")?;
    let size = size.parse().map_err(|_| "no such size")?;
    let order =
        Order { measure: Measure::Bulk, size, wait: Wait::Block, is_reliable: *is_reliable };
    Ok((*peer, order))
}
