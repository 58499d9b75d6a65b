//! What LevelDB is tuned by and Forebay is not: caches but for their size, filters, environments. They are made and
//! destroyed, and a caller's own is told when it is destroyed.

use std::ffi::{c_char, c_int, c_void};

use crate::kernel::{Memory, as_they_are, given, plain, text_of};

/// What a caller wants to be told when something is destroyed.
type Destructor = Option<extern "C" fn(state: *mut c_void)>;
/// Gives the name of a caller's own.
type Name = Option<extern "C" fn(state: *mut c_void) -> *const c_char>;
type Compare = Option<
    extern "C" fn(
        state: *mut c_void,
        a: *const c_char,
        a_bytes: usize,
        b: *const c_char,
        b_bytes: usize,
    ) -> c_int,
>;
type CreateFilter = Option<
    extern "C" fn(
        state: *mut c_void,
        keys: *const *const c_char,
        key_bytes: *const usize,
        key_count: c_int,
        filter_bytes: *mut usize,
    ) -> *mut c_char,
>;
type KeyMayMatch = Option<
    extern "C" fn(
        state: *mut c_void,
        key: *const c_char,
        key_bytes: usize,
        filter: *const c_char,
        filter_bytes: usize,
    ) -> u8,
>;

as_they_are!([] Destructor, [] Name, [] Compare, [] CreateFilter, [] KeyMayMatch);

/// Something of the caller's.
struct Own {
    state: *mut c_void,
    destructor: Destructor,
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            destructor(self.state);
        }
    }
}

/// `leveldb_comparator_t`: its name alone counts.
pub(super) struct Comparator {
    pub(super) name: String,
    _own: Own,
}

/// `leveldb_filterpolicy_t`. Forebay has filters of its own.
pub(super) struct FilterPolicy(Option<Own>);

/// `leveldb_cache_t`: its size counts.
pub(super) struct Cache {
    pub(super) bytes: usize,
}

/// `leveldb_env_t`.
pub(super) struct Environment;

/// `leveldb_logger_t`: no call makes one.
pub(super) struct Logger;

plain! {
    fn leveldb_comparator_create(
        state: *mut c_void,
        destructor: Destructor,
        _compare: Compare,
        name: Name,
    ) -> Option<Box<Comparator>> {
        let own = Own { state, destructor };
        let name = name.and_then(|name| text_of(name(state))).unwrap_or_default();
        Some(Box::new(Comparator { name, _own: own }))
    }

    fn leveldb_comparator_destroy(comparator: Option<Box<Comparator>>) {
        drop(comparator);
    }

    fn leveldb_filterpolicy_create(
        state: *mut c_void,
        destructor: Destructor,
        _create_filter: CreateFilter,
        _key_may_match: KeyMayMatch,
        _name: Name,
    ) -> Option<Box<FilterPolicy>> {
        Some(Box::new(FilterPolicy(Some(Own { state, destructor }))))
    }

    fn leveldb_filterpolicy_create_bloom(_bits_per_key: c_int) -> Option<Box<FilterPolicy>> {
        Some(Box::new(FilterPolicy(None)))
    }

    fn leveldb_filterpolicy_destroy(policy: Option<Box<FilterPolicy>>) {
        drop(policy.and_then(|policy| policy.0));
    }

    fn leveldb_cache_create_lru(capacity: usize) -> Option<Box<Cache>> {
        Some(Box::new(Cache { bytes: capacity }))
    }

    fn leveldb_cache_destroy(cache: Option<Box<Cache>>) {
        drop(cache);
    }

    fn leveldb_create_default_env() -> Option<Box<Environment>> {
        Some(Box::new(Environment))
    }

    fn leveldb_env_destroy(env: Option<Box<Environment>>) {
        drop(env);
    }

    fn leveldb_env_get_test_directory(_env: Option<&Environment>) -> *mut c_char {
        let name = format!("forebay-leveldb-test-{}", std::process::id());
        given(std::env::temp_dir().join(name).as_os_str().as_encoded_bytes())
    }

    fn leveldb_free(memory: Memory) {
        memory.free();
    }

    fn leveldb_major_version() -> c_int {
        1
    }

    fn leveldb_minor_version() -> c_int {
        23
    }
}
