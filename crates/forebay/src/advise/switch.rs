//! Whether another layout pays for a table that is there.

use forebay_base::Result;
use forebay_layouts::Layout;
use serde::Serialize;

use super::{Advice, Limits, Workload, price_of};

/// What a table has, what it might have, and what becoming that costs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Switch {
    /// What it has.
    pub now: Advice,
    /// What is advised.
    pub then: Advice,
    /// The machine's time for bringing all that is there into the new form.
    pub seconds: f64,
    /// After so long what is saved has paid for that; `None` where nothing is saved.
    pub paid_back_seconds: Option<f64>,
}

/// Holds what a table has against an advice.
pub fn switch(
    layout: Layout,
    values_apart: Option<u32>,
    then: &Advice,
    workload: &Workload,
    limits: &Limits,
) -> Result<Switch> {
    let now = price_of(layout, values_apart, workload, limits)?;
    let is_same = now.layout == then.layout && now.values_apart.is_some() == then.values_apart.is_some();
    debug_assert!(now.prices.rewrite_seconds >= 0.0, "no switch gives time back");
    let seconds = if is_same { 0.0 } else { now.prices.rewrite_seconds.max(then.prices.rewrite_seconds) };
    let saved = now.prices.busy_share - then.prices.busy_share;
    let paid_back_seconds = (!is_same && saved > 0.0).then(|| seconds / saved);
    Ok(Switch { now, then: then.clone(), seconds, paid_back_seconds })
}
