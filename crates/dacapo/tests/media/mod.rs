//! Folders with test media in them, and the session that plays a movie.
#![allow(dead_code, reason = "each test file uses its part")]

use dacapo::Plan;
use dacapo_media::TestMovie;
use dacapo_media::testmovie::TestSound;
use std::io::Cursor;
use std::path::PathBuf;
use std::time::Duration;

/// The usual graph of a flow.
pub const GRAPH: &str = r#"["segment", "sequence", "checksum"]"#;

/// A folder for one test, removed when it is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("dacapo-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub fn write_avi(&self, name: &str, movie: &TestMovie) {
        self.write(name, &movie.write_avi(Cursor::new(Vec::new())).unwrap().into_inner());
    }

    pub fn write_wav(&self, name: &str, movie: &TestMovie) {
        self.write(name, &movie.write_wav(Cursor::new(Vec::new())).unwrap().into_inner());
    }

    /// The plan of a session file, which must have no mistake.
    pub fn plan(&self, session: &str) -> Plan {
        let path = self.write("session.toml", session.as_bytes());
        Plan::load(&path).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// A small movie of so long with stereo sound, and the plan of the session that plays it.
    pub fn plan_movie(&self, duration: Duration, session: &str) -> Plan {
        let movie = TestMovie {
            width: 64,
            height: 48,
            duration,
            sound: Some(TestSound { rate_hz: 44_100, channels: 2 }),
            ..TestMovie::default()
        };
        self.write_avi("movie.avi", &movie);
        self.plan(session)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The session that plays a movie, pictures and sound each in a flow with this graph; `more` is
/// said of the session.
pub fn movie_session(more: &str, graph: &str) -> String {
    let flow = |name: &str, stream: &str| {
        flow(name, &format!("{{ file = \"movie.avi\", stream = \"{stream}\" }}"), graph)
    };
    let (video, audio) = (flow("video", "video"), flow("audio", "audio"));
    format!("[session]\nname = \"movie\"\n{more}\n{video}{audio}")
}

/// A flow from the creator over UDP.
pub fn flow(name: &str, source: &str, graph: &str) -> String {
    format!(
        "[[flow]]\nname = \"{name}\"\nfrom = \"creator\"\nsource = {source}\ngraph = {graph}\n\
         transport = \"udp\"\n"
    )
}
