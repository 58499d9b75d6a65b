//! What `aggregate` is told.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::by::{self, By};
use super::row_format::RowFormat;
use crate::args::Reading;

const EXAMPLES: &str = "\
Groups:
  word               bytes between ASCII white space
  ngram:N            N words that follow each other in a file
  kmer:K             K bases of FASTA or FASTQ, up to 64; of a k-mer and its reverse complement the lesser
  column:C[,C...]    columns of csv, tsv, jsonl or Parquet, by name or, but for jsonl, by number from 1;
                     a name, or a separator of --fn, that holds a comma or a colon stands in double
                     quotes; values are told apart by their texts, so 1 and 1.0 are two groups
Inputs that are gzip or zstd data are unpacked.

Examples:
  forebay aggregate --by word --top 10 book.txt
  forebay aggregate --by word --fold-case notes.txt logs/*.gz
  forebay aggregate --by kmer:25 --out kmers.tsv reads.fastq.gz --memory 2G
  forebay aggregate --by column:country,year --fn count,sum:amount,max:price sales.csv
  forebay aggregate --by column:country,year --fn sum:amount --rollup --out sums.csv sales-*.csv
  forebay aggregate --by column:country --fn sum:amount --partial --out part-1.arrow sales-1.csv
  forebay aggregate --merge part-1.arrow part-2.arrow --out sums.csv
  forebay aggregate --store hits.db --by column:path logs/*.jsonl
  forebay aggregate --store hits.db --top 10";

/// Group the records of files and tell what each group comes to: how many, sums, extremes, sketches
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\nFunctions:\n{}", by::functions_help()))]
pub(crate) struct AggregateArgs {
    /// The inputs; - is standard input, and so is none, but with --store
    pub(super) files: Vec<PathBuf>,
    /// What a group is: word, ngram:N, kmer:K, column:C[,C...]; a store knows its own
    #[arg(long, value_parser = str::parse::<By>, required_unless_present_any = ["store", "merge"])]
    pub(super) by: Option<By>,
    /// What each group is asked for, such as count,sum:amount; --help lists the functions [default: count]
    #[arg(long = "fn", value_name = "F[,F...]", action = ArgAction::Append)]
    pub(super) functions: Vec<String>,
    /// How columns are written in all inputs: csv, tsv, jsonl, parquet [default: as each file's name says]
    #[arg(long, value_parser = str::parse::<RowFormat>)]
    pub(super) format: Option<RowFormat>,
    /// The first row of csv or tsv names the columns; so it does where a column is given by name
    #[arg(long)]
    pub(super) header: bool,
    /// Words that differ in the case of ASCII letters are one
    #[arg(long)]
    pub(super) fold_case: bool,
    /// Also group by every choice of the columns; what is left out is null
    #[arg(long, conflicts_with = "rollup")]
    pub(super) cube: bool,
    /// Also group without the last column, the last two, and so on
    #[arg(long)]
    pub(super) rollup: bool,
    /// Only the N groups whose first answer is largest, largest first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "unsorted", allow_negative_numbers = true)]
    pub(super) top: Option<u32>,
    /// Groups as they come, instead of by their keys
    #[arg(long)]
    pub(super) unsorted: bool,
    /// Write groups to a file, by its name as .csv, .tsv, .jsonl or .parquet
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Write the states of the groups instead of what they come to, to --out, a file of Arrow whose name ends in .arrow
    ///
    /// For groups of columns. Inputs may be divided in any way, each part be grouped by itself, on any machine, and the
    /// files be merged by --merge: that comes to what all inputs come to together.
    #[arg(long, requires = "out", conflicts_with_all = ["cube", "rollup", "top", "unsorted"])]
    pub(super) partial: bool,
    /// The inputs are files of --partial: merge them; they say by what they are grouped, and what is asked of groups
    #[arg(long, conflicts_with_all = ["by", "functions", "format", "header", "fold_case", "store", "skip_bad"])]
    pub(super) merge: bool,
    /// Where files go that do not fit memory [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(super) temp: Option<PathBuf>,
    /// Keep the groups in a database, made where it is missing, and add to them what of the inputs it does not have
    /// yet; without inputs, only show them
    ///
    /// What was read is committed together with how far it was read, so the same command goes on where one before was
    /// stopped, and counts nothing twice. Commits come whenever the groups of what was read since the last one take a
    /// sixteenth of the memory, and at the end. They survive a crash of the process; a power loss may take the last. A file is known by its path, with links resolved, and where it was renamed by
    /// its number in the file system, where it was packed or moved by its content. One that was read to its end is
    /// passed over; one that has grown is read on from there. A last record that has no end yet is left until it has
    /// one, and said to be. A file that is shorter than what was read of it, or differs in the first or last 4 KiB of
    /// that, is an error, and so is a packed or Parquet file that is another than it was; the other files are read all
    /// the same.
    #[arg(long, value_name = "DIR")]
    pub(super) store: Option<PathBuf>,
    /// With --store: the last record of each file is counted also where no newline, or white space, ends it
    #[arg(long = "final", requires = "store")]
    pub(super) is_final: bool,
    /// What the groups are called in the store
    #[arg(long, value_name = "NAME", default_value = "groups", requires = "store")]
    pub(super) table: String,
    /// With --store: add to groups that were rescued from a damaged database, though some or files' names may be lost
    #[arg(long, requires = "store")]
    pub(super) despite_losses: bool,
    /// How many threads read, group and write [default: as many as there are cores; 4 at most with --store or --merge]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Count malformed records and go on; a value that a function refuses is none for that function
    #[arg(long)]
    pub(super) skip_bad: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}
