//! An immutable list file: opening it, and what it keeps in memory.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use forebay_base::checksum::checksum;
use forebay_base::digest::Digest;
use forebay_base::limits::BLOCK_BYTES;
use forebay_base::record::Shape;
use forebay_base::wire::Reader;
use forebay_base::{Error, Result};
use forebay_env::sync::Mutex;
use forebay_env::sync::atomic::{AtomicBool, AtomicU64};
use forebay_env::{Access, File};

use super::filter::{Allowance, Filter, Fingerprints};
use super::footer::Footer;
use super::index::{PageIndex, Starts};
use super::page::Page;
use super::resident::Resident;
use super::salvage::rebuild;
use super::store::{FileMeta, ListStore};
use crate::cache::Caching;
use crate::values::{ValueFile, ValueShare};

/// A list file by its id. It may not be open yet (while the manifest is replayed, files are named that are
/// gone by the end), and opening it may fail: then the error is what every lookup in it answers.
pub struct ListFile {
    pub(super) meta: FileMeta,
    pub(super) store: Arc<ListStore>,
    /// Opened, and not read.
    unread: OnceLock<Arc<dyn File>>,
    /// There may be very many files that nobody has opened.
    body: OnceLock<Box<Result<Body>>>,
    /// How many it has, where somebody has asked before it was opened; none where that could not be read.
    records: OnceLock<u64>,
    pub(super) retired: AtomicBool,
    /// Where it has values.
    pub(super) values: Box<[Arc<ValueFile>]>,
    /// How long those of its values are.
    pointed_bytes: u64,
    /// See [`density`](Self::density): the bits of a number, 0.0 where none is noted.
    pub(super) density: AtomicU64,
    /// About how many records it has, as far as that is noted.
    pub(super) keys: AtomicU64,
}

/// What an open file keeps in memory.
pub(crate) struct Body {
    pub(crate) file: Arc<dyn File>,
    pub(crate) footer: Footer,
    pub(crate) index: PageIndex,
    filter: Option<Filter>,
    /// None once nothing plans with the list any more.
    pub(super) digest: Mutex<Option<Arc<Digest>>>,
    store: Arc<ListStore>,
    /// Of a list in memory.
    pub(super) resident: Option<Resident>,
}

/// What it takes to know how much a list has in a value file.
pub(super) const SHARE_MEMORY_BYTES: u64 = (size_of::<ValueShare>() + size_of::<Arc<ValueFile>>()) as u64;

impl ListFile {
    /// A file that is only named so far.
    pub fn named(store: &Arc<ListStore>, meta: FileMeta) -> Arc<Self> {
        store.metrics.index_memory_bytes.add(SHARE_MEMORY_BYTES * meta.values.len() as u64);
        let values =
            meta.values.iter().map(|share| store.values.named(share.file, share.file_bytes)).collect();
        let pointed_bytes = meta.values.iter().fold(0, |sum: u64, share| sum.saturating_add(share.bytes));
        Arc::new(Self {
            values,
            pointed_bytes,
            meta,
            store: Arc::clone(store),
            unread: OnceLock::new(),
            body: OnceLock::new(),
            records: OnceLock::new(),
            retired: AtomicBool::new(false),
            density: AtomicU64::new(0),
            keys: AtomicU64::new(0),
        })
    }

    pub(super) fn with_body(store: &Arc<ListStore>, meta: FileMeta, body: Body) -> Arc<Self> {
        let file = Self::named(store, meta);
        file.values.iter().for_each(|values| values.begin());
        let _ = file.body.set(Box::new(Ok(body)));
        file
    }

    /// What the manifest keeps of it.
    pub fn meta(&self) -> FileMeta {
        self.meta.clone()
    }

    /// The id that names it.
    pub fn id(&self) -> u64 {
        self.meta.id
    }

    /// Its length, in bytes.
    pub fn bytes(&self) -> u64 {
        self.meta.bytes
    }

    /// How long its values are that stand in value files.
    pub fn pointed_bytes(&self) -> u64 {
        self.pointed_bytes
    }

    /// Whether it is in memory alone.
    pub fn is_resident(&self) -> bool {
        self.store.in_memory
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.store.path(self.meta.id)
    }

    pub(crate) fn store(&self) -> &Arc<ListStore> {
        &self.store
    }

    /// The open file; opened at the first call, with two reads. Damage is remembered. Any other
    /// failure may pass, and the next call tries again.
    pub(crate) fn body(&self) -> Result<&Body> {
        let body = match self.body.get() {
            Some(body) => body,
            None => match self.open() {
                // Also a file that is gone: it may be brought back.
                Err(error) if !error.is_corruption() => return Err(error.or_missing()),
                opened => {
                    let body = self.body.get_or_init(|| Box::new(opened));
                    self.is_retired().then(|| self.drop_digest());
                    body
                }
            },
        };
        (**body).as_ref().map_err(Clone::clone)
    }

    /// The open file, if it is open and sound.
    #[inline]
    pub(super) fn ready(&self) -> Option<&Body> {
        (**self.body.get()?).as_ref().ok()
    }

    /// Opens the file, where it is closed by now, and reads nothing of it.
    pub fn reopen(&self) -> Result<()> {
        let file = match self.ready() {
            Some(body) => &body.file,
            None => {
                let opened = self.open_path(Access::Random)?;
                self.unread.get_or_init(|| opened)
            }
        };
        file.len().map(drop)
    }

    fn open(&self) -> Result<Body> {
        let opened = self.read_body();
        match (&self.store.salvage, opened) {
            (Some(gaps), Err(why)) => rebuild(self, gaps, why),
            (_, opened) => opened,
        }
    }

    fn open_read(&self) -> Result<Arc<dyn File>> {
        match self.unread.get() {
            Some(file) => Ok(Arc::clone(file)),
            None => self.store.fs.open_read(&self.path(), Access::Random),
        }
    }

    /// A list that something names is there, or was lost.
    pub(super) fn open_path(&self, access: Access) -> Result<Arc<dyn File>> {
        self.store.fs.open_read(&self.path(), access).map_err(Error::or_missing)
    }

    fn damaged(&self, offset: u64, reason: &str) -> Error {
        Error::corruption(&self.path(), offset, reason)
    }

    fn read_footer(&self, file: &Arc<dyn File>) -> Result<Footer> {
        let bytes = file.len()?;
        let block = BLOCK_BYTES as u64;
        if bytes != self.meta.bytes || bytes < block || bytes % block != 0 {
            let reason = format!("the file has {bytes} bytes; {} were written", self.meta.bytes);
            return Err(self.damaged(bytes, &reason));
        }
        let footer_at = bytes - block;
        let mut last = vec![0; BLOCK_BYTES];
        self.read(file, footer_at, &mut last)?;
        let (footer, digest) =
            Footer::decode(&last, &self.path(), self.meta.id, footer_at, self.store.options.order)?;
        if digest != self.meta.digest {
            return Err(self.damaged(footer_at, "this is not the file that the manifest names"));
        }
        Ok(footer)
    }

    fn read_body(&self) -> Result<Body> {
        let file = self.open_read()?;
        let footer = self.read_footer(&file)?;
        let footer_at = self.meta.bytes - BLOCK_BYTES as u64;
        let damaged = |reason| self.damaged(footer.pages_bytes, reason);
        let mut meta = vec![0; (footer_at - footer.pages_bytes) as usize];
        self.read(&file, footer.pages_bytes, &mut meta)?;
        if checksum(self.meta.id, footer.pages_bytes, &meta) != footer.meta_sum {
            return Err(damaged("the checksum of page search and filter does not match"));
        }
        let mut from = Reader::new(&meta);
        let mut parse = || {
            let index = PageIndex::decode(&mut from, footer.records, footer.pages_bytes)?;
            let digest = Digest::decode(&mut from)?;
            let filter = Filter::decode(&mut from)?;
            let keys = filter.as_ref().and_then(Filter::ranks).map(Fingerprints::keys);
            let by_rank = !matches!(index.starts(), Starts::Prefixes(_));
            let fits = keys.map_or(!by_rank, |keys| by_rank && keys as u64 == footer.records);
            let is_ordered = self.store.options.order.is_lexical();
            let knows = filter.as_ref().is_none_or(|filter| is_ordered || filter.prefixes().is_none());
            (fits && knows).then_some((index, filter, digest))
        };
        let (index, filter, digest) =
            parse().ok_or_else(|| damaged("page search and filter are malformed"))?;
        let density = self.noted_density().unwrap_or(index.density(self.store.options.order, footer.records));
        let allowed = self.store.filter_allowance(density, self.meta.id);
        Ok(Body::new(&self.store, file, footer, index, filter, digest, allowed))
    }

    fn read(&self, file: &Arc<dyn File>, offset: u64, into: &mut [u8]) -> Result<()> {
        let got = file.read_at(offset, into)?;
        self.check_read(offset, got, into.len())
    }

    /// An error if fewer bytes were read than there should be.
    pub(super) fn check_read(&self, offset: u64, got: usize, wanted: usize) -> Result<()> {
        if got == wanted {
            return Ok(());
        }
        Err(Error::corruption(&self.path(), offset + got as u64, "the file ends too early"))
    }

    /// A page from the cache, if it is there.
    pub(super) fn cached(&self, number: usize) -> Option<Arc<Page>> {
        self.store.cache.blocks().get((self.meta.id, number as u64))
    }

    /// A page from the file.
    pub(super) fn page(&self, number: usize, caching: Caching) -> Result<Arc<Page>> {
        let body = self.body()?;
        let (offset, bytes) = body.index.extent(number);
        let mut buffer = vec![0; bytes];
        self.read(&body.file, offset, &mut buffer)?;
        self.take_page(body, number, buffer, caching)
    }

    /// Checks the bytes that were read of a page, and keeps it in the cache or not.
    pub(super) fn take_page(
        &self,
        body: &Body,
        number: usize,
        bytes: Vec<u8>,
        caching: Caching,
    ) -> Result<Arc<Page>> {
        let (offset, _) = body.index.extent(number);
        let metrics = &self.store.metrics;
        metrics.page_reads.add(1);
        metrics.page_read_bytes.add(bytes.len() as u64);
        let page = Page::of(bytes, self.meta.id, offset, body.footer.shape)
            .map_err(|reason| Error::corruption(&self.path(), offset, reason))?;
        Ok(self.store.cache.blocks().take((self.meta.id, number as u64), page, caching))
    }

    /// What it takes where its bytes are in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.ready()
            .and_then(|body| body.resident.as_ref())
            .map_or(self.meta.bytes, |resident| resident.bytes)
    }

    /// How many records it has; 0 when it cannot be opened. Device reads: one, of a file that is not open, which leaves
    /// none of it in memory.
    pub fn records(&self) -> u64 {
        // Of a damaged one that is salvaged its pages tell.
        if self.body.get().is_some() || self.store.salvage.is_some() {
            return self.body().map_or(0, |body| body.footer.records);
        }
        if let Some(records) = self.records.get() {
            return *records;
        }
        match self.open_read().and_then(|file| self.read_footer(&file)) {
            Ok(footer) => *self.records.get_or_init(|| footer.records),
            // Who needs more of it is told why.
            Err(_) => 0,
        }
    }

    /// How many of those are tombstones; 0 also for files of builds that did not count them.
    pub fn tombstones(&self) -> u64 {
        self.body().map_or(0, |body| body.footer.tombstones)
    }

    /// Which share of its records are tombstones, as far as that is known without reading anything.
    pub fn tombstone_share(&self) -> f64 {
        self.ready().map_or(0.0, |body| body.footer.tombstones as f64 / body.footer.records.max(1) as f64)
    }

    /// When about this share of it is over: entries that have expired, and tombstones. For all of it that is exact. In
    /// milliseconds since 1970; `None` for never, and where nothing expires.
    pub fn over_at(&self, share: f64) -> Option<u64> {
        let Footer { records, tombstones, expiries, .. } = self.body().ok()?.footer;
        let wanted = (share * records as f64).ceil() as u64;
        expiries.until(wanted.saturating_sub(tombstones)).filter(|_| expiries.records > 0)
    }

    /// About which share of it has expired by now.
    pub fn expired_share(&self) -> f64 {
        let (Some(clock), Ok(body)) = (&self.store.expiry, self.body()) else { return 0.0 };
        body.footer.expiries.by(clock.unix_milliseconds()) as f64 / body.footer.records.max(1) as f64
    }

    /// The sizes its records have in common.
    pub fn shape(&self) -> Shape {
        self.body().map_or(Shape::Variable, |body| body.footer.shape)
    }
}

impl Body {
    pub(crate) fn new(
        store: &Arc<ListStore>,
        file: Arc<dyn File>,
        footer: Footer,
        index: PageIndex,
        filter: Option<Filter>,
        digest: Digest,
        allowed: Allowance,
    ) -> Self {
        let filter = filter.map(|filter| filter.thinned(allowed, footer.records));
        let metrics = &store.metrics;
        metrics.filter_memory_bytes.add(filter.as_ref().map_or(0, Filter::memory_bytes) as u64);
        metrics.index_memory_bytes.add((index.memory_bytes() + digest.memory_bytes()) as u64);
        let (mut file, mut resident) = (file, None);
        if store.in_memory {
            let filter_bytes = filter.as_ref().map_or(0, Filter::memory_bytes);
            let beside = (filter_bytes + index.memory_bytes() + digest.memory_bytes()) as u64;
            let (made, readable) =
                Resident::new(&*store.fs, file, footer.pages_bytes, beside, &metrics.memory);
            (file, resident) = (readable, Some(made));
        }
        let digest = Mutex::new(Some(Arc::new(digest)));
        Self { file, footer, index, filter, digest, store: Arc::clone(store), resident }
    }

    #[inline]
    pub(crate) fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    pub(super) fn ranks(&self) -> Option<&Fingerprints> {
        self.filter.as_ref()?.ranks()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let metrics = &self.store.metrics;
        metrics.filter_memory_bytes.subtract(self.filter.as_ref().map_or(0, Filter::memory_bytes) as u64);
        let digest_bytes = self.digest.lock().as_ref().map_or(0, |digest| digest.memory_bytes());
        metrics.index_memory_bytes.subtract((self.index.memory_bytes() + digest_bytes) as u64);
    }
}

impl std::fmt::Debug for ListFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ListFile({})", self.meta.id)
    }
}
