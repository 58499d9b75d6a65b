//! The programs of `examples/`, run as they stand by the tests of the documentation.

macro_rules! examples {
    ($($name:ident),*) => {$(
        #[doc = concat!("```\n", include_str!(concat!("../examples/", stringify!($name), ".rs")), "\n```")]
        mod $name {}
    )*};
}

examples!(
    hello,
    batches,
    no_log,
    scan,
    counters,
    transactions,
    changes,
    replication,
    backup,
    ttl,
    merge_rule
);
