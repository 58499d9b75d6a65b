//! `layout`: another organisation for a table.

use clap::Args;
use forebay::Layout;
use serde_json::json;

use crate::args::parse::parse_layout;
use crate::args::{Common, TableArgs, Writing};
use crate::clock::Stopwatch;
use crate::database::{Access, known_table, open};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::record_bar;

/// Give a table another layout, and bring what it holds into that form
#[derive(Debug, Args)]
#[command(after_help = "Layouts that keep keys in order, from cheap writes to cheap reads:\n  \
                        no-merge, tiering[:t=10], stacks[:t=10], wb-tree:ordered, geometric:r=3, geometric:p=2, \
                        lazy-leveling[:t=10], leveling[:t=10], jungle[:c=3,t=10,upper=3,levels=total,inline=64], range-merge[:c=3,inline=64], immediate\n\
                        Layouts in hash order: wb-tree. From one order to the other all records are sorted \
                        anew, for which the table takes twice the space meanwhile.\n\n\
                        Examples:\n  forebay layout users.db users leveling\n  forebay layout users.db users tiering:t=4 --later")]
pub(crate) struct LayoutArgs {
    #[command(flatten)]
    target: TableArgs,
    /// The new layout
    #[arg(value_name = "NEW_LAYOUT", value_parser = parse_layout)]
    layout: Layout,
    /// Only change the rules; whoever opens the database next does the work, beside reads and writes
    #[arg(long)]
    later: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

pub(crate) fn run(args: &LayoutArgs, common: &Common) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let db = open(&args.target.db, common, Access::Write)?;
    let table = known_table(&db, &args.target.table)?;
    let before = table.layout()?;
    let bar = record_bar(common);
    table.set_layout_telling(args.layout, &mut |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    if !args.later {
        db.wait_until_idle()?;
    }
    let stats = db.stats();
    db.close()?;
    let seconds = watch.seconds();
    let object = json!({
        "table": args.target.table,
        "layout_before": before.to_string(),
        "layout": args.layout.to_string(),
        "seconds": seconds,
        "list_bytes_written": stats.list_bytes_written.values().sum::<u64>(),
        "space_amplification": stats.space_amplification,
    });
    let text =
        format_args!("{}: {before} is now {}, in {seconds:.1} s", args.target.table, args.layout).to_string();
    Output::summary(common, &object, text)
}
