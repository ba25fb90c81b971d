//! What the tests share: a fresh folder, the program in it, and waits that end.
//!
//! Invariants: every process that a test starts is ended by its own number when the test ends,
//! however it ends; nothing is read or written outside the folder; every wait has a bound.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../../../crates/sys/tests/common/veth.rs"]
pub mod veth;

use dacapo::patience;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Ends a test that hangs; longer than anything takes, even on a machine that is busy with others.
/// Time in which the test was stopped does not count.
pub const LONG: Duration = Duration::from_secs(120);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder of one test.
pub struct Place {
    pub dir: PathBuf,
}

impl Place {
    pub fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dacapo-cli-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("state")).unwrap();
        fs::create_dir_all(dir.join("run")).unwrap();
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// The command, with nothing of the user's.
    pub fn command(&self, args: &[&str]) -> Command {
        self.program(dacapo(), args)
    }

    /// Another program, likewise.
    pub fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.dir)
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    pub fn start(&self, args: &[&str]) -> Running {
        self.start_command(self.command(args))
    }

    pub fn start_command(&self, mut command: Command) -> Running {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.path(&format!("{number}.out")), self.path(&format!("{number}.err")));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { child: command.spawn().unwrap(), out, err }
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Finished {
        self.start(args).wait(LONG)
    }

    /// Writes a test movie.
    pub fn movie(&self, name: &str, seconds: &str) -> PathBuf {
        let args = ["testmovie", name, "--duration", seconds, "--size", "160x96"];
        self.run(&args).expect(0);
        self.path(name)
    }

    /// The hashes of the streams of a media file.
    pub fn hashes(&self, path: &str) -> Vec<String> {
        let out = self.run(&["inspect", "--json", path]).expect(0).out;
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let streams = json["streams"].as_array().unwrap();
        streams.iter().map(|stream| stream["sha256"].as_str().unwrap().to_owned()).collect()
    }

    /// Serves session files at a port of the system's choice; the second is `HOST:PORT`.
    pub fn serve(&self, args: &[&str]) -> (Running, String) {
        let mut all = vec!["serve", "--port", "0"];
        all.extend_from_slice(args);
        let server = self.start(&all);
        let text = server.wait_for_out("identity ", LONG);
        let authority = text.strip_prefix("ready dacapo://").unwrap().split('/').next().unwrap();
        (server, authority.to_owned())
    }
}

/// The command. Cargo builds it for the tests of its package; those of another one find it beside
/// the program that they test, or build it there.
pub fn dacapo() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    option_env!("CARGO_BIN_EXE_dacapo").unwrap_or_else(|| FOUND.get_or_init(find_or_build))
}

fn find_or_build() -> String {
    // Tests are at TARGET/PROFILE/deps.
    let test = std::env::current_exe().unwrap();
    let dir = test.ancestors().nth(2).unwrap();
    let dacapo = dir.join("dacapo");
    if !dacapo.is_file() {
        let profile = dir.file_name().unwrap().to_str().unwrap();
        let profile = if profile == "debug" { "dev" } else { profile };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "-p", "dacapo-cli", "--profile", profile]);
        cargo.arg("--target-dir").arg(dir.parent().unwrap());
        assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    }
    dacapo.to_str().unwrap().to_owned()
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the files of this test stay in {}", self.dir.display());
        } else {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// A process that a test has started.
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn out(&self) -> String {
        read(&self.out)
    }

    pub fn err(&self) -> String {
        read(&self.err)
    }

    /// Its standard input, where it was started with one.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it has printed `text`, and returns all that it has printed.
    pub fn wait_for_out(&self, text: &str, most: Duration) -> String {
        let is_there = || self.out().contains(text);
        assert!(wait_until(most, is_there), "no {text:?} in:\n{}\n{}", self.out(), self.err());
        self.out()
    }

    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status();
        assert!(status.unwrap().success());
    }

    /// Waits for its end.
    pub fn wait(mut self, most: Duration) -> Finished {
        let began = Instant::now();
        let ended = wait_until(most, || self.child.try_wait().unwrap().is_some());
        assert!(ended, "still running after {most:?}:\n{}\n{}", self.out(), self.err());
        let status = self.child.wait().unwrap();
        // A second signal may come when everything is done and only the end is missing: to a shell,
        // being ended by a signal and saying so are the same.
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        Finished { code, out: self.out(), err: self.err(), took: began.elapsed() }
    }

    /// Ends it without a word.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that has ended.
pub struct Finished {
    /// Its exit code, as a shell sees it.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Finished {
    /// The same, after a look at its exit code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.all());
        self
    }

    pub fn all(&self) -> String {
        format!("out:\n{}\nerr:\n{}", self.out, self.err)
    }

    /// The words are all in what it printed as errors.
    pub fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {}", self.all());
        }
    }
}

/// The words are all there, in this order.
pub fn in_order(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let at = rest.find(word);
        assert!(at.is_some(), "{word:?} does not follow in {text}");
        rest = &rest[at.unwrap() + word.len()..];
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

pub fn wait_until(most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let so = patience::until(Instant::now, most, || {
        let so = is_so();
        if !so {
            std::thread::sleep(Duration::from_millis(5));
        }
        so.then_some(())
    });
    so.is_some()
}

/// A flow that sends a stream of a file.
pub fn flow(name: &str, source: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"creator\"\nsource = {source}\n\
         graph = [\"segment\", \"sequence\", \"checksum\"]\ntransport = \"udp\"\n\
         bound = \"200 Mbit/s\"\nplayout = \"100 ms\"\n\n"
    )
}

/// A session of these flows.
pub fn session(name: &str, flows: &[String]) -> String {
    format!("[session]\nname = \"{name}\"\ntitle = \"A test\"\n\n{}", flows.concat())
}

/// A session that sends both streams of an AVI file.
pub fn movie_session(name: &str, file: &str) -> String {
    let source = |stream: &str| format!("{{ file = \"{file}\", stream = \"{stream}\" }}");
    session(name, &[flow("video", &source("video")), flow("audio", &source("audio"))])
}

/// The files in a folder with this extension.
pub fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == extension)).collect();
    found.sort();
    found
}
