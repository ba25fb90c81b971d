//! Every command that waits, however it is treated: it rests, works afterwards, and ends when it is
//! told to.
//!
//! ```text
//!   WAITING (what is typed, how it is used) x WAYS (what is done to it) -> pieces
//! ```

use crate::WIDTHS;
use crate::common::{LONG, wait_until};
use crate::play::END_MAX;
use crate::process;
use crate::stage::{Piece, Stage};
use crate::terminal::rest;
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

/// A command that waits for others.
struct Waiting {
    name: &'static str,
    /// What is typed.
    line: &'static str,
    /// What it says when it is there.
    ready: &'static str,
    /// The files that there are.
    files: &'static [&'static str],
    /// How it is used.
    using: Using,
}

/// How a command that waits is used.
#[derive(Clone, Copy)]
enum Using {
    /// By a line, which ends with 0; what is there then.
    Line(&'static str, &'static str),
    /// By a datagram, that arrives at the second port.
    Datagram,
}

const WAITING: [Waiting; 7] = [
    Waiting {
        name: "recv",
        line: "dacapo recv --listen 127.0.0.1:{port} --out in --keep",
        ready: "listening on 127.0.0.1:{port}",
        files: &["notes.txt"],
        using: Using::Line("dacapo send 127.0.0.1:{port} notes.txt", "in/notes.txt"),
    },
    Waiting {
        name: "serve",
        line: "dacapo serve movie.toml --listen 127.0.0.1:{port}",
        ready: "listening on 127.0.0.1:{port}",
        files: &["movie.avi", "movie.toml"],
        using: Using::Line(
            "dacapo play dacapo://127.0.0.1:{port}/movie --save got",
            "got/movie.avi",
        ),
    },
    Waiting {
        name: "serve-json",
        line: "dacapo serve movie.toml --listen 127.0.0.1:{port} --json",
        ready: "\"event\":\"listening\"",
        files: &["movie.avi", "movie.toml"],
        using: Using::Line("dacapo ls 127.0.0.1:{port}", "movie.toml"),
    },
    Waiting {
        name: "xtp-listen",
        line: "dacapo xtp listen --listen 127.0.0.1:{port} --out in",
        ready: "listening over udp at 127.0.0.1:{port}",
        files: &["notes.txt"],
        using: Using::Line("dacapo xtp send 127.0.0.1:{port} notes.txt", "in/notes.txt"),
    },
    Waiting {
        name: "bench-net",
        line: "dacapo bench net --listen 127.0.0.1:{port}",
        ready: "listening on 127.0.0.1:{port}",
        files: &[],
        using: Using::Line("dacapo bench net 127.0.0.1:{port} --what bulk --bytes 1MB", "bin"),
    },
    Waiting {
        name: "bench-xtp",
        line: "dacapo bench xtp --listen 127.0.0.1:{port}",
        ready: "listening on 127.0.0.1:{port}",
        files: &[],
        using: Using::Line(
            "dacapo bench xtp 127.0.0.1:{port} --mode stream --send-len 4096 --packet-len 2048 \
             --bytes 64kB --seconds 0.05",
            "bin",
        ),
    },
    Waiting {
        name: "link",
        line: "dacapo link perfect --listen 127.0.0.1:{port} --to 127.0.0.1:{port2}",
        ready: "ready dacapo://127.0.0.1:{port}/",
        files: &[],
        using: Using::Datagram,
    },
];

/// Those that only root may start.
const WAITING_ROOT: [Waiting; 1] = [Waiting {
    name: "xtp-capture",
    line: "dacapo xtp capture lo seen.pcapng --udp-port {port}",
    ready: "capturing at lo",
    files: &[],
    using: Using::Line(
        "dacapo xtp listen --listen 127.0.0.1:{port} --out in & \
         sleep 1; dacapo xtp ping 127.0.0.1:{port} --count 3; kill %1",
        "seen.pcapng",
    ),
}];

/// What is done to a command while it waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing; in a window of so many columns. It ends by ^C.
    Window(u16),
    /// It ends by SIGTERM.
    Terminate,
    /// ^Z, and `fg`.
    Stop,
    /// Its standard input is /dev/null.
    NoInput,
    /// Its standard error is a pipe.
    Pipe,
    /// Its standard output is a pipe that nobody reads.
    Closed,
    /// Its window is closed.
    Gone,
    /// Its window is closed, and it is to outlive that.
    Outlived,
}

impl Way {
    fn all() -> impl Iterator<Item = Self> {
        use Way::*;
        let others = [Terminate, Stop, NoInput, Pipe, Closed, Gone, Outlived];
        WIDTHS.into_iter().map(Window).chain(others)
    }

    fn name(self) -> String {
        match self {
            Self::Window(columns) => return format!("{columns}"),
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::NoInput => "no-input",
            Self::Pipe => "pipe",
            Self::Closed => "closed-pipe",
            Self::Gone => "window-gone",
            Self::Outlived => "window-outlived",
        }
        .to_owned()
    }

    /// What is typed.
    fn line(self, line: &str) -> String {
        match self {
            Self::Window(_) | Self::Terminate | Self::Stop => line.to_owned(),
            Self::NoInput => format!("{line} < /dev/null"),
            Self::Pipe => format!("{line} 2> >(cat > errors)"),
            Self::Closed => format!("set -o pipefail; {line} | true"),
            // The shell that knows how it ended has no window any more.
            Self::Gone => format!("sh -c 'trap : HUP; {line}; echo $? > code'"),
            Self::Outlived => format!("sh -c 'trap \"\" HUP; {line}; echo $? > code'"),
        }
    }
}

/// Every command that waits, in every way.
pub fn pieces() -> Vec<Piece> {
    WAITING.iter().flat_map(|it| Way::all().map(move |way| piece(it, way))).collect()
}

/// Those that only root may start.
pub fn pieces_for_root() -> Vec<Piece> {
    WAITING_ROOT.iter().flat_map(|it| Way::all().map(move |way| piece(it, way))).collect()
}

fn piece(waiting: &'static Waiting, way: Way) -> Piece {
    let name = format!("{}/{}", waiting.name, way.name());
    let columns = if let Way::Window(columns) = way { columns } else { 80 };
    let title = name.clone();
    let play = Box::new(move || {
        let mut stage = Stage::new(&title, columns);
        waiting.files.iter().for_each(|name| give(&stage, name));
        treat(&mut stage, waiting, way);
    });
    Piece { name, play }
}

fn give(stage: &Stage, name: &str) {
    match name {
        "movie.toml" => {
            let session = crate::common::movie_session("movie", "movie.avi");
            stage.place.write(name, session);
        }
        _ => stage.give(name),
    }
}

fn treat(stage: &mut Stage, waiting: &Waiting, way: Way) {
    let line = way.line(&stage.fill(waiting.line));
    let ready = stage.fill(waiting.ready);
    let here = stage.window("here");
    here.types(&line);
    if way != Way::Closed {
        here.shows(&ready);
        here.is_whole();
    }
    let pid = here.program();
    wait_until_it_listens(stage, waiting, pid);
    if matches!(way, Way::Gone | Way::Outlived) {
        stage.window("there");
        stage.window("here").close();
    }
    match way {
        Way::Gone => return assert_ended(stage, pid, 129),
        Way::Stop => stop_and_go_on(stage, pid),
        _ => {}
    }
    stage.rests(pid);
    use_it(stage, waiting);
    match way {
        Way::Window(_) | Way::Stop => {
            stage.window("here").keys(b"\x03");
            stage.window("here").ends(&[130], END_MAX);
        }
        Way::Outlived => {
            process::signal(pid, "TERM");
            assert_ended(stage, pid, 143);
        }
        _ => {
            process::signal(pid, "TERM");
            stage.window("here").ends(&[143], END_MAX);
        }
    }
}

/// Those that capture have no port.
fn wait_until_it_listens(stage: &Stage, waiting: &Waiting, pid: u32) {
    let port = stage.ports[0];
    let is_capture = waiting.line.contains("capture");
    let listens = || is_capture || process::has_udp_port(pid, port);
    assert!(wait_until(LONG, listens), "{}: port {port} is not had", stage.name);
}

fn stop_and_go_on(stage: &mut Stage, pid: u32) {
    let here = stage.window("here");
    here.keys(b"\x1a");
    here.ends(&[148], LONG);
    std::thread::sleep(Duration::from_secs(2));
    assert!(!process::is_gone(pid), "it is gone");
    stage.window("here").types("fg");
    stage.window("here").shows("dacapo");
}

fn use_it(stage: &mut Stage, waiting: &Waiting) {
    match waiting.using {
        Using::Line(line, there_is) => {
            let line = stage.fill(line);
            let there = stage.window("there");
            there.types(&line);
            there.ends(&[0], LONG);
            let path = stage.place.path(there_is);
            let is_there = || path.is_dir() || fs::metadata(&path).is_ok_and(|it| it.len() > 0);
            assert!(wait_until(LONG, is_there), "{}: there is no {there_is}", stage.name);
        }
        Using::Datagram => {
            let [relay, server] = stage.ports;
            let server = UdpSocket::bind(("127.0.0.1", server)).unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.send_to(b"through", ("127.0.0.1", relay)).unwrap();
            server.set_read_timeout(Some(LONG)).unwrap();
            let mut buffer = [0; 16];
            let (len, _) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..len], b"through");
        }
    }
}

/// It ends at once, with this code, and nobody is left.
fn assert_ended(stage: &Stage, pid: u32, code: i32) {
    let mut left = Some(END_MAX);
    while !process::is_gone(pid) {
        left = left.and_then(|left| left.checked_sub(rest()));
        assert!(left.is_some(), "{}: it has not ended after {END_MAX:?}", stage.name);
    }
    let read = || fs::read_to_string(stage.place.path("code")).unwrap_or_default();
    let said = wait_until(LONG, || read().ends_with('\n'));
    assert!(said && read().trim() == code.to_string(), "{}: {:?}", stage.name, read());
}
