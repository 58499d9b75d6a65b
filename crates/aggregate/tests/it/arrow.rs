//! Record batches in and out: rows that were divided in any way, and whose states were merged, give what all rows give
//! one by one; and what does not fit is refused with a reason.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use forebay_aggregate::arrow::{
    Form, PartialBatches, PartialReader, PartialSchema, PartialWriter, RecordBatchAggregator,
    RecordBatchStates, units,
};
use forebay_aggregate::{
    Aggregate, Aggregator, AggregatorOptions, Composite, FUNCTIONS, HashAggregator, Value, columns_of,
    group_key,
};
use forebay_env::Rng;

use crate::place::Place;

/// A function of each form over the columns `int`, `float` and `text`, and whether it is exact.
fn functions() -> Vec<(String, bool)> {
    let exact = |name: &str| {
        !matches!(name, "fsum" | "avg" | "mean" | "corr" | "r2" | "approx_quantile" | "frequent")
            && !name.starts_with("var")
            && !name.starts_with("stddev")
    };
    let function = |(form, _): &(&str, &str)| {
        let name = form.split([':', '[']).next().unwrap();
        let text = match name {
            "count" if !form.contains(':') => "count".into(),
            "count_if" | "bool_and" | "bool_or" => format!("{name}:truth"),
            "first" | "last" | "arg_min" | "arg_max" => format!("{name}:text:int"),
            "corr" | "r2" => format!("{name}:float:int"),
            "top_k" => "top_k:int:3:text".into(),
            "sample" => "sample:text:3".into(),
            "histogram" => "histogram:int:0;50".into(),
            "approx_quantile" => "approx_quantile:float:0.5".into(),
            "fsum" | "avg" | "mean" | "sum" | "max" => format!("{name}:float"),
            _ if name.starts_with("var") || name.starts_with("stddev") => format!("{name}:float"),
            "min" | "isum" | "bit_and" | "bit_or" | "bit_xor" => format!("{name}:int"),
            _ => format!("{name}:text"),
        };
        (text, exact(name))
    };
    FUNCTIONS.iter().map(function).collect()
}

const TEXTS: [&str; 9] =
    ["", "ulm", "Ulm", "zero\0in it", "a;b\\", "…", "\"quoted\", and long enough", "é", "-0"];

/// Rows of columns that keys and functions are made of. Floats are such whose sums are exact.
fn rows(rng: &mut Rng, count: usize) -> RecordBatch {
    let ints: Int64Array =
        (0..count).map(|_| (rng.below(7) > 0).then(|| rng.below(100) as i64 - 50)).collect();
    let floats: Float64Array =
        (0..count).map(|_| (rng.below(7) > 0).then(|| rng.below(400) as f64 / 4.0 - 30.0)).collect();
    let texts: StringArray =
        (0..count).map(|_| (rng.below(7) > 0).then(|| TEXTS[rng.index(TEXTS.len())])).collect();
    let truths: BooleanArray = (0..count).map(|_| (rng.below(7) > 0).then(|| rng.below(2) == 0)).collect();
    let mut coded = StringDictionaryBuilder::<Int8Type>::new();
    (0..count).for_each(|_| coded.append_option((rng.below(7) > 0).then(|| TEXTS[rng.index(5)])));
    let days: Date32Array = (0..count).map(|_| (rng.below(7) > 0).then(|| rng.below(4) as i32 - 2)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("int", Arc::new(ints)),
        ("float", Arc::new(floats)),
        ("text", Arc::new(texts)),
        ("truth", Arc::new(truths)),
        ("coded", Arc::new(coded.finish())),
        ("day", Arc::new(days)),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn options() -> AggregatorOptions {
    AggregatorOptions::default().memory_limit(64 << 20).adders(2)
}

/// Rows of batches by their keys, each cell as it is printed.
fn shown(
    batches: impl Iterator<Item = forebay_base::Result<RecordBatch>>,
    keys: usize,
) -> BTreeMap<String, Vec<String>> {
    let mut shown = BTreeMap::new();
    for batch in batches {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let cell = |array: &ArrayRef| format!("{:?}", array.slice(row, 1));
            let cells: Vec<_> = batch.columns().iter().map(cell).collect();
            let (key, rest) = cells.split_at(keys);
            assert_eq!(shown.insert(key.concat(), rest.to_vec()), None, "each group once");
        }
    }
    shown
}

/// The answers to rows one by one, by the keys of these columns as texts.
fn model(list: &str, columns: &[String], batch: &RecordBatch) -> BTreeMap<Vec<u8>, Vec<Value<'static>>> {
    let function = Composite::parse(list, columns).unwrap();
    let mut groups = HashAggregator::new(function, 64 << 20);
    let value = |name: &str, row: usize| {
        let array = batch.column_by_name(name).unwrap();
        match array.data_type() {
            _ if array.is_null(row) => Value::Null,
            DataType::Int64 => Value::I64(array.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => {
                Value::bytes(array.as_primitive::<Float64Type>().value(row).to_string().into_bytes())
            }
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Utf8 => Value::bytes(array.as_string::<i32>().value(row).as_bytes().to_vec()),
            DataType::Date32 => Value::from(
                array.as_primitive::<Date32Type>().value_as_date(row).unwrap().to_string().into_bytes(),
            ),
            _ => {
                let coded = array.as_dictionary::<Int8Type>();
                let texts = coded.values().as_string::<i32>();
                Value::bytes(texts.value(coded.keys().value(row) as usize).as_bytes().to_vec())
            }
        }
    };
    for row in 0..batch.num_rows() {
        let cell = |name: &str| match value(name, row) {
            Value::Null => None,
            value => Some(value.to_text().into_owned()),
        };
        let key = group_key::of(["text", "coded"].map(cell));
        let values: Vec<_> = columns.iter().map(|name| value(name, row)).collect();
        groups.add(&key, &values).unwrap();
    }
    let mut answers = BTreeMap::new();
    groups
        .for_each(&mut |key, state| {
            answers.insert(key.to_vec(), Composite::parse(list, columns).unwrap().finish(state)?);
            Ok(())
        })
        .unwrap();
    answers
}

/// The text of a cell.
fn text_of(array: &ArrayRef, row: usize) -> Option<Vec<u8>> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string().into_bytes(),
        DataType::Decimal128(_, 0) => {
            array.as_primitive::<Decimal128Type>().value(row).to_string().into_bytes()
        }
        DataType::Float64 => {
            Value::F64(array.as_primitive::<Float64Type>().value(row)).to_text().into_owned()
        }
        DataType::Boolean => array.as_boolean().value(row).to_string().into_bytes(),
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes().to_vec(),
        kind => panic!("{kind}"),
    })
}

/// Every function, over rows that go to three aggregators, some of them by files, and are merged in a fourth.
#[test]
fn rows_that_were_divided_come_to_what_all_come_to() {
    for seed in 0..4 {
        let rng = &mut Rng::new(seed);
        let count = [0, 1, 700, 3000][seed as usize];
        let batch = rows(rng, count);
        for (list, is_exact) in functions() {
            let told = format!("{list}, seed {seed}");
            let columns: Vec<_> = columns_of(&list).map(|column| column.into_owned()).collect();
            let make =
                || RecordBatchAggregator::new(&batch.schema(), &["text", "coded"], &list, options()).unwrap();
            let parts: Vec<_> = (0..3).map(|_| make()).collect();
            let mut from = 0;
            while from < count {
                let len = (1 + rng.index(400)).min(count - from);
                parts[rng.index(3)].add_batch(&batch.slice(from, len)).unwrap();
                from += len;
            }
            let merged = make();
            for (number, part) in parts.iter().enumerate() {
                if number == 0 {
                    let file = written(part);
                    let reader = PartialReader::open(Cursor::new(file)).unwrap();
                    assert_eq!(reader.schema(), *part.schema().schema());
                    reader.for_each(|batch| merged.add_partials(&batch.unwrap()).unwrap());
                    continue;
                }
                part.partials().unwrap().for_each(|batch| merged.add_partials(&batch.unwrap()).unwrap());
            }
            let whole = make();
            whole.add_batch(&batch).unwrap();
            let of = |groups: &RecordBatchAggregator| shown(groups.answers().unwrap(), 2);
            if is_exact {
                assert_eq!(of(&merged), of(&whole), "{told}");
            } else {
                assert_eq!(of(&merged).len(), of(&whole).len(), "{told}");
            }
            compare(&whole, &model(&list, &columns, &batch), is_exact, &told);
        }
    }
}

/// Whether answers are those of the model, or near them.
fn compare(
    groups: &RecordBatchAggregator,
    model: &BTreeMap<Vec<u8>, Vec<Value<'static>>>,
    is_exact: bool,
    told: &str,
) {
    let mut count = 0;
    for answers in groups.answers().unwrap() {
        let answers = answers.unwrap();
        assert_eq!(answers.schema(), *groups.schema().answers(), "{told}");
        for row in 0..answers.num_rows() {
            let key = group_key::of([0, 1].map(|at| text_of(answers.column(at), row)));
            let expected = &model[&key][0];
            let answer = text_of(answers.column(2), row);
            count += 1;
            match (expected, answer) {
                (Value::Null, answer) => assert_eq!(answer, None, "{told}"),
                (expected, Some(answer)) if is_exact => {
                    assert_eq!(
                        String::from_utf8_lossy(&answer),
                        String::from_utf8_lossy(&expected.to_text()),
                        "{told}"
                    );
                }
                (expected, Some(answer)) => {
                    let answer = Value::from(answer).as_f64();
                    if let (Some(answer), Some(expected)) = (answer, expected.as_f64()) {
                        assert!(
                            (answer - expected).abs() <= 1e-9 + expected.abs() / 20.0,
                            "{told}: {answer} {expected}"
                        );
                    }
                }
                (expected, None) => panic!("{told}: {expected:?}"),
            }
        }
    }
    assert_eq!(count, model.len(), "{told}");
}

fn written(groups: &RecordBatchAggregator) -> Vec<u8> {
    let mut writer = PartialWriter::new(Vec::new(), groups.schema()).unwrap();
    groups.partials().unwrap().for_each(|batch| writer.write(&batch.unwrap()).unwrap());
    writer.finish().unwrap()
}

/// Keys of every type come back as what they were, as partial states and from them.
#[test]
fn keys_keep_their_types() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(5)])),
        Arc::new(UInt32Array::from(vec![Some(u32::MAX), None, Some(5)])),
        Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(5)])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
        Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::INFINITY)])),
        Arc::new(Float64Array::from(vec![Some(5e-324), None, Some(-1e300)])),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(StringArray::from(vec![Some(""), None, Some("zero\0in it")])),
        Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("b")])),
        Arc::new(StringViewArray::from(vec![Some("a text of more than twelve bytes"), None, Some("b")])),
        Arc::new(BinaryArray::from_opt_vec(vec![Some(&b"\xff\0"[..]), None, Some(b"")])),
        Arc::new(LargeBinaryArray::from_opt_vec(vec![Some(&b"\xff"[..]), None, Some(b"")])),
        Arc::new(BinaryViewArray::from_iter([Some(&b"\xff"[..]), None, Some(b"")])),
        Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                [Some([1, 2]), None, Some([0, 0])].into_iter(),
                2,
            )
            .unwrap(),
        ),
        Arc::new(Date32Array::from(vec![Some(-719_529), None, Some(19_782)])),
        Arc::new(Date64Array::from(vec![Some(i64::MIN), None, Some(86_400_000)])),
        Arc::new(
            TimestampMicrosecondArray::from(vec![Some(-1), None, Some(i64::MAX)]).with_timezone("+02:00"),
        ),
        Arc::new(TimestampSecondArray::from(vec![Some(-1), None, Some(1)])),
        Arc::new(Time32MillisecondArray::from(vec![Some(0), None, Some(45_296_007)])),
        Arc::new(Time64NanosecondArray::from(vec![Some(0), None, Some(1)])),
        Arc::new(DurationSecondArray::from(vec![Some(-7), None, Some(1)])),
        Arc::new(
            Decimal128Array::from(vec![Some(-5), None, Some(i128::from(i64::MAX))])
                .with_precision_and_scale(38, 2)
                .unwrap(),
        ),
        Arc::new(
            Decimal64Array::from(vec![Some(-5), None, Some(7)]).with_precision_and_scale(10, 2).unwrap(),
        ),
        Arc::new(NullArray::new(3)),
    ];
    for column in columns {
        let kind = column.data_type().clone();
        let batch = RecordBatch::try_from_iter_with_nullable([("key", Arc::clone(&column), true)]).unwrap();
        let groups = RecordBatchAggregator::new(&batch.schema(), &["key"], "count", options()).unwrap();
        groups.add_batch(&batch).unwrap();
        groups.add_batch(&batch.slice(1, 2)).unwrap();
        let again = RecordBatchAggregator::of_partials(groups.schema().schema(), options()).unwrap();
        groups.partials().unwrap().for_each(|states| again.add_partials(&states.unwrap()).unwrap());
        for groups in [&groups, &again] {
            let mut found = BTreeMap::new();
            for answers in groups.answers().unwrap() {
                let answers = answers.unwrap();
                assert_eq!(answers.schema().field(0).data_type(), &kind);
                for row in 0..answers.num_rows() {
                    let count = answers.column(1).as_primitive::<Int64Type>().value(row);
                    found.insert(format!("{:?}", answers.column(0).slice(row, 1)), count);
                }
            }
            let mut expected = BTreeMap::new();
            for (row, count) in [1, 2, 2].into_iter().enumerate() {
                *expected.entry(format!("{:?}", column.slice(row, 1))).or_default() += count;
            }
            assert_eq!(found, expected, "{kind}");
        }
    }
}

/// Functions are given what people read, whatever the type; dictionaries of any kind are what they stand for.
#[test]
fn functions_are_given_what_people_read() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let columns: Vec<(ArrayRef, &str, &str)> = vec![
        (Arc::new(Date32Array::from(vec![19_782])), "max_text:c", "2024-02-29"),
        (
            Arc::new(TimestampMillisecondArray::from(vec![1_709_210_096_789]).with_timezone_utc()),
            "any:c",
            "2024-02-29T12:34:56.789Z",
        ),
        (Arc::new(Time32SecondArray::from(vec![61])), "any:c", "00:01:01"),
        (Arc::new(Decimal128Array::from(vec![-5]).with_precision_and_scale(9, 2).unwrap()), "sum:c", "-0.05"),
        (Arc::new(Decimal128Array::from(vec![120]).with_precision_and_scale(9, 2).unwrap()), "min:c", "1.20"),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), "max:c", "18446744073709551615"),
        (Arc::new(Int32Array::from(vec![7])), "sum:c", "7"),
        (Arc::new(Float32Array::from(vec![0.1])), "min:c", "0.1"),
        (Arc::new(DictionaryArray::<UInt16Type>::new(vec![0].into(), texts)), "any:c", "a"),
        (
            Arc::new(DictionaryArray::<Int64Type>::new(vec![0].into(), Arc::new(Int64Array::from(vec![4])))),
            "sum:c",
            "4",
        ),
        (Arc::new(FixedSizeBinaryArray::try_from_iter([[b'x', b'y']].into_iter()).unwrap()), "any:c", "xy"),
    ];
    for (column, function, expected) in columns {
        let kind = column.data_type().clone();
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let groups = RecordBatchAggregator::new(&batch.schema(), &[""; 0], function, options()).unwrap();
        groups.add_batch(&batch).unwrap();
        let answers = groups.answers().unwrap().next().unwrap().unwrap();
        let answer = answers.column(0);
        let text = match answer.data_type() {
            DataType::Decimal128(..) => answer.as_primitive::<Decimal128Type>().value_as_string(0),
            DataType::Float64 => (answer.as_primitive::<Float64Type>().value(0) as f32).to_string(),
            DataType::Binary => String::from_utf8(answer.as_binary::<i32>().value(0).to_vec()).unwrap(),
            _ => String::from_utf8(text_of(answer, 0).unwrap()).unwrap(),
        };
        assert_eq!(text, expected, "{function} of {kind}");
    }
}

/// Texts of dictionaries stay where they are: one behind the other these would be more than a batch may have. Some are
/// null, by their code or by what it stands for.
#[test]
fn dictionaries_of_any_texts_are_not_expanded() {
    let long = "x".repeat(1 << 20);
    let texts = [None, Some(&long[..])];
    let bytes = texts.map(|text| text.map(str::as_bytes));
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 1 << 20).unwrap();
    let dictionaries: [ArrayRef; 5] = [
        Arc::new(StringArray::from_iter(texts)),
        Arc::new(LargeStringArray::from_iter(texts)),
        Arc::new(LargeBinaryArray::from_iter(bytes)),
        Arc::new(StringViewArray::from_iter(texts)),
        Arc::new(fixed),
    ];
    for dictionary in dictionaries {
        let kind = dictionary.data_type().clone();
        let codes: Int8Array = (0..2100).map(|row| [None, Some(0_i8), Some(1)][row.min(2)]).collect();
        let column: ArrayRef = Arc::new(DictionaryArray::new(codes, dictionary));
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let functions = "count:c,max_text:c";
        let groups = RecordBatchAggregator::new(&batch.schema(), &[""; 0], functions, options()).unwrap();
        groups.add_batch(&batch).unwrap();
        let answers = groups.answers().unwrap().next().unwrap().unwrap();
        assert_eq!(answers.column(0).as_primitive::<Int64Type>().value(0), 2098, "{kind}");
        let kept = match answers.column(1).data_type() {
            DataType::Binary => answers.column(1).as_binary::<i32>().value(0).len(),
            _ => text_of(answers.column(1), 0).unwrap().len(),
        };
        assert_eq!(kept, 1 << 20, "{kind}");
    }
}

/// States, too, may be places in a dictionary, and then a batch tells of more than can be looked through.
#[test]
fn states_of_a_batch_have_a_bound() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
    let batch = RecordBatch::try_from_iter([("c", text)]).unwrap();
    let groups = RecordBatchAggregator::new(&batch.schema(), &[""; 0], "max_text:c", options()).unwrap();
    groups.add_batch(&batch).unwrap();
    let states = groups.partials().unwrap().next().unwrap().unwrap();
    let codes = Int8Array::from(vec![0; 2100]);
    let coded: ArrayRef = Arc::new(DictionaryArray::new(codes, Arc::clone(states.column(0))));
    let field = states.schema().field(0).clone().with_data_type(coded.data_type().clone());
    let schema = Schema::new_with_metadata(vec![field], states.schema().metadata().clone());
    let states = RecordBatch::try_new(Arc::new(schema), vec![coded]).unwrap();
    let read = |states: &RecordBatch| {
        let mut shown = 0;
        let outcome = groups.schema().read(states, Form::Exact, &mut |_, _| {
            shown += 1;
            Ok(())
        });
        (outcome, shown)
    };
    let (outcome, shown) = read(&states);
    refused(outcome, &["2 GiB of keys and states in a batch"]);
    assert_eq!((shown, read(&states.slice(0, 3)).1), (0, 3));
}

/// Rows without key columns, and without any column, are one group; none are no group.
#[test]
fn all_rows_can_be_one_group() {
    let schema = Schema::empty();
    let groups = RecordBatchAggregator::new(&schema, &[""; 0], "count", options()).unwrap();
    assert!(groups.answers().unwrap().next().is_none());
    let some = RecordBatchOptions::new().with_row_count(Some(5));
    let batch = RecordBatch::try_new_with_options(Arc::new(schema), vec![], &some).unwrap();
    groups.add_batch(&batch).unwrap();
    groups.add_batch(&batch).unwrap();
    let answers = groups.answers().unwrap().next().unwrap().unwrap();
    assert_eq!(answers.column(0).as_primitive::<Int64Type>().values(), &[10]);
}

/// More groups than a batch has, from several threads, with files: each is there once.
#[test]
fn many_groups_stream_out_of_memory_and_of_files() {
    let spilling = AggregatorOptions::default().memory_limit(4 << 20).adders(2).spill_to(Place::default());
    for options in [options(), spilling] {
        let schema = Schema::new(vec![Field::new("key", DataType::Int64, false)]);
        let groups = RecordBatchAggregator::new(&schema, &["key"], "count,list:key:3", options).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (groups, schema) = (&groups, &schema);
                scope.spawn(move || {
                    for start in (0..90_000).step_by(3000) {
                        let mut keys = Int64Builder::new();
                        (start..start + 3000).for_each(|key| keys.append_value(key * 3 + thread % 2));
                        let columns: Vec<ArrayRef> = vec![Arc::new(keys.finish())];
                        groups
                            .add_batch(&RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap())
                            .unwrap();
                    }
                });
            }
        });
        let (mut rows, mut count, mut batches) = (0, 0, 0);
        for answers in groups.answers().unwrap() {
            let answers = answers.unwrap();
            assert!(answers.num_rows() <= 8192);
            rows += answers.num_rows();
            batches += 1;
            count += answers.column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>();
        }
        assert_eq!((rows, count), (180_000, 270_000));
        assert!(batches > 20, "{batches}");
    }
}

/// An error that has all of these words.
#[track_caller]
fn refused<T>(outcome: forebay_base::Result<T>, words: &[&str]) {
    let error = outcome.err().expect("it is refused").to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

#[test]
fn what_cannot_be_grouped_is_refused_with_a_reason() {
    let list = Field::new_list("list", Field::new_list_field(DataType::Int32, true), true);
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
        list,
    ]);
    let new = |by: &[&str], functions: &str| RecordBatchAggregator::new(&schema, by, functions, options());
    refused(new(&["b"], "count"), &["no column `b`", "a, text, list"]);
    refused(new(&["list"], "count"), &["column `list`", "cast it"]);
    refused(new(&["a"], "any:list"), &["column `list`", "cast it"]);
    refused(new(&["a"], "sum:b"), &["`b`"]);
    refused(new(&["a"], "summ:a"), &["did you mean `sum`"]);
    refused(new(&["a", "a"], "count"), &["two columns", "`a`"]);
    refused(new(&["a"], "count,count"), &["two columns", "`count`"]);
    let groups = new(&["a"], "count,sum:text").unwrap();
    let batch = |texts: Vec<&str>| {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![1; texts.len()]));
        RecordBatch::try_from_iter([("text", Arc::new(StringArray::from(texts)) as ArrayRef), ("a", a)])
            .unwrap()
    };
    // Columns stand in any order.
    groups.add_batch(&batch(vec!["1", "2"])).unwrap();
    refused(
        groups.add_batch(&batch(vec!["1", "x", "2"])),
        &["row 2", "column `text`", "`x` is not a number"],
    );
    let answers = groups.answers().unwrap().next().unwrap().unwrap();
    assert_eq!(answers.column(1).as_primitive::<Int64Type>().value(0), 4, "other rows are added");
    let other: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let other = RecordBatch::try_from_iter([("a", Arc::clone(&other)), ("text", other)]).unwrap();
    refused(groups.add_batch(&other), &["column `a`", "Int32", "Int64"]);
    refused(groups.add_partials(&batch(vec!["1"])), &["no column `count`"]);
    let states = groups.partials().unwrap().next().unwrap().unwrap();
    // Rows are added to states of others, too, if their keys are alike.
    let of_partials = RecordBatchAggregator::of_partials(&states.schema(), options()).unwrap();
    refused(of_partials.add_batch(&other), &["column `a`", "Int32", "Int64"]);
    of_partials.add_partials(&states).unwrap();
    of_partials.add_batch(&batch(vec!["1"])).unwrap();
    let answers = of_partials.answers().unwrap().next().unwrap().unwrap();
    assert_eq!(answers.column(1).as_primitive::<Int64Type>().value(0), 5);
    refused(of_partials.add_batch(&other), &["column `a`", "Int32", "Int64"]);
    let long = "k".repeat(70_000);
    let by_text = new(&["text"], "count").unwrap();
    refused(by_text.add_batch(&batch(vec!["1", &long])), &["row 2", "a key of 70002 bytes"]);
}

/// The batch with another column in the place of one.
fn with(batch: &RecordBatch, at: usize, field: Field, array: ArrayRef) -> RecordBatch {
    let mut fields: Vec<Field> = batch.schema().fields().iter().map(|field| (**field).clone()).collect();
    let mut columns = batch.columns().to_vec();
    (fields[at], columns[at]) = (field, array);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
fn states_that_do_not_fit_are_refused_and_nothing_of_their_batch_is_merged() {
    let batch = rows(&mut Rng::new(7), 300);
    let make = |list| RecordBatchAggregator::new(&batch.schema(), &["day"], list, options()).unwrap();
    let groups = make("count,top_k:int:3:text");
    groups.add_batch(&batch).unwrap();
    let states = groups.partials().unwrap().next().unwrap().unwrap();
    let schema = states.schema();
    let (kind, field) = (schema.field(1).data_type(), |at: usize| schema.field(at).clone());
    assert_eq!(kind, &DataType::Binary);
    let tell = |field: Field, key: &str, value: &str| {
        let mut metadata = field.metadata().clone();
        metadata.insert(key, value);
        field.with_metadata(metadata)
    };
    let target = make("count,top_k:int:3:text");
    let refuse = |batch: &RecordBatch, words: &[&str]| {
        refused(target.add_partials(batch), words);
        assert!(target.partials().unwrap().next().is_none(), "{words:?}: nothing is merged");
    };
    let version = tell(field(1), "forebay.partial", "2");
    let newer = with(&states, 1, version.clone(), Arc::clone(states.column(1)));
    refuse(&newer, &["column `count`", "version 2", "version 1"]);
    refused(PartialSchema::of(&newer.schema()), &["column `count`", "version 2"]);
    let other =
        with(&states, 2, tell(field(2), "forebay.state", "top_k/9(k=3)"), Arc::clone(states.column(2)));
    refuse(&other, &["column `top_k:int:3:text`", "top_k/9(k=3)", "top_k/1(k=3)"]);
    refused(PartialSchema::of(&other.schema()), &["top_k/9(k=3)"]);
    refused(PartialSchema::of(&batch.schema()), &["no partial states"]);
    let lost =
        with(&states, 2, field(2).with_metadata(arrow_schema::Metadata::new()), Arc::clone(states.column(2)));
    refuse(&lost, &["column `top_k:int:3:text`", "tells of no states"]);
    let int = with(
        &states,
        0,
        Field::new("day", DataType::Int32, true),
        Arc::new(Int32Array::from(vec![0; states.num_rows()])),
    );
    refuse(&int, &["column `day`", "Int32", "Date32"]);
    let (mut short, last) =
        (states.column(1).as_binary::<i32>().iter().collect::<Vec<_>>(), states.num_rows() - 1);
    short[last] = Some(b"1234567");
    let short = with(&states, 1, field(1), Arc::new(short.into_iter().collect::<BinaryArray>()));
    refuse(&short, &["column `count`", &format!("row {}", last + 1), "7 bytes are not a state of count/1"]);
    let none = vec![None::<&[u8]>; states.num_rows()];
    let nullable = field(1).with_nullable(true);
    let none = with(&states, 1, nullable, Arc::new(none.into_iter().collect::<BinaryArray>()));
    refuse(&none, &["column `count`", "row 1", "there is none"]);
    let text = with(
        &states,
        1,
        tell(
            Field::new("count", DataType::Utf8, false).with_metadata(field(1).metadata().clone()),
            "forebay.partial",
            "1",
        ),
        Arc::new(StringArray::from(vec!["x"; states.num_rows()])),
    );
    refuse(&text, &["column `count`", "row 1"]);
    refused(make("count").add_partials(&rows(&mut Rng::new(1), 3)), &["no column `count`"]);
    target.add_partials(&states).unwrap();
    assert_eq!(shown(target.answers().unwrap(), 1), shown(groups.answers().unwrap(), 1));
    // In any order, with columns that nobody asks for, and of any kind of bytes.
    let large: LargeBinaryArray = states.column(1).as_binary::<i32>().iter().collect();
    let large_field =
        Field::new("count", DataType::LargeBinary, false).with_metadata(field(1).metadata().clone());
    let large = with(&states, 1, large_field, Arc::new(large)).project(&[2, 1, 0]).unwrap();
    make("count,top_k:int:3:text").add_partials(&large).unwrap();
}

/// Every byte of a file that is another, and every length that it is cut to.
#[test]
fn a_damaged_file_is_refused_whatever_is_damaged() {
    let batch = rows(&mut Rng::new(3), 40);
    let groups = RecordBatchAggregator::new(
        &batch.schema(),
        &["text", "day"],
        "count,sum:int,distinct:text",
        options(),
    )
    .unwrap();
    groups.add_batch(&batch).unwrap();
    let file = written(&groups);
    let read = |bytes: &[u8]| -> forebay_base::Result<Vec<RecordBatch>> {
        let reader = PartialReader::open(Cursor::new(bytes))?;
        PartialSchema::of(&reader.schema())?;
        reader.collect()
    };
    let whole = read(&file).unwrap();
    assert!(!whole.is_empty());
    let mut kept = 0;
    for at in 0..file.len() {
        for mask in [1, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= mask;
            // In the footer there is more than the sum, which nobody reads.
            match read(&damaged) {
                Ok(batches) => {
                    kept += 1;
                    assert_eq!(batches, whole, "byte {at}");
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    assert!(kept < file.len(), "{kept} of {}", 3 * file.len());
    for bytes in 0..file.len() {
        refused(read(&file[..bytes]), &["whole file"]);
    }
    refused(read(b"k,v\n1,2\n3,4\n5,6\n"), &["no whole file of partial states"]);
    let mut plain = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    plain.write(&batch).unwrap();
    refused(read(&plain.into_inner().unwrap()), &["no checksum"]);
}

/// The units of time that have no test above.
#[test]
fn times_have_as_many_digits_as_their_unit() {
    let column: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
    assert_eq!(column.data_type(), &DataType::Timestamp(TimeUnit::Nanosecond, None));
    let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
    let groups = RecordBatchAggregator::new(&batch.schema(), &["c"], "any:c", options()).unwrap();
    groups.add_batch(&batch).unwrap();
    let mut keys = Vec::new();
    let states = groups.partials().unwrap().next().unwrap().unwrap();
    groups
        .schema()
        .read(&states, Form::Shown, &mut |key, _| {
            keys.push(key.to_vec());
            Ok(())
        })
        .unwrap();
    assert_eq!(keys, [group_key::of([Some("1970-01-01T00:00:00.000000001")])]);
}

/// The texts of these numbers have exponents, and all groups of their batch were refused.
#[test]
fn extremes_of_decimals_are_told_however_small_they_are() {
    let expected = [55_555_555_555_555_555_i128, 99_999_999_999_999_994];
    let values = Decimal128Array::from(expected.to_vec()).with_precision_and_scale(38, 38).unwrap();
    let batch = RecordBatch::try_from_iter([("d", Arc::new(values) as ArrayRef)]).unwrap();
    let groups = RecordBatchAggregator::new(&batch.schema(), &[""; 0], "min:d,max:d", options()).unwrap();
    groups.add_batch(&batch).unwrap();
    let answers = groups.answers().unwrap().next().unwrap().unwrap();
    let found = answers.columns().iter().map(|column| column.as_primitive::<Decimal128Type>().value(0));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

/// One with a zero behind its digits was none, and of columns whose last digit stands before the point the value itself
/// was taken for its units.
#[test]
fn decimals_are_read_in_units_of_any_scale() {
    for (text, scale, expected) in [
        ("1.50", 1_i8, Some(15)),
        ("-0.05", 2, Some(-5)),
        ("1e-3", 3, Some(1)),
        ("123000", -3, Some(123)),
        ("123001", -3, None),
        ("0", -3, Some(0)),
        ("0.15", 1, None),
        ("1e37", 0, Some(10_i128.pow(37))),
        ("1e38", 0, None),
        ("1e40", -3, Some(10_i128.pow(37))),
        ("nan", 0, None),
        ("", 0, None),
    ] {
        assert_eq!(units(text.as_bytes(), scale), expected, "{text}, {scale}");
    }
}

/// Each key of a batch, and the state that it has.
fn states_of(groups: &RecordBatchAggregator, batch: &RecordBatch) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut states = BTreeMap::new();
    groups
        .schema()
        .keys_of(batch, &mut |key| {
            states.insert(key.to_vec(), groups.get(key)?.expect("its rows were added"));
            Ok(())
        })
        .unwrap();
    states
}

/// Where groups are kept elsewhere they are the same, and so are their answers.
#[test]
fn states_for_elsewhere_are_those_of_an_aggregator() {
    let mut rng = Rng::new(23);
    for keys in [&["text", "day"][..], &["coded", "float", "truth"], &[]] {
        let batch = rows(&mut rng, 4000);
        let exact: Vec<String> =
            functions().into_iter().filter(|(_, exact)| *exact).map(|(text, _)| text).collect();
        let list = exact.join(",");
        let groups = RecordBatchAggregator::new(&batch.schema(), keys, &list, options()).unwrap();
        let mut elsewhere = RecordBatchStates::new(&batch.schema(), keys, &list, 64 << 20).unwrap();
        for from in (0..4000).step_by(500) {
            groups.add_batch(&batch.slice(from, 500)).unwrap();
            elsewhere.add_batch(&batch.slice(from, 500)).unwrap();
        }
        assert!(elsewhere.memory_bytes() > 0);
        let (mut found, mut answers) =
            (BTreeMap::new(), PartialBatches::of_answers(groups.schema()).rows_max(7));
        let mut shown_there = Vec::new();
        elsewhere
            .take(&mut |key, state| {
                found.insert(key.to_vec(), state.to_vec());
                shown_there.extend(answers.push(key, state)?);
                Ok(())
            })
            .unwrap();
        shown_there.extend(answers.finish().unwrap());
        assert!(shown_there.iter().rev().skip(1).all(|batch| batch.num_rows() == 7));
        assert_eq!(found, states_of(&groups, &batch), "{keys:?}");
        let here = groups.answers().unwrap().rows_max(1000);
        assert_eq!(here.schema(), shown_there[0].schema());
        assert_eq!(shown(shown_there.into_iter().map(Ok), keys.len()), shown(here, keys.len()));
        elsewhere.take(&mut |_, _| panic!("all were taken")).unwrap();
    }
}

/// A value is one key, whether it comes in a batch, or as a text that is not the one which stands in keys.
#[test]
fn keys_are_found_by_values() {
    let batch = RecordBatch::try_from_iter([
        ("float", Arc::new(Float64Array::from(vec![1e16, -0.0])) as ArrayRef),
        ("day", Arc::new(Date32Array::from(vec![Some(-3), None])) as ArrayRef),
        ("text", Arc::new(StringArray::from(vec!["zero\0in it", ""])) as ArrayRef),
    ])
    .unwrap();
    let groups =
        RecordBatchAggregator::new(&batch.schema(), &["float", "day", "text"], "count", options()).unwrap();
    groups.add_batch(&batch).unwrap();
    let keys: Vec<_> = states_of(&groups, &batch).into_keys().collect();
    let of = |texts: [Option<&[u8]>; 3]| groups.schema().key_of(&texts).unwrap();
    let asked =
        [of([Some(b"1e+16"), Some(b"-3"), Some(b"zero\0in it")]), of([Some(b"0.0"), None, Some(b"")])];
    assert_eq!(
        BTreeMap::from_iter(asked.iter().map(|key| (key, ()))),
        keys.iter().map(|key| (key, ())).collect()
    );
    assert_eq!(groups.get(&of([Some(b"2"), None, None])).unwrap(), None);
    refused(groups.schema().key_of(&[Some(b"1")]), &["1 values", "3 columns"]);
    refused(groups.schema().key_of(&[Some(b"one"), None, None]), &["column `float`", "`one`"]);
    refused(
        groups.schema().keys_of(&batch.project(&[0, 1]).unwrap(), &mut |_| Ok(())),
        &["no column `text`"],
    );
}

/// Texts are the same texts however they are laid out; and batches of groups live without the aggregator.
#[test]
fn texts_of_any_layout_are_one_column() {
    let texts: [ArrayRef; 3] = [
        Arc::new(StringArray::from(vec!["a", "b"])),
        Arc::new(StringViewArray::from(vec!["b", "a text of more than twelve bytes"])),
        Arc::new(LargeStringArray::from(vec!["a", "b"])),
    ];
    let batch = |texts: &ArrayRef| RecordBatch::try_from_iter([("text", Arc::clone(texts))]).unwrap();
    let groups =
        RecordBatchAggregator::new(&batch(&texts[0]).schema(), &["text"], "count,max_text:text", options())
            .unwrap();
    texts.iter().for_each(|texts| groups.add_batch(&batch(texts)).unwrap());
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"a"[..]]));
    refused(groups.add_batch(&batch(&bytes)), &["column `text`", "Binary", "Utf8"]);
    let answers = groups.answers().unwrap();
    drop(groups);
    let counts: i64 = answers
        .map(|batch| batch.unwrap().column(1).as_primitive::<Int64Type>().values().iter().sum::<i64>())
        .sum();
    assert_eq!(counts, 6);
}

#[test]
fn a_row_that_is_refused_is_told_and_none_behind_it_is_added() {
    let amounts: ArrayRef = Arc::new(StringArray::from(vec!["1", "2", "much", "4"]));
    let batch = RecordBatch::try_from_iter([("amount", amounts)]).unwrap();
    let mut states = RecordBatchStates::new::<&str>(&batch.schema(), &[], "count", 1 << 20).unwrap();
    states.add_batch(&batch).unwrap();
    let mut states = RecordBatchStates::new::<&str>(&batch.schema(), &[], "sum:amount", 1 << 20).unwrap();
    refused(states.add_batch(&batch), &["row 3", "much"]);
    let mut sums = Vec::new();
    states
        .take(&mut |_, state| {
            sums.extend_from_slice(state);
            Ok(())
        })
        .unwrap();
    assert_eq!(sums.len(), 41);
}
