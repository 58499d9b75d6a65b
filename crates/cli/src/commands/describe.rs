//! `describe`: the shape of the tables.

use clap::Args;

use crate::args::{Common, DatabaseArgs, Reading};
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::form::Form;
use crate::output::Output;

/// Print the shape of the tables: their trees, nodes and lists
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  forebay describe users.db")]
pub(crate) struct DescribeArgs {
    #[command(flatten)]
    target: DatabaseArgs,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

pub(crate) fn run(args: &DescribeArgs, common: &Common) -> Result<(), Failure> {
    let db = open(&args.target.db, common, Access::Read)?;
    let mut description = db.describe();
    if let Some(name) = &args.target.table {
        known_table(&db, name)?;
        description.tables.retain(|table| table.name == *name);
    }
    let mut output = Output::new(common.form());
    match common.form() {
        Form::Text => output.line(description.to_string().trim_end())?,
        Form::Json => output.json("description", &description)?,
    }
    output.flush()?;
    Ok(db.close()?)
}
