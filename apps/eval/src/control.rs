//! `dacapo bench control`: how long the control commands take, as the report of 1998 measured them.
//!
//! ```text
//!   this thread: a viewer     --command-->  another thread: serves a made movie from a file
//!     response time           <--answer--   time in the access module, time per picture
//! ```

use super::figures_1998::{ALL_COMMANDS, COMMANDS, PICTURE, PICTURE_AFTER_FIRST, Runs, Then};
use super::series::{Columns, Series};
use super::timed::{Measured, TimedPublisher};
use crate::app::interrupted;
use crate::cli::BenchControlArgs;
use crate::core_app::{App, AppEvent};
use crate::exit::{Exit, Failure};
use crate::folder;
use crate::output::{self, Table, line};
use crate::progress::Progress;
use dacapo::access::{Sinks, Wanted};
use dacapo::engine::{self, CoreEvent, Done, JoinParams, SessionId};
use dacapo::media::TestMovie;
use dacapo::offer::{FLOW_ALL, MODULE_ACCESS};
use dacapo::plan::{Assumptions, Plan};
use dacapo::{Host, MediaCommand};
use dacapo_base::Address;
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One round: every command of Tables 21 and 24 that is sent while a medium plays.
const ROUND: [MediaCommand; 14] = [
    MediaCommand::Init,
    MediaCommand::Fps(25_000),
    MediaCommand::Play,
    MediaCommand::Ff,
    MediaCommand::Rwd,
    MediaCommand::Play,
    MediaCommand::Stop,
    MediaCommand::Play,
    MediaCommand::Fr,
    MediaCommand::Stop,
    MediaCommand::Fwd,
    MediaCommand::Rwd,
    MediaCommand::Play,
    MediaCommand::Status,
];

const SESSION: &str = "bench";
const FAILED: &str = "bench control";

/// Between two commands the medium plays so long.
const PAUSE: Duration = Duration::from_millis(2);

/// Runs the command.
pub fn run(args: &BenchControlArgs) -> Result<Exit, Failure> {
    let dir = std::env::temp_dir().join(format!("dacapo-bench-{}", std::process::id()));
    let failed = |error: std::io::Error| Failure::run_time(FAILED, error);
    folder::make(&dir).map_err(|text| Failure::run_time(FAILED, text))?;
    let measured = Measured::default();
    let outcome = measure(args, &dir, &measured);
    let removed = std::fs::remove_dir_all(&dir);
    let response = outcome?;
    removed.map_err(failed)?;
    let rows = rows(&measured, &response);
    match args.json {
        true => output::json(&json!({ "rounds": args.rounds, "rows": json_of(&rows) })),
        false => print(&rows),
    }
    Ok(Exit::Success)
}

/// Serves and plays; the response times.
fn measure(args: &BenchControlArgs, dir: &Path, measured: &Measured) -> Result<Series, Failure> {
    let movie = TestMovie { duration: Duration::from_secs(60), ..TestMovie::default() };
    let mut progress = Progress::new(args.json);
    let file = dir.join("movie.avi");
    write(&file, &movie)?;
    let server = Server::start(dir, measured)?;
    let mut app = App::open()?;
    let viewed = view(&mut app, server.addr, args.rounds, &mut progress);
    let ended = server.end();
    progress.clear();
    let response = viewed?;
    ended.map(|()| response)
}

fn write(path: &Path, movie: &TestMovie) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::run_time(FAILED, error);
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let written = movie.write_avi(file).map_err(|error| Failure::run_time(FAILED, error))?;
    written.into_inner().map(drop).map_err(|error| failed(error.into_error()))
}

/// A host that serves the movie, in a thread of its own.
struct Server {
    addr: Address,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Server {
    fn start(dir: &Path, measured: &Measured) -> Result<Self, Failure> {
        let text = format!(
            "[session]\nname = \"{SESSION}\"\n[[flow]]\nname = \"video\"\nfrom = \"creator\"\n\
             source = {{ file = \"{}\", stream = \"video\" }}\n",
            dir.join("movie.avi").display()
        );
        let plan = Plan::parse(&text, "bench", &Assumptions::loopback());
        let plan = plan.map_err(|errors| Failure::run_time(FAILED, errors))?;
        let failed = |error: &dacapo::Error| Failure::core(FAILED, error);
        let mut host = Host::new().map_err(|error| failed(&error))?;
        let inner = plan.publisher(1.0);
        let publisher = Box::new(TimedPublisher { inner, measured: measured.clone() });
        host.reactor().core().publish(plan.spec(), publisher).map_err(|error| failed(&error))?;
        host.listen(&dacapo::host::loopback(0)).map_err(|error| failed(&error))?;
        let addr = host.listening().first().copied();
        let addr = addr.ok_or_else(|| Failure::run_time(FAILED, "no address"))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut tokens = Vec::new();
            while !over.load(Ordering::Acquire) {
                let turned = host.next_event(Duration::from_millis(50), &mut tokens);
                turned.map_err(|error| Failure::core(FAILED, &error))?;
            }
            Ok(())
        });
        Ok(Self { addr, is_over, thread })
    }

    fn end(self) -> Result<(), Failure> {
        self.is_over.store(true, Ordering::Release);
        let joined = self.thread.join();
        joined.unwrap_or_else(|_| Err(Failure::run_time(FAILED, "the serving thread panicked")))
    }
}

/// Plays, and sends the commands; how long each answer took.
fn view(
    app: &mut App,
    addr: Address,
    rounds: u32,
    progress: &mut Progress,
) -> Result<Series, Failure> {
    let peer = app.connect(&addr.to_string(), None, progress)?;
    let failed = |error: &dacapo::Error| Failure::core(FAILED, error);
    let now = app.reactor().now();
    let session = app
        .core()
        .handle_command(
            now,
            engine::Command::Join { peer, name: SESSION.into(), params: JoinParams::default() },
        )
        .and_then(Done::session);
    let session = session.map_err(|error| failed(&error))?;
    let offered = wait_for(app, |event| match event {
        CoreEvent::Offered { flows, .. } => Some(flows),
        _ => None,
    })?;
    let sinks = Sinks::for_offer(SESSION, &offered, &Wanted::Count);
    let sinks = sinks.map_err(|error| Failure::run_time(FAILED, error))?;
    let now = app.reactor().now();
    app.core().answer(now, session, sinks.ports).map_err(|error| failed(&error))?;
    wait_for(app, |event| matches!(event, CoreEvent::Ready { .. }).then_some(()))?;
    let now = app.reactor().now();
    app.core()
        .handle_command(now, engine::Command::Activate(session))
        .map_err(|error| failed(&error))?;
    wait_for(app, |event| matches!(event, CoreEvent::Active { .. }).then_some(()))?;
    let mut response = Series::default();
    for round in 0..rounds {
        for command in ROUND {
            response.push(ask(app, session, command)?);
            play_on(app, PAUSE)?;
        }
        if progress.is_due() {
            progress.show(&format!("round {} of {rounds}", round + 1));
        }
    }
    app.leave(peer);
    Ok(response)
}

/// Sends a command and waits for its answer: how long that took, in nanoseconds.
fn ask(app: &mut App, session: SessionId, command: MediaCommand) -> Result<u64, Failure> {
    let now = app.reactor().now();
    let asked = app
        .core()
        .handle_command(
            now,
            engine::Command::Control {
                session,
                flow: FLOW_ALL,
                module: MODULE_ACCESS,
                payload: command.encode().to_vec(),
            },
        )
        .and_then(Done::request);
    let request = asked.map_err(|error| Failure::core(FAILED, &error))?;
    let answer = wait_for(app, |event| match event {
        CoreEvent::ControlAnswered { request: answered, answer, .. } if answered == request => {
            Some(answer)
        }
        _ => None,
    })?;
    answer.map_err(|error| Failure::core(&format!("{FAILED}: {command}"), &error))?;
    Ok(app.reactor().now().since(now).as_nanos() as u64)
}

fn play_on(app: &mut App, time: Duration) -> Result<(), Failure> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|it| !it.is_zero()) {
        if let Some(AppEvent::Signal(signal)) = app.next(left)? {
            return Err(interrupted(signal));
        }
    }
    Ok(())
}

fn wait_for<T>(
    app: &mut App,
    mut wanted: impl FnMut(CoreEvent) -> Option<T>,
) -> Result<T, Failure> {
    loop {
        match app.next(Duration::from_secs(1))? {
            Some(AppEvent::Signal(signal)) => return Err(interrupted(signal)),
            Some(AppEvent::Core(
                CoreEvent::SessionEnded { error: Some(error), .. }
                | CoreEvent::PeerLost { error, .. },
            )) => return Err(Failure::core(FAILED, &error)),
            Some(AppEvent::Core(event)) => {
                if let Some(found) = wanted(event) {
                    return Ok(found);
                }
            }
            _ => {}
        }
    }
}

/// What was measured, and what was in 1998.
struct Row {
    what: &'static str,
    now: Columns,
    then: Old,
}

/// What 1998 printed of it.
#[derive(Clone, Copy)]
enum Old {
    /// One row of a table.
    Row(Then),
    /// Several runs.
    Runs(Runs),
    /// Nothing.
    None,
}

impl Old {
    fn columns(self) -> Option<Columns> {
        match self {
            Self::Row(then) => Some(then.columns),
            Self::Runs(runs) => Some(runs.all()),
            Self::None => None,
        }
    }

    /// The average, and between which those of the runs lie.
    fn average(self) -> String {
        let average = |columns: Columns| format!("{:.0}", columns.average_us);
        match self {
            Self::Row(then) => average(then.columns),
            Self::Runs(runs) => {
                let (least, greatest) = runs.averages();
                format!("{} ({least} … {greatest})", average(runs.all()))
            }
            Self::None => "–".to_owned(),
        }
    }

    fn json(self) -> Option<Value> {
        let mut value = self.columns()?.to_json();
        let map = value.as_object_mut()?;
        match self {
            Self::Row(then) => {
                map.insert("table".to_owned(), json!(then.table));
                map.insert("row".to_owned(), json!(then.row));
            }
            Self::Runs(runs) => {
                let averages: Vec<u64> = runs.runs.iter().map(|run| run[3]).collect();
                map.insert("table".to_owned(), json!(runs.table));
                map.insert("row".to_owned(), json!(runs.row));
                map.insert("averages_us".to_owned(), json!(averages));
                map.remove("standard_deviation_us");
                map.remove("variance_us2");
            }
            Self::None => return None,
        }
        Some(value)
    }
}

fn rows(measured: &Measured, response: &Series) -> Vec<Row> {
    let times = measured.take();
    let mut rows = Vec::new();
    let mut all = Series::default();
    for (what, then) in COMMANDS {
        let series = times.commands.get(what).cloned().unwrap_or_default();
        all.extend(&series);
        rows.push(Row { what, now: series.columns(), then: Old::Row(then) });
    }
    let mut row = |what, series: &Series, then| {
        rows.push(Row { what, now: series.columns(), then });
    };
    row("all commands", &all, Old::Runs(ALL_COMMANDS));
    let mut pictures = times.pictures.clone();
    pictures.extend(&times.first_picture);
    row("a picture, read and put into a unit", &pictures, Old::Runs(PICTURE));
    row("the same without the first", &times.pictures, Old::Runs(PICTURE_AFTER_FIRST));
    row("from a command to its answer", response, Old::None);
    rows
}

fn print(rows: &[Row]) {
    let mut table = Table::new(&[
        "command", "n", "min µs", "average", "max", "variance", "std dev", "1998: n", "average",
        "then/now",
    ]);
    for Row { what, now, then } in rows {
        let columns = then.columns();
        let count = columns.map_or_else(|| "–".to_owned(), |columns| columns.count.to_string());
        let ratio = columns.map_or_else(
            || "–".to_owned(),
            |columns| format!("{:.0}", columns.average_us / now.average_us.max(1e-3)),
        );
        table.row(vec![
            (*what).into(),
            now.count.into(),
            format!("{:.2}", now.min_us).into(),
            format!("{:.2}", now.average_us).into(),
            format!("{:.2}", now.max_us).into(),
            format!("{:.2}", now.variance_us2).into(),
            format!("{:.2}", now.deviation_us).into(),
            count.as_str().into(),
            then.average().as_str().into(),
            ratio.as_str().into(),
        ]);
    }
    table.print();
    line(
        "\n1998: Tables 24 (commands), 20, 22 and 23 of TIK Report 42, of the last three all runs, \
         and between which\ntheir averages lie. It does not say on which machine: it had \
         UltraSPARCs 170E and SPARCstations. It did not\nmeasure until an answer: its Table 45 is \
         from PLAY to the first marked packet, which nothing here measures.",
    );
    line(
        "open is the opening of the file and the reading of its index when somebody joins; in 1998 \
         it also started\na video library. start is the activation of the flow. A command is timed \
         in the access module; its answer\ngoes over the encrypted control connection.",
    );
}

fn json_of(rows: &[Row]) -> Vec<Value> {
    let row =
        |it: &Row| json!({ "command": it.what, "now": it.now.to_json(), "1998": it.then.json() });
    rows.iter().map(row).collect()
}
