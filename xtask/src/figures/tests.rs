//! Parsing, medians, and a page from a small kept sample.
