//! Options by text: names are the engine's, and the command's where those differ; `-` is as good as `_`. A new option
//! is a row here and no new symbol.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use forebay::encryption::{KEY_BYTES, Key, OneKey};
use forebay::{Codec, Durability, Error, Layout, MergeRule, PrefixFilter, Result, StoredRule, TableBuilder};
use forebay_units::{amounts, sizes, times};

use crate::error::ErrorOut;
use crate::kernel::{as_they_are, fallible, plain};

/// `forebay_options`.
#[derive(Default)]
pub(crate) struct Options(pub(crate) forebay::Options);

/// `forebay_table_options`.
#[derive(Default)]
pub(crate) struct TableOptions {
    set: Vec<Setting<TableBuilder>>,
    rule: Option<Rule>,
    has_stored_rule: bool,
}

impl TableOptions {
    /// What they make of a table that is to be opened.
    pub(crate) fn apply(&self, table: TableBuilder) -> TableBuilder {
        let table = self.set.iter().fold(table, |table, set| set(table));
        match &self.rule {
            Some(rule) => table.merge_rule(rule.clone()),
            None => table,
        }
    }
}

const TWO_RULES: &str =
    "a table has one merge rule: the option merge_rule or forebay_table_options_merge_rule";

/// What an option with its value does.
type Setting<T> = Box<dyn Fn(T) -> T + Send + Sync>;
/// An option's name, and what reads its value.
type Row<T> = (&'static str, fn(&str) -> Result<Setting<T>, String>);

macro_rules! rows {
    ($on:ty; $($name:literal: $read:path => $set:ident),* $(,)? $(; $other:literal: $make:path)?) => {
        &[$(($name, |text| {
            let value = $read(text)?;
            Ok(Box::new(move |on: $on| on.$set(value)))
        }),)* $(($other, $make))?]
    };
}

const DATABASE: &[Row<forebay::Options>] = rows! { forebay::Options;
    "memory": sizes::parse => memory_limit,
    "memory_limit": sizes::parse => memory_limit,
    "write_buffer": sizes::parse => write_buffer,
    "write_buffers": number => write_buffers,
    "background_threads": number => background_threads,
    "background_rate": sizes::parse => background_rate,
    "durability": durability => durability,
    "sync_interval": time => sync_interval,
    "read_compaction_ratio": ratio => read_compaction_ratio,
    "keep_changes": sizes::parse => keep_changes,
    "open_files_max": number => open_files_max,
    "create_if_missing": truth => create_if_missing,
    "read_only": truth => read_only,
    "salvage": truth => salvage,
};

const TABLE: &[Row<TableBuilder>] = rows! { TableBuilder;
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
    "values_apart": size => values_apart;
    "merge_rule": stored_rule
};

/// The row of a name, and what it makes of a value.
fn setting<T>(rows: &[Row<T>], name: &str, value: &str) -> Result<Setting<T>> {
    let asked = name.replace('-', "_");
    let row = rows.iter().find(|(known, _)| *known == asked).ok_or_else(|| {
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

fn durability(text: &str) -> Result<Durability, String> {
    text.parse::<Durability>().map_err(|error| error.to_string())
}

fn stored_rule(text: &str) -> Result<Setting<TableBuilder>, String> {
    let rule: StoredRule = text.parse().map_err(|error: Error| error.to_string())?;
    Ok(Box::new(move |table: TableBuilder| table.merge_rule(rule.clone())))
}

fn prefix_filter(text: &str) -> Result<Option<PrefixFilter>, String> {
    match text {
        "none" => Ok(None),
        _ => text.parse().map(Some).map_err(|error: Error| error.to_string()),
    }
}

fn codec(text: &str) -> Result<Codec, String> {
    match text {
        "none" => Ok(Codec::None),
        "lz4" => Ok(Codec::Lz4),
        _ => Err("give none or lz4".into()),
    }
}

/// `forebay_merge`: appends to `out` what a newer operand and what is older come to.
type Merge = Option<
    extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_bytes: usize,
        newer: *const c_void,
        newer_bytes: usize,
        older: *const c_void,
        older_bytes: usize,
        out: &mut Output,
    ),
>;

as_they_are!([] Merge);

/// `forebay_output`: what a rule has made so far.
pub(crate) struct Output(Vec<u8>);

/// A merge rule in C.
#[derive(Clone)]
struct Rule {
    name: String,
    merge: Merge,
    context: Context,
}

/// Only C looks into it, and the header says that any thread may call.
#[derive(Clone, Copy)]
struct Context(usize);

impl MergeRule for Rule {
    fn name(&self) -> &str {
        &self.name
    }

    fn merge(&self, key: &[u8], newer: &[u8], older: &[u8], out: &mut Vec<u8>) {
        let Some(merge) = self.merge else { return };
        let mut output = Output(std::mem::take(out));
        merge(
            std::ptr::with_exposed_provenance_mut(self.context.0),
            key.as_ptr().cast(),
            key.len(),
            newer.as_ptr().cast(),
            newer.len(),
            older.as_ptr().cast(),
            older.len(),
            &mut output,
        );
        *out = output.0;
    }
}

fallible! { ErrorOut<'_>;
    fn forebay_options_set(options: &mut Options, name: &str, value: &str) -> bool {
        let set = setting(DATABASE, name, value)?;
        options.0 = set(std::mem::take(&mut options.0));
        Ok(true)
    }

    fn forebay_options_set_key(options: &mut Options, name: &str, key: &[u8] [key_bytes]) -> bool {
        let key = key.try_into().map_err(|_| {
            Error::invalid(format!("a key has {KEY_BYTES} bytes, and {} were given", key.len()))
        })?;
        let provider = Arc::new(OneKey::new(name, Key::new(key)));
        options.0 = std::mem::take(&mut options.0).encryption(provider);
        Ok(true)
    }

    fn forebay_table_options_set(options: &mut TableOptions, name: &str, value: &str) -> bool {
        let setting = setting(TABLE, name, value)?;
        let is_rule = name.replace('-', "_") == "merge_rule";
        if is_rule && options.rule.is_some() {
            return Err(Error::invalid(TWO_RULES));
        }
        options.has_stored_rule |= is_rule;
        options.set.push(setting);
        Ok(true)
    }

    fn forebay_table_options_merge_rule(
        options: &mut TableOptions,
        name: &str,
        merge: Merge,
        context: *mut c_void,
    ) -> bool {
        if merge.is_none() {
            return Err(Error::invalid("merge is a null pointer"));
        }
        if options.has_stored_rule {
            return Err(Error::invalid(TWO_RULES));
        }
        options.rule = Some(Rule { name: name.into(), merge, context: Context(context.expose_provenance()) });
        Ok(true)
    }
}

plain! {
    fn forebay_options_new() -> Option<Box<Options>> {
        Some(Box::default())
    }

    fn forebay_options_free(options: Option<Box<Options>>) {
        drop(options);
    }

    fn forebay_table_options_new() -> Option<Box<TableOptions>> {
        Some(Box::default())
    }

    fn forebay_table_options_free(options: Option<Box<TableOptions>>) {
        drop(options);
    }

    fn forebay_output_append(out: &mut Output, data: &[u8] [bytes]) {
        out.0.extend_from_slice(data);
    }
}
