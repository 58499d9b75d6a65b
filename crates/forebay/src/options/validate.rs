//! Which options are out of their bounds, or contradict each other.

use forebay_base::{Error, Result};

use super::{
    BACKGROUND_THREADS_MAX, Buffers, MEMORY_LIMIT_BYTES_MIN, OPEN_FILES_MIN, Options, RESIDENT_PERCENT_MAX,
    SYNC_INTERVAL_MIN, WRITE_BUFFER_BYTES_MAX, WRITE_BUFFER_BYTES_MIN,
};
use crate::pool::Rate;

impl Options {
    fn validate_memory(&self) -> Result<()> {
        let limit_bytes = self.memory_limit_bytes();
        if self.pool.is_some() && (self.memory_limit_bytes.is_some() || self.background_threads.is_some()) {
            return Err(Error::invalid(
                "a pool has memory and threads for all its databases; leave out memory_limit and background_threads, or \
                 pool",
            ));
        }
        if self.pool.is_some() && self.background_rate_bytes > 0 {
            return Err(Error::invalid(
                "a pool has one background_rate for all its databases; leave it out, and call \
                 Pool::set_background_rate",
            ));
        }
        if limit_bytes < MEMORY_LIMIT_BYTES_MIN {
            return Err(Error::invalid(format!(
                "memory_limit is {limit_bytes} bytes; at least {MEMORY_LIMIT_BYTES_MIN} are needed"
            )));
        }
        let (buffers, beside_records) = (self.division().buffers(false), self.division().buffers(true));
        let (count, buffer) = (buffers.count, buffers.bytes);
        if count < 2 {
            return Err(Error::invalid(format!("write_buffers is {count}; at least 2 are needed")));
        }
        if !(WRITE_BUFFER_BYTES_MIN..=WRITE_BUFFER_BYTES_MAX).contains(&buffer) {
            return Err(Error::invalid(format!(
                "write_buffer is {buffer} bytes; it must be between {WRITE_BUFFER_BYTES_MIN} and {WRITE_BUFFER_BYTES_MAX}"
            )));
        }
        let total = buffers.total_bytes().max(beside_records.total_bytes());
        if total > limit_bytes / 4 * 3 {
            return Err(Error::invalid(format!(
                "write_buffers is {count} of {buffer} bytes each, too much for a memory_limit of {limit_bytes} bytes; raise \
                 the limit to at least {}, or lower write_buffer",
                total.div_ceil(3).saturating_mul(4)
            )));
        }
        self.validate_resident(beside_records)
    }

    fn validate_resident(&self, buffers: Buffers) -> Result<()> {
        let Some(percent) = self.resident_percent else { return Ok(()) };
        if !(1..=RESIDENT_PERCENT_MAX).contains(&percent) {
            return Err(Error::invalid(format!(
                "resident_percent is {percent}; it must be between 1 and {RESIDENT_PERCENT_MAX}"
            )));
        }
        let (limit, room) = (self.memory_limit_bytes(), self.division().resident_room().bytes);
        let is_crowded = buffers.total_bytes().saturating_add(room) > limit / 8 * 7;
        if self.pool.is_none() && (buffers.bytes > room / 2 || is_crowded) {
            return Err(Error::invalid(format!(
                "resident_percent is {percent}, which is {room} of {limit} bytes, beside {} write buffers of {} bytes: two \
                 of these have to fit into it, and with all of them no more than seven eighths of the limit are taken; \
                 leave write_buffer out, or make it shorter",
                buffers.count, buffers.bytes
            )));
        }
        Ok(())
    }

    pub(crate) fn validate(&self) -> Result<()> {
        self.validate_memory()?;
        Rate::validate(self.background_rate_bytes)?;
        if let Some(threads) =
            self.background_threads.filter(|threads| !(1..=BACKGROUND_THREADS_MAX).contains(threads))
        {
            return Err(Error::invalid(format!(
                "background_threads is {threads}; it must be between 1 and {BACKGROUND_THREADS_MAX}"
            )));
        }
        if self.sync_interval < SYNC_INTERVAL_MIN {
            return Err(Error::invalid(format!(
                "sync_interval is {:?}; it must be at least {SYNC_INTERVAL_MIN:?}; for writes that are durable at once use \
                 Durability::Disk",
                self.sync_interval
            )));
        }
        if let Some(files) = self.open_files_max.filter(|&files| files < OPEN_FILES_MIN) {
            return Err(Error::invalid(format!(
                "open_files_max is {files}; at least {OPEN_FILES_MIN} are needed"
            )));
        }
        if self.read_compaction_ratio.is_nan() || self.read_compaction_ratio < 0.0 {
            return Err(Error::invalid(format!(
                "read_compaction_ratio is {}; it must be 0 or more",
                self.read_compaction_ratio
            )));
        }
        if self.transaction_attempts == 0 {
            return Err(Error::invalid("transaction_attempts is 0; a transaction is tried once at least"));
        }
        if self.salvage && !self.read_only {
            return Err(Error::invalid("salvage is for reading only; set read_only too"));
        }
        if self.read_only && self.create_if_missing {
            return Err(Error::invalid("read_only and create_if_missing contradict each other; choose one"));
        }
        let division = self.division();
        debug_assert!(
            division.cache_bytes_min() + division.filter_bytes_min() <= division.reading_bytes(),
            "pages and filters both have what they have at least"
        );
        Ok(())
    }
}
