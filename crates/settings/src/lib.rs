//! Options by text: names are the engine's, and the command's where those differ; `-` is as good as `_`. A new option is
//! a row here, and programs in C, Java and Python have it.
//!
//! **Invariant:** what is not an option's name or value is an error that tells what is.

#![warn(missing_docs)]

mod any_table;

use std::time::Duration;

pub use any_table::AnyTable;
use forebay::aggregate::Aggregate;
use forebay::{
    Aggregating, Codec, Durability, Error, Layout, Options, PrefixFilter, ReadOptions, Result, StoredRule,
    TableBuilder,
};
use forebay_units::{amounts, sizes, times};

/// What an option with its value does.
pub type Setting<T> = Box<dyn Fn(T) -> T + Send + Sync>;
/// An option's name, and what reads its value.
type Row<T> = (&'static str, fn(&str) -> Result<Setting<T>, String>);

/// The option of a table's merge rule.
pub const MERGE_RULE: &str = "merge_rule";

macro_rules! rows {
    ($on:ty; $($name:literal: $read:path => $set:ident),* $(,)?) => {
        vec![$(($name, |text| {
            let value = $read(text)?;
            Ok(Box::new(move |on: $on| on.$set(value)))
        })),*]
    };
}

/// An option of a database.
pub fn database(name: &str, value: &str) -> Result<Setting<Options>> {
    let rows: Vec<Row<Options>> = rows! { Options;
        "memory": sizes::parse => memory_limit,
        "memory_limit": sizes::parse => memory_limit,
        "write_buffer": sizes::parse => write_buffer,
        "write_buffers": number => write_buffers,
        "resident_percent": number => resident_percent,
        "background_threads": number => background_threads,
        "background_rate": sizes::parse => background_rate,
        "durability": durability => durability,
        "log": truth => log,
        "sync_interval": time => sync_interval,
        "read_compaction_ratio": ratio => read_compaction_ratio,
        "keep_changes": sizes::parse => keep_changes,
        "open_files_max": number => open_files_max,
        "system_cache": truth => system_cache,
        "transaction_attempts": number => transaction_attempts,
        "transaction_reads": sizes::parse => transaction_reads,
        "create_if_missing": truth => create_if_missing,
        "read_only": truth => read_only,
        "salvage": truth => salvage,
    };
    setting(&rows, name, value)
}

/// An option of a table.
pub fn table(name: &str, value: &str) -> Result<Setting<TableBuilder>> {
    let mut rows = of_any_table();
    rows.push((MERGE_RULE, |text| {
        let rule: StoredRule = text.parse().map_err(|error: Error| error.to_string())?;
        Ok(Box::new(move |table: TableBuilder| table.merge_rule(rule.clone())))
    }));
    setting(&rows, name, value)
}

/// Options of reads: `fill_cache=false,read_ahead=1M,keys_only=true`, or some of these.
pub fn reading(text: &str) -> Result<ReadOptions> {
    let rows: Vec<Row<ReadOptions>> = rows! { ReadOptions;
        "fill_cache": truth => fill_cache,
        "read_ahead": sizes::parse => read_ahead_bytes,
        "keys_only": truth => keys_only,
    };
    text.split(',').try_fold(ReadOptions::default(), |reading, option| {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("`{option}` is no option of reads; give NAME=VALUE")))?;
        Ok(setting(&rows, name.trim(), value.trim())?(reading))
    })
}

/// An option of an aggregator.
pub fn aggregator<A: Aggregate>(name: &str, value: &str) -> Result<Setting<TableBuilder<Aggregating<A>>>> {
    let mut rows: Vec<Row<TableBuilder<Aggregating<A>>>> = of_any_table();
    rows.push(("deletes", |text| {
        let deletes = truth(text)?;
        Ok(Box::new(move |table: TableBuilder<Aggregating<A>>| table.deletes(deletes)))
    }));
    setting(&rows, name, value)
}

/// Whether a name stands for this option.
pub fn is_named(name: &str, option: &str) -> bool {
    name.replace('-', "_") == option
}

fn of_any_table<K: 'static>() -> Vec<Row<TableBuilder<K>>> {
    rows! { TableBuilder<K>;
        "layout": layout => layout,
        "existing": truth => existing,
        "node_bytes": sizes::parse => node_bytes,
        "fan_out": number => fan_out,
        "fast_per_slow": number => fast_per_slow,
        "lists_max": number => lists_max,
        "repeats_max": ratio => repeats_max,
        "filter_bits_per_key": number => filter_bits_per_key,
        "prefix_filter": prefix_filter => prefix_filter,
        "codec": codec => codec,
        "max_space_amplification": ratio => max_space_amplification,
        "reclaim_interval": time => reclaim_interval,
        "ttl": time => time_to_live,
        "time_to_live": time => time_to_live,
        "values_apart": size => values_apart,
    }
}

/// The row of a name, and what it makes of a value.
fn setting<T>(rows: &[Row<T>], name: &str, value: &str) -> Result<Setting<T>> {
    let row = rows.iter().find(|(known, _)| is_named(name, known)).ok_or_else(|| {
        let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("there is no option `{name}`; there are: {}", names.join(", ")))
    })?;
    (row.1)(value).map_err(|reason| Error::invalid(format!("option `{name}` is `{value}`: {reason}")))
}

fn number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    N::try_from(amounts::parse(text)?).map_err(|_| "more than can be counted".into())
}

fn size(text: &str) -> Result<u32, String> {
    u32::try_from(sizes::parse(text)?).map_err(|_| "give less than 4G".into())
}

fn ratio(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number, such as 2 or 1.5".into())
}

fn truth(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "give true or false".into())
}

fn time(text: &str) -> Result<Duration, String> {
    if text == "never" { Ok(Duration::MAX) } else { times::parse(text) }
}

fn layout(text: &str) -> Result<Layout, String> {
    text.parse::<Layout>().map_err(|error| error.to_string())
}

/// How durable a write is to be: `memory`, `os` or `disk`.
pub fn durability(text: &str) -> Result<Durability, String> {
    text.parse::<Durability>().map_err(|error| error.to_string())
}

fn prefix_filter(text: &str) -> Result<Option<PrefixFilter>, String> {
    PrefixFilter::or_none(text).map_err(|error| error.to_string())
}

fn codec(text: &str) -> Result<Codec, String> {
    match text {
        "none" => Ok(Codec::None),
        "lz4" => Ok(Codec::Lz4),
        _ => Err("give none or lz4".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(outcome: Result<Setting<T>>) -> String {
        outcome.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_no_option_or_no_value_is_told() {
        assert!(database("memory-limit", "64M").is_ok() && table("ttl", "never").is_ok());
        let told = refused(database("memry", "64M"));
        assert!(told.contains("`memry`") && told.contains("memory, memory_limit"), "{told}");
        let told = refused(table("codec", "zip"));
        assert!(told.contains("option `codec` is `zip`: give none or lz4"), "{told}");
        assert!(refused(table("deletes", "true")).contains("merge_rule"));
        let told = refused(aggregator::<forebay::aggregate::functions::Count>("merge_rule", "add-i64/1"));
        assert!(told.contains("deletes") && !told.contains("there are: merge_rule"), "{told}");
    }
}
