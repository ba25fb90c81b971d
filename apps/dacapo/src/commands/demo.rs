//! `dacapo demo`: everything on one host: a movie is made, served, played and compared.
//!
//! ```text
//!   OUT/source.avi -> OUT/session.toml -> dacapo serve --port 0 --once     (a second process)
//!                                              | loopback
//!                                         play, in this process -> OUT/received/demo.avi
//!   inspect both: counts and a hash of each stream
//! ```
//!
//! With --link a relay stands before `play`, and what is compared are the accounts of both ends and
//! what did arrive (`demo/lossy.rs`).
//!
//! Invariant: the second process ends with this one, by its own number.

mod lossy;
mod server;

use super::inspect::inspect;
use super::link::Via;
use super::play::{self, OTHERS, Played, Wish};
use super::testmovie;
use crate::app::{App, AppEvent, interrupted};
use crate::cli::DemoArgs;
use crate::exit::{Exit, Failure};
use crate::folder;
use crate::output::{self, Cell, Ink, Table, line};
use crate::progress::Progress;
use dacapo::Join;
use dacapo::access::Wanted;
use dacapo::attributes::PathAssumption;
use dacapo::media::TestMovie;
use dacapo::plan::{Assumptions, Plan};
use dacapo::uri::Uri;
use server::{Server, Serving};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The server says that it is ready within this time.
const READY_MAX: Duration = Duration::from_secs(20);

/// After the session the server ends within this time.
const END_MAX: Duration = Duration::from_secs(5);

/// What the flows may send, per unit of speed: five times what the movie needs, in Mbit/s.
const BOUND_MBIT_PER_S: f64 = 20.0;

/// The files of a demo.
struct Files {
    source: PathBuf,
    session: PathBuf,
    received: PathBuf,
}

/// Runs the command.
pub fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let files = prepare(args)?;
    let mut progress = Progress::new(false);
    let movie = TestMovie { duration: args.duration, ..TestMovie::default() };
    testmovie::write(&files.source, &movie, false, true, &mut progress)?;
    let path = args.over.link.as_ref().map(lossy::path_of);
    write_session(&files.session, args.speed, path.as_deref())?;
    let mut app = App::open_with(Via::host(&args.over)?)?;
    let serving = Serving { session: &files.session, speed: args.speed, path: path.as_deref() };
    let mut server = Server::start(&app, &serving, OTHERS)?;
    let uri = wait_until_ready(&mut app, &mut server)?;
    let link = Via::open(&args.over, &uri.authority())?;
    link.iter().for_each(|link| line(format_args!("play  | {}", link.describe())));
    let wanted = Wanted::Save { dir: files.received.clone(), force: true };
    let via = link.as_ref().map(Via::addr);
    let wish =
        Wish { uri, via, wanted, is_silent: false, how: Join::new(), give_up: None, wait: None };
    let played = play::play(&mut app, wish, &mut progress, |app, progress, _| {
        if server.handle_ready(app) {
            progress.clear();
            server.relay();
        }
    })?;
    let served = wait_for_end(&mut app, &mut server)?;
    let link = link.map(Via::close);
    line("\nThe receiver's account:");
    played.print();
    played.note_errors();
    if let Some(signal) = played.signal {
        line("\nInterrupted: there is nothing to compare.");
        return Ok(Exit::Signal(signal));
    }
    if let Some(link) = link {
        link.print();
        let outcome = lossy::compare(&files.source, &played, server.accounts())?;
        conclude(&files, &played);
        return Ok(lossy::verdict(&played, served, outcome, &link));
    }
    let equal = compare(&files.source, &played)?;
    conclude(&files, &played);
    Ok(verdict(&played, served, equal))
}

fn prepare(args: &DemoArgs) -> Result<Files, Failure> {
    let files = Files {
        source: args.out.join("source.avi"),
        session: args.out.join("session.toml"),
        received: args.out.join("received"),
    };
    let what = format!("demo: {}", args.out.display());
    if args.keep && [&files.source, &files.session, &files.received].iter().any(|it| it.exists()) {
        let text = "an earlier demo is there; leave --keep out, or choose another --out";
        return Err(Failure::run_time(&what, text));
    }
    folder::make(&files.received).map_err(|text| Failure::run_time("demo", text))?;
    Ok(files)
}

/// Prints which protocol the flows get, and why.
fn explain(path: &Path, network: Option<&str>) -> Result<(), Failure> {
    let failed = |error: dacapo::attributes::TextError| Failure::run_time("demo: the link", error);
    let network = network.map(PathAssumption::parse).transpose().map_err(failed)?;
    let plan = Plan::load_for(path, &Assumptions { path: network, ..Assumptions::loopback() });
    let plan = plan.map_err(|errors| Failure { exit: Exit::Invalid, text: errors.to_string() })?;
    super::explain::print(&plan.explain());
    line("");
    Ok(())
}

fn write_session(path: &Path, speed: f64, network: Option<&str>) -> Result<(), Failure> {
    let bound = (BOUND_MBIT_PER_S * speed).ceil().max(1.0);
    let flow = |name: &str| {
        format!(
            "[[flow]]\n\
             name = \"{name}\"\n\
             from = \"creator\"\n\
             source = {{ file = \"source.avi\", stream = \"{name}\" }}\n\
             \n\
             [flow.attributes]\n\
             delay = \"200 ms\"\n\
             loss = {{ weight = 1 }}\n\
             order = \"ordered\"\n\
             integrity = \"checked\"\n\
             throughput = {{ max = \"{bound} Mbit/s\" }}\n"
        )
    };
    let text = format!(
        "# Written by `dacapo demo`. To serve it again: dacapo serve {}\n\n\
         [session]\nname = \"demo\"\ntitle = \"The demo's test movie\"\n\n{}\n{}",
        path.display(),
        flow("video"),
        flow("audio"),
    );
    let written = fs::write(path, &text);
    written.map_err(|error| Failure::run_time(&format!("write {}", path.display()), error))?;
    line(format_args!("{}:\n", path.display()));
    text.lines().for_each(|text| line(format_args!("  {text}")));
    line("");
    explain(path, network)
}

fn wait_until_ready(app: &mut App, server: &mut Server) -> Result<Uri, Failure> {
    let end = Instant::now() + READY_MAX;
    loop {
        if let Some(authority) = server.authority() {
            let uri = format!("dacapo://{authority}/demo");
            return uri.parse().map_err(|error| Failure::run_time("demo: the server", error));
        }
        let left = end.saturating_duration_since(Instant::now());
        if server.has_ended() || left.is_zero() {
            server.relay();
            let text = "it did not become ready; what it said stands above";
            return Err(Failure::run_time("demo: the server", text));
        }
        match app.next(left)? {
            Some(AppEvent::Ready(OTHERS)) => {
                server.handle_ready(app);
            }
            Some(AppEvent::Signal(signal)) => return Err(interrupted(signal)),
            _ => {}
        }
    }
}

/// Waits for the server's own end; its exit code tells what its account says.
fn wait_for_end(app: &mut App, server: &mut Server) -> Result<Option<i32>, Failure> {
    let end = Instant::now() + END_MAX;
    while !server.has_ended() && Instant::now() < end {
        if let Some(AppEvent::Ready(OTHERS)) = app.next(Duration::from_millis(50))? {
            server.handle_ready(app);
        }
    }
    server.relay();
    Ok(server.wait_until(end))
}

/// Compares the streams of what was sent with those of what arrived; true when all are equal.
fn compare(source: &Path, played: &Played) -> Result<bool, Failure> {
    let sent = inspect(source)?.streams;
    let mut arrived = Vec::new();
    for path in played.saved() {
        arrived.extend(inspect(path)?.streams);
    }
    line("\nThe files:");
    let mut table = Table::new(&["stream", "sent", "received", "SHA-256 sent", "received", ""]);
    let mut all_equal = true;
    for (place, stream) in sent.iter().enumerate() {
        let before = sent.iter().take(place).filter(|it| it.kind == stream.kind).count();
        let got = arrived.iter().filter(|it| it.kind == stream.kind).nth(before);
        let equal = got.is_some_and(|got| got.count == stream.count && got.sha256 == stream.sha256);
        all_equal &= equal;
        let (word, ink) = if equal { ("equal", Ink::Good) } else { ("DIFFERENT", Ink::Bad) };
        table.row(vec![
            stream.kind.as_str().into(),
            stream.count.into(),
            got.map_or_else(|| "-".to_owned(), |got| got.count.to_string()).into(),
            short(&stream.sha256).into(),
            got.map_or("-", |got| short(&got.sha256)).into(),
            Cell::new(word, ink),
        ]);
    }
    table.print();
    Ok(all_equal)
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

fn conclude(files: &Files, played: &Played) {
    let received = played.first_saved().unwrap_or_else(|| files.received.clone());
    line(format_args!(
        "\nsent      {}\nreceived  {}\n\
         open them with any player, such as: ffplay {}  (or vlc, mpv)",
        files.source.display(),
        received.display(),
        received.display(),
    ));
}

fn verdict(played: &Played, served: Option<i32>, equal: bool) -> Exit {
    let exit = played.exit();
    if exit != Exit::Success {
        return exit;
    }
    match served {
        Some(0) if equal => {
            line("\nEvery unit is accounted for, and every byte arrived.");
            Exit::Success
        }
        Some(0 | 6) => {
            output::note("dacapo: demo: what arrived is not what was sent; see the tables above");
            Exit::Mismatch
        }
        code => server_failed(code),
    }
}

fn server_failed(code: Option<i32>) -> Exit {
    let code = code.map_or_else(|| "by a signal".to_owned(), |it| format!("with code {it}"));
    output::note(format_args!("dacapo: demo: the server ended {code}"));
    Exit::Failure
}
