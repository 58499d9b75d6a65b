//! The only unsafe code of the command: a setting of the C library's allocator.

/// Blocks from this length on come from the kernel, and go back to it when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LONG_BLOCK_BYTES_MIN: std::ffi::c_int = 1 << 20;

/// Has the memory of long blocks go back at once. Left to itself, glibc takes the first of up to 32 MiB that is freed as
/// a sign of many, and keeps them in heaps of its threads from then on: the process holds several times what is in use.
pub(crate) fn give_back_long_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;

        /// As `malloc.h` has it.
        const M_MMAP_THRESHOLD: c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        // SAFETY: the C library that is linked has this function of this type, any thread may call it at any time, and
        // it changes nothing but where later blocks come from. Where it refuses the value, all stays as it was.
        unsafe { mallopt(M_MMAP_THRESHOLD, LONG_BLOCK_BYTES_MIN) };
    }
}
