//! Playing on when the server was started anew or contact did not come back: joining again.
//!
//! ```text
//!   play -> ended in order, by a signal, or by what joining again does not mend -> done
//!     ^  \-> the peer was started anew, contact was given up
//!     '---- join again, as often as it takes
//! ```

use super::{Played, Wish, play as play_once};
use crate::app::App;
use crate::exit::{Exit, Failure};
use crate::output::note;
use crate::progress::Progress;
use std::time::Duration;

/// Plays a session to its end, and when `reconnect` says so joins again after a failure of the
/// network; the account is that of the last session.
///
/// # Errors
/// Nothing was joined: the peer cannot be reached the first time, or refused.
pub fn play(
    app: &mut App,
    wish: Wish,
    progress: &mut Progress,
    reconnect: bool,
) -> Result<Played, Failure> {
    let mut played = play_once(app, wish.clone(), progress, |_, _, _| {})?;
    while reconnect && played.may_join_again && played.signal.is_none() {
        progress.clear();
        played.note_errors();
        note(format_args!("dacapo: play {}: joining again", wish.uri));
        played = join(app, &Wish { wait: wish.wait.max(Some(AGAIN)), ..wish.clone() }, progress)?;
    }
    Ok(played)
}

/// An attempt to join again goes on for so long, also while nothing listens.
const AGAIN: Duration = Duration::from_secs(10);

/// Tries until the peer answers.
fn join(app: &mut App, wish: &Wish, progress: &mut Progress) -> Result<Played, Failure> {
    loop {
        match play_once(app, wish.clone(), progress, |_, _, _| {}) {
            Err(failure) if failure.exit == Exit::Unreachable => {
                progress.clear();
                note(format_args!("{failure}; trying again"));
            }
            outcome => return outcome,
        }
    }
}
