//! [`Asked`]: by what rows are grouped, and the functions with the names that their answers are to have.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use forebay::{Error, Result};
use forebay_aggregate::arrow::{OwnFunctions, PartialSchema};
use forebay_aggregate::names::split_words;
use forebay_aggregate::{columns_of, parse_function};
use forebay_env::sync::Arc;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The columns of the key.
    pub keys: Vec<String>,
    /// Each name, and the place of its function.
    pub names: Vec<(String, usize)>,
    /// Each once: several names may stand for one.
    pub functions: Vec<String>,
}

impl Asked {
    /// Functions such as `sum:amount`, under their names.
    pub fn new(keys: Vec<String>, named: Vec<(String, String)>, own: &OwnFunctions) -> Result<Self> {
        if named.is_empty() {
            return Err(Error::invalid("aggs has no function; count is the simplest"));
        }
        let (mut names, mut functions) = (Vec::new(), Vec::<String>::new());
        for (name, function) in named {
            if keys.contains(&name) {
                return Err(Error::invalid(format!(
                    "two columns would be called `{name}`: one of key and one of aggs"
                )));
            }
            let function = function.trim().to_string();
            if split_words(&function, ',').len() != 1 {
                return Err(Error::invalid(format!(
                    "`{function}` is more than one function; give each its name"
                )));
            }
            // What it is of does not matter yet, and where the first rows come is far away from the fault.
            if !OwnFunctions::is_own(&function) {
                let columns: Vec<_> = columns_of(&function).collect();
                parse_function(&function, &columns.iter().map(|column| &**column).collect::<Vec<_>>())?;
            }
            let place = functions.iter().position(|known| *known == function).unwrap_or_else(|| {
                functions.push(function);
                functions.len() - 1
            });
            names.push((name, place));
        }
        debug_assert!(functions.len() <= names.len(), "each function has a name");
        own.check(functions.iter().map(String::as_str))?;
        Ok(Self { keys, names, functions })
    }

    /// The same functions of groups by one more column, before the others.
    pub fn behind(mut self, column: &str) -> Result<Self> {
        if self.keys.iter().any(|key| key == column) || self.names.iter().any(|(name, _)| name == column) {
            return Err(Error::invalid(format!("two columns would be called `{column}`: one of key is")));
        }
        self.keys.insert(0, column.to_string());
        Ok(self)
    }

    /// The same functions of groups by fewer columns.
    pub fn coarser(&self, keys: Vec<String>) -> Result<Self> {
        for (at, key) in keys.iter().enumerate() {
            if !self.keys.contains(key) || keys[..at].contains(key) {
                return Err(Error::invalid(format!(
                    "groups are by {:?}; name some of these columns, each once, and not `{key}`",
                    self.keys
                )));
            }
        }
        Ok(Self { keys, ..self.clone() })
    }

    /// The functions as one text.
    pub fn list(&self) -> String {
        self.functions.join(",")
    }

    /// Each name with its function.
    pub fn named(&self) -> Vec<(&str, &str)> {
        self.names.iter().map(|(name, place)| (&name[..], &self.functions[*place][..])).collect()
    }

    /// What groups of rows of this schema are.
    pub fn partial(&self, rows: &Schema, own: &OwnFunctions) -> Result<PartialSchema> {
        PartialSchema::with_own(rows, &self.keys, &self.list(), own)
    }

    /// What groups by these columns are, of the states of groups by more.
    pub fn partial_of_states(&self, finer: &PartialSchema, own: &OwnFunctions) -> Result<PartialSchema> {
        let keys = self.keys.iter().filter_map(|key| finer.keys().iter().find(|field| field.name() == key));
        let fields = keys.chain(finer.states()).cloned().collect::<Vec<_>>();
        PartialSchema::of_own(&Schema::new(fields), own)
    }

    /// An error unless these are the groups of a schema of states.
    pub fn agrees(&self, schema: &PartialSchema) -> Result<()> {
        let [keys, functions] = [schema.keys(), schema.states()]
            .map(|fields| fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>());
        if keys == self.keys && functions == self.functions {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "these are groups by {keys:?} with {functions:?}, where those by {:?} with {:?} are asked for",
            self.keys, self.functions
        )))
    }

    /// What answers look like: the columns of the key, and one for each name. `own` tells the type of a function that
    /// the program has brought.
    pub fn answers(&self, schema: &PartialSchema, own: impl Fn(usize) -> Option<DataType>) -> SchemaRef {
        let fields = schema.answers().fields();
        let keys = fields.iter().take(self.keys.len()).cloned();
        let named = self.names.iter().map(|(name, place)| {
            let kind = own(*place).unwrap_or_else(|| fields[self.keys.len() + place].data_type().clone());
            Arc::new(Field::new(name, kind, true))
        });
        Arc::new(Schema::new(keys.chain(named).collect::<Vec<_>>()))
    }

    /// A batch of answers, by function, as one by name. `answered` makes the answers of a function's column.
    pub fn named_batch<E: From<Error>>(
        &self,
        schema: &SchemaRef,
        batch: &RecordBatch,
        answered: impl Fn(usize, &ArrayRef) -> Result<ArrayRef, E>,
    ) -> Result<RecordBatch, E> {
        let mut columns = batch.columns().iter().take(self.keys.len()).cloned().collect::<Vec<_>>();
        let answers = batch.columns()[self.keys.len()..].iter().enumerate();
        let answers =
            answers.map(|(place, column)| answered(place, column)).collect::<Result<Vec<_>, E>>()?;
        columns.extend(self.names.iter().map(|(_, place)| ArrayRef::clone(&answers[*place])));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let made = RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options);
        Ok(made.map_err(|error| Error::Bug(format!("answers make no record batch: {error}")))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(keys: &[&str], named: &[(&str, &str)]) -> Result<Asked> {
        let texts = named.iter().map(|(name, function)| (name.to_string(), function.to_string()));
        Asked::new(
            keys.iter().map(|key| key.to_string()).collect(),
            texts.collect(),
            &OwnFunctions::default(),
        )
    }

    #[test]
    fn what_cannot_be_asked_is_told_and_functions_stand_once() {
        let told = |made: Result<Asked>| made.map_or_else(|error| error.to_string(), |asked| asked.list());
        assert!(told(asked(&["k"], &[])).contains("aggs has no function"));
        assert!(told(asked(&["k"], &[("k", "count")])).contains("called `k`"));
        assert!(told(asked(&["k"], &[("n", "count,sum:v")])).contains("more than one"));
        assert!(told(asked(&["k"], &[("n", "cuont")])).contains("did you mean `count`"));
        assert!(asked(&["k"], &[("n", "approx_quantile:v:99")]).is_err(), "a share is at most 1");
        let both = asked(&["k", "d"], &[("n", "count"), ("m", " count "), ("s", "sum:v")]).unwrap();
        assert_eq!((&both.list()[..], both.names[1].1), ("count,sum:v", 0));
        assert_eq!(both.named()[2], ("s", "sum:v"));
        assert_eq!(both.coarser(vec!["d".into()]).unwrap().keys, ["d"]);
        assert!(told(both.coarser(vec!["d".into(), "d".into()])).contains("not `d`"));
        assert!(told(both.clone().behind("s")).contains("called `s`"));
        assert_eq!(both.behind("w").unwrap().keys, ["w", "k", "d"]);
    }
}
