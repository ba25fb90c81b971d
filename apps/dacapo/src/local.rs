//! The local control socket: one line of JSON in, one out.
//!
//! ```text
//!   $XDG_RUNTIME_DIR/dacapo/PID.sock      (without it: /tmp/dacapo-UID/PID.sock)
//!
//!   {"about":true}        ->  {"ok":true,"pid":4711,"uri":"dacapo://127.0.0.1:19980/movie"}
//!   {"command":"ff"}      ->  {"ok":true,"answer":"…","round_trip_us":412}
//!                             {"ok":false,"error":"…"}
//! ```
//!
//! Invariants: the folder belongs to this user and nobody else can enter it; who connects is asked
//! of the kernel (`SO_PEERCRED`) and must be this user; a line is at most [`LINE_LEN_MAX`] bytes,
//! and at most [`CLIENTS_MAX`] programs wait; without descriptors it turns programs away and never
//! spins.

use crate::app::App;
use dacapo::failpoint;
use dacapo_sys::process;
use dacapo_sys::unix::{Listener, peer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest request, in bytes.
const LINE_LEN_MAX: usize = 4_096;
/// The most programs that are connected at a time; the oldest is dropped for a newer one.
const CLIENTS_MAX: usize = 16;
/// How long a player may take to answer: its peer has 10 s.
const ANSWER_MAX: Duration = Duration::from_secs(12);

/// What a program asks of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Who it is and what it plays.
    About,
    /// A command for its peer, as it was written.
    Command(String),
}

/// The folder of the sockets.
pub fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(runtime) if runtime.is_absolute() => runtime.join("dacapo"),
        _ => PathBuf::from(format!("/tmp/dacapo-{}", process::uid())),
    }
}

fn socket_path(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// The players that have a socket in the folder, in the order of their numbers.
pub fn players(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut pids: Vec<u32> = entries.filter_map(|entry| pid_of(&entry.path())).collect();
    pids.sort_unstable();
    pids
}

fn pid_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

/// Asks a player and waits for its answer.
///
/// # Errors
/// `ConnectionRefused` or `NotFound` when it does not run; others with what to do.
pub fn ask(folder: &Path, pid: u32, request: &Value) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket_path(folder, pid))?;
    if peer(&stream)?.uid != process::uid() {
        return Err(io::Error::other("the socket belongs to another user"));
    }
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(64 * 1024)).read_line(&mut line)?;
    serde_json::from_str(&line)
        .map_err(|_| io::Error::other("it ended the connection without an answer"))
}

/// The socket of this process, and who is connected to it.
pub struct LocalControl {
    listener: Listener,
    token: u32,
    next_token: u32,
    clients: BTreeMap<u32, Client>,
    /// A descriptor to give up when there is no other: see [`LocalControl::turn_away`].
    spare: Option<File>,
}

struct Client {
    stream: UnixStream,
    line: Vec<u8>,
    has_asked: bool,
}

impl LocalControl {
    /// Opens the socket of this process. Descriptors are watched with `token` and what follows it.
    ///
    /// # Errors
    /// What the system says; or the folder is not this user's alone.
    pub fn open(app: &App, token: u32) -> io::Result<Self> {
        let folder = folder();
        make_private(&folder)?;
        forget_the_dead(&folder);
        let listener = Listener::bind(&socket_path(&folder, std::process::id()))?;
        failpoint!("control.bound");
        app.watch(listener.as_fd(), token)?;
        let spare = spare();
        Ok(Self { listener, token, next_token: token, clients: BTreeMap::new(), spare })
    }

    /// A descriptor with this token is ready. Returns a request and the token to answer it with.
    pub fn handle_ready(&mut self, app: &App, token: u32) -> Option<(u32, Request)> {
        if token == self.token {
            self.accept(app);
            return None;
        }
        let client = self.clients.get_mut(&token).filter(|client| !client.has_asked)?;
        match client.read_line() {
            Ok(None) => None,
            Ok(Some(line)) => {
                client.has_asked = true;
                app.unwatch(client.stream.as_fd());
                match parse(&line) {
                    Ok(request) => Some((token, request)),
                    Err(error) => {
                        self.answer(token, &refusal(error));
                        None
                    }
                }
            }
            Err(_) => {
                self.forget(app, token);
                None
            }
        }
    }

    fn accept(&mut self, app: &App) {
        loop {
            let (stream, peer) = match self.listener.accept() {
                Ok(Some(accepted)) => accepted,
                Ok(None) => return,
                Err(_) if self.turn_away(app) => continue,
                Err(_) => return,
            };
            if peer.uid != process::uid() {
                continue;
            }
            if self.clients.len() >= CLIENTS_MAX
                && let Some(oldest) = self.clients.keys().next().copied()
            {
                self.forget(app, oldest);
            }
            self.next_token = self.next_token.saturating_add(1);
            if app.watch(stream.as_fd(), self.next_token).is_ok() {
                let client = Client { stream, line: Vec::new(), has_asked: false };
                self.clients.insert(self.next_token, client);
            }
        }
    }

    /// Nobody can be taken in, for lack of descriptors. Who waits would make the socket readable
    /// for ever and the turn loop spin, so it is taken in with the spare descriptor and let go.
    /// True when somebody was; the system lacks descriptors also when nobody waits.
    fn turn_away(&mut self, app: &App) -> bool {
        drop(self.spare.take());
        let away = self.listener.accept();
        let is_somebody = matches!(away, Ok(Some(_)));
        let is_possible = away.is_ok();
        drop(away);
        self.spare = spare();
        if !is_possible || self.spare.is_none() {
            // There is no other way to be quiet: no program finds this player any more.
            app.unwatch(self.listener.as_fd());
            return false;
        }
        is_somebody
    }

    fn forget(&mut self, app: &App, token: u32) {
        if let Some(client) = self.clients.remove(&token) {
            app.unwatch(client.stream.as_fd());
        }
    }

    /// Answers a request; that ends the connection.
    pub fn answer(&mut self, token: u32, answer: &Value) {
        if let Some(mut client) = self.clients.remove(&token) {
            // Who does not read its answer does not get it.
            let _ = client.stream.write_all(format!("{answer}\n").as_bytes());
        }
    }
}

/// A descriptor that is good for nothing but to be given up.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Client {
    /// The request, once its line is whole.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut buffer = [0; 1_024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.line.extend_from_slice(buffer.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
            if let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
                self.line.truncate(end);
                return Ok(Some(std::mem::take(&mut self.line)));
            }
            if self.line.len() > LINE_LEN_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// An answer that says why not.
pub fn refusal(error: impl std::fmt::Display) -> Value {
    json!({ "ok": false, "error": error.to_string() })
}

fn parse(line: &[u8]) -> Result<Request, String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if value.get("about") == Some(&Value::Bool(true)) {
        return Ok(Request::About);
    }
    let command = value.get("command").and_then(Value::as_str);
    command
        .map(|text| Request::Command(text.to_owned()))
        .ok_or_else(|| "expected {\"command\":\"…\"} or {\"about\":true}".to_owned())
}

/// Makes the folder, or makes sure that it is this user's alone.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().recursive(false).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let about = fs::symlink_metadata(folder)?;
    let is_private = about.permissions().mode() & 0o077 == 0;
    if about.is_dir() && about.uid() == process::uid() && is_private {
        return Ok(());
    }
    let text = format!("{} is not a folder of this user alone (mode 0700)", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Removes the sockets of players that were killed.
fn forget_the_dead(folder: &Path) {
    for pid in players(folder) {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = fs::remove_file(socket_path(folder, pid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_others_are_refused() {
        assert_eq!(parse(br#"{"about":true}"#), Ok(Request::About));
        let command = parse(br#"{"command":"fps 25"}"#);
        assert_eq!(command, Ok(Request::Command("fps 25".to_owned())));
        for wrong in ["", "{}", "[]", "{\"command\":7}", "{\"about\":false}", "\u{0}"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_folder_that_others_can_enter_is_refused() {
        let folder = std::env::temp_dir().join(format!("dacapo-local-{}", std::process::id()));
        make_private(&folder).unwrap();
        make_private(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(make_private(&folder).is_err());
        fs::remove_dir(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        assert!(make_private(&folder).is_err());
        fs::remove_file(&folder).unwrap();
    }

    #[test]
    fn only_names_of_sockets_are_players() {
        assert_eq!(pid_of(Path::new("x/4711.sock")), Some(4_711));
        assert_eq!(pid_of(Path::new("x/4711.txt")), None);
        assert_eq!(pid_of(Path::new("x/a.sock")), None);
    }
}
