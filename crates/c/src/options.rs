//! Options by text, which [`forebay_settings`] knows: a new one is a row there and no new symbol.

use std::ffi::c_void;
use std::sync::Arc;

use forebay::encryption::{KEY_BYTES, Key, OneKey};
use forebay::{Error, MergeRule, TableBuilder};
use forebay_settings::{MERGE_RULE, Setting, is_named};

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
        let set = forebay_settings::database(name, value)?;
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
        let setting = forebay_settings::table(name, value)?;
        let is_rule = is_named(name, MERGE_RULE);
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
