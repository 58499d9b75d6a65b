//! Tables and their files as edits have them, and their bytes.

use forebay_base::wire::{Reader, put_bytes, put_varint};

use crate::list::{FileKind, FileMeta};
use crate::values::ValueShare;

/// A table as a snapshot holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its options, as its layout encodes them.
    pub options: Vec<u8>,
    /// Its table version, as its layout encodes it.
    pub version: Vec<u8>,
    /// The files that its table version names.
    pub files: Vec<FileMeta>,
}

impl TableEntry {
    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_table(out, self);
    }

    /// Reads one; `None` where the bytes are none.
    pub fn decode(from: &mut Reader<'_>) -> Option<Self> {
        get_table(from)
    }
}

const LIST: u8 = 0;
const TREE: u8 = 1;
const LIST_WITH_VALUES: u8 = 2;
const TREE_WITH_VALUES: u8 = 3;

pub(super) fn put_file(out: &mut Vec<u8>, file: &FileMeta) {
    put_varint(out, file.id);
    put_varint(out, file.bytes);
    out.extend_from_slice(&file.digest.to_le_bytes());
    out.push(match file.kind {
        FileKind::List if file.values.is_empty() => LIST,
        FileKind::List => LIST_WITH_VALUES,
        FileKind::Tree if file.values.is_empty() => TREE,
        FileKind::Tree => TREE_WITH_VALUES,
    });
    if !file.values.is_empty() {
        put_varint(out, file.values.len() as u64);
        for share in &*file.values {
            [share.file, share.file_bytes, share.bytes]
                .into_iter()
                .for_each(|number| put_varint(out, number));
        }
    }
}

pub(super) fn get_file(from: &mut Reader<'_>) -> Option<FileMeta> {
    let (id, bytes, digest) = (from.varint()?, from.varint()?, from.u32()?);
    let (kind, has_values) = match from.u8()? {
        LIST => (FileKind::List, false),
        TREE => (FileKind::Tree, false),
        LIST_WITH_VALUES => (FileKind::List, true),
        TREE_WITH_VALUES => (FileKind::Tree, true),
        _ => return None,
    };
    let values = if has_values { repeat(from, get_share)? } else { Vec::new() };
    let is_said = has_values != values.is_empty();
    is_said.then(|| FileMeta { id, bytes, digest, kind, values: values.into() })
}

fn get_share(from: &mut Reader<'_>) -> Option<ValueShare> {
    Some(ValueShare { file: from.varint()?, file_bytes: from.varint()?, bytes: from.varint()? })
}

pub(super) fn put_table(out: &mut Vec<u8>, table: &TableEntry) {
    put_varint(out, table.id as u64);
    put_bytes(out, table.name.as_bytes());
    put_bytes(out, &table.options);
    put_bytes(out, &table.version);
    put_varint(out, table.files.len() as u64);
    table.files.iter().for_each(|file| put_file(out, file));
}

pub(super) fn get_table(from: &mut Reader<'_>) -> Option<TableEntry> {
    Some(TableEntry {
        id: u32::try_from(from.varint()?).ok()?,
        name: get_text(from)?,
        options: from.bytes()?.to_vec(),
        version: from.bytes()?.to_vec(),
        files: repeat(from, get_file)?,
    })
}

pub(super) fn get_text(from: &mut Reader<'_>) -> Option<String> {
    String::from_utf8(from.bytes()?.to_vec()).ok()
}

/// A counted sequence; memory grows with what is really there.
pub(super) fn repeat<T>(
    from: &mut Reader<'_>,
    mut one: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut items = Vec::new();
    for _ in 0..from.varint()? {
        items.push(one(from)?);
    }
    Some(items)
}
