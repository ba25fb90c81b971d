//! [`Stage`]: a folder, ports and windows of one piece; and all pieces at once.
//!
//! Invariant: no two pieces share a file, a port or a terminal.

use crate::common::Place;
use crate::process;
use crate::terminal::{self, Terminal};
use dacapo_sys::netns::Namespace;
use dacapo_sys::pty::{Pty, Window};
use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// So long a person rests before the next line.
pub const PAUSE: Duration = Duration::from_secs(8);

/// Processor time that a command may use while it waits for [`PAUSE`].
pub const IDLE_MAX: Duration = Duration::from_millis(50);

/// From one piece's beginning to the next one's, so that not all begin and end at once.
const STAGGER: Duration = Duration::from_millis(120);

/// Pieces whose name has this in it are run, and no others.
const ONLY: &str = "DACAPO_TERMINAL";

/// Another program than the one that was built, such as one of yesterday.
const PROGRAM: &str = "DACAPO_PROGRAM";

/// Something to be played, with the name by which it is repeated.
pub struct Piece {
    /// Its name.
    pub name: String,
    /// What is done.
    pub play: Box<dyn FnOnce() + Send>,
}

/// Plays all pieces at once; fails with all that failed.
pub fn run(pieces: Vec<Piece>) {
    let only = std::env::var(ONLY).unwrap_or_default();
    let pieces: Vec<Piece> = pieces.into_iter().filter(|it| it.name.contains(&only)).collect();
    assert!(!pieces.is_empty(), "no piece is called {only:?}");
    let failed = Mutex::new(Vec::new());
    let count = pieces.len();
    std::thread::scope(|scope| {
        for Piece { name, play } in pieces {
            let failed = &failed;
            scope.spawn(move || {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(play)) {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned()));
                    failed.lock().unwrap().push((name, text.unwrap_or_default()));
                }
            });
            std::thread::sleep(STAGGER);
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    for (name, text) in &failed {
        println!("\n{name} FAILED: {text}");
        println!("repeat: {ONLY}='{name}' cargo test -p dacapo-cli --test terminal works_as_typed");
    }
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    assert!(failed.is_empty(), "{} of {count} failed: {}", names.len(), names.join(", "));
}

/// Ports below those that the system gives to whoever asks for any; other runs on this host begin
/// elsewhere.
fn free_port() -> u16 {
    const FIRST: u16 = 20_100;
    const COUNT: u16 = 9_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() % 90) as u16 * 100;
    for _ in 0..COUNT {
        let port = FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let at = ("127.0.0.1", port);
        if UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

/// Where a piece is played.
pub struct Stage {
    /// The name of the piece.
    pub name: String,
    /// Its folder.
    pub place: Place,
    /// How wide its windows are.
    pub columns: u16,
    /// Two ports of its own.
    pub ports: [u16; 2],
    namespace: Option<Namespace>,
    folder: Option<std::path::PathBuf>,
    windows: BTreeMap<String, Terminal>,
}

/// A program for the shells of a place.
fn put(place: &Place, name: &str, does: &str) {
    let program = place.write(&format!("bin/{name}"), format!("#!/bin/sh\n{does}\n"));
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Stage {
    /// A stage with an empty folder.
    pub fn new(name: &str, columns: u16) -> Self {
        let place = Place::new();
        fs::create_dir_all(place.path("bin")).unwrap();
        let program = std::env::var(PROGRAM);
        let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_dacapo").to_owned());
        // Beside it is the program that measures, which a whole build has made.
        let program = std::path::PathBuf::from(program);
        let measures = program.with_file_name("dacapo-eval");
        assert!(measures.is_file(), "it is missing: cargo build -p dacapo-eval");
        std::os::unix::fs::symlink(program, place.path("bin/dacapo")).unwrap();
        std::os::unix::fs::symlink(measures, place.path("bin/dacapo-eval")).unwrap();
        // A player that shows nothing, whether or not there is a better one.
        put(&place, "ffplay", "exec cat > /dev/null");
        let ports = [free_port(), free_port()];
        let (namespace, folder, windows) = (None, None, BTreeMap::new());
        Self { name: name.to_owned(), place, columns, ports, namespace, folder, windows }
    }

    /// The same in a network of its own, where the host of the documents is.
    pub fn with_network(mut self) -> Self {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dacapo-{}-{number}", std::process::id());
        let namespace = Namespace::create(&name).unwrap();
        let made = namespace.run(|| {
            let mut ip = Command::new("ip");
            ip.args(["address", "add", "192.0.2.7/32", "dev", "lo"]).status().unwrap()
        });
        assert!(made.unwrap().success(), "192.0.2.7 could not be had");
        // Who made that is root, and may lack the program by which others become it.
        put(&self.place, "sudo", "exec \"$@\"");
        self.namespace = Some(namespace);
        self
    }

    /// The same, with windows whose shells are in the folder of the sources.
    pub fn in_sources(mut self) -> Self {
        self.folder = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../..").into());
        self
    }

    /// What a shell finds in its environment.
    pub fn furnish(&self, shell: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.place.path("bin");
        shell.env("PATH", format!("{}:{path}", bin.display()));
        shell.env("HOME", &self.place.dir);
        if let Some(folder) = &self.folder {
            // Cargo finds its own things in the home of who runs the test.
            shell.current_dir(folder).envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
        }
    }

    /// Starts a shell, in the network of this stage.
    pub fn spawn(&self, pty: Pty, shell: Command) -> (Child, Window) {
        match &self.namespace {
            Some(namespace) => namespace.run(|| terminal::spawn(pty, shell)).unwrap(),
            None => terminal::spawn(pty, shell),
        }
    }

    /// The window of this name, opened when it is asked for first.
    pub fn window(&mut self, name: &str) -> &mut Terminal {
        if !self.windows.contains_key(name) {
            let window = Terminal::open(self, name);
            self.windows.insert(name.to_owned(), window);
        }
        self.windows.get_mut(name).unwrap()
    }

    /// Fills the ports in.
    pub fn fill(&self, text: &str) -> String {
        let [first, second] = self.ports.map(|port| port.to_string());
        text.replace("{port}", &first).replace("{port2}", &second)
    }

    /// Puts a file or folder of this name there: what it is, its name says.
    pub fn give(&self, name: &str) {
        let (name, seconds) = name.split_once('=').unwrap_or((name, "2"));
        let path = self.place.path(name.trim_end_matches('/'));
        match name.rsplit_once('.') {
            Some((_, "avi")) => drop(self.place.movie(name, seconds)),
            Some((_, "bin")) => drop(self.place.write(name, vec![7; 300_000])),
            None if name.ends_with('/') => {
                fs::create_dir_all(&path).unwrap();
                fs::write(path.join("one.jpg"), vec![1; 20_000]).unwrap();
            }
            _ => drop(self.place.write(name, "what is sent\n".repeat(500))),
        }
    }

    /// A command that waits uses next to no processor time for [`PAUSE`], and is there at its end.
    pub fn rests(&self, pid: u32) {
        let before = process::cpu_time(pid);
        std::thread::sleep(PAUSE);
        let after = process::cpu_time(pid);
        let (Some(before), Some(after)) = (before, after) else {
            panic!("{}: it has ended while it was to wait", self.name);
        };
        let used = after.saturating_sub(before);
        println!("{:<34} {:>4} ms in {PAUSE:?} of waiting", self.name, used.as_millis());
        assert!(used <= IDLE_MAX, "{}: {used:?} of processor time in {PAUSE:?}", self.name);
    }
}
