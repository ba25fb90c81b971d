//! [`Price`]: the profile of a module that changes no figure, and has a cost.

use dacapo_lift::{Cost, Params, Profile, Setting};

/// What it costs, and whether it is ever proposed where nobody names it.
#[derive(Debug)]
pub(crate) struct Price {
    pub cost: Cost,
    pub is_proposed: bool,
}

impl Profile for Price {
    fn suits(&self, _: &Setting) -> bool {
        self.is_proposed
    }

    fn cost(&self, _: &Params) -> Cost {
        self.cost
    }
}
