//! [`arm`]: faults that a test asks of this process by its environment; in debug builds only.
//!
//! ```text
//!   DACAPO_FAILPOINT=NAME[:N[:stop]]       dies (or stops) at the N-th hit of a failpoint
//!   DACAPO_SYS_FAULTS=CALL:ERRNO:1/N,…     every N-th such system call of the main thread fails
//! ```

use dacapo::failpoint::{Act, Armed, set_hook};
use dacapo_sys::{faults, process};
use std::ffi::OsString;
use std::sync::OnceLock;

const FAILPOINT: &str = "DACAPO_FAILPOINT";
const SYS_FAULTS: &str = "DACAPO_SYS_FAULTS";

static ARMED: OnceLock<Armed> = OnceLock::new();

/// Arms what the environment asks for.
///
/// # Errors
/// A variable that cannot be read, with what it could be.
pub fn arm(var: impl Fn(&str) -> Option<OsString>) -> Result<(), String> {
    if let Some(text) = var(FAILPOINT) {
        let armed = Armed::parse(&text.to_string_lossy());
        let armed = armed.map_err(|error| format!("{FAILPOINT}: {error}"))?;
        ARMED.get_or_init(|| armed);
        set_hook(at);
    }
    if let Some(text) = var(SYS_FAULTS) {
        let plan = faults::parse(&text.to_string_lossy());
        faults::plan(&plan.map_err(|error| format!("{SYS_FAULTS}: {error}"))?);
    }
    Ok(())
}

fn at(name: &'static str) {
    match ARMED.get().and_then(|armed| armed.act_at(name)) {
        Some(Act::Kill) => process::kill(),
        Some(Act::Stop) => process::stop(),
        None => {}
    }
}
