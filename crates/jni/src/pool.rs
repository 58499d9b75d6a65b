//! A memory and threads for many databases.

use jni::sys::jlong;

use crate::failure::{Failure, Outcome};
use crate::glue::{given, natives};
use crate::{handles, stats};

fn get(pool: jlong) -> Outcome<forebay_env::sync::Arc<forebay::Pool>> {
    handles::get(pool)
}

/// What cannot be below 0.
pub(crate) fn unsigned(number: jlong, name: &str) -> Outcome<u64> {
    u64::try_from(number).map_err(|_| Failure::invalid(format!("{name} is {number}; it cannot be below 0")))
}

natives! {
    fn open_pool(_env, memory_bytes: jlong, threads: jint) -> jlong {
        let threads = usize::try_from(threads).unwrap_or(0);
        handles::hold(0, forebay::Pool::new(unsigned(memory_bytes, "memory_bytes")?, threads)?)
    }

    fn pool_rate(_env, pool: jlong, bytes_a_second: jlong) -> void {
        Ok(get(pool)?.set_background_rate(unsigned(bytes_a_second, "bytes_a_second")?)?)
    }

    fn pool_stats(env, pool: jlong) -> [jbyte] {
        let told = stats::numbers(&get(pool)?.stats())?;
        given(env, &told)
    }
}
