//! Builders of aggregators' tables.

use std::sync::Arc;

use forebay_aggregate::{Aggregate, Merging};
use forebay_base::Result;
use forebay_layouts::RuleName;

use super::{AskedRule, TableBuilder};
use crate::{Aggregator, Table};

/// What a builder makes that was asked for an aggregator of this function.
#[derive(Clone, Debug)]
pub struct Aggregating<A>(Arc<A>);

impl TableBuilder {
    pub(crate) fn aggregating<A: Aggregate>(self, function: A) -> TableBuilder<Aggregating<A>> {
        let function = Arc::new(function);
        let name = RuleName::States(function.state_type().as_str().to_string());
        let rule = AskedRule { name, code: Some(Arc::new(Merging(Arc::clone(&function)))) };
        let Self { engine, name, filter, existing, made_ordered, asked, .. } = self;
        TableBuilder {
            engine,
            name,
            kind: Aggregating(function),
            rule,
            filter,
            existing,
            made_ordered,
            asked,
        }
    }
}

impl<A: Aggregate> TableBuilder<Aggregating<A>> {
    /// Makes a table of which groups can be [deleted](Aggregator::delete); by default they cannot. States that grow as
    /// they merge are merged record by record then, and builds that are older than this option do not open the table.
    pub fn deletes(mut self, deletes: bool) -> Self {
        let state_type = self.kind.0.state_type().as_str().to_string();
        self.rule.name = match deletes {
            true => RuleName::DeletableStates(state_type),
            false => RuleName::States(state_type),
        };
        self
    }

    /// Opens or makes the aggregator.
    pub fn open(self) -> Result<Aggregator<A>> {
        let state = self.open_state()?;
        Ok(Aggregator::new(Table::new(&self.engine, &state), self.kind.0))
    }
}
