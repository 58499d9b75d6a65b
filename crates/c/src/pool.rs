//! A memory and threads for many databases.

use std::ffi::c_char;

use crate::database::json;
use crate::error::ErrorOut;
use crate::kernel::{fallible, plain};
use crate::options::Options;

/// `forebay_pool`.
pub(crate) struct Pool(forebay::Pool);

fallible! { ErrorOut<'_>;
    fn forebay_pool_new(memory_bytes: u64, threads: usize) -> Option<Box<Pool>> {
        Ok(Some(Box::new(Pool(forebay::Pool::new(memory_bytes, threads)?))))
    }

    fn forebay_pool_set_background_rate(pool: &Pool, bytes_a_second: u64) -> bool {
        pool.0.set_background_rate(bytes_a_second).map(|()| true)
    }

    fn forebay_pool_stats(pool: &Pool) -> *mut c_char {
        json(&pool.0.stats())
    }

    fn forebay_options_set_pool(options: &mut Options, pool: &Pool) -> bool {
        options.0 = std::mem::take(&mut options.0).pool(&pool.0);
        Ok(true)
    }
}

plain! {
    fn forebay_pool_free(pool: Option<Box<Pool>>) {
        drop(pool);
    }
}
