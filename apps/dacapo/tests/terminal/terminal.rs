//! [`Terminal`]: a window with a shell in it, and what one sees there.
//!
//! ```text
//!   types("dacapo recv") -> pty -> bash -> dacapo -> pty -> bytes -> vt100 -> rows of characters
//! ```
//!
//! The prompt says how the last command ended in the window's title, where no eye is.

use crate::common::{LONG, wait_until};
use crate::process;
use crate::stage::Stage;
use dacapo_base::patience::Tolerance;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::pty::{Pty, Window};
use dacapo_sys::term::Size;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often is looked whether something has happened.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What counts at most of the time from one look to the next: a test that was not let run has seen
/// nothing of it, and neither has what it looks at.
const LOOK_MAX: Duration = Duration::from_millis(25);

/// The prompt, and before it, in the title, how the last command ended.
const PROMPT: &str = r"\e]2;exit $?\a\$ ";

type Screen = Arc<Mutex<vt100::Parser<Titles>>>;

/// How each command ended, one after the other; the first is that of the shell's beginning.
#[derive(Default)]
struct Titles {
    codes: Vec<i32>,
}

impl vt100::Callbacks for Titles {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        let title = String::from_utf8_lossy(title);
        self.codes.extend(title.strip_prefix("exit ").and_then(|code| code.parse::<i32>().ok()));
    }
}

/// A window with a shell in it.
pub struct Terminal {
    name: String,
    shell: Child,
    window: Option<Window>,
    screen: Screen,
    is_closed: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    /// The last line that was typed, and the row where its prompt stands.
    typed: String,
    row: u16,
    /// Prompts before its end.
    prompts: usize,
    /// Keys were pressed since, and the terminal has shown them among what is printed.
    is_echoed: bool,
}

impl Terminal {
    /// Opens a window with a shell in the folder of a stage.
    pub fn open(stage: &Stage, name: &str) -> Self {
        let columns = stage.columns;
        let pty = Pty::open(Size { rows: 24, columns }).unwrap();
        let mut bash = stage.place.program("bash", &["--norc", "--noprofile", "--noediting", "-i"]);
        stage.furnish(&mut bash);
        bash.env("PS1", PROMPT).env("TERM", "xterm").env_remove("HISTFILE");
        let (shell, window) = stage.spawn(pty, bash);
        // More rows than a window has, so that nothing that is looked for has left it.
        let rows = 16_000 / columns + 200;
        let size = |it| NonZeroU16::new(it).unwrap();
        let titles = Titles::default();
        let screen = vt100::Parser::new_with_callbacks(size(rows), size(columns), 0, titles);
        let screen = Arc::new(Mutex::new(screen));
        let is_closed = Arc::<AtomicBool>::default();
        let reader = read(window.try_clone().unwrap(), &screen, &is_closed);
        let mut terminal = Self {
            name: format!("{}, {name}", stage.name),
            shell,
            window: Some(window),
            screen,
            is_closed,
            reader: Some(reader),
            typed: String::new(),
            row: 0,
            prompts: 0,
            is_echoed: false,
        };
        assert_eq!(terminal.ended(LONG), Some(0), "{}: no shell", terminal.name);
        terminal
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        self.row = self.screen.lock().unwrap().screen().cursor_position().0;
        self.prompts = self.prompts();
        line.clone_into(&mut self.typed);
        self.keys(format!("{line}\n").as_bytes());
        self.is_echoed = false;
    }

    /// Presses keys.
    pub fn keys(&mut self, keys: &[u8]) {
        self.window.as_mut().unwrap().write_all(keys).unwrap();
        self.is_echoed = true;
    }

    /// Waits until these words stand below the line that was typed last.
    pub fn shows(&self, words: &str) {
        let mut patience = Tolerance::new(Instant::now(), LONG);
        while !self.text().contains(words) {
            // What is drawn last may be drawn after the prompt was looked for.
            let is_over = !self.is_running() && !self.text().contains(words);
            if is_over || !patience.lasts(Instant::now()) {
                self.fail(&format!("{words:?} is not there"));
            }
            std::thread::sleep(LOOK_EVERY * 3);
        }
    }

    /// How the command ended that was typed last, if it ends within this time.
    pub fn ended(&mut self, most: Duration) -> Option<i32> {
        let mut left = most;
        while self.prompts() <= self.prompts {
            left = left.checked_sub(rest())?;
        }
        self.screen.lock().unwrap().callbacks().codes.last().copied()
    }

    /// The command that was typed last ends with one of these codes.
    pub fn ends(&mut self, codes: &[i32], most: Duration) {
        match self.ended(most) {
            Some(code) if codes.contains(&code) => {}
            Some(code) => self.fail(&format!("it ended with {code} and not with {codes:?}")),
            None => self.fail(&format!("it has not ended after {most:?}")),
        }
    }

    /// True when the command that was typed last still runs.
    pub fn is_running(&self) -> bool {
        self.prompts() <= self.prompts
    }

    /// What stands below the line that was typed last, words and one space between two.
    pub fn text(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let (last, columns) = (screen.screen().cursor_position().0, screen.screen().size().1);
        let text = screen.screen().contents_between(self.row, 0, last, columns.get());
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, typed) = (words(&text), words(&self.typed));
        text.split_once(&typed).map_or(text.clone(), |(_, below)| below.to_owned())
    }

    /// No line that is meant for people is broken inside a word that would have fitted.
    pub fn is_whole(&self) {
        if self.is_echoed {
            return;
        }
        let screen = self.screen.lock().unwrap();
        let (last, columns) = (screen.screen().cursor_position().0, screen.screen().size().1);
        let text = screen.screen().contents_between(self.row, 0, last, columns.get());
        let columns = usize::from(columns.get());
        let len = |text: &str| text.chars().count();
        // The first line is the typed one; what the shell says of its jobs repeats it.
        let is_broken = |line: &&str| {
            let is_word_long = line.split_whitespace().any(|word| len(word) > columns);
            let is_shells = line.contains(&self.typed) || line.starts_with('[');
            len(line) > columns && !is_word_long && !is_shells && !line.starts_with('{')
        };
        let found = text.lines().skip(1).find(is_broken).map(str::to_owned);
        drop(screen);
        if let Some(line) = found {
            self.fail(&format!("a line is too long for {columns} columns: {line}"));
        }
    }

    /// The `dacapo` that runs here.
    pub fn program(&self) -> u32 {
        let mut found = Vec::new();
        let mut look = || {
            found = process::in_session(self.shell.id(), "dacapo");
            !found.is_empty()
        };
        if !wait_until(LONG, &mut look) {
            self.fail("no dacapo runs");
        }
        found[0]
    }

    /// Closes the window.
    pub fn close(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        self.window = None;
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }

    /// Fails with what is on the screen.
    pub fn fail(&self, what: &str) -> ! {
        let screen = self.screen.lock().unwrap().screen().contents();
        panic!("{}: {what}\n--- typed: {}\n{}\n---", self.name, self.typed, screen.trim_end());
    }

    fn prompts(&self) -> usize {
        self.screen.lock().unwrap().callbacks().codes.len()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let shell = self.shell.id();
        self.is_closed.store(true, Ordering::Release);
        process::kill_session(shell);
        let _ = self.shell.wait();
    }
}

/// Rests from one look to the next; how much of that counts.
pub fn rest() -> Duration {
    let before = Instant::now();
    std::thread::sleep(LOOK_EVERY);
    before.elapsed().min(LOOK_MAX)
}

/// Draws what comes until the window is closed or nobody is left to write.
fn read(mut window: Window, screen: &Screen, is_closed: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (screen, is_closed) = (Arc::clone(screen), Arc::clone(is_closed));
    let mut poller = Poller::new().unwrap();
    poller.add(window.as_fd(), 0, Interest::Read).unwrap();
    std::thread::spawn(move || {
        let (mut events, mut buffer) = (Vec::new(), [0; 4_096]);
        while !is_closed.load(Ordering::Acquire) {
            poller.wait(Some(Duration::from_millis(100)), &mut events).unwrap();
            if events.is_empty() {
                continue;
            }
            match window.read(&mut buffer) {
                Ok(len) if len > 0 => screen.lock().unwrap().process(&buffer[..len]),
                // Nobody has the terminal any more.
                _ => return,
            }
        }
    })
}

/// A program at a terminal.
pub fn spawn(pty: Pty, command: Command) -> (Child, Window) {
    pty.spawn(command).unwrap()
}
