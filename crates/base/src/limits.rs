//! The hard limits of the formats. Going over one is an error, never a truncation.

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 256 << 20;
/// The longest value of a stored record, in bytes: operands and states of a key merge to one record, which may be
/// longer than any that was brought.
pub const STORED_VALUE_BYTES_MAX: usize = 2 << 30;
/// The longest batch, in bytes.
pub const BATCH_BYTES_MAX: usize = 1 << 30;
/// The unit of pages and of direct I/O, in bytes.
pub const BLOCK_BYTES: usize = 4096;
/// The longest run of background work between two looks at the scheduler, in bytes.
pub const STEP_BYTES: usize = 1 << 20;

const _: () = assert!(KEY_BYTES_MAX < VALUE_BYTES_MAX && VALUE_BYTES_MAX <= STORED_VALUE_BYTES_MAX);
const _: () = assert!(
    STORED_VALUE_BYTES_MAX + KEY_BYTES_MAX + BLOCK_BYTES <= u32::MAX as usize,
    "pages and frames count bytes in 32 bits"
);
const _: () = assert!(BLOCK_BYTES.is_power_of_two() && STEP_BYTES.is_multiple_of(BLOCK_BYTES));
