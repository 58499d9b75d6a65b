//! Columns of texts as they lie in the file, with their dictionary where they have one.

use std::iter;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field};
use forebay::Error;
use forebay_aggregate::columns::{Bits, Items, Lane, Texts, new_dictionary};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Encoding, PageType, Repetition, Type as PhysicalType};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::{SchemaDescriptor, Type};

use super::{Chosen, whole};

/// See the module.
#[derive(Default)]
pub(super) struct TextColumn {
    reader: Option<ParquetRecordBatchReader>,
    texts: Option<ArrayRef>,
    /// The last dictionary, and its number.
    dictionary: Option<ArrayRef>,
    dictionary_number: u64,
}

impl TextColumn {
    pub(super) fn begin(
        &mut self,
        chosen: &Chosen,
        file: &ParquetMetaData,
        group: &dyn RowGroupReader,
        batch_rows: usize,
    ) -> Result<(), ParquetError> {
        let levels = text_levels(chosen, group.metadata().column(chosen.place))?;
        let column = OneColumn { chosen, file, group };
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &column, batch_rows, None)?;
        self.reader = Some(reader);
        Ok(())
    }

    pub(super) fn decode(&mut self, rows: usize) -> Result<(), ParquetError> {
        let batch: Option<RecordBatch> =
            self.reader.as_mut().and_then(Iterator::next).transpose().map_err(unwrapped)?;
        whole(batch.as_ref().map_or(0, RecordBatch::num_rows), rows)?;
        self.texts = batch.and_then(|batch| batch.columns().first().cloned());
        let Some(dictionary) = self.texts.as_ref().and_then(|texts| texts.as_any_dictionary_opt()) else {
            return Ok(());
        };
        let is_same = |last: &ArrayRef| Arc::ptr_eq(last, dictionary.values());
        if !self.dictionary.as_ref().is_some_and(is_same) {
            self.dictionary_number = new_dictionary();
            self.dictionary = Some(Arc::clone(dictionary.values()));
        }
        Ok(())
    }

    pub(super) fn lane(&self) -> Result<Lane<'_>, Error> {
        let Some(array) = &self.texts else { return Ok(Lane::nulls(0)) };
        let valid = array.nulls().map(|nulls| Bits::new(nulls.validity(), nulls.offset()));
        let items = if let Some(array) = array.as_dictionary_opt::<Int32Type>() {
            let texts = array.values().as_binary::<i32>();
            let texts = Texts::new(texts.value_offsets(), texts.value_data())?;
            Items::Codes { codes: array.keys().values(), texts, dictionary: self.dictionary_number }
        } else {
            let texts = array.as_binary::<i32>();
            Items::Bytes(Texts::new(texts.value_offsets(), texts.value_data())?)
        };
        Lane::new(items, valid)
    }
}

/// How the texts of a chunk are laid out: as any bytes, whatever they are said to be, for nobody needs them to be
/// Unicode.
fn text_levels(chosen: &Chosen, chunk: &ColumnChunkMetaData) -> Result<FieldLevels, ParquetError> {
    let is_optional = chosen.descriptor.max_def_level() > 0;
    let repetition = if is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let text = Type::primitive_type_builder("text", PhysicalType::BYTE_ARRAY).with_repetition(repetition);
    let schema = Type::group_type_builder("texts").with_fields(vec![Arc::new(text.build()?)]).build()?;
    let schema = SchemaDescriptor::new(Arc::new(schema));
    let coded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Binary));
    let hint = [Field::new("text", coded, is_optional)].into_iter().collect();
    parquet_to_arrow_field_levels(&schema, ProjectionMask::all(), has_dictionary(chunk).then_some(&hint))
}

/// Whether all pages of a chunk hold places in a dictionary, as far as is known.
fn has_dictionary(chunk: &ColumnChunkMetaData) -> bool {
    let is_coded = |encoding| matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    match (chunk.page_encoding_stats_mask(), chunk.page_encoding_stats()) {
        (Some(mask), _) => mask.encodings().all(is_coded),
        (None, Some(pages)) => {
            pages.iter().all(|page| page.page_type == PageType::DICTIONARY_PAGE || is_coded(page.encoding))
        }
        (None, None) => chunk.encodings().any(is_coded),
    }
}

/// The error of reading that is in one of columns.
fn unwrapped(error: ArrowError) -> ParquetError {
    let text = match error {
        ArrowError::ParquetError(text) => text,
        error => error.to_string(),
    };
    ParquetError::General(text.strip_prefix("Parquet error: ").unwrap_or(&text).to_string())
}

/// One column of a row group.
struct OneColumn<'a> {
    chosen: &'a Chosen,
    file: &'a ParquetMetaData,
    group: &'a dyn RowGroupReader,
}

impl RowGroups for OneColumn<'_> {
    fn num_rows(&self) -> usize {
        self.group.metadata().num_rows().try_into().unwrap_or(0)
    }

    fn column_chunks(&self, _column: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        Ok(Box::new(Chunks(Some(self.chosen.pages(self.group)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(iter::once(self.group.metadata()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.file
    }
}

/// The pages of one chunk.
struct Chunks(Option<Box<dyn PageReader>>);

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Chunks {}
