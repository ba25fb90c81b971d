//! [`Child`]: a command that runs for minutes and can be stopped with everything it started.
//!
//! Invariant: it is a process group of its own, so that a signal to us does not end it half, and
//! one to it ends its children too.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// After being asked to end it is waited for so long.
const END_MAX: Duration = Duration::from_secs(10);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With success.
    Well,
    /// With another exit status, or by a signal.
    Failed,
    /// We stopped it.
    Stopped,
}

/// A command that runs.
pub struct Child(std::process::Child);

impl Child {
    /// Begins a command; what it writes goes to the file `log`, which is made anew.
    ///
    /// # Errors
    /// The file cannot be made, or the command does not exist.
    pub fn begin(mut command: Command, log: &Path) -> io::Result<Self> {
        let log = File::create(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        Ok(Self(command.spawn()?))
    }

    /// Waits for its end, or ends it when `stop` says so.
    ///
    /// # Errors
    /// The operating system lost it.
    pub fn wait(&mut self, mut stop: impl FnMut() -> bool) -> io::Result<Ended> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(if status.success() { Ended::Well } else { Ended::Failed });
            }
            if stop() {
                self.end()?;
                return Ok(Ended::Stopped);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        let asked = Instant::now();
        self.signal("-TERM");
        while self.0.try_wait()?.is_none() {
            if asked.elapsed() > END_MAX {
                self.signal("-KILL");
                self.0.wait()?;
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Sends a signal to the whole group.
    fn signal(&self, signal: &str) {
        let group = format!("-{}", self.0.id());
        // A group that is gone needs none.
        let _ = Command::new("kill").args([signal, "--", &group]).stderr(Stdio::null()).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: &str) -> (Child, std::path::PathBuf) {
        let log = std::env::temp_dir().join(format!("dacapo-lab-{}-{log}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (Child::begin(command, &log).expect("a shell"), log)
    }

    #[test]
    fn its_end_and_what_it_wrote_are_known() {
        let (mut child, log) = shell("echo out; echo err >&2; exit 3", "a");
        assert_eq!(child.wait(|| false).expect("it ends"), Ended::Failed);
        assert_eq!(std::fs::read_to_string(&log).expect("a log"), "out\nerr\n");
        let (mut child, _) = shell("true", "a");
        assert_eq!(child.wait(|| false).expect("it ends"), Ended::Well);
        std::fs::remove_file(log).expect("it was there");
    }

    #[test]
    fn who_is_stopped_ends_with_its_children() {
        let (mut child, log) = shell("sleep 1000 & echo $!; wait", "b");
        let written = || std::fs::read_to_string(&log).unwrap_or_default();
        let stopped = child.wait(|| written().ends_with('\n')).expect("it ends");
        assert_eq!(stopped, Ended::Stopped);
        let stat = format!("/proc/{}/stat", written().trim());
        let begun = Instant::now();
        // What has ended and nobody has asked for yet is a zombie.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the child of the shell lives on");
            std::thread::sleep(LOOK_EVERY);
        }
        std::fs::remove_file(log).expect("it was there");
    }
}
