//! [`Burden`]: the load that loaded rounds have: on one processor a process that spins, on the
//! other one that copies memory, at the priority of everybody.

use super::process::{DIES_WITH_PARENT, Process};
use super::stop::Stop;
use serde_json::json;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// The command of this program that is one.
pub const COMMAND: &str = "burden";

/// What is copied: more than caches hold.
const COPY_LEN: usize = 32 << 20;

/// How long one may take to begin.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a burden does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Arithmetic in registers.
    Spin,
    /// From memory to memory.
    Copy,
}

/// The load of a round, until it is dropped.
pub struct Burden {
    _processes: Vec<Process>,
}

impl Burden {
    /// Puts one on each of two processors.
    ///
    /// # Errors
    /// They do not start.
    pub fn start(own: &Path, stop: &Stop) -> Result<Self, String> {
        let one = |processor: &str, kind: &str| {
            let own = own.to_string_lossy();
            let words = ["taskset", "-c", processor, &own, COMMAND, kind];
            let words = DIES_WITH_PARENT.into_iter().chain(words).map(str::to_owned);
            let mut process = Process::start(&words.collect::<Vec<_>>(), Path::new("/"), stop)?;
            process.line(PATIENCE, |line| line == "ready")?;
            Ok::<_, String>(process)
        };
        Ok(Self { _processes: vec![one("0", "spin")?, one("1", "copy")?] })
    }
}

/// Is a burden, for so long or without end; says how much it did.
pub fn carry(kind: Kind, seconds: Option<f64>) {
    println!("ready");
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let begun = Instant::now();
    let mut source = vec![1_u8; if kind == Kind::Copy { COPY_LEN } else { 0 }];
    let mut target = source.clone();
    let mut rounds: u64 = 0;
    while until.is_none_or(|until| Instant::now() < until) {
        match kind {
            Kind::Spin => rounds += u64::from(black_box(spin())),
            Kind::Copy => {
                target.copy_from_slice(black_box(&source));
                std::mem::swap(&mut source, &mut target);
                rounds += 1;
            }
        }
    }
    println!("{}", json!({ "rounds": rounds, "seconds": begun.elapsed().as_secs_f64() }));
}

/// A thousand steps that each need the one before.
fn spin() -> u32 {
    let mut state = black_box(1_u32);
    for _ in 0..1_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    black_box(state);
    1
}
