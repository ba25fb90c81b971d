//! `dacapo explain`: the protocol of each flow of a session file, and why it is that one.

use crate::cli::{ExplainArgs, or_usage};
use crate::exit::{Exit, Failure, exit_of};
use crate::output;
use dacapo::plan::{Assumptions, FlowExplanation, Plan};
use serde_json::json;

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result<Exit, Failure> {
    let asked = or_usage(args.asked());
    let assumptions =
        Assumptions { path: args.path, assumes_missing_media: true, ..Assumptions::default() };
    let plan = match Plan::load_for(&args.file, &assumptions) {
        Ok(plan) => plan,
        Err(errors) => return Ok(super::refuse("explain", &args.file, &errors)),
    };
    let explained = match &asked {
        None => plan.explain(),
        Some(asked) => match plan.explain_for(asked) {
            Ok(explained) => explained,
            Err(error) => {
                output::note(format_args!("dacapo: explain: {error}"));
                return Ok(exit_of(error.code));
            }
        },
    };
    if args.json {
        output::json(&json!({ "session": plan.name(), "flows": explained }));
    } else {
        print(&explained);
    }
    Ok(Exit::Success)
}

/// Prints why flows have the protocols that they have.
pub fn print(explained: &[FlowExplanation]) {
    for (at, flow) in explained.iter().enumerate() {
        if at > 0 {
            output::line("");
        }
        output::line(flow.to_string().trim_end());
    }
}
