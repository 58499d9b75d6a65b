//! List files: immutable, sorted, paged, with a filter, a page search and a digest.
//!
//! Walk: [`ListWriter`] (writer.rs) appends pages (page.rs), filter bits (filter.rs) and page starts (index.rs), then
//! the footer (footer.rs); [`ListFile`] (file.rs) opens them and answers lookups; [`ListCursor`] (cursor.rs) walks a
//! range for merges and scans, reading many pages at a time (chunks.rs); single pages of several lists are read
//! together (fetch.rs); verify.rs holds a whole file against all of that. size.rs tells how large a list will be that
//! nobody writes; disk.rs what a table's files take.

mod candidates;
mod chunks;
mod cursor;
mod disk;
mod expiries;
mod fetch;
mod file;
mod filter;
mod footer;
mod index;
mod life;
mod looking;
mod lookup;
mod measure;
mod page;
mod resident;
mod resident_limit;
mod salvage;
mod sample;
mod search;
mod size;
mod spot;
mod store;
#[cfg(test)]
mod tests;
mod thinning;
mod trash;
mod verify;
mod writer;

pub use chunks::{Pace, Reading};
pub use cursor::ListCursor;
pub use disk::DiskUse;
pub use expiries::Expiries;
pub use file::ListFile;
pub use filter::{Allowance, FilterDemand, FilterKind, FilterLevel, GrowingFilter, Mark};
pub use lookup::Lookup;
pub(crate) use page::Page;
pub use resident_limit::{Kept, ResidentLimit, ResidentRoom};
pub use search::{Search, Seeker};
pub use size::ListSize;
pub use store::{FileKind, FileMeta, ListOptions, ListStore};
pub use trash::{Leaving, Strangers, Trash};
pub use verify::ListReport;
pub use writer::ListWriter;
