//! `describe`: the shape of the tables.

use clap::Args;

use super::{Access, existing_table, open};
use crate::args::{Common, DatabaseArgs};
use crate::failure::Failure;
use crate::output::{Form, Output};

/// Print the shape of the tables: their trees, nodes and lists
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay describe users.db")]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    target: DatabaseArgs,
}

pub(crate) fn run(args: &DescribeArgs, common: &Common) -> Result<(), Failure> {
    let db = open(&args.target.db, common, Access::Read)?;
    let mut description = db.describe();
    if let Some(name) = &args.target.table {
        existing_table(&db, name)?;
        description.tables.retain(|table| table.name == *name);
    }
    let mut output = Output::new();
    match common.form() {
        Form::Text => output.line(description.to_string().trim_end())?,
        Form::Json => output.json(&description)?,
    }
    output.flush()?;
    Ok(db.close()?)
}
